//! From the raw values of a record to a row of columns: mapping, units, types, derivations, in one pass and lazily.
//!
//! Only what the query reads is converted, and a derivation's inputs only in records that lack the value. JSON and
//! CSV come here alike, so that a value means the same in both.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use jiff::tz::TimeZone;

use crate::record::alias::{Alias, ERROR_KEYS};
use crate::record::derive::{self, Logged};
use crate::record::excerpt::Excerpt;
use crate::record::number::{self, Unfit};
use crate::record::outcome::{self, Clue, Said};
use crate::record::timestamp::{self, Instant};
use crate::record::unit::Unit;
use crate::record::{Column, Kind};
use crate::source::builder::Builder;
use crate::source::counts::{Counts, PublishedCounts};
use crate::source::json::Wanted;
use crate::source::layout::{Candidates, Layout, Slot};
use crate::source::mapping::{Mapping, extra_candidates};
use crate::source::schema::{LogSchema, Meaning};
use crate::source::value::{RawValue, unescape};

/// A record whose values can be asked for by slot.
pub trait RawRecord {
    fn raw(&self, slot: usize) -> RawValue<'_>;
    /// The value where it stands; asked for only in records of a known layout.
    fn excerpt(&self, slot: usize) -> Option<Excerpt<'_>>;
    /// Records of one layout have the same slots filled; None when it is not known.
    fn layout(&self) -> Option<usize>;
    /// The slots that are filled; asked once for each layout.
    fn present(&self) -> &[u32];
    fn duplicate_keys(&self) -> u32;
}

/// What a query reads from one source: settled once, shared by all its readers.
#[derive(Debug)]
pub struct ReadPlan {
    pub wanted: Arc<Wanted>,
    /// The wanted paths as flat logs would name them, by slot.
    names: Vec<String>,
    /// Of records of which no layout is known.
    layout: Layout,
    outputs: Vec<Meaning>,
    schema: SchemaRef,
    kinds: Vec<Kind>,
    zone: TimeZone,
    role: Option<String>,
}

/// The field of the first extra column.
const EXTRAS: usize = Column::ALL.len();

/// The field that a clue to failure stands in, of so many fields: the last is that of the error keys.
pub(super) fn field_of_clue(clue: Clue, fields: usize) -> usize {
    match clue {
        Clue::Failed => Column::Failed.index(),
        Clue::Status => Column::Status.index(),
        Clue::ErrorCode => Column::ErrorCode.index(),
        Clue::HttpStatus => Column::HttpStatus.index(),
        Clue::Error => fields - 1,
        Clue::FinishReason => Column::FinishReason.index(),
    }
}

impl ReadPlan {
    /// `projection` are the columns of the table to read, in order.
    pub fn new(schema: &LogSchema, projection: &[usize], mapping: &Mapping) -> Result<Self, ArrowError> {
        let outputs: Vec<Meaning> = projection.iter().map(|&index| schema.meaning(index)).collect();
        let errors = EXTRAS + schema.extras.len();
        let mut paths: Vec<Vec<String>> = Vec::new();
        let mut fields = vec![Candidates::new(); errors + 1];
        let mut add = |field: usize, candidates: Vec<Alias>, default: Option<Unit>| {
            for candidate in candidates {
                let slot = paths.iter().position(|path| *path == candidate.path).unwrap_or_else(|| {
                    paths.push(candidate.path);
                    paths.len() - 1
                });
                fields[field].push(Slot { slot: slot as u32, unit: candidate.unit.or(default) });
            }
        };
        let mut reads_outcome = false;
        let canonical = outputs.iter().filter_map(|output| match output {
            Meaning::Canonical(column) => Some(*column),
            _ => None,
        });
        for column in derive::with_inputs(canonical) {
            reads_outcome |= column == Column::Failed;
            add(column.index(), mapping.candidates(column).0, Mapping::default_unit(column.kind()));
        }
        for output in &outputs {
            if let Meaning::Extra(index) = output {
                add(EXTRAS + index, extra_candidates(&schema.extras[*index]), None);
            }
        }
        if reads_outcome {
            let keys = ERROR_KEYS.iter().map(|key| Alias { path: vec![(*key).to_owned()], unit: None });
            add(errors, keys.collect(), None);
        }
        Ok(Self {
            names: paths.iter().map(|path| path.join(".")).collect(),
            wanted: Arc::new(Wanted::new(paths)),
            layout: Layout::unknown(fields, outputs.len()),
            kinds: outputs.iter().map(|output| kind_of(schema, *output)).collect(),
            outputs,
            schema: Arc::new(schema.arrow.project(projection)?),
            zone: mapping.zone.clone(),
            role: mapping.role.clone(),
        })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The slots of a CSV header's columns; a path is found under its dotted name.
    pub fn slots_of_header<'a>(&self, header: impl Iterator<Item = &'a str>) -> Vec<Option<u32>> {
        let slot = |column: &str| self.names.iter().position(|name| name == column);
        header.map(|column| slot(column).map(|slot| slot as u32)).collect()
    }
}

fn kind_of(schema: &LogSchema, meaning: Meaning) -> Kind {
    match meaning {
        Meaning::Canonical(column) => column.kind(),
        Meaning::Extra(index) => schema.extras[index].kind,
        Meaning::Partition(_) => Kind::Text,
    }
}

/// Where the records of a file come from: what every row of it shares.
#[derive(Debug, Default)]
pub struct Provenance {
    pub file: String,
    /// Values of the folders' `key=value` parts that are canonical columns; they fill in where a record says nothing.
    pub fallbacks: Vec<(Column, String)>,
    /// By partition column of the table.
    pub partitions: Vec<Option<String>>,
}

/// Turns records into batches.
pub struct RecordReader {
    plan: Arc<ReadPlan>,
    provenance: Provenance,
    builders: Vec<Builder>,
    layouts: Vec<Option<Layout>>,
    scratch: Vec<u8>,
    clock: timestamp::Clock,
    rows: usize,
    pub counts: PublishedCounts,
}

impl RecordReader {
    pub fn new(plan: Arc<ReadPlan>, provenance: Provenance, batch_size: usize, counts: PublishedCounts) -> Self {
        let builders = plan.kinds.iter().map(|kind| Builder::new(*kind, batch_size)).collect();
        Self {
            plan,
            provenance,
            builders,
            layouts: Vec::new(),
            scratch: Vec::new(),
            clock: timestamp::Clock::default(),
            rows: 0,
            counts,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Reads one record that starts at byte `offset` of its file. Always inlined, so that the shortcuts are built with
    /// the instructions of the code that found the record.
    #[inline(always)]
    pub fn push(&mut self, record: &impl RawRecord, offset: u64) {
        self.counts.records += 1;
        self.counts.duplicate_keys += u64::from(record.duplicate_keys());
        self.rows += 1;
        let known = record.layout().and_then(|number| self.layouts.get(number)?.as_ref());
        let Some(layout) = known else { return self.push_new(record, offset) };
        let mut counted = 0;
        for (output, (shortcut, builder)) in layout.shortcuts.iter().zip(&mut self.builders).enumerate() {
            if !shortcut.take(record, &self.clock, builder) {
                let mut row = Row {
                    record,
                    fields: &layout.fields,
                    zone: &self.plan.zone,
                    counts: &mut self.counts,
                    counted: &mut counted,
                    scratch: &mut self.scratch,
                    clock: &mut self.clock,
                };
                row.write(output, builder, &self.plan, &self.provenance, offset);
            }
        }
    }

    /// Reads the first record of its layout, or one of no known layout.
    #[inline(never)]
    fn push_new(&mut self, record: &impl RawRecord, offset: u64) {
        let plan = &*self.plan;
        if let Some(number) = record.layout() {
            if self.layouts.len() <= number {
                self.layouts.resize(number + 1, None);
            }
            self.layouts[number] = Some(plan.layout.of(record.present(), &plan.outputs));
        }
        let mut row = Row {
            record,
            fields: &plan.layout.fields,
            zone: &plan.zone,
            counts: &mut self.counts,
            counted: &mut 0,
            scratch: &mut self.scratch,
            clock: &mut self.clock,
        };
        for (output, builder) in self.builders.iter_mut().enumerate() {
            row.write(output, builder, plan, &self.provenance, offset);
        }
    }

    /// The rows so far as a batch; the reader starts over.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(self.plan.schema.clone(), arrays, &options)
    }
}

/// One record while it is read.
struct Row<'a, R> {
    record: &'a R,
    fields: &'a [Candidates],
    zone: &'a TimeZone,
    counts: &'a mut Counts,
    /// Columns whose unfit value was counted already: a value may be asked for twice, by its column and by a derivation.
    counted: &'a mut u128,
    scratch: &'a mut Vec<u8>,
    clock: &'a mut timestamp::Clock,
}

impl<'a, R: RawRecord> Row<'a, R> {
    /// The first candidate that holds a value; null where candidates are there but hold none.
    fn raw(&self, field: usize) -> (RawValue<'a>, Option<Unit>) {
        let record: &'a R = self.record;
        let mut found = (RawValue::Missing, None);
        for candidate in &self.fields[field] {
            match record.raw(candidate.slot as usize) {
                RawValue::Missing => {}
                RawValue::Null => found.0 = RawValue::Null,
                value => return (value, candidate.unit),
            }
        }
        found
    }

    /// Fills an output, whatever stands in the record. Never inlined, since a shortcut fills most.
    #[inline(never)]
    fn write(&mut self, output: usize, builder: &mut Builder, plan: &ReadPlan, from: &Provenance, offset: u64) {
        match plan.outputs[output] {
            Meaning::Canonical(column) => self.write_canonical(column, builder, plan, from, offset),
            Meaning::Extra(index) => self.write_extra(EXTRAS + index, plan.schema.field(output).name(), builder),
            Meaning::Partition(index) => builder.text(from.partitions[index].as_deref().map(str::as_bytes)),
        }
    }

    fn write_canonical(
        &mut self,
        column: Column,
        builder: &mut Builder,
        plan: &ReadPlan,
        from: &Provenance,
        offset: u64,
    ) {
        match column {
            Column::Failed => builder.flag(self.failed()),
            Column::SourceFile => builder.text(Some(from.file.as_bytes())),
            Column::SourceOffset => builder.count(i64::try_from(offset).ok()),
            Column::CacheHit => {
                let value = derive::cache_hit(self);
                builder.flag(self.note(column, value));
            }
            Column::Timestamp => {
                let value = derive::timestamp(self);
                self.counts.undated += u64::from(value.is_none());
                builder.time(self.note(column, value));
            }
            Column::SampleWeight => {
                let weight = self.number(column, Self::float);
                builder.number(weight.or(Some(1.0)));
            }
            _ => match column.kind() {
                Kind::Duration => {
                    let value = derive::duration(self, column);
                    builder.number(self.note(column, value));
                }
                Kind::Number => {
                    let value = self.number(column, Self::float);
                    builder.number(value);
                }
                Kind::Count => builder.count(self.count(column)),
                Kind::Time => builder.time(self.time(column)),
                Kind::Flag => builder.flag(self.flag(column)),
                Kind::Money => builder.money(self.number(column, |text, _| number::scaled(text, 12))),
                Kind::Text | Kind::Id => self.write_text(column, builder, plan, from),
            },
        }
    }

    fn write_text(&mut self, column: Column, builder: &mut Builder, plan: &ReadPlan, from: &Provenance) {
        let (raw, _) = self.raw(column.index());
        let mut scratch = std::mem::take(self.scratch);
        let text = as_text(raw, &mut scratch);
        let unfit = column.kind() == Kind::Id && matches!(raw, RawValue::Nested(_));
        let missing = column.kind() == Kind::Id && text.is_some_and(is_missing_word);
        match text {
            Some(text) if !unfit && !missing => builder.text(Some(text)),
            _ => {
                let fallback = match column {
                    Column::Role => plan.role.as_deref(),
                    _ => None,
                };
                let partition =
                    from.fallbacks.iter().find(|(fallback, _)| *fallback == column).map(|(_, value)| value.as_str());
                builder.text(fallback.or(partition).map(str::as_bytes));
            }
        }
        *self.scratch = scratch;
        if unfit {
            self.unfit(column, Unfit::WrongType);
        }
    }

    fn write_extra(&mut self, field: usize, name: &str, builder: &mut Builder) {
        let (raw, _) = self.raw(field);
        if let Err(why) = builder.parse(as_text(raw, self.scratch), self.zone) {
            self.counts.unfit(name, why, 1);
        }
    }

    /// Counts a derived value and hands the value on.
    fn note<T>(&mut self, column: Column, value: Option<(T, bool)>) -> Option<T> {
        let (value, derived) = value?;
        if derived {
            self.counts.derived(column, 1);
        }
        Some(value)
    }

    fn unfit(&mut self, column: Column, why: Unfit) {
        let bit = 1u128 << column.index();
        if *self.counted & bit == 0 {
            *self.counted |= bit;
            self.counts.unfit(column.name(), why, 1);
        }
    }

    /// A value read by `parse` from a number or from text; null and the words for nothing are missing.
    fn number<T>(&mut self, column: Column, parse: impl Fn(&[u8], Option<Unit>) -> Result<T, Unfit>) -> Option<T> {
        let (raw, unit) = self.raw(column.index());
        let parsed = match raw {
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Number(text) => parse(text, unit),
            RawValue::Text { bytes, escaped: false } => {
                if is_missing_word(bytes) {
                    return None;
                }
                parse(bytes, unit)
            }
            RawValue::Text { bytes, escaped: true } => {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                parse(&text, unit)
            }
            RawValue::Bool(_) | RawValue::Nested(_) => Err(Unfit::WrongType),
        };
        match parsed {
            Ok(value) => Some(value),
            Err(why) => {
                self.unfit(column, why);
                None
            }
        }
    }

    fn float(text: &[u8], _: Option<Unit>) -> Result<f64, Unfit> {
        number::float(text)
    }

    fn failed(&self) -> Option<bool> {
        let texts: [OnceCell<Vec<u8>>; Clue::ALL.len()] = Default::default();
        outcome::failed(|clue| match self.raw(field_of_clue(clue, self.fields.len())).0 {
            RawValue::Text { bytes, escaped: true } => Said::Text(texts[clue as usize].get_or_init(|| {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                text
            })),
            raw => said(raw),
        })
    }
}

impl<R: RawRecord> Logged for Row<'_, R> {
    fn duration(&mut self, column: Column) -> Option<f64> {
        self.number(column, |text, unit| {
            let value = number::float(text)?;
            Ok(unit.map_or(value, |unit| unit.to_ms(value)))
        })
    }

    fn time(&mut self, column: Column) -> Option<i64> {
        let zone = self.zone;
        let (raw, unit) = self.raw(column.index());
        let read = match raw {
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Text { bytes, escaped: false } => {
                if is_missing_word(bytes) {
                    return None;
                }
                self.clock.read(bytes, zone, unit)
            }
            RawValue::Text { bytes, escaped: true } => {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                timestamp::from_text(&text, zone, unit)
            }
            RawValue::Number(text) => timestamp::from_epoch(text, unit),
            RawValue::Bool(_) | RawValue::Nested(_) => Err(Unfit::WrongType),
        };
        match read {
            Ok(Instant { nanoseconds, zone_assumed }) => {
                let bit = 1u128 << column.index();
                if zone_assumed && *self.counted & bit == 0 {
                    *self.counted |= bit;
                    self.counts.zone_assumed += 1;
                }
                Some(nanoseconds)
            }
            Err(why) => {
                self.unfit(column, why);
                None
            }
        }
    }

    fn count(&mut self, column: Column) -> Option<i64> {
        self.number(column, |text, _| number::count(text))
    }

    fn flag(&mut self, column: Column) -> Option<bool> {
        let (raw, _) = self.raw(column.index());
        let text = match raw {
            RawValue::Bool(flag) => return Some(flag),
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Number(text) | RawValue::Text { bytes: text, .. } => text,
            RawValue::Nested(_) => {
                self.unfit(column, Unfit::WrongType);
                return None;
            }
        };
        match flag_word(text) {
            Some(flag) => Some(flag),
            None if is_missing_word(text) => None,
            None => {
                self.unfit(column, Unfit::WrongType);
                None
            }
        }
    }
}

/// Any value as text, its escapes resolved in `scratch`; None is missing.
fn as_text<'t>(raw: RawValue<'t>, scratch: &'t mut Vec<u8>) -> Option<&'t [u8]> {
    match raw {
        RawValue::Missing | RawValue::Null => None,
        RawValue::Text { bytes, escaped: true } => {
            scratch.clear();
            unescape(bytes, scratch);
            Some(scratch)
        }
        RawValue::Text { bytes, .. } | RawValue::Number(bytes) | RawValue::Nested(bytes) => Some(bytes),
        RawValue::Bool(true) => Some(b"true"),
        RawValue::Bool(false) => Some(b"false"),
    }
}

/// `true` and `false` as loggers of several languages write them, and the numbers 1 and 0.
pub fn flag_word(text: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is(&["true", "1", "1.0", "yes", "t"]) {
        Some(true)
    } else if is(&["false", "0", "0.0", "no", "f"]) {
        Some(false)
    } else {
        None
    }
}

/// What loggers write where they have nothing to write.
pub fn is_missing_word(text: &[u8]) -> bool {
    matches!(text, b"" | b"-" | b"null" | b"None")
}

pub(super) fn said(raw: RawValue<'_>) -> Said<'_> {
    match raw {
        RawValue::Missing => Said::Absent,
        RawValue::Null => Said::Null,
        RawValue::Bool(flag) => Said::Flag(flag),
        RawValue::Number(text) | RawValue::Text { bytes: text, .. } => Said::Text(text),
        RawValue::Nested(json) => {
            Said::Nested { empty: json.iter().filter(|byte| !byte.is_ascii_whitespace()).count() == 2 }
        }
    }
}
