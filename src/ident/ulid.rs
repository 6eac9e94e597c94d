//! ULIDs: 48 bits of milliseconds and 80 random ones in base 32; and UUIDs 7 written so behind a type's name (TypeID).

use super::digits::in_alphabet;
use super::part::Part;
use super::reading::{Certainty, Moment, Reading};
use super::uuid;

/// Crockford's: without I, L, O and U.
const BASE_32: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

pub fn read(part: &Part) -> Option<Reading> {
    let text = part.text;
    if text.len() != 26 || text.as_bytes().first().is_none_or(|first| *first > b'7') {
        return None;
    }
    // 130 bits, of which the first two are 0
    let (start, end) = text.split_at_checked(10)?;
    let digits = |text: &str| in_alphabet(&text.to_ascii_uppercase(), BASE_32);
    let (milliseconds, rest) = (digits(start)?, digits(end)?);
    let moment = Some(Moment::of_milliseconds(milliseconds as i64));
    let bits = milliseconds << 80 | rest;
    let is_typed = part.prefix.ends_with('_') && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let (form, title, random_bits) = match () {
        () if is_typed && uuid::version(bits) == 7 && uuid::is_of_rfc(bits) => ("typeid", "TypeID", 74),
        () => ("ulid", "ULID", 80),
    };
    // of random letters not one in a hundred has a time that can be meant
    Some(Reading { moment, random_bits: Some(random_bits), ..Reading::new(form, title, Certainty::Likely) })
}
