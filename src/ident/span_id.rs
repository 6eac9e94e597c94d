//! 16 hexadecimal digits: a span, or a short request id.

use super::digits::hex;
use super::reading::{Certainty, Reading};

pub fn read(text: &str) -> Option<Reading> {
    hex(text, 16)?;
    let notes = vec!["64 bits, random as a rule: a span, or a short id".to_owned()];
    Some(Reading { notes, ..Reading::new("span-id", "span id", Certainty::Possible) })
}
