//! From the columns of a Parquet file to canonical columns, a batch at a time.
//!
//! The rules are those of [`reader`](super::reader): the same aliases, units, derivations and counts, so that one
//! log gives one answer in either form. Columns that hold their type already pass through untouched.

mod convert;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Float64Array, Float64Builder, Int64Array, Int64Builder,
    RecordBatch, RecordBatchOptions, StringViewArray, TimestampNanosecondBuilder, new_null_array,
};
use datafusion::arrow::compute::kernels::cmp::gt;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::error::ArrowError;
use jiff::tz::TimeZone;

use crate::record::derive::{self, Logged};
use crate::record::number::Unfit;
use crate::record::outcome::{self, Clue, Said};
use crate::record::stored;
use crate::record::unit::Unit;
use crate::record::{Column, Kind};
use crate::source::counts::Counts;
use crate::source::schema::Meaning;
use convert::{convert, plain, texts};

/// A column of a file and the unit its values are in.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// A top-level column, then fields of structs.
    pub path: Vec<String>,
    pub unit: Option<Unit>,
}

/// How the rows of one scan become canonical rows: settled once for files of one schema.
#[derive(Debug)]
pub struct ColumnPlan {
    pub schema: SchemaRef,
    pub outputs: Vec<Output>,
    /// Where each canonical column that is read stands in the file, the most trusted first.
    pub origins: HashMap<Column, Vec<Origin>>,
    /// Columns under one of the error keys.
    pub errors: Vec<Origin>,
    /// Columns that some row of this scan may lack and that other columns can supply.
    pub derived: Vec<Column>,
    /// Whether times that are missing or name no zone are counted here, since the footers do not tell.
    pub counts_times: bool,
    pub zone: TimeZone,
}

/// One column of the output.
#[derive(Debug)]
pub struct Output {
    pub meaning: Meaning,
    pub kind: Kind,
    /// For extra columns: where they stand in the file.
    pub extra: Vec<Origin>,
    /// The same for every row where the rows do not say themselves: partitions, the source's role, the file's name.
    pub constant: Option<String>,
}

impl ColumnPlan {
    /// Turns a batch of the file's own columns into canonical ones.
    pub fn read(&self, batch: &RecordBatch, counts: &mut Counts) -> Result<RecordBatch, ArrowError> {
        let mut columns = Columns { plan: self, batch, known: HashMap::new(), counts };
        let mut arrays = Vec::with_capacity(self.outputs.len());
        for (output, field) in self.outputs.iter().zip(self.schema.fields()) {
            arrays.push(columns.output(output, field.name())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}

/// The columns of one batch, converted as they are asked for.
struct Columns<'a> {
    plan: &'a ColumnPlan,
    batch: &'a RecordBatch,
    known: HashMap<Column, ArrayRef>,
    counts: &'a mut Counts,
}

impl Columns<'_> {
    /// The column of the output called `name`.
    fn output(&mut self, output: &Output, name: &str) -> Result<ArrayRef, ArrowError> {
        let rows = self.batch.num_rows();
        let array = match output.meaning {
            Meaning::Canonical(Column::Failed) => Arc::new(self.failed()?),
            Meaning::Canonical(Column::Timestamp) => {
                let times = self.column(Column::Timestamp)?;
                if self.plan.counts_times {
                    self.counts.undated += times.null_count() as u64;
                }
                times
            }
            Meaning::Canonical(column) => self.column(column)?,
            Meaning::Extra(_) => {
                coalesced(self.batch, &output.extra, output.kind, &self.plan.zone, |unit, array, zone| {
                    convert(array, output.kind, unit, zone, name, self.counts)
                })?
            }
            Meaning::Partition(_) => new_null_array(&output.kind.data_type(), rows),
        };
        match &output.constant {
            Some(constant) if array.null_count() > 0 => fill(array, constant),
            _ => Ok(array),
        }
    }

    /// A canonical column, logged values first and derived ones where they are missing.
    fn column(&mut self, column: Column) -> Result<ArrayRef, ArrowError> {
        let logged = self.logged(column)?;
        if column == Column::InputTokens && self.plan.derived.contains(&column) {
            return self.input_tokens(logged);
        }
        if logged.null_count() == 0 || !self.plan.derived.contains(&column) {
            return match column {
                Column::SampleWeight if self.has(column) => Ok(positive(&logged)),
                Column::SampleWeight => Ok(Arc::new(Float64Array::from_value(1.0, logged.len()))),
                _ => Ok(logged),
            };
        }
        // Convert all that the derivation may ask for, then walk the rows that lack the value.
        for input in derive::with_inputs([column]) {
            self.logged(input)?;
        }
        let mut row = Row { known: &self.known, row: 0 };
        let mut derived = 0;
        let array: ArrayRef = match column {
            Column::Timestamp => {
                let mut builder =
                    TimestampNanosecondBuilder::with_capacity(logged.len()).with_data_type(column.kind().data_type());
                for index in 0..logged.len() {
                    row.row = index;
                    builder.append_option(counted(derive::timestamp(&mut row), &mut derived));
                }
                Arc::new(builder.finish())
            }
            Column::CacheHit => {
                let mut builder = BooleanBuilder::with_capacity(logged.len());
                for index in 0..logged.len() {
                    row.row = index;
                    builder.append_option(counted(derive::cache_hit(&mut row), &mut derived));
                }
                Arc::new(builder.finish())
            }
            _ => {
                let mut builder = Float64Builder::with_capacity(logged.len());
                for index in 0..logged.len() {
                    row.row = index;
                    let value = derive::duration(&mut row, column);
                    if value.is_none() && column == Column::TotalLatencyMs && derive::is_reversed(&mut row) {
                        self.counts.unfit(column.name(), Unfit::OutOfRange, 1);
                    }
                    builder.append_option(counted(value, &mut derived));
                }
                Arc::new(builder.finish())
            }
        };
        if derived > 0 {
            self.counts.derived(column, derived);
        }
        Ok(array)
    }

    /// Input tokens with the cached ones, where the log leaves them out.
    fn input_tokens(&mut self, logged: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let cached = self.logged(Column::CachedTokens)?;
        let leaves_out = gt(&cached.as_primitive::<Int64Type>(), &logged.as_primitive::<Int64Type>())?;
        if leaves_out.true_count() == 0 {
            return Ok(logged);
        }
        for &input in derive::inputs(Column::InputTokens) {
            self.logged(input)?;
        }
        let (mut row, mut added) = (Row { known: &self.known, row: 0 }, 0);
        let mut builder = Int64Builder::with_capacity(logged.len());
        for index in 0..logged.len() {
            row.row = index;
            builder.append_option(counted(derive::input_tokens(&mut row), &mut added));
        }
        self.counts.disjoint += added;
        Ok(Arc::new(builder.finish()))
    }

    /// A canonical column as the file has it, converted once a batch.
    fn logged(&mut self, column: Column) -> Result<ArrayRef, ArrowError> {
        if let Some(array) = self.known.get(&column) {
            return Ok(array.clone());
        }
        let origins = self.plan.origins.get(&column).map_or(&[][..], Vec::as_slice);
        let assumed = self.counts.zone_assumed;
        let counts = &mut *self.counts;
        let array = coalesced(self.batch, origins, column.kind(), &self.plan.zone, |unit, array, zone| {
            convert(array, column.kind(), unit, zone, column.name(), counts)
        })?;
        if column == Column::Timestamp && !self.plan.counts_times {
            self.counts.zone_assumed = assumed;
        }
        self.known.insert(column, array.clone());
        Ok(array)
    }

    /// Whether the file has the column at all.
    fn has(&self, column: Column) -> bool {
        let origins = self.plan.origins.get(&column).map_or(&[][..], Vec::as_slice);
        origins.iter().any(|origin| at(self.batch, &origin.path).is_some())
    }

    fn failed(&self) -> Result<BooleanArray, ArrowError> {
        let clue = |clue: Clue| -> Result<Vec<SaidColumn>, ArrowError> {
            let origins = match clue {
                Clue::Failed => self.plan.origins.get(&Column::Failed),
                Clue::Status => self.plan.origins.get(&Column::Status),
                Clue::ErrorCode => self.plan.origins.get(&Column::ErrorCode),
                Clue::HttpStatus => self.plan.origins.get(&Column::HttpStatus),
                Clue::FinishReason => self.plan.origins.get(&Column::FinishReason),
                Clue::Error => Some(&self.plan.errors),
            };
            let arrays = origins.into_iter().flatten().filter_map(|origin| at(self.batch, &origin.path));
            arrays.map(SaidColumn::new).collect()
        };
        let clues = Clue::ALL.map(clue);
        let mut columns = Vec::with_capacity(clues.len());
        for clue in clues {
            columns.push(clue?);
        }
        // The usual log has one error code in every row: then nothing else is asked, and no row needs a decision.
        let first = Clue::ALL.into_iter().find(|clue| !columns[*clue as usize].is_empty());
        if let (Some(Clue::ErrorCode), [SaidColumn::Numbers(codes)]) = (first, &columns[Clue::ErrorCode as usize][..])
            && codes.null_count() == 0
        {
            return Ok(BooleanArray::from_unary(codes, |code| code != 0));
        }
        let mut builder = BooleanBuilder::with_capacity(self.batch.num_rows());
        for row in 0..self.batch.num_rows() {
            builder.append_option(outcome::failed(|clue| {
                let mut found = Said::Absent;
                for column in &columns[clue as usize] {
                    match column.at(row) {
                        Said::Null => found = Said::Null,
                        said => return said,
                    }
                }
                found
            }));
        }
        Ok(builder.finish())
    }
}

fn counted<T>(value: Option<(T, bool)>, derived: &mut u64) -> Option<T> {
    let (value, is_derived) = value?;
    *derived += u64::from(is_derived);
    Some(value)
}

/// One row of converted columns.
struct Row<'a> {
    known: &'a HashMap<Column, ArrayRef>,
    row: usize,
}

impl Logged for Row<'_> {
    fn duration(&mut self, column: Column) -> Option<f64> {
        stored::number(self.known.get(&column), self.row)
    }

    fn time(&mut self, column: Column) -> Option<i64> {
        stored::time(self.known.get(&column), self.row)
    }

    fn count(&mut self, column: Column) -> Option<i64> {
        stored::count(self.known.get(&column), self.row)
    }

    fn flag(&mut self, column: Column) -> Option<bool> {
        stored::flag(self.known.get(&column), self.row)
    }
}

/// The column of a file at a path; fields of null structs are null.
fn at(batch: &RecordBatch, path: &[String]) -> Option<ArrayRef> {
    let (first, fields) = path.split_first()?;
    let mut array = batch.column_by_name(first)?.clone();
    for field in fields {
        let parent = array.as_struct_opt()?;
        let child = parent.column_by_name(field)?.clone();
        array = match parent.null_count() {
            0 => child,
            _ => nullif(&child, &is_null(parent).ok()?).ok()?,
        };
    }
    Some(array)
}

/// The first of several origins that has a value, row by row.
fn coalesced(
    batch: &RecordBatch,
    origins: &[Origin],
    kind: Kind,
    zone: &TimeZone,
    mut convert: impl FnMut(Option<Unit>, &ArrayRef, &TimeZone) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    let mut result: Option<ArrayRef> = None;
    for origin in origins {
        let Some(array) = at(batch, &origin.path) else { continue };
        let array = convert(origin.unit, &array, zone)?;
        result = Some(match result {
            None => array,
            Some(first) if first.null_count() == 0 => first,
            Some(first) => zip(&is_null(&first)?, &array, &first)?,
        });
    }
    Ok(result.unwrap_or_else(|| new_null_array(&kind.data_type(), batch.num_rows())))
}

/// Puts `constant` where a text column is null.
fn fill(array: ArrayRef, constant: &str) -> Result<ArrayRef, ArrowError> {
    let filled: StringViewArray = array.as_string_view().iter().map(|value| Some(value.unwrap_or(constant))).collect();
    Ok(Arc::new(filled))
}

/// A record whose weight is none was sampled, nobody knows at what rate.
fn positive(weights: &ArrayRef) -> ArrayRef {
    let known = |weight: Option<f64>| weight.filter(|weight| *weight > 0.0);
    Arc::new(weights.as_primitive::<Float64Type>().iter().map(known).collect::<Float64Array>())
}

/// A column that may tell an outcome.
enum SaidColumn {
    Numbers(Int64Array),
    Texts(StringViewArray),
    Flags(BooleanArray),
    /// Lists and structs tell only whether something is there.
    Nested(ArrayRef),
}

impl SaidColumn {
    fn new(array: ArrayRef) -> Result<Self, ArrowError> {
        let array = plain(&array)?;
        Ok(match array.data_type() {
            DataType::Boolean => Self::Flags(array.as_boolean().clone()),
            data_type if data_type.is_integer() => {
                Self::Numbers(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            data_type if data_type.is_nested() || data_type.is_null() => Self::Nested(array),
            _ => Self::Texts(texts(&array)?.as_string_view().clone()),
        })
    }

    fn at(&self, row: usize) -> Said<'_> {
        match self {
            Self::Numbers(array) if array.is_valid(row) => Said::Number(array.value(row)),
            Self::Texts(array) if array.is_valid(row) => Said::Text(array.value(row).as_bytes()),
            Self::Flags(array) if array.is_valid(row) => Said::Flag(array.value(row)),
            Self::Nested(array) if array.logical_nulls().is_none_or(|nulls| nulls.is_valid(row)) => {
                Said::Nested { empty: false }
            }
            _ => Said::Null,
        }
    }
}
