//! Values as a log wrote them, and why a line is no record.
//!
//! Every format hands its values on in this one form: borrowed bytes and their kind, nothing
//! converted. What a value means (a count, a duration, a time) is decided later by the column it
//! fills, so that the same text means the same in JSON and in CSV.

use std::fmt;

use memchr::memchr;

/// One value as a log wrote it, borrowed from the text it stands in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawValue<'a> {
    /// The record has no such key.
    Missing,
    Null,
    Bool(bool),
    /// The number as written. Also one of the bare words `NaN`, `Infinity` and `-Infinity`, which
    /// some writers use and which mean missing.
    Number(&'a [u8]),
    /// The text between the quotes, valid UTF-8; `escaped` if it still holds backslash escapes (see
    /// [`unescape`]).
    Text {
        bytes: &'a [u8],
        escaped: bool,
    },
    /// An array or an object, as its JSON text.
    Nested(&'a [u8]),
}

/// Why a line is not a record. The display form completes the sentence "this line is ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reject {
    NotAnObject,
    Malformed,
    CutOff,
    BadUtf8,
    TooDeep,
    TooLong,
}

impl Reject {
    pub const ALL: [Reject; 6] =
        [Reject::NotAnObject, Reject::Malformed, Reject::CutOff, Reject::BadUtf8, Reject::TooDeep, Reject::TooLong];

    /// The machine name, used in metric names.
    pub fn code(self) -> &'static str {
        match self {
            Reject::NotAnObject => "not_an_object",
            Reject::Malformed => "malformed",
            Reject::CutOff => "cut_off",
            Reject::BadUtf8 => "bad_utf8",
            Reject::TooDeep => "too_deep",
            Reject::TooLong => "too_long",
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reject::NotAnObject => "not a JSON object",
            Reject::Malformed => "malformed JSON",
            Reject::CutOff => "cut off before its JSON ends",
            Reject::BadUtf8 => "not valid UTF-8",
            Reject::TooDeep => "nested deeper than 64 levels",
            Reject::TooLong => "longer than 64 MiB",
        })
    }
}

/// Appends `bytes` to `into` with JSON's backslash escapes resolved.
///
/// A surrogate without its partner becomes U+FFFD. `bytes` is the inside of a valid JSON string;
/// from anything else an escape that makes no sense is taken as it stands.
pub fn unescape(bytes: &[u8], into: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(backslash) = memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..backslash]);
        rest = &rest[backslash + 1..];
        let Some((&escape, after)) = rest.split_first() else {
            return;
        };
        rest = after;
        match escape {
            b'b' => into.push(0x08),
            b'f' => into.push(0x0c),
            b'n' => into.push(b'\n'),
            b'r' => into.push(b'\r'),
            b't' => into.push(b'\t'),
            b'u' => {
                let (character, after) = unescape_unicode(after);
                into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            other => into.push(other),
        }
    }
    into.extend_from_slice(rest);
}

/// The character of the hex digits at the front of `after_u`, of two escapes if they are a
/// surrogate pair, and what follows.
fn unescape_unicode(after_u: &[u8]) -> (char, &[u8]) {
    let Some((unit, rest)) = hex_unit(after_u) else {
        return (char::REPLACEMENT_CHARACTER, after_u);
    };
    if (0xd800..0xdc00).contains(&unit)
        && let Some((low @ 0xdc00..0xe000, after_pair)) = rest.strip_prefix(b"\\u").and_then(hex_unit)
    {
        let point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), after_pair);
    }
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), rest)
}

/// Four hex digits as a UTF-16 unit, and what follows them.
fn hex_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let mut unit = 0;
    for &digit in digits {
        unit = unit * 16 + char::from(digit).to_digit(16)?;
    }
    Some((unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescaped(text: &str) -> String {
        let mut into = Vec::new();
        unescape(text.as_bytes(), &mut into);
        String::from_utf8(into).expect("unescaped text is UTF-8")
    }

    #[test]
    fn text_without_escapes_is_copied() {
        assert_eq!(unescaped("路径 a/b"), "路径 a/b");
    }

    #[test]
    fn every_short_escape_is_resolved() {
        assert_eq!(unescaped(r#"\"\\\/\b\f\n\r\t"#), "\"\\/\u{8}\u{c}\n\r\t");
    }

    #[test]
    fn unicode_escapes_are_resolved_also_as_surrogate_pairs() {
        assert_eq!(unescaped(r"\u0041\u00e9\u8def\uD83D\ude00!"), "Aé路😀!");
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(unescaped(r"\ud800"), "\u{fffd}");
        assert_eq!(unescaped(r"\ude00x"), "\u{fffd}x");
        assert_eq!(unescaped(r"\ud800\u0041"), "\u{fffd}A");
        assert_eq!(unescaped(r"\ud800\ud83d\ude00"), "\u{fffd}😀");
    }
}
