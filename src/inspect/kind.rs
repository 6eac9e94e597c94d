//! The types that values are seen to have, before anything is known about what they mean.

use jiff::tz::TimeZone;

use crate::record::number::{self, Unfit};
use crate::record::timestamp;
use crate::source::row::is_missing_word;
use crate::source::value::RawValue;

/// What a value is by its looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// A number without point and exponent.
    Integer,
    Number,
    /// NaN or Infinity.
    NotFinite,
    /// A calendar time as text.
    Time,
    Text,
    Boolean,
    Array,
    /// An object without keys; others are shown key by key.
    Object,
}

impl Type {
    pub const ALL: [Type; 8] = [
        Type::Integer,
        Type::Number,
        Type::NotFinite,
        Type::Time,
        Type::Text,
        Type::Boolean,
        Type::Array,
        Type::Object,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Number => "number",
            Type::NotFinite => "NaN",
            Type::Time => "time",
            Type::Text => "text",
            Type::Boolean => "boolean",
            Type::Array => "array",
            Type::Object => "object",
        }
    }
}

/// One value, looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub kind: Type,
    /// The value of a finite number.
    pub number: Option<f64>,
    /// A time that names no zone.
    pub zoneless: bool,
}

impl Look {
    /// A value of JSON, which says what it is; None for null.
    pub fn at(value: RawValue<'_>) -> Option<Self> {
        Some(match value {
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Bool(_) => Self::of(Type::Boolean),
            RawValue::Number(text) => Self::at_number(text).unwrap_or(Self::of(Type::Number)),
            RawValue::Text { bytes, .. } => Self::at_text(bytes),
            RawValue::Nested(text) if text.starts_with(b"[") => Self::of(Type::Array),
            RawValue::Nested(_) => Self::of(Type::Object),
        })
    }

    /// A cell of CSV, where everything is text and only its form tells more; None for the words that mean nothing.
    pub fn at_cell(text: &[u8]) -> Option<Self> {
        if is_missing_word(text) {
            return None;
        }
        let boolean = text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false");
        let number = || Self::at_number(text).unwrap_or_else(|| Self::at_text(text));
        Some(if boolean { Self::of(Type::Boolean) } else { number() })
    }

    fn of(kind: Type) -> Self {
        Self { kind, number: None, zoneless: false }
    }

    /// None for what is no number.
    fn at_number(text: &[u8]) -> Option<Self> {
        match number::float(text) {
            Ok(value) => {
                let whole = !text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
                let kind = if whole { Type::Integer } else { Type::Number };
                Some(Self { number: Some(value), ..Self::of(kind) })
            }
            Err(Unfit::NotFinite) => Some(Self::of(Type::NotFinite)),
            Err(_) => None,
        }
    }

    fn at_text(text: &[u8]) -> Self {
        // Digits alone are an epoch only where a column says so.
        if text.get(4) == Some(&b'-')
            && let Ok(instant) = timestamp::from_text(text, &TimeZone::UTC, None)
        {
            return Self { zoneless: instant.zone_assumed, ..Self::of(Type::Time) };
        }
        Self::of(Type::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(value: RawValue<'_>) -> Option<&'static str> {
        Look::at(value).map(|look| look.kind.word())
    }

    fn text(bytes: &[u8]) -> RawValue<'_> {
        RawValue::Text { bytes, escaped: false }
    }

    #[test]
    fn a_value_of_json_is_what_it_is_written_as() {
        assert_eq!(kind(RawValue::Number(b"12345678901234567890123")), Some("integer"));
        assert_eq!(kind(RawValue::Number(b"21073.0")), Some("number"));
        assert_eq!(kind(RawValue::Number(b"-Infinity")), Some("NaN"));
        assert_eq!(kind(text(b"21073")), Some("text"));
        assert_eq!(kind(text(b"2025-06-01 08:00:00")), Some("time"));
        assert_eq!(kind(text(b"2025-06-01 08:00:00 and more")), Some("text"));
        assert_eq!(kind(RawValue::Nested(b"[1]")), Some("array"));
        assert_eq!(kind(RawValue::Nested(b"{ }")), Some("object"));
        assert_eq!(kind(RawValue::Bool(false)), Some("boolean"));
        assert_eq!(kind(RawValue::Null), None);
    }

    #[test]
    fn a_cell_of_csv_is_what_its_text_looks_like() {
        for (cell, word) in [
            ("21073", Some("integer")),
            ("0.5", Some("number")),
            ("NaN", Some("NaN")),
            ("True", Some("boolean")),
            ("2025-06-01T08:00:00Z", Some("time")),
            ("req-1", Some("text")),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(Look::at_cell(cell.as_bytes()).map(|look| look.kind.word()), word, "{cell}");
        }
    }

    #[test]
    fn a_time_without_zone_is_known_as_one() {
        let zoneless = |time: &[u8]| Look::at(text(time)).is_some_and(|look| look.zoneless);
        assert!(zoneless(b"2025-06-01T08:00:00"));
        assert!(!zoneless(b"2025-06-01T08:00:00+08:00"));
    }
}
