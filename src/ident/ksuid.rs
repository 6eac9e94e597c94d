//! KSUIDs: seconds since 2014-05-13T16:53:20Z and 128 random bits, in 27 digits of base 62.

use super::reading::{Certainty, Moment, Reading};

const BASE_62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const EPOCH_SECONDS: u64 = 1_400_000_000;

pub fn read(text: &str) -> Option<Reading> {
    let seconds = first_word(text).filter(|_| text.len() == 27)?;
    Some(Reading {
        moment: Some(Moment::of_seconds(seconds + EPOCH_SECONDS)),
        random_bits: Some(128),
        ..Reading::new("ksuid", "KSUID", Certainty::Possible)
    })
}

/// The upper 32 of the 160 bits that the digits make; None beyond them.
fn first_word(text: &str) -> Option<u64> {
    let mut words = [0_u64; 5];
    for byte in text.bytes() {
        let mut carry = BASE_62.iter().position(|letter| *letter == byte)? as u64;
        for word in words.iter_mut().rev() {
            let sum = *word * 62 + carry;
            (*word, carry) = (sum & 0xffff_ffff, sum >> 32);
        }
        if carry > 0 {
            return None;
        }
    }
    words.first().copied()
}
