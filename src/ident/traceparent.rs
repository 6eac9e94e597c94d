//! The header `traceparent` of W3C Trace Context: version, trace, the caller's span, flags.

use super::digits::hex;
use super::reading::{Certainty, Reading};

pub fn read(text: &str) -> Option<Reading> {
    let mut parts = text.splitn(5, '-');
    let mut next = |count| parts.next().and_then(|digits| Some((digits, hex(digits, count)?)));
    let ((version, of_version), (trace, of_trace)) = (next(2)?, next(32)?);
    let ((span, of_span), (_, flags)) = (next(16)?, next(2)?);
    // a later version may add to it
    let is_longer = parts.next().is_some();
    if of_version == 0 && is_longer {
        return None;
    }
    let is_invalid = of_version == 0xff || of_trace == 0 || of_span == 0;
    let sampled = if flags & 1 == 1 { "sampled" } else { "not sampled" };
    let mut notes = vec![format!("version {version}, trace {trace}, caller's span {span}, {sampled}")];
    notes.extend(is_invalid.then(|| "invalid: a receiver begins a new trace".to_owned()));
    Some(Reading {
        // the second flag promises that so many at its end are
        random_bits: (flags & 2 == 2).then_some(56),
        notes,
        ..Reading::new("traceparent", "traceparent", Certainty::Certain)
    })
}
