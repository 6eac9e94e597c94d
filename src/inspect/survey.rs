//! Everything a look through one log shows: its keys, its records, its times.
//!
//! Records are read as reports read them, by the same [`RecordReader`], so that what is said here about rejected records
//! and unfit values is what a report will meet. Beside it every value is looked at under the key it stands under.

use std::io;
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::kernels::aggregate::{max, min};
use datafusion::arrow::datatypes::{DataType, Field, TimestampNanosecondType};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use super::key::{Extreme, Key, SEPARATOR};
use super::keys::Keys;
use super::kind::{Look, Type};
use super::plausible::Plausible;
use crate::profile::Profile;
use crate::record::{Column, Kind};
use crate::source::LogFile;
use crate::source::counts::{Counts, PublishedCounts};
use crate::source::cuts::{self, Piece};
use crate::source::dialect::Dialect;
use crate::source::format::Format;
use crate::source::json::unescape;
use crate::source::json::visit;
use crate::source::logs::Logs;
use crate::source::nest::Nest;
use crate::source::nest::deferred::{Course, Handover};
use crate::source::parquet::ParquetLog;
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, Provenance, RecordReader};
use crate::source::records;
use crate::source::sink::{Desk, RecordSink, TopLevel, Watcher};
use crate::source::tally::Tally;
use crate::source::value::RawValue;

/// Rows after which the reader's columns are looked at and dropped.
const BATCH: usize = 8192;

/// What one log holds.
#[derive(Debug)]
pub struct Survey {
    pub file: Arc<LogFile>,
    /// In the order in which they first stand in the log.
    pub keys: Vec<Key>,
    /// Values whose keys were too many or too long to be counted.
    pub uncounted: u64,
    /// Rejected records included.
    pub records: u64,
    /// Those whose keys were looked at.
    pub seen: u64,
    /// How many records each dialect of the plan read, by the profile's name and title; no profile is no name.
    pub profiles: Vec<(Option<Arc<Profile>>, u64)>,
    pub counts: Counts,
    pub tally: Tally,
    pub plausible: Plausible,
    /// Broken before its end: what is told here is told of what came before.
    pub damaged: bool,
}

impl Survey {
    /// Records that are read.
    pub fn accepted(&self) -> u64 {
        self.seen
    }

    /// Whether keys with a dot in them stand for nested ones, and text for every type.
    pub fn is_csv(&self) -> bool {
        matches!(self.file.input.format, Format::Csv { .. })
    }

    /// Reads a log of any format; of Parquet only the footer.
    pub fn of(file: &Arc<LogFile>, logs: &Logs, threads: usize) -> anyhow::Result<Self> {
        match file.input.format {
            Format::Parquet if file.rows.is_none() => Ok(Self::of_footer(file, logs)),
            _ => Self::of_records(file, logs, threads),
        }
    }

    fn of_records(file: &Arc<LogFile>, logs: &Logs, threads: usize) -> anyhow::Result<Self> {
        // Text cannot be unfit, and nothing here looks at it: it is not worth copying.
        let columns =
            Column::ALL.iter().filter(|column| column.kind() != Kind::Text && **column != Column::SourceOffset);
        let projection: Vec<usize> = columns.map(|column| column.index()).collect();
        let plan = Arc::new(ReadPlan::new(&logs.schema, &projection, &logs.mappings[file.mapping])?);
        let metrics = ExecutionPlanMetricsSet::new();
        let (mut keys, mut tally, mut damaged) = (Keys::default(), Tally::default(), false);
        let (mut read_by, mut plausible) = (vec![0; plan.dialects.len()], Plausible::default());
        let mut seen = 0;
        // Parts are merged in the order of the file, so that the answer does not depend on the number of threads.
        let pieces = cuts::pieces(file, || anyhow::Ok(plan.clone()))?;
        let handover = Handover::new([(file.index, pieces.len())].into_iter());
        for pieces in pieces.chunks(threads.max(1)) {
            let parts: Vec<anyhow::Result<Part>> = thread::scope(|scope| {
                let read = |piece: &Piece| {
                    let (piece, part) = (*piece, Part::new(file, logs, &plan, &metrics));
                    let handover = &handover;
                    scope.spawn(move || part.read(piece, handover))
                };
                let running: Vec<_> = pieces.iter().map(read).collect();
                let joined = running.into_iter().map(|thread| match thread.join() {
                    Ok(part) => part,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                joined.collect()
            });
            for part in parts {
                let part = part.with_context(|| format!("could not read {}", file.input.name))?;
                keys.merge(part.watched.keys);
                read_by.iter_mut().zip(&part.watched.read_by).for_each(|(sum, count)| *sum += count);
                seen += part.watched.seen;
                plausible.merge(&part.plausible);
                damaged |= part.reader.counts.damaged_files > 0;
                tally.add(&part.tally);
            }
        }
        let mut counts = Counts::default();
        counts.collect(&metrics.clone_inner());
        let (keys, uncounted) = keys.finish();
        let profile = |(dialect, count): (&Dialect, u64)| (dialect.profile.clone(), count);
        let profiles = plan.dialects.iter().zip(read_by).filter(|(_, count)| *count > 0).map(profile).collect();
        Ok(Self {
            file: file.clone(),
            keys,
            uncounted,
            records: counts.records,
            seen,
            profiles,
            counts,
            tally,
            plausible,
            damaged,
        })
    }

    /// What a Parquet footer tells, which is not which values are unfit.
    fn of_footer(file: &Arc<LogFile>, logs: &Logs) -> Self {
        let log = logs.parquets.iter().find(|log| log.file.index == file.index);
        let rows = log.map_or(0, ParquetLog::rows);
        let mut keys = Vec::new();
        if let Some(log) = log {
            for field in log.schema().fields() {
                let present = log.nulls(field.name()).map(|nulls| rows - nulls);
                let first = keys.len();
                declared(field, field.name(), present, rows, &mut keys);
                if let (true, [key]) = (field.data_type().is_numeric(), &mut keys[first..]) {
                    key.range =
                        log.range(field.name()).map(|(low, high)| (Extreme::of_file(low), Extreme::of_file(high)));
                }
            }
        }
        let mut tally = Tally { used: rows, ..Tally::default() };
        if let Some(span) = log.and_then(|log| log.span) {
            tally.include(span.first);
            tally.include(span.last);
        }
        let counts = Counts::default();
        let (file, profiles) = (file.clone(), Vec::new());
        let plausible = Plausible::default();
        Self {
            file,
            keys,
            uncounted: 0,
            records: rows,
            seen: rows,
            profiles,
            counts,
            tally,
            plausible,
            damaged: log.is_none(),
        }
    }
}

/// The leaves of a declared column.
fn declared(field: &Field, name: &str, present: Option<u64>, rows: u64, keys: &mut Vec<Key>) {
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            // How often a nested field is null, the footer tells of leaves only, and not apart from its parents.
            let name_of = |inner: &Field| format!("{name}{SEPARATOR}{}", inner.name());
            return fields.iter().for_each(|inner| declared(inner, &name_of(inner), None, rows, keys));
        }
        DataType::Boolean => Type::Boolean,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Type::Time,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..) => Type::Array,
        kind if kind.is_integer() => Type::Integer,
        kind if kind.is_numeric() => Type::Number,
        _ => Type::Text,
    };
    keys.push(Key::declared(name, keys.len() as u32, kind, present, rows));
}

/// One piece of a log while it is read.
struct Part<'a> {
    file: &'a LogFile,
    logs: &'a Logs,
    plan: Arc<ReadPlan>,
    watched: Watched,
    reader: RecordReader,
    layouts: Layouts,
    nest: Nest,
    tally: Tally,
    plausible: Plausible,
}

/// What was seen of the texts of records.
struct Watched {
    keys: Keys,
    /// Records with keys, whatever they are.
    seen: u64,
    /// Records by the dialect that read them.
    read_by: Vec<u64>,
    /// The keys are those of a header, and the values cells.
    has_header: bool,
}

impl Watcher for Watched {
    fn record(&mut self, text: &[u8], dialect: usize, is_row: bool, offset: u64) {
        self.seen += 1;
        self.read_by[dialect] += u64::from(is_row);
        let (keys, has_header) = (&mut self.keys, self.has_header);
        let look = |value| match value {
            // in a cell everything is text
            RawValue::Text { bytes, escaped } if has_header => {
                let mut cell = Vec::new();
                if escaped {
                    unescape(bytes, &mut cell);
                } else {
                    cell.extend_from_slice(bytes)
                }
                Look::at_cell(&cell)
            }
            value => Look::at(value),
        };
        match visit(text, &mut |path, value| keys.take(path, look(value))) {
            Ok(_) => keys.end_record(offset),
            Err(_) => keys.drop_record(),
        }
    }
}

impl<'a> Part<'a> {
    fn new(file: &'a LogFile, logs: &'a Logs, plan: &Arc<ReadPlan>, metrics: &ExecutionPlanMetricsSet) -> Self {
        let counts = PublishedCounts::new(metrics.clone(), 0);
        let has_header = matches!(file.input.format, Format::Csv { .. });
        Self {
            file,
            logs,
            plan: plan.clone(),
            watched: Watched { seen: 0, keys: Keys::default(), read_by: vec![0; plan.dialects.len()], has_header },
            reader: RecordReader::new(plan.clone(), Provenance::default(), BATCH, counts),
            layouts: Layouts::default(),
            nest: Nest::default(),
            tally: Tally::default(),
            plausible: Plausible::default(),
        }
    }

    /// Reads the piece to its end or to where it is broken; an input that cannot be read further is damaged, whatever
    /// the reason: what came before is still worth showing.
    fn read(mut self, piece: Piece, handover: &Handover) -> anyhow::Result<Self> {
        self.nest = Nest::of_course(Course::of_piece(piece.map(|(start, _)| start)));
        let read = self.records(piece);
        let mut nest = std::mem::take(&mut self.nest);
        handover.settle(&mut nest, &mut self.sink(0).desk);
        self.end_batch()?;
        if let Err(error) = read {
            let error = error.downcast::<io::Error>()?;
            self.reader.counts.damaged_files += 1;
            self.logs.rejects.damage(self.file, &error);
        }
        Ok(self)
    }

    fn records(&mut self, piece: Piece) -> anyhow::Result<()> {
        let (mut records, _) = records::open(self.file, &self.plan, piece)?;
        while records.advance(&mut self.sink(0))?.is_some() {
            self.end_full_batch()?;
        }
        Ok(())
    }

    /// Where the records of a block that starts at byte `base` go.
    fn sink(&mut self, base: u64) -> RecordSink<'_, TopLevel> {
        let desk = Desk {
            reader: &mut self.reader,
            rejects: &self.logs.rejects,
            file: self.file,
            watcher: Some(&mut self.watched),
        };
        RecordSink { desk, level: TopLevel { base }, layouts: &mut self.layouts, nest: &mut self.nest }
    }

    fn end_full_batch(&mut self) -> anyhow::Result<()> {
        if self.reader.rows() < BATCH { Ok(()) } else { self.end_batch() }
    }

    fn end_batch(&mut self) -> anyhow::Result<()> {
        let batch = self.reader.finish()?;
        self.plausible.look(&batch);
        self.tally.used += batch.num_rows() as u64;
        if let Some(failed) = batch.column_by_name(Column::Failed.name()) {
            self.tally.outcome_unknown += failed.null_count() as u64;
        }
        if let Some(times) = batch.column_by_name(Column::Timestamp.name()) {
            let times = times.as_primitive::<TimestampNanosecondType>();
            min(times).into_iter().chain(max(times)).for_each(|time| self.tally.include(time));
        }
        Ok(())
    }
}
