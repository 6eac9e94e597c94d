//! The steps that records tell of.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions,
    StringViewBuilder, TimestampNanosecondBuilder, UInt32Builder,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Float64Type, Int64Type, SchemaRef, TimestampNanosecondType};
use datafusion::error::{DataFusionError, Result};
use jiff::tz::TimeZone;

use crate::record::unit::Unit;
use crate::record::{Column, Kind, number, timestamp};
use crate::source::json::Tree;
use crate::source::row::flag_word;

/// Steps that are handed out at once, or more where one record tells of more.
const AT_ONCE: usize = 8192;

/// How far a sum of gaps may be from the time that they must fill, as a part of it, to tell their unit.
const NEAR: f64 = 0.2;

/// The steps of the records of a batch, some thousand at a time.
pub struct Steps {
    records: RecordBatch,
    schema: SchemaRef,
    /// The next record.
    next: usize,
}

/// One step, as far as it is told.
#[derive(Clone, Debug, Default, PartialEq)]
struct Step {
    index: i64,
    at: Option<i64>,
    gap_ms: Option<f64>,
    step_ms: Option<f64>,
    wait_ms: Option<f64>,
    context_len: Option<i64>,
    recompute: Option<bool>,
    cache_hit: Option<bool>,
    batch_size: Option<i64>,
}

/// What is known of the request whose record tells of steps in a list.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    arrival: Option<i64>,
    first_token: Option<i64>,
    ttft_ms: Option<f64>,
    total_ms: Option<f64>,
    output_tokens: Option<i64>,
}

impl Steps {
    pub fn of(records: RecordBatch, schema: SchemaRef) -> Self {
        Self { records, schema, next: 0 }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let texts = self.records.column_by_name(name)?.as_string_view_opt()?;
        texts.is_valid(self.next).then(|| texts.value(self.next))
    }

    fn count(&self, name: &str) -> Option<i64> {
        let counts = self.records.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
        counts.is_valid(self.next).then(|| counts.value(self.next))
    }

    fn number(&self, name: &str) -> Option<f64> {
        let numbers = self.records.column_by_name(name)?.as_primitive_opt::<Float64Type>()?;
        numbers.is_valid(self.next).then(|| numbers.value(self.next))
    }

    fn time(&self, name: &str) -> Option<i64> {
        let times = self.records.column_by_name(name)?.as_primitive_opt::<TimestampNanosecondType>()?;
        times.is_valid(self.next).then(|| times.value(self.next))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        let flags = self.records.column_by_name(name)?.as_boolean_opt()?;
        flags.is_valid(self.next).then(|| flags.value(self.next))
    }

    /// The steps of the record in hand, and whether each is a token or a chunk of several.
    fn told(&self) -> (Vec<Step>, &'static str) {
        let names_chunks = self.text("chunk_gaps").or(self.text("chunk_gaps_ms")).is_some();
        let is_chunk = self.text("unit") == Some("chunk") || names_chunks;
        let unit = if is_chunk { "chunk" } else { "token" };
        if let Some(index) = self.count("token_index") {
            let step = Step {
                index,
                at: self.time(Column::Timestamp.name()),
                gap_ms: None,
                step_ms: self.number("step_ms"),
                wait_ms: self.number("wait_ms"),
                context_len: self.count("context_len"),
                recompute: self.flag("recompute"),
                cache_hit: self.flag(Column::CacheHit.name()),
                batch_size: self.count(Column::BatchSize.name()),
            };
            return (vec![step], unit);
        }
        let around = self.around();
        let list = |name: &str| self.text(name).and_then(|text| Tree::parse(text.as_bytes()).ok());
        let steps = list("steps").map(|list| described(&list)).filter(|steps| !steps.is_empty());
        let times = ["times", "times_ms", "times_s"]
            .into_iter()
            .find_map(|name| Some(around.timed(&list(name)?, relative_unit(name))))
            .filter(|steps| !steps.is_empty());
        let gaps = || {
            let named = self.text("gaps_unit").and_then(Unit::named);
            let of_ms = list("gaps_ms").or_else(|| list("chunk_gaps_ms"));
            let ms = of_ms.map(|list| around.after_gaps(&list, Some(Unit::Milliseconds)));
            ms.or_else(|| Some(around.after_gaps(&list("gaps").or_else(|| list("chunk_gaps"))?, named)))
        };
        let steps = steps.or(times).or_else(gaps).unwrap_or_default();
        let is_each_token = around.output_tokens.is_none_or(|tokens| tokens == steps.len() as i64);
        (steps, if is_each_token { unit } else { "chunk" })
    }

    fn around(&self) -> Around {
        let (arrival, ttft_ms) = (self.time(Column::Timestamp.name()), self.number(Column::TtftMs.name()));
        let first = || arrival?.checked_add(nanoseconds(ttft_ms?));
        Around {
            arrival,
            first_token: self.time(Column::FirstTokenAt.name()).or_else(first),
            ttft_ms,
            total_ms: self.number(Column::TotalLatencyMs.name()),
            output_tokens: self.count(Column::OutputTokens.name()),
        }
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let mut columns = Columns::default();
        while columns.rows < AT_ONCE && self.next < self.records.num_rows() {
            let (steps, unit) = self.told();
            steps.into_iter().for_each(|step| columns.push(self.next, step, unit));
            self.next += 1;
        }
        columns.finish(&self.records, &self.schema)
    }
}

impl Iterator for Steps {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next < self.records.num_rows()).then(|| self.batch())
    }
}

/// The number that an item of a list is, in quotes or not.
fn written(item: &Tree<'_>) -> Option<f64> {
    number::float(item.scalar()?.as_bytes()).ok()
}

/// The unit of times in a list that count from the arrival, where its name says it.
fn relative_unit(name: &str) -> Option<Unit> {
    match name {
        "times_ms" => Some(Unit::Milliseconds),
        "times_s" => Some(Unit::Seconds),
        _ => None,
    }
}

/// Nanoseconds of at most some years, so that a time that they are added to stays one.
fn nanoseconds(ms: f64) -> i64 {
    (ms.clamp(-1e11, 1e11) * 1e6).round() as i64
}

impl Around {
    /// Steps at the times of a list: dates, or counted from the arrival.
    fn timed(&self, list: &Tree<'_>, unit: Option<Unit>) -> Vec<Step> {
        let items = list.items();
        let numbers: Vec<Option<f64>> = items.iter().map(written).collect();
        let unit = unit.or_else(|| self.unit_of(numbers.iter().copied().flatten().last()?, self.total_ms?));
        let at = |(item, number): (&Tree<'_>, &Option<f64>)| {
            let date = match number {
                Some(_) => timestamp::from_epoch(item.text, None),
                None => timestamp::from_text(item.scalar()?.as_bytes(), &TimeZone::UTC, None),
            };
            let since_arrival = || self.arrival?.checked_add(nanoseconds(unit?.to_ms((*number)?)));
            date.map(|instant| instant.nanoseconds).ok().or_else(since_arrival)
        };
        let times: Vec<Option<i64>> = items.iter().zip(&numbers).map(at).collect();
        let gap = |index: usize| Some(times[index]?.checked_sub(times[index.checked_sub(1)?]?)? as f64 / 1e6);
        let step = |index: usize| Step { index: index as i64, at: times[index], gap_ms: gap(index), ..Step::default() };
        (0..times.len()).map(step).collect()
    }

    /// The first token, and a step behind each gap of a list.
    fn after_gaps(&self, list: &Tree<'_>, unit: Option<Unit>) -> Vec<Step> {
        let mut gaps: Vec<Option<f64>> = list.items().iter().map(written).collect();
        if gaps.is_empty() {
            return Vec::new();
        }
        let decode = || self.total_ms.zip(self.ttft_ms).map(|(total, ttft)| total - ttft);
        let unit = unit.or_else(|| self.unit_of(gaps.iter().flatten().sum(), decode()?));
        // the time to the first token is no gap between tokens, where some put it among them
        let first_ms = gaps[0].zip(unit).map(|(gap, unit)| unit.to_ms(gap));
        if first_ms.is_some() && first_ms == self.ttft_ms {
            gaps.remove(0);
        }
        let mut at = self.first_token;
        let mut steps = vec![Step { at, ..Step::default() }];
        for (before, gap) in gaps.into_iter().enumerate() {
            let gap_ms = gap.zip(unit).map(|(gap, unit)| unit.to_ms(gap));
            at = at.zip(gap_ms).and_then(|(at, gap)| at.checked_add(nanoseconds(gap)));
            steps.push(Step { index: before as i64 + 1, at, gap_ms, ..Step::default() });
        }
        steps
    }

    /// The unit in which a number is the time that it must be; a number is never taken to be in a unit for its size.
    fn unit_of(&self, number: f64, ms: f64) -> Option<Unit> {
        let is_near = |unit: &Unit| (unit.to_ms(number) - ms).abs() <= NEAR * ms;
        [Unit::Milliseconds, Unit::Seconds, Unit::Microseconds, Unit::Nanoseconds].into_iter().find(is_near)
    }
}

/// The steps of a list of objects.
fn described(list: &Tree<'_>) -> Vec<Step> {
    let step = |item: &Tree<'_>| {
        let attribute = |key: &str| {
            let attributes = item.get("attributes")?;
            attributes.get(&format!("infer_stats.{key}")).or_else(|| attributes.get(key))
        };
        let first = |keys: &[&str]| keys.iter().find_map(|key| item.get(key).or_else(|| attribute(key))?.scalar());
        // an event of our own export that has no time stands at the beginning of its span
        let is_ours = attribute("event").is_some();
        let count = |keys: &[&str]| number::count(first(keys)?.as_bytes()).ok();
        let number = |keys: &[&str]| number::float(first(keys)?.as_bytes()).ok();
        let flag = |keys: &[&str]| flag_word(first(keys)?.as_bytes());
        let at = first(&["at", "timestamp"]).or_else(|| first(&["time"]).filter(|_| !is_ours)).and_then(|text| {
            let is_number = number::float(text.as_bytes()).is_ok();
            let read = match is_number {
                true => timestamp::from_epoch(text.as_bytes(), None),
                false => timestamp::from_text(text.as_bytes(), &TimeZone::UTC, None),
            };
            read.ok().map(|instant| instant.nanoseconds)
        });
        Some(Step {
            index: count(&["token_index", "index"])?,
            at,
            gap_ms: None,
            step_ms: number(&["step_ms"]),
            wait_ms: number(&["wait_ms"]),
            context_len: count(&["context_len"]),
            recompute: flag(&["recompute"]),
            cache_hit: flag(&["cache_hit"]),
            batch_size: count(&["batch_size"]),
        })
    };
    list.items().iter().filter_map(step).collect()
}

/// The columns of a batch of steps while they are filled.
#[derive(Default)]
struct Columns {
    rows: usize,
    /// The record of each step.
    record: UInt32Builder,
    at: TimestampNanosecondBuilder,
    index: Int64Builder,
    gap_ms: Float64Builder,
    step_ms: Float64Builder,
    wait_ms: Float64Builder,
    context_len: Int64Builder,
    recompute: BooleanBuilder,
    cache_hit: BooleanBuilder,
    batch_size: Int64Builder,
    unit: StringViewBuilder,
}

impl Columns {
    /// Adds a step of the record at a position.
    fn push(&mut self, record: usize, step: Step, unit: &str) {
        self.rows += 1;
        self.record.append_value(record as u32);
        self.at.append_option(step.at);
        self.index.append_value(step.index);
        self.gap_ms.append_option(step.gap_ms);
        self.step_ms.append_option(step.step_ms);
        self.wait_ms.append_option(step.wait_ms);
        self.context_len.append_option(step.context_len);
        self.recompute.append_option(step.recompute);
        self.cache_hit.append_option(step.cache_hit);
        self.batch_size.append_option(step.batch_size);
        self.unit.append_value(unit);
    }

    /// The steps with these columns: their own, and those of their records.
    fn finish(mut self, records: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let record = self.record.finish();
        let mut column = |name: &str| -> Result<ArrayRef> {
            Ok(match name {
                "timestamp" => Arc::new(self.at.finish().with_data_type(Kind::Time.data_type())),
                "token_index" => Arc::new(self.index.finish()),
                "gap_ms" => Arc::new(self.gap_ms.finish()),
                "step_ms" => Arc::new(self.step_ms.finish()),
                "wait_ms" => Arc::new(self.wait_ms.finish()),
                "context_len" => Arc::new(self.context_len.finish()),
                "recompute" => Arc::new(self.recompute.finish()),
                "cache_hit" => Arc::new(self.cache_hit.finish()),
                "batch_size" => Arc::new(self.batch_size.finish()),
                "unit" => Arc::new(self.unit.finish()),
                name => {
                    let missing = || DataFusionError::Internal(format!("a record of steps has no column {name}"));
                    take(records.column_by_name(name).ok_or_else(missing)?, &record, None)?
                }
            })
        };
        let columns = schema.fields().iter().map(|field| column(field.name())).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(record.len()));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }
}
