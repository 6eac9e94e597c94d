//! Values as a log wrote them, and why a line is no record.
//!
//! Every format hands its values on in this one form: borrowed bytes and their kind, nothing
//! converted. What a value means (a count, a duration, a time) is decided later by the column it
//! fills, so that the same text means the same in JSON and in CSV.

use std::fmt;

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

/// Whether a line is JSON of another kind, or what is left of a broken record, rather than text that a person wrote: a
/// quoted key, more braces closed than opened, control characters.
pub fn looks_like_json(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let has_key =
        memchr::memchr_iter(b'"', line).any(|quote| line[quote + 1..].trim_ascii_start().first() == Some(&b':'));
    let count = |byte| memchr::memchr_iter(byte, line).count();
    // words before a whole object, as a banner that prints its settings: the front of a cut record has keys instead
    let first = line.iter().position(|byte| matches!(byte, b'{' | b'"'));
    let is_word = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_alphabetic);
    let has_words = first.is_some_and(|at| line[at] == b'{' && line[..at].windows(3).any(is_word));
    if has_words && count(b'{') == count(b'}') {
        return false;
    }
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r' | 0x1b);
    has_key
        || count(b'}') > count(b'{')
        || matches!(line.first(), Some(b'{' | b'"'))
        || line.iter().any(is_control)
        || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// Appends `bytes` to `into` with JSON's backslash escapes resolved.
///
/// A surrogate without its partner becomes U+FFFD. `bytes` is the inside of a valid JSON string;
/// from anything else an escape that makes no sense is taken as it stands.
pub fn unescape(bytes: &[u8], into: &mut Vec<u8>) {
    // Escapes stand close together where a text holds JSON: eight bytes are copied at a time, up to the next of them.
    let start = into.len();
    into.resize(start + bytes.len() + WORD, 0);
    let out = &mut into[start..];
    let (mut read, mut written) = (0, 0);
    while let Some(word) = bytes.get(read..).and_then(|rest| rest.first_chunk::<WORD>()) {
        out[written..written + WORD].copy_from_slice(word);
        let plain = plain_length(u64::from_le_bytes(*word));
        read += plain;
        written += plain;
        if plain < WORD {
            let (length, character) = escape(&bytes[read..]);
            read += length;
            written += character.write(&mut out[written..]);
        }
    }
    while let Some(&byte) = bytes.get(read) {
        if byte == b'\\' {
            let (length, character) = escape(&bytes[read..]);
            read += length;
            written += character.write(&mut out[written..]);
        } else {
            out[written] = byte;
            read += 1;
            written += 1;
        }
    }
    into.truncate(start + written);
}

const WORD: usize = 8;

/// How many of eight bytes come before the first backslash.
#[inline(always)]
fn plain_length(word: u64) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let differing = word ^ (ONES * u64::from(b'\\'));
    // the lowest byte that is zero has its high bit set here; bytes above it may be wrong
    let marks = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
    marks.trailing_zeros() as usize / WORD
}

/// What an escape stands for.
enum Escaped {
    Nothing,
    Byte(u8),
    Character(char),
}

impl Escaped {
    /// Writes it, which takes no more room than its escape did; returns how much.
    #[inline(always)]
    fn write(self, out: &mut [u8]) -> usize {
        match self {
            Escaped::Nothing => 0,
            Escaped::Byte(byte) => {
                out[0] = byte;
                1
            }
            Escaped::Character(character) => character.encode_utf8(out).len(),
        }
    }
}

/// The length and the meaning of the escape that `text`, which begins with a backslash, begins with.
#[inline(always)]
fn escape(text: &[u8]) -> (usize, Escaped) {
    let byte = match text.get(1) {
        None => return (1, Escaped::Nothing),
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') if hex_unit(&text[2..]).is_some() => {
            let (character, after) = unescape_unicode(&text[2..]);
            return (text.len() - after.len(), Escaped::Character(character));
        }
        Some(other) => *other,
    };
    (2, Escaped::Byte(byte))
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
