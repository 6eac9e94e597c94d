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
