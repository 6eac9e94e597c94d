//! Milliseconds in hex, an instance and a number: `0197a3f2c1d0-07-00042`.

use super::digits::{decimal, hex};
use super::part::is_separator;
use super::reading::{Certainty, Moment, Reading};

pub fn read(text: &str) -> Option<Reading> {
    let mut parts = text.split(is_separator);
    let (clock, instance, number) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || instance.is_empty() || !instance.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    // eleven digits until the year 2527, often with a zero before them
    let milliseconds = hex(clock, 11).or_else(|| hex(clock, 12))?;
    Some(Reading {
        moment: Some(Moment::of_milliseconds(milliseconds as i64)),
        instance: Some(instance.to_owned()),
        sequence: Some(decimal(number)?.to_string()),
        random_bits: Some(0),
        ..Reading::new("counted", "milliseconds in hex, instance and number", Certainty::Likely)
    })
}
