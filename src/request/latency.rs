//! What `latency` measures and how it sums up: metrics, percentiles, method.

use super::{Dimension, Mistake, Word};

/// The question of `latency`.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Empty: one row over everything.
    pub by: Vec<Dimension>,
    pub metrics: Vec<Metric>,
    /// Show each stage with its share of the total time.
    pub stages: bool,
    pub percentiles: Vec<Percentile>,
    pub method: Method,
    /// Leave out groups with fewer measured requests.
    pub min_count: u64,
    /// Measure failed requests too.
    pub include_failed: bool,
}

/// A duration of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Total,
    Ttft,
    Tpot,
    Queue,
    Prefill,
    Decode,
}

impl Word for Metric {
    const KIND: &'static str = "metric";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("total", Metric::Total),
        ("ttft", Metric::Ttft),
        ("tpot", Metric::Tpot),
        ("queue", Metric::Queue),
        ("prefill", Metric::Prefill),
        ("decode", Metric::Decode),
    ];
}

/// The word that stands for every metric.
pub const ALL_METRICS: &str = "all";

impl Metric {
    /// The column of the canonical record that holds it, in milliseconds.
    pub fn column(self) -> &'static str {
        match self {
            Metric::Total => "total_latency_ms",
            Metric::Ttft => "ttft_ms",
            Metric::Tpot => "tpot_ms",
            Metric::Queue => "queue_wait_ms",
            Metric::Prefill => "prefill_time_ms",
            Metric::Decode => "decode_time_ms",
        }
    }

    /// Every metric asked for, once each, in the order asked.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Mistake> {
        let mut metrics = Vec::new();
        for text in texts {
            if text == ALL_METRICS {
                metrics.extend(Metric::WORDS.iter().map(|(_, metric)| *metric));
            } else {
                metrics.push(Metric::from_word(text)?);
            }
        }
        Ok(once_each(metrics))
    }
}

/// How a percentile between two values is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Rank p(n-1), linear between the neighbours.
    Continuous,
    /// The value at rank ceil(p n).
    Nearest,
}

impl Word for Method {
    const KIND: &'static str = "percentile method";
    const WORDS: &'static [(&'static str, Self)] = &[("cont", Method::Continuous), ("nearest", Method::Nearest)];
}

/// One percentile of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentile {
    /// 0 to 1.
    pub fraction: f64,
    /// `p99_9` for 99.9: the stem of its column.
    pub name: String,
}

impl Percentile {
    /// Reads a number of percent, from 0 to 100.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let not_a_percentile = || Mistake::NotAPercentile { text: text.to_owned() };
        let number = text.trim();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole) || !are_digits(decimals) {
            return Err(not_a_percentile());
        }
        // Shifting the decimal point in the text is exact; 99.9 divided by 100 is not the number nearest to 0.999.
        match format!("{number}e-2").parse::<f64>() {
            Ok(fraction) if fraction <= 1.0 => Ok(Percentile { fraction, name: percentile_name(whole, decimals) }),
            _ => Err(not_a_percentile()),
        }
    }

    /// All percentiles asked for, once each, in the order asked.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Mistake> {
        let percentiles: Result<Vec<_>, _> = texts.iter().map(|text| Self::parse(text)).collect();
        percentiles.map(once_each)
    }
}

fn percentile_name(whole: &str, decimals: &str) -> String {
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    match decimals.trim_end_matches('0') {
        "" => format!("p{whole}"),
        digits => format!("p{whole}_{digits}"),
    }
}

fn once_each<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn percentiles_are_exact_fractions_with_a_column_name() {
        for (text, fraction, name) in [
            ("50", 0.5, "p50"),
            ("99.9", 0.999, "p99_9"),
            ("99.99", 0.9999, "p99_99"),
            ("95.0", 0.95, "p95"),
            ("0", 0.0, "p0"),
            ("100", 1.0, "p100"),
            ("007", 0.07, "p7"),
            ("0.1", 0.001, "p0_1"),
        ] {
            let percentile = Percentile::parse(text).unwrap();
            assert_eq!((percentile.fraction, percentile.name.as_str()), (fraction, name));
        }
    }

    #[test]
    fn a_percentile_outside_0_to_100_or_no_number_is_a_mistake() {
        for text in ["", "-1", "100.1", "101", "NaN", "1e1", "p99", "99.", ".5", "+5", "５０"] {
            let mistake = Percentile::parse(text).unwrap_err();
            assert!(matches!(mistake, Mistake::NotAPercentile { .. }), "{text}");
        }
    }

    #[test]
    fn percentiles_keep_their_order_and_come_once() {
        let names: Vec<String> = Percentile::parse_all(&owned(&["99", "50", "99.0"]))
            .unwrap()
            .into_iter()
            .map(|percentile| percentile.name)
            .collect();
        assert_eq!(names, ["p99", "p50"]);
    }

    #[test]
    fn metrics_come_once_in_the_order_asked_and_all_means_all() {
        let metrics = |texts| Metric::parse_all(&owned(texts)).unwrap();
        assert_eq!(metrics(&["ttft", "total", "ttft"]), [Metric::Ttft, Metric::Total]);
        assert_eq!(metrics(&["queue", "all"]).len(), 6);
        assert_eq!(metrics(&["queue", "all"])[0], Metric::Queue);
        assert!(Metric::parse_all(&owned(&["ttfd"])).is_err());
    }
}
