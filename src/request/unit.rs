//! The words for units of time in `--map` and in a config.

use super::Word;
use crate::record::unit::Unit;

/// Durations take all of them, epochs all but minutes.
impl Word for Unit {
    const KIND: &'static str = "unit";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("s", Unit::Seconds),
        ("ms", Unit::Milliseconds),
        ("us", Unit::Microseconds),
        ("\u{b5}s", Unit::Microseconds),  // micro sign
        ("\u{3bc}s", Unit::Microseconds), // Greek mu, which keyboards and copied text give as often
        ("ns", Unit::Nanoseconds),
        ("min", Unit::Minutes),
    ];
}
