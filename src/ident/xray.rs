//! Trace ids of AWS X-Ray: `1-5759e988-bd862e3fe1be46a994272793`, a version, epoch seconds and 96 random bits.

use super::digits::hex;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str) -> Option<Reading> {
    let (seconds, random) = text.strip_prefix("1-")?.split_once('-')?;
    hex(random, 24)?;
    Some(Reading {
        moment: Some(Moment::of_seconds(hex(seconds, 8)? as u32)),
        random_bits: Some(96),
        ..Reading::new("xray", "trace id of X-Ray", Certainty::Likely)
    })
}
