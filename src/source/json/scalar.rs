//! The grammar of numbers and bare words, shared by the general parser and the shapes.

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

#[cfg(test)]
mod tests {
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
