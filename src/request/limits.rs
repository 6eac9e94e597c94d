//! How much of the machine a report may use.

use std::ops::RangeInclusive;
use std::thread;

use super::Mistake;

/// What `--threads` accepts.
pub const THREADS: RangeInclusive<i64> = 1..=1024;

/// Memory and threads for one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes. None: as the engine sees fit.
    pub memory: Option<u64>,
    pub threads: usize,
}

impl Limits {
    /// With as many threads as the machine runs at once, where none are asked for.
    pub fn new(memory: Option<u64>, threads: Option<usize>) -> Self {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        Limits { memory, threads: threads.unwrap_or_else(available) }
    }
}

/// Bytes of an amount such as `300MiB`, `1.5GiB`, `500MB` or `1G`. Letters alone (`1G`) count in 1024s like `GiB`.
pub fn parse_memory(text: &str) -> Result<u64, Mistake> {
    let trimmed = text.trim();
    let not_a_size = || Mistake::NotASize { text: text.to_owned() };
    let unit_at = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(not_a_size)?;
    let (number, unit) = trimmed.split_at(unit_at);
    let bytes_per_unit = match unit.trim_start().to_ascii_lowercase().as_str() {
        "k" | "kib" => 1u64 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(not_a_size()),
    };
    let Ok(number) = number.parse::<f64>() else {
        return Err(not_a_size());
    };
    let bytes = number * bytes_per_unit as f64;
    // The engine counts memory in signed numbers too, so that the upper half of u64 is no use.
    if bytes >= 1.0 && bytes < i64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(Mistake::SizeOutOfRange { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_number_and_a_unit() {
        for (text, bytes) in [
            ("300MiB", 300 * 1024 * 1024),
            ("2GiB", 2 * 1024 * 1024 * 1024),
            ("1.5GiB", 1536 * 1024 * 1024),
            ("500MB", 500_000_000),
            ("1G", 1024 * 1024 * 1024),
            (" 64 kib ", 65_536),
        ] {
            assert_eq!(parse_memory(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn memory_without_unit_or_with_junk_is_a_mistake() {
        for text in ["", "300", "MiB", "300 apples", "-1MiB", "1.2.3MiB", ".MiB", "1e3MiB", "NaNMiB"] {
            let mistake = parse_memory(text).unwrap_err();
            assert!(matches!(mistake, Mistake::NotASize { .. }), "{text}");
        }
    }

    #[test]
    fn memory_of_zero_or_beyond_the_countable_is_a_mistake() {
        for text in ["0MiB", "0.0001K", "9999999TiB", "99999999999999999999999999GB"] {
            let mistake = parse_memory(text).unwrap_err();
            assert!(matches!(mistake, Mistake::SizeOutOfRange { .. }), "{text}");
        }
    }

    #[test]
    fn threads_default_to_the_machine() {
        assert!(Limits::new(None, None).threads >= 1);
        assert_eq!(Limits::new(None, Some(3)).threads, 3);
    }
}
