//! ObjectIds of MongoDB: epoch seconds, five random bytes of the process, and its counter.

use super::digits::hex;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str) -> Option<Reading> {
    let bits = hex(text, 24)?;
    Some(Reading {
        moment: Some(Moment::of_seconds((bits >> 64) as u32)),
        instance: Some(format!("process {:010x}", bits >> 24 & 0xff_ffff_ffff)),
        sequence: Some((bits & 0xff_ffff).to_string()),
        random_bits: Some(40),
        notes: vec!["the process is random, the number begins anywhere".to_owned()],
        ..Reading::new("objectid", "ObjectId", Certainty::Likely)
    })
}
