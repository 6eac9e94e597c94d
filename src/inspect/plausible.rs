//! Records whose values cannot all be what their columns mean: kept as they are by every report, and told here.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;

use crate::record::stored::{count, flag, number, time};
use crate::record::{Column, Kind};

/// Output tokens a second that no single request reaches.
const FASTEST: f64 = 1000.0;

/// Tokens from which on a speed says something.
const SOME_TOKENS: i64 = 32;

/// Milliseconds by which two ways to one duration may differ: clocks are rounded.
const TOLERANCE: f64 = 1.0;

/// The share of a column's values that a cluster has at least.
const CLUSTER: f64 = 0.02;

/// What is told of a log, each with the number of its records.
#[derive(Debug, Default)]
pub struct Plausible {
    ttft_above_total: u64,
    zero_with_tokens: u64,
    too_fast: u64,
    total_from_first_token: u64,
    stages_above_total: u64,
    /// For each duration the positive values by the decade of their size.
    decades: Vec<(Column, [u64; DECADES])>,
}

/// From a microsecond to eleven days, in milliseconds.
const DECADES: usize = 12;

impl Plausible {
    /// Looks at a batch of canonical records; columns that it lacks say nothing.
    pub fn look(&mut self, batch: &RecordBatch) {
        let column = |column: Column| batch.column_by_name(column.name());
        let duration = |name: Column, row: usize| number(column(name), row);
        for row in 0..batch.num_rows() {
            let (total, ttft) = (duration(Column::TotalLatencyMs, row), duration(Column::TtftMs, row));
            let output = count(column(Column::OutputTokens), row);
            let failed = flag(column(Column::Failed), row) == Some(true);
            let both = |one: Option<f64>, other: Option<f64>, holds: fn(f64, f64) -> bool| {
                u64::from(one.zip(other).is_some_and(|(one, other)| holds(one, other)))
            };
            self.ttft_above_total += both(ttft, total, |ttft, total| ttft > total + TOLERANCE);
            self.zero_with_tokens +=
                u64::from(!failed && total == Some(0.0) && output.is_some_and(|tokens| tokens > 0));
            self.too_fast += u64::from(output.zip(total).is_some_and(|(tokens, total)| {
                tokens >= SOME_TOKENS && total > 0.0 && tokens as f64 / total * 1000.0 > FASTEST
            }));
            let first = time(column(Column::FirstTokenAt), row);
            let since_first = time(column(Column::CompletedAt), row).zip(first);
            let since_first = since_first.map(|(end, first)| (end - first) as f64 / 1e6);
            let ttft_counts = ttft.is_some_and(|ttft| ttft > TOLERANCE);
            self.total_from_first_token +=
                u64::from(ttft_counts) * both(since_first, total, |one, total| (one - total).abs() <= TOLERANCE);
            let stages = [Column::QueueWaitMs, Column::PrefillTimeMs, Column::DecodeTimeMs];
            let stages = stages.map(|stage| duration(stage, row));
            let sum = stages.iter().try_fold(0.0, |sum, stage| stage.map(|stage| sum + stage));
            self.stages_above_total += both(sum, total, |sum, total| sum > total * 1.05 + TOLERANCE);
        }
        for (index, field) in batch.schema().fields().iter().enumerate() {
            let Some(column) = Column::named(field.name()).filter(|column| column.kind() == Kind::Duration) else {
                continue;
            };
            let values = batch.column(index).as_primitive::<Float64Type>();
            let known = self.decades.iter().position(|(known, _)| *known == column);
            let at = known.unwrap_or_else(|| {
                self.decades.push((column, [0; DECADES]));
                self.decades.len() - 1
            });
            let decades = &mut self.decades[at].1;
            for value in values.iter().flatten() {
                if value > 0.0 {
                    let decade = (value.log10().floor() + 3.0).clamp(0.0, DECADES as f64 - 1.0);
                    decades[decade as usize] += 1;
                }
            }
        }
    }

    /// Adds what another part of the log showed.
    pub fn merge(&mut self, other: &Plausible) {
        self.ttft_above_total += other.ttft_above_total;
        self.zero_with_tokens += other.zero_with_tokens;
        self.too_fast += other.too_fast;
        self.total_from_first_token += other.total_from_first_token;
        self.stages_above_total += other.stages_above_total;
        for (column, counts) in &other.decades {
            match self.decades.iter_mut().find(|(known, _)| known == column) {
                Some((_, sums)) => sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count),
                None => self.decades.push((*column, *counts)),
            }
        }
    }

    /// Code, sentence and count of what is not plausible.
    pub fn findings(&self) -> Vec<(&'static str, String, u64)> {
        let told = [
            ("ttft_above_total", "TTFT is longer than the whole request", self.ttft_above_total),
            ("zero_latency", "the request has output tokens and a total latency of 0 ms", self.zero_with_tokens),
            (
                "too_fast",
                "more than 1,000 output tokens a second: characters logged as tokens, or seconds read as milliseconds",
                self.too_fast,
            ),
            (
                "total_without_ttft",
                "the end minus the first token is the logged total, although TTFT is not 0: one of the three is another time",
                self.total_from_first_token,
            ),
            ("stages_above_total", "queue, prefill and decode add up to more than the total", self.stages_above_total),
        ];
        let told = told.into_iter().filter(|(_, _, count)| *count > 0);
        let mut findings: Vec<_> = told.map(|(code, text, count)| (code, text.to_owned(), count)).collect();
        for (column, decades) in &self.decades {
            if let Some(count) = smaller_cluster(decades) {
                let text = format!(
                    "values of {} lie in two groups about 1,000 times apart: perhaps two units in one column",
                    column.name()
                );
                findings.push(("two_units", text, count));
            }
        }
        findings
    }
}

/// The size of the smaller of two clusters whose middles are about three decades apart, with a gap between them.
fn smaller_cluster(decades: &[u64; DECADES]) -> Option<u64> {
    let all: u64 = decades.iter().sum();
    let least = ((all as f64 * CLUSTER).ceil() as u64).max(2);
    let middle = |range: std::ops::Range<usize>| {
        let sum: u64 = decades[range.clone()].iter().sum();
        let weighted: f64 = range.map(|at| at as f64 * decades[at] as f64).sum();
        (sum, weighted / sum as f64)
    };
    let gap = (1..DECADES - 1).find(|&at| {
        decades[at] == 0 && decades[..at].iter().sum::<u64>() >= least && decades[at..].iter().sum::<u64>() >= least
    })?;
    let ((low, from), (high, to)) = (middle(0..gap), middle(gap..DECADES));
    (2.4..3.6).contains(&(to - from)).then_some(low.min(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_of_durations_a_thousand_times_apart_are_two_units() {
        let mut decades = [0; DECADES];
        decades[3] = 40;
        decades[6] = 60;
        assert_eq!(smaller_cluster(&decades), Some(40));
        decades[4] = 1;
        decades[5] = 1;
        assert_eq!(smaller_cluster(&decades), None);
        assert_eq!(smaller_cluster(&[0, 0, 0, 50, 50, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
