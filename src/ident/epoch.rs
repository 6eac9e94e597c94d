//! Decimal Unix times, alone or before an instance and a number: `1748772000000-gw1-17`.

use super::digits::decimal;
use super::part::is_separator;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str) -> Option<Reading> {
    let (clock, rest) = text.split_once(is_separator).unwrap_or((text, ""));
    let number = i128::from(decimal(clock)?);
    let (unit, resolution) = match clock.len() {
        10 => (1_000_000_000, "s"),
        13 => (1_000_000, "ms"),
        16 => (1000, "us"),
        19 => (1, "ns"),
        _ => return None,
    };
    let (instance, sequence) = match rest.rsplit_once(is_separator) {
        Some((instance, sequence)) if !instance.is_empty() => (Some(instance), Some(sequence)),
        Some(_) => return None,
        None => (None, Some(rest).filter(|rest| !rest.is_empty())),
    };
    // what is no number behind the time says nothing that can be named
    let sequence = match sequence {
        Some(digits) => Some(decimal(digits)?.to_string()),
        None => None,
    };
    let certainty = match clock.len() {
        // ten digits alone are most often another number
        10 if rest.is_empty() => return None,
        // as long as a snowflake, which hardly ever ends in three zeros
        19 if !clock.ends_with("000") => Certainty::Possible,
        _ => Certainty::Likely,
    };
    Some(Reading {
        moment: Some(Moment { nanoseconds: number * unit, resolution }),
        instance: instance.map(str::to_owned),
        sequence,
        ..Reading::new("epoch", "a Unix time", certainty)
    })
}
