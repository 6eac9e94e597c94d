//! The grammar of numbers and bare words, shared by the general parser and the shapes.

use super::simd::{HALF, Lanes, WINDOW, window};
use crate::source::value::Reject;

/// The bare words of JSON, and those that many writers put where a number has no value.
const WORDS: [&[u8]; 6] = [b"true", b"false", b"null", b"NaN", b"Infinity", b"-Infinity"];

/// The length of the number or word that `text` starts with.
pub(super) fn scalar_length(text: &[u8]) -> Result<usize, Reject> {
    match text {
        [b'0'..=b'9', ..] => number_length(text),
        [b'-', b'0'..=b'9', ..] => number_length(&text[1..]).map(|length| length + 1),
        _ => word_length(text),
    }
}

fn word_length(text: &[u8]) -> Result<usize, Reject> {
    for word in WORDS {
        if text.starts_with(word) {
            return Ok(word.len());
        }
    }
    let cut_off = WORDS.iter().any(|word| word.starts_with(text));
    Err(if cut_off { Reject::CutOff } else { Reject::Malformed })
}

/// The length of the number without sign that `text`, which begins with a digit, starts with.
fn number_length(text: &[u8]) -> Result<usize, Reject> {
    let mut length = match text {
        [b'0', b'0'..=b'9', ..] => return Err(Reject::Malformed),
        _ => digits(text, 0)?,
    };
    if text.get(length) == Some(&b'.') {
        length = digits(text, length + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(length) {
        length += 1;
        if let Some(b'+' | b'-') = text.get(length) {
            length += 1;
        }
        length = digits(text, length)?;
    }
    Ok(length)
}

/// Where the digits that must stand at `start` end.
fn digits(text: &[u8], start: usize) -> Result<usize, Reject> {
    let rest = text.get(start..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 if rest.is_empty() => Err(Reject::CutOff),
        0 => Err(Reject::Malformed),
        count => Ok(start + count),
    }
}

/// Checks the string, number or word from `start` to `end`, which is the place of a structural byte
/// outside strings. Returns how many quotes it adds to its line, or None if it is none. A string is
/// only seen to begin and to end with a quote.
#[inline(always)]
pub(super) fn scalar_quotes<L: Lanes>(lanes: L, text: &[u8], start: usize, end: usize) -> Option<u32> {
    let window = window(text, start)?;
    if window[0] == b'"' {
        return is_string(text.get(start..end)?).then_some(2);
    }
    let length = end.wrapping_sub(start);
    if number_faults(lanes, window, length as u32) == 0 || is_usual_word(window, length as u32) {
        return Some(0);
    }
    is_scalar(text.get(start..end)?).then_some(0)
}

#[cold]
#[inline(never)]
fn is_scalar(text: &[u8]) -> bool {
    scalar_length(text) == Ok(text.len())
}

/// Whether the bytes up to a structural byte outside strings begin and end with a quote. One quote
/// cannot be both, since what is behind it would be inside the string.
#[inline(always)]
fn is_string(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'"') && bytes.last() == Some(&b'"')
}

/// Zero if the first `length` bytes are a number without sign and exponent and the next is no
/// digit. Anything else leaves the question open. There is no branch for what kind of number it is,
/// since the processor would often guess it wrong.
#[inline(always)]
pub(super) fn number_faults<L: Lanes>(lanes: L, window: &[u8; WINDOW], length: u32) -> u32 {
    let (non_digits, stops) = lanes.non_digits_and_stops(window);
    // The full stop of a fraction, if the first byte that is no digit is one.
    let stop = non_digits & non_digits.wrapping_neg() & stops;
    // The last bit keeps the end within the window.
    let end = ((non_digits ^ stop) | 1 << (WINDOW - 1)).trailing_zeros();
    // A digit must be the first byte, and must follow the full stop.
    let no_digit = non_digits & (stop << 1 | 1);
    let leading_zero = stops & !(non_digits >> 1) & 1;
    (end ^ length) | no_digit | leading_zero
}

/// The same for two numbers at once. Not zero also if one of them is longer than 15 bytes.
#[inline(always)]
pub(super) fn faults_of_two<L: Lanes>(lanes: L, windows: [&[u8; WINDOW]; 2], lengths: [u32; 2]) -> u32 {
    /// The first and the last bit of each half.
    const FIRSTS: u32 = 0x0001_0001;
    const LASTS: u32 = FIRSTS << (HALF - 1);
    let halves = windows.map(|window| &window.as_chunks::<HALF>().0[0]);
    let (non_digits, stops) = lanes.non_digits_and_stops_of_two(halves[0], halves[1]);
    // The lowest bit of each half, which has one since its last is set.
    let lowest = |bits: u32| bits & !bits.wrapping_sub(FIRSTS);
    let stop = lowest(non_digits | LASTS) & stops;
    let ends = lowest((non_digits ^ stop) | LASTS);
    let [first, second] = lengths.map(|length| 1 << length.min(HALF as u32));
    let elsewhere = u64::from(ends) ^ (first | second << HALF);
    let no_digit = non_digits & (stop << 1 | FIRSTS);
    let leading_zero = stops & !(non_digits >> 1) & FIRSTS;
    elsewhere as u32 | (elsewhere >> 32) as u32 | no_digit | leading_zero
}

/// Whether the first bytes are one of the words of JSON, with no branch for the one it is.
#[inline(always)]
pub(super) fn is_usual_word(window: &[u8; WINDOW], length: u32) -> bool {
    let (fours, _) = window.as_chunks();
    let four = u32::from_le_bytes(fours[0]);
    let is = |word: &[u8; 4]| four == u32::from_le_bytes(*word);
    ((length == 4) & (is(b"true") | is(b"null"))) | ((length == 5) & is(b"fals") & (window[4] == b'e'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::simd::Portable;
    use super::*;

    #[test]
    fn numbers_follow_the_strict_grammar() {
        for number in ["0", "-0", "7", "120", "-12.50", "0.0", "1e5", "1E+05", "-1.5e-7"] {
            assert_eq!(scalar_length(number.as_bytes()), Ok(number.len()), "{number}");
            assert_eq!(scalar_length(format!("{number},1").as_bytes()), Ok(number.len()), "{number},");
        }
        for broken in ["01", "-01", "1.}", ".5", "+1", "1e}", "1e+}", "-}", "--1", "1.e5"] {
            assert_eq!(scalar_length(broken.as_bytes()), Err(Reject::Malformed), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn what_looks_faultless_is_a_number(number in "[0-9.]{0,34}|[0-9]{0,31}\\.?[0-9]{0,4}", behind in "[,}e-]") {
            let text = format!("{number}{behind:,<64}");
            let window = window(text.as_bytes(), 0).expect("long enough");
            let is_number = scalar_length(number.as_bytes()) == Ok(number.len());
            let (good, bad) = (b"7,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,", b"7.,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,");
            for length in 0..80 {
                let fits = is_number && length == number.len();
                let length = length as u32;
                prop_assert_eq!(number_faults(Portable, window, length) == 0, fits && number.len() < WINDOW);
                let fits = fits && number.len() < HALF;
                prop_assert_eq!(faults_of_two(Portable, [window, good], [length, 1]) == 0, fits);
                prop_assert_eq!(faults_of_two(Portable, [good, window], [1, length]) == 0, fits);
                prop_assert_ne!(faults_of_two(Portable, [window, bad], [length, 2]), 0);
                prop_assert_ne!(faults_of_two(Portable, [bad, window], [2, length]), 0);
            }
        }
    }

    #[test]
    fn a_number_or_word_that_stops_short_is_cut_off() {
        for cut in ["-", "1.", "1e", "1e-", "t", "fals", "nul", "N", "-Inf", ""] {
            assert_eq!(scalar_length(cut.as_bytes()), Err(Reject::CutOff), "{cut}");
        }
    }

    #[test]
    fn words_are_those_of_json_and_three_more() {
        for word in ["true", "false", "null", "NaN", "Infinity", "-Infinity"] {
            assert_eq!(scalar_length(format!("{word}}}").as_bytes()), Ok(word.len()), "{word}");
        }
        for broken in ["True", "nan", "None", "+Infinity", "undefined"] {
            assert_eq!(scalar_length(broken.as_bytes()), Err(Reject::Malformed), "{broken}");
        }
    }
}
