//! UUIDs of RFC 9562: with hyphens, in braces, behind `urn:uuid:`, or as 32 digits alone.

use super::digits::hex;
use super::part::Part;
use super::reading::{Certainty, Moment, Reading};

/// From the first day of the Gregorian calendar, 1582-10-15, to 1970, in the 100 ns that versions 1 and 6 count.
const GREGORIAN: i128 = 0x01b2_1dd2_1381_4000;

/// What a part of an id says as a UUID.
pub fn read(part: &Part) -> Vec<Reading> {
    let text = bare(part.text);
    if let Some(bits) = hyphenated(text) {
        return vec![of(bits, Certainty::Certain)];
    }
    // 32 digits may be a trace id as well, and by chance one in 64 has a given version and the variant
    match hex(text, 32).filter(|_| part.is_apart()) {
        Some(bits) if is_of_rfc(bits) => match version(bits) {
            1 | 4 | 6 | 7 => vec![of(bits, Certainty::Likely)],
            3 | 5 => vec![of(bits, Certainty::Unlikely)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Without what may stand around a UUID.
fn bare(text: &str) -> &str {
    let urn = "urn:uuid:";
    let text = match text.get(..urn.len()) {
        Some(start) if start.eq_ignore_ascii_case(urn) => &text[urn.len()..],
        _ => text,
    };
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text)
}

fn hyphenated(text: &str) -> Option<u128> {
    let mut groups = text.split('-');
    let mut bits = 0;
    for digits in [8, 4, 4, 4, 12] {
        bits = bits << (4 * digits) | hex(groups.next()?, digits)?;
    }
    groups.next().is_none().then_some(bits)
}

pub fn version(bits: u128) -> u8 {
    (bits >> 76) as u8 & 0xf
}

/// Whether the bits of the variant are those of the RFC; other variants have no versions.
pub fn is_of_rfc(bits: u128) -> bool {
    bits >> 62 & 0b11 == 0b10
}

fn of(bits: u128, certainty: Certainty) -> Reading {
    let plain = |form, title, note: &str| {
        let notes = if note.is_empty() { Vec::new() } else { vec![note.to_owned()] };
        Reading { notes, ..Reading::new(form, title, certainty) }
    };
    let random = |reading, random_bits| Reading { random_bits: Some(random_bits), ..reading };
    // Envoy writes into the version of a request's UUID 4 whether and why it is traced
    let marked = |why| random(plain("uuid", "UUID 4 marked by Envoy", &format!("marked as traced: {why}")), 122);
    match (bits, version(bits)) {
        (0, _) => plain("uuid-nil", "the nil UUID", "all bits are 0: no id was given"),
        (u128::MAX, _) => plain("uuid-max", "the max UUID", "all bits are 1: no id was given"),
        _ if !is_of_rfc(bits) => {
            plain("uuid", "a UUID of another variant", "not of RFC 9562: its bits are its maker's own")
        }
        (_, 1) => clocked(
            bits,
            (bits >> 64 & 0x0fff) << 48 | (bits >> 80 & 0xffff) << 32 | bits >> 96,
            "uuid-1",
            "UUID 1",
            certainty,
        ),
        (_, 2) => {
            plain("uuid-2", "UUID 2", "of DCE: a user or group id, and a time of some 7 minutes that is not read")
        }
        (_, 3) => plain("uuid-3", "UUID 3", "the MD5 hash of a name: the same name, the same id"),
        (_, 4) => random(plain("uuid-4", "UUID 4", ""), 122),
        (_, 5) => plain("uuid-5", "UUID 5", "the SHA-1 hash of a name: the same name, the same id"),
        (_, 6) => clocked(bits, bits >> 80 << 12 | bits >> 64 & 0x0fff, "uuid-6", "UUID 6", certainty),
        (_, 7) => {
            let moment = Some(Moment::of_milliseconds((bits >> 80) as i64));
            random(Reading { moment, ..Reading::new("uuid-7", "UUID 7", certainty) }, 74)
        }
        (_, 8) => plain("uuid-8", "UUID 8", "its bits are its maker's own"),
        (_, 9) => marked("it was sampled"),
        (_, 10) => marked("the server forced it"),
        (_, 11) => marked("the client forced it"),
        (_, version) => plain("uuid", "a UUID of no known version", &format!("version {version} is not defined")),
    }
}

/// Versions 1 and 6: ticks of a clock, a clock sequence, and the node.
fn clocked(bits: u128, ticks: u128, form: &'static str, title: &'static str, certainty: Certainty) -> Reading {
    let nanoseconds = (ticks as i128 - GREGORIAN) * 100;
    let clock_sequence = bits >> 48 & 0x3fff;
    let node: Vec<String> = (0..6).rev().map(|byte| format!("{:02x}", bits >> (8 * byte) & 0xff)).collect();
    // no network card has an address for many
    let is_random = bits >> 40 & 1 == 1;
    let (random_bits, kind) = match is_random {
        true => (47, "the node is random, not the address of a machine"),
        false => (0, "the node is the address of a network card, unless it was made up"),
    };
    Reading {
        moment: Some(Moment { nanoseconds, resolution: "100 ns" }),
        instance: Some(format!("node {}, clock sequence {clock_sequence}", node.join(":"))),
        random_bits: Some(random_bits),
        notes: vec![kind.to_owned()],
        ..Reading::new(form, title, certainty)
    }
}
