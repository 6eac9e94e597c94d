//! Trace ids: 32 hexadecimal digits, of which makers say nothing.

use super::digits::hex;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str) -> Vec<Reading> {
    let Some(bits) = hex(text, 32) else { return Vec::new() };
    let note = if bits == 0 { "all bits are 0: no trace" } else { "128 bits, random as a rule" };
    let plain = Reading { notes: vec![note.to_owned()], ..Reading::new("trace-id", "trace id", Certainty::Possible) };
    vec![plain, of_seconds(bits)]
}

/// As the collectors of AWS X-Ray want it, and their libraries make it.
fn of_seconds(bits: u128) -> Reading {
    Reading {
        moment: Some(Moment::of_seconds((bits >> 96) as u32)),
        random_bits: Some(96),
        ..Reading::new("xray", "trace id of X-Ray", Certainty::Unlikely)
    }
}
