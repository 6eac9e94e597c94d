//! What follows from what was logged, where the log lacks the value itself (DESIGN section 3).
//!
//! The rules are written once over [`Logged`], so that JSON, CSV and Parquet derive alike. Each rule asks for its
//! inputs only when the value is missing: a reader that answers lazily never touches them otherwise.

use super::Column;

/// The logged values of one record, read on demand; None is missing.
pub trait Logged {
    /// Milliseconds.
    fn duration(&mut self, column: Column) -> Option<f64>;
    /// Nanoseconds since 1970.
    fn time(&mut self, column: Column) -> Option<i64>;
    fn count(&mut self, column: Column) -> Option<i64>;
    fn flag(&mut self, column: Column) -> Option<bool>;
}

const MS: f64 = 1_000_000.0;

/// Milliseconds that logged values may be off by, as they are rounded to the microsecond.
const ROUNDING: f64 = 0.002;

/// Columns that a derivation may fill, each with the columns it asks for.
pub fn inputs(column: Column) -> &'static [Column] {
    use Column::*;
    match column {
        TotalLatencyMs => &[CompletedAt, Timestamp, QueueWaitMs, PrefillTimeMs, DecodeTimeMs],
        Timestamp => &[CompletedAt, TotalLatencyMs, FirstTokenAt, TtftMs],
        TtftMs => &[FirstTokenAt, Timestamp, Stream, QueueWaitMs, PrefillTimeMs],
        PrefillTimeMs => &[TtftMs, QueueWaitMs],
        DecodeTimeMs => &[TotalLatencyMs, TtftMs, OutputTokens, Stream],
        TpotMs => &[TotalLatencyMs, TtftMs, OutputTokens, Stream],
        InputTokens => &[CachedTokens, CacheWriteTokens, OutputTokens, TotalTokens],
        CacheHit => &[CachedTokens],
        Failed => &[Status, ErrorCode, HttpStatus, FinishReason],
        _ => &[],
    }
}

/// `columns` and all that their derivations may ask for, each once.
pub fn with_inputs(columns: impl IntoIterator<Item = Column>) -> Vec<Column> {
    let mut all: Vec<Column> = Vec::new();
    let add = |column, all: &mut Vec<Column>| {
        if !all.contains(&column) {
            all.push(column);
        }
    };
    columns.into_iter().for_each(|column| add(column, &mut all));
    let mut next = 0;
    while next < all.len() {
        inputs(all[next]).iter().for_each(|&input| add(input, &mut all));
        next += 1;
    }
    all
}

/// A duration, logged or derived; the flag tells which.
pub fn duration(record: &mut impl Logged, column: Column) -> Option<(f64, bool)> {
    if let Some(value) = record.duration(column) {
        return Some((value, false));
    }
    let derived = match column {
        Column::TotalLatencyMs => total(record),
        Column::TtftMs => ttft(record),
        Column::PrefillTimeMs => prefill(record),
        Column::DecodeTimeMs => decode(record),
        Column::TpotMs => tpot(record),
        _ => None,
    };
    // what clocks that disagree leave below zero is no duration, but roundings of two logged values may
    derived.filter(|value| *value > -ROUNDING).map(|value| (value.max(0.0), true))
}

/// Whether a record ends before it begins, so that it tells no latency.
pub fn is_reversed(record: &mut impl Logged) -> bool {
    let times = record.time(Column::Timestamp).zip(record.time(Column::CompletedAt));
    times.is_some_and(|(arrival, end)| end < arrival)
}

/// Arrival, logged or derived (nanoseconds): end - total, else first token - TTFT, both logged or derived.
pub fn timestamp(record: &mut impl Logged) -> Option<(i64, bool)> {
    if let Some(value) = record.time(Column::Timestamp) {
        return Some((value, false));
    }
    let mut before = |end: Column, span: Column| {
        let end = record.time(end)?;
        let (span, _) = duration(record, span)?;
        Some(end - (span * MS).round() as i64)
    };
    let derived = before(Column::CompletedAt, Column::TotalLatencyMs);
    derived.or_else(|| before(Column::FirstTokenAt, Column::TtftMs)).map(|value| (value, true))
}

/// Input tokens, those from the cache included; the flag tells that they had to be added. A log that counts more cached
/// tokens than input tokens leaves the cached ones out of the input.
pub fn input_tokens(record: &mut impl Logged) -> Option<(i64, bool)> {
    let input = record.count(Column::InputTokens)?;
    match record.count(Column::CachedTokens) {
        // a total that is just input and output says that the input is whole
        Some(cached) if cached > input && !adds_up(record, input) => {
            let written = record.count(Column::CacheWriteTokens).unwrap_or(0);
            Some((input.saturating_add(cached).saturating_add(written), true))
        }
        _ => Some((input, false)),
    }
}

fn adds_up(record: &mut impl Logged, input: i64) -> bool {
    let parts = record.count(Column::TotalTokens).zip(record.count(Column::OutputTokens));
    parts.is_some_and(|(total, output)| input.checked_add(output) == Some(total))
}

/// Whether the prefix cache was hit, logged or from the cached tokens.
pub fn cache_hit(record: &mut impl Logged) -> Option<(bool, bool)> {
    if let Some(value) = record.flag(Column::CacheHit) {
        return Some((value, false));
    }
    record.count(Column::CachedTokens).map(|cached| (cached > 0, true))
}

/// end - arrival, else queue + prefill + decode.
fn total(record: &mut impl Logged) -> Option<f64> {
    between(record, Column::Timestamp, Column::CompletedAt).or_else(|| {
        let queue = record.duration(Column::QueueWaitMs)?;
        let prefill = record.duration(Column::PrefillTimeMs)?;
        Some(queue + prefill + record.duration(Column::DecodeTimeMs)?)
    })
}

/// first token - arrival, else queue + prefill; only where the answer was streamed or that is unknown.
fn ttft(record: &mut impl Logged) -> Option<f64> {
    if record.flag(Column::Stream) == Some(false) {
        return None;
    }
    between(record, Column::Timestamp, Column::FirstTokenAt).or_else(|| {
        let queue = record.duration(Column::QueueWaitMs)?;
        Some(queue + record.duration(Column::PrefillTimeMs)?)
    })
}

/// TTFT - queue, both as logged (or TTFT from the times of arrival and first token).
fn prefill(record: &mut impl Logged) -> Option<f64> {
    let ttft = match record.duration(Column::TtftMs) {
        Some(ttft) => ttft,
        None => between(record, Column::Timestamp, Column::FirstTokenAt)?,
    };
    Some(ttft - record.duration(Column::QueueWaitMs)?)
}

/// total - TTFT.
fn decode(record: &mut impl Logged) -> Option<f64> {
    let total = match record.duration(Column::TotalLatencyMs) {
        Some(total) => total,
        // queue + prefill + decode is no source for decode
        None => between(record, Column::Timestamp, Column::CompletedAt)?,
    };
    let (ttft, _) = duration(record, Column::TtftMs)?;
    let tokens = record.count(Column::OutputTokens);
    is_streamed(record, ttft, total, tokens).then_some(total - ttft)
}

/// Whether the first token came before the last: where nothing was streamed, all come at once with the end.
fn is_streamed(record: &mut impl Logged, ttft: f64, total: f64, tokens: Option<i64>) -> bool {
    record.flag(Column::Stream) != Some(false) && (ttft != total || tokens.is_some_and(|tokens| tokens < 2))
}

/// (total - TTFT) / (output tokens - 1), null below 2 tokens.
fn tpot(record: &mut impl Logged) -> Option<f64> {
    let tokens = record.count(Column::OutputTokens).filter(|&tokens| tokens >= 2)?;
    let (ttft, _) = duration(record, Column::TtftMs)?;
    let (total, _) = duration(record, Column::TotalLatencyMs)?;
    is_streamed(record, ttft, total, Some(tokens)).then_some((total - ttft) / (tokens - 1) as f64)
}

/// Milliseconds from one logged time to a later one. The difference is taken in nanoseconds, so that it is exact. Two
/// times that are the same whole second tell nothing but that it was less than one.
fn between(record: &mut impl Logged, from: Column, to: Column) -> Option<f64> {
    let end = record.time(to)?;
    let start = record.time(from)?;
    if start == end && start % 1_000_000_000 == 0 {
        return None;
    }
    Some((i128::from(end) - i128::from(start)) as f64 / MS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A record in a map; remembers which columns were asked for.
    #[derive(Default)]
    struct Record {
        values: HashMap<Column, f64>,
        asked: Vec<Column>,
    }

    impl Record {
        fn of(values: &[(Column, f64)]) -> Self {
            Self { values: values.iter().copied().collect(), asked: Vec::new() }
        }
        fn get(&mut self, column: Column) -> Option<f64> {
            self.asked.push(column);
            self.values.get(&column).copied()
        }
    }

    impl Logged for Record {
        fn duration(&mut self, column: Column) -> Option<f64> {
            self.get(column)
        }
        fn time(&mut self, column: Column) -> Option<i64> {
            self.get(column).map(|ms| (ms * MS) as i64)
        }
        fn count(&mut self, column: Column) -> Option<i64> {
            self.get(column).map(|count| count as i64)
        }
        fn flag(&mut self, column: Column) -> Option<bool> {
            self.get(column).map(|flag| flag != 0.0)
        }
    }

    use Column::*;

    #[test]
    fn the_worked_example_of_one_request_gives_its_metrics() {
        // arrival 0, scheduled 200, first token 500, end 1500, 11 tokens (definitions, section 3.1)
        let mut record = Record::of(&[
            (Timestamp, 0.0),
            (FirstTokenAt, 500.0),
            (CompletedAt, 1500.0),
            (QueueWaitMs, 200.0),
            (OutputTokens, 11.0),
        ]);
        assert_eq!(duration(&mut record, TotalLatencyMs), Some((1500.0, true)));
        assert_eq!(duration(&mut record, TtftMs), Some((500.0, true)));
        assert_eq!(duration(&mut record, PrefillTimeMs), Some((300.0, true)));
        assert_eq!(duration(&mut record, DecodeTimeMs), Some((1000.0, true)));
        assert_eq!(duration(&mut record, TpotMs), Some((100.0, true)));
    }

    #[test]
    fn one_output_token_has_no_time_per_output_token() {
        for tokens in [0.0, 1.0] {
            let mut record = Record::of(&[(TotalLatencyMs, 900.0), (TtftMs, 500.0), (OutputTokens, tokens)]);
            assert_eq!(duration(&mut record, TpotMs), None);
        }
    }

    #[test]
    fn a_logged_value_is_taken_without_asking_for_anything_else() {
        let mut record = Record::of(&[(TotalLatencyMs, 7.0), (Timestamp, 0.0), (CompletedAt, 1500.0)]);
        assert_eq!(duration(&mut record, TotalLatencyMs), Some((7.0, false)));
        assert_eq!(record.asked, [TotalLatencyMs]);
    }

    #[test]
    fn stages_make_a_total_only_when_all_are_known() {
        let mut record = Record::of(&[(QueueWaitMs, 1.0), (PrefillTimeMs, 2.0), (DecodeTimeMs, 4.0)]);
        assert_eq!(duration(&mut record, TotalLatencyMs), Some((7.0, true)));
        record.values.remove(&DecodeTimeMs);
        assert_eq!(duration(&mut record, TotalLatencyMs), None);
    }

    #[test]
    fn an_answer_that_was_not_streamed_has_no_first_token_time() {
        let mut record = Record::of(&[(QueueWaitMs, 1.0), (PrefillTimeMs, 2.0), (Stream, 0.0)]);
        assert_eq!(duration(&mut record, TtftMs), None);
        record.values.insert(Stream, 1.0);
        assert_eq!(duration(&mut record, TtftMs), Some((3.0, true)));
    }

    #[test]
    fn arrival_follows_from_the_end_or_the_first_token() {
        assert_eq!(
            timestamp(&mut Record::of(&[(CompletedAt, 1500.0), (TotalLatencyMs, 1000.0)])),
            Some((500_000_000, true))
        );
        assert_eq!(timestamp(&mut Record::of(&[(FirstTokenAt, 700.0), (TtftMs, 200.0)])), Some((500_000_000, true)));
        let stages = [(CompletedAt, 1500.0), (QueueWaitMs, 100.0), (PrefillTimeMs, 200.0), (DecodeTimeMs, 300.0)];
        assert_eq!(timestamp(&mut Record::of(&stages)), Some((900_000_000, true)));
        let stages = [(FirstTokenAt, 700.0), (QueueWaitMs, 100.0), (PrefillTimeMs, 200.0)];
        assert_eq!(timestamp(&mut Record::of(&stages)), Some((400_000_000, true)));
        assert_eq!(timestamp(&mut Record::of(&[(CompletedAt, 1500.0)])), None);
    }

    #[test]
    fn cached_tokens_tell_a_hit() {
        assert_eq!(cache_hit(&mut Record::of(&[(CachedTokens, 0.0)])), Some((false, true)));
        assert_eq!(cache_hit(&mut Record::of(&[(CachedTokens, 16.0)])), Some((true, true)));
        assert_eq!(cache_hit(&mut Record::of(&[])), None);
    }

    #[test]
    fn the_listed_inputs_of_a_derivation_are_all_it_asks_for() {
        for &column in Column::ALL {
            let closure = with_inputs([column]);
            let mut record = Record::of(&[(OutputTokens, 11.0)]);
            match column.kind() {
                super::super::Kind::Duration => drop(duration(&mut record, column)),
                super::super::Kind::Time if column == Timestamp => drop(timestamp(&mut record)),
                super::super::Kind::Flag if column == CacheHit => drop(cache_hit(&mut record)),
                _ => continue,
            }
            for asked in &record.asked {
                assert!(closure.contains(asked), "{} asks for {}", column.name(), asked.name());
            }
        }
    }
}
