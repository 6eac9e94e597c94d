//! Units of durations and epochs: from a key's suffix or from `--map`, never from a duration's size.

use crate::request::Word;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Minutes,
}

/// Endings of keys that state a unit. Every producer's form that was seen, longest first.
pub const SUFFIXES: &[(&str, Unit)] = &[
    ("_seconds", Unit::Seconds),
    ("_sec", Unit::Seconds),
    ("_ms", Unit::Milliseconds),
    ("_us", Unit::Microseconds),
    ("_ns", Unit::Nanoseconds),
    ("_s", Unit::Seconds),
];

/// The unit that a key's ending states, and that ending.
pub fn suffix_unit(key: &str) -> Option<(&'static str, Unit)> {
    SUFFIXES.iter().find(|(suffix, _)| key.ends_with(suffix)).copied()
}

impl Unit {
    /// That which records name so, some of which write it out.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "sec" | "secs" | "second" | "seconds" => Some(Unit::Seconds),
            "msec" | "millisecond" | "milliseconds" => Some(Unit::Milliseconds),
            "usec" | "microsecond" | "microseconds" => Some(Unit::Microseconds),
            "nanosecond" | "nanoseconds" => Some(Unit::Nanoseconds),
            _ => Unit::from_word(word).ok(),
        }
    }

    /// A duration in this unit as milliseconds.
    pub fn to_ms(self, value: f64) -> f64 {
        // Division keeps 250 us at exactly 0.25 ms, which multiplying by 0.001 would not.
        match self {
            Unit::Minutes => value * 60_000.0,
            Unit::Seconds => value * 1000.0,
            Unit::Milliseconds => value,
            Unit::Microseconds => value / 1000.0,
            Unit::Nanoseconds => value / 1_000_000.0,
        }
    }

    /// Nanoseconds in one of this unit.
    pub fn nanoseconds(self) -> i64 {
        match self {
            Unit::Minutes => 60_000_000_000,
            Unit::Seconds => 1_000_000_000,
            Unit::Milliseconds => 1_000_000,
            Unit::Microseconds => 1000,
            Unit::Nanoseconds => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_scales_to_milliseconds_without_rounding_where_the_decimal_is_short() {
        assert_eq!(Unit::Microseconds.to_ms(250.0), 0.25);
        assert_eq!(Unit::Nanoseconds.to_ms(1_250_000_000.0), 1250.0);
        assert_eq!(Unit::Seconds.to_ms(0.5), 500.0);
        assert_eq!(Unit::Minutes.to_ms(1.5), 90_000.0);
    }
}
