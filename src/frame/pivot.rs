//! `--pivot`: a table with the values of one dimension down and those of another across, one measure in each cell.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use polars::prelude::{Column, DataFrame, IntoLazy, PlSmallStr, SortMultipleOptions, cols, element};

use super::numbers;
use crate::report::mistake::ReportMistake;
use crate::report::{Heat, Note, Report, ReportColumn, Rows};
use crate::request::{Dimension, DimensionKey};

/// More columns than that nobody can read.
const MOST_COLUMNS: usize = 200;

/// The dimensions of a heat table and the measure in its cells.
#[derive(Debug, Clone, Copy)]
pub struct Axes<'a> {
    pub down: &'a Dimension,
    pub across: &'a Dimension,
    /// A column of the answer.
    pub measure: &'a str,
}

/// The report with its rows as a heat table.
///
/// # Errors
/// [`ReportMistake`] where the answer lacks the measure, or holds several rows for one cell.
pub fn pivot(report: Report, axes: Axes) -> anyhow::Result<Report> {
    let mut report = report;
    let schema = report.rows.schema().clone();
    let place = |name: &str| schema.index_of(name).map_err(|_missing| no_column(name, &schema));
    let (down, across, measure) = (place(&axes.down.name)?, place(&axes.across.name)?, place(axes.measure)?);
    anyhow::ensure!(schema.field(measure).data_type().is_numeric(), no_column(axes.measure, &schema));
    let batches = report.rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?;
    let column = |index: usize| -> anyhow::Result<ArrayRef> {
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        Ok(if parts.is_empty() {
            datafusion::arrow::array::new_empty_array(schema.field(index).data_type())
        } else {
            concat(&parts)?
        })
    };
    let (down_values, across_values, measures) = (column(down)?, column(across)?, column(measure)?);
    let down_labels = labels(&down_values, &report.zone)?;
    let mut across_labels = labels(&across_values, &report.zone)?;
    // the rows have a column of that name already
    for label in across_labels.iter_mut().filter(|label| **label == axes.down.name) {
        *label = format!("{}={label}", axes.across.name);
    }

    // rows by number, in the order of the answer
    let mut first_rows: Vec<u32> = Vec::new();
    let mut numbered: HashMap<&str, u32> = HashMap::new();
    let rows: Vec<u32> = down_labels
        .iter()
        .enumerate()
        .map(|(at, label)| {
            *numbered.entry(label.as_str()).or_insert_with(|| {
                first_rows.push(at as u32);
                first_rows.len() as u32 - 1
            })
        })
        .collect();
    let mut heads: BTreeMap<Place, &str> = BTreeMap::new();
    for label in &across_labels {
        heads.insert(Place::of(&axes.across.key, label), label);
    }
    let heads: Vec<&str> = heads.into_values().collect();
    if heads.len() > MOST_COLUMNS {
        let (columns, dimension) = (heads.len(), axes.across.name.clone());
        return Err(ReportMistake::PivotTooWide { columns, dimension }.into());
    }
    let mut cells: Vec<(u32, &str)> = rows.iter().copied().zip(across_labels.iter().map(String::as_str)).collect();
    cells.sort_unstable();
    if let Some(twice) = cells.windows(2).find(|pair| pair[0] == pair[1]) {
        let row = down_labels[first_rows[twice[0].0 as usize] as usize].clone();
        return Err(ReportMistake::PivotOfSeveral { row, column: twice[0].1.to_owned() }.into());
    }

    let table = wide(&rows, &across_labels, &measures, &heads)?;
    let mut arrays = vec![take(&down_values, &UInt32Array::from(first_rows), None)?];
    let mut fields = vec![schema.field(down).clone()];
    let mut columns = vec![report.columns[down].clone()];
    let measured = &report.columns[measure];
    for head in &heads {
        let array = numbers(table.column(head)?)?;
        fields.push(Field::new(*head, array.data_type().clone(), true));
        arrays.push(array);
        columns.push(ReportColumn {
            name: (*head).to_owned(),
            unit: measured.unit.clone(),
            definition: format!("{}, where {} is {head}", measured.definition, axes.across.name),
        });
    }
    let heat = Heat::of(&arrays[1..])?;
    let schema = Arc::new(Schema::new(fields));
    let mut pivoted = Rows::new(schema.clone());
    pivoted.push(RecordBatch::try_new(schema, arrays)?)?;
    let unit = if measured.unit.is_empty() { String::new() } else { format!(", in {}", measured.unit) };
    report.notes.retain(|note| note.code != "few_values");
    report.notes.insert(
        0,
        Note {
            code: "pivot".to_owned(),
            text: format!("each column is a value of {}; the cells are {}{unit}", axes.across.name, measured.name),
            count: None,
        },
    );
    Ok(Report { rows: pivoted, columns, totals: None, sparks: Vec::new(), heat, ..report })
}

/// A row for each number, a column for each of the `heads`.
fn wide(rows: &[u32], across: &[String], measures: &ArrayRef, heads: &[&str]) -> anyhow::Result<DataFrame> {
    let values = match measures.data_type() {
        DataType::Int64 => {
            let values: Vec<Option<i64>> = measures.as_primitive::<Int64Type>().iter().collect();
            Column::new("value".into(), values)
        }
        _ => {
            let floats = cast(measures, &DataType::Float64)?;
            let values: Vec<Option<f64>> = floats.as_primitive::<Float64Type>().iter().collect();
            Column::new("value".into(), values)
        }
    };
    let across: Vec<&str> = across.iter().map(String::as_str).collect();
    let heads = Column::new("across".into(), heads);
    let long = DataFrame::new(
        rows.len(),
        vec![Column::new("row".into(), rows), Column::new("across".into(), across), values],
    )?;
    let heads = DataFrame::new(heads.len(), vec![heads])?;
    let table = long.lazy().pivot(
        cols(["across"]),
        Arc::new(heads),
        cols(["row"]),
        cols(["value"]),
        element().first(),
        true,
        PlSmallStr::from_static("_"),
        polars::frame::PivotColumnNaming::Auto,
    );
    table.sort(["row"], SortMultipleOptions::default()).collect().context("could not put the rows across")
}

fn no_column(name: &str, schema: &Schema) -> anyhow::Error {
    let numbers = schema.fields().iter().filter(|field| field.data_type().is_numeric());
    let names: Vec<&str> = numbers.map(|field| field.name().as_str()).collect();
    ReportMistake::NoMeasure { name: name.to_owned(), names: names.join(", ") }.into()
}

/// What values are called; times in the report's zone.
fn labels(values: &ArrayRef, zone: &TimeZone) -> anyhow::Result<Vec<String>> {
    if matches!(values.data_type(), DataType::Timestamp(..)) {
        let nanoseconds = cast(values, &DataType::Int64)?;
        let label = |nanoseconds: Option<i64>| -> anyhow::Result<String> {
            let Some(nanoseconds) = nanoseconds else { return Ok(UNKNOWN.to_owned()) };
            let time = Timestamp::from_nanosecond(i128::from(nanoseconds))?.to_zoned_datetime(zone.clone());
            Ok(time.strftime("%Y-%m-%dT%H:%M%:z").to_string())
        };
        return nanoseconds.as_primitive::<Int64Type>().iter().map(label).collect();
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(values, &options)?;
    let named = |row: usize| (!values.is_null(row)).then(|| formatter.value(row).to_string());
    let names: Vec<Option<String>> = (0..values.len()).map(named).collect();
    // somebody may be called so
    let missing = if names.iter().flatten().any(|name| name == UNKNOWN) { MISSING } else { UNKNOWN };
    Ok(names.into_iter().map(|name| name.unwrap_or_else(|| missing.to_owned())).collect())
}

/// What a missing value is called.
const UNKNOWN: &str = "unknown";
const MISSING: &str = "not logged";

/// Where a label stands among others of its dimension: buckets by their lower edge, weekdays as they follow each other, numbers
/// by size, all else by letters; the unknown last.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_unknown: bool,
    number: i64,
    label: String,
}

impl Place {
    fn of(key: &DimensionKey, label: &str) -> Self {
        const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        let lower_edge = || {
            let digits = label.len() - label.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            let number: i64 = label[..digits].parse().ok()?;
            Some(if label[digits..].starts_with('K') { number * 1024 } else { number })
        };
        let number = match key {
            DimensionKey::InputBucket
            | DimensionKey::OutputBucket
            | DimensionKey::TotalBucket
            | DimensionKey::CachedBucket => lower_edge(),
            DimensionKey::Weekday => DAYS.iter().position(|day| *day == label).map(|day| day as i64),
            DimensionKey::Period(_) | DimensionKey::IdPrefix => None,
            DimensionKey::HourOfDay | DimensionKey::Column(_) => label.parse().ok(),
        };
        Self {
            is_unknown: label == UNKNOWN || label == MISSING,
            number: number.unwrap_or(i64::MAX),
            label: label.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_the_order_of_their_dimension() {
        let sorted = |key: DimensionKey, labels: &[&str]| {
            let mut places: Vec<Place> = labels.iter().map(|label| Place::of(&key, label)).collect();
            places.sort();
            places.into_iter().map(|place| place.label).collect::<Vec<_>>()
        };
        let buckets = ["unknown", "2K-4K", "128K+", "0-1K", "500-1K", "16K-32K"];
        assert_eq!(
            sorted(DimensionKey::InputBucket, &buckets),
            ["0-1K", "500-1K", "2K-4K", "16K-32K", "128K+", "unknown"]
        );
        assert_eq!(sorted(DimensionKey::HourOfDay, &["10", "9", "unknown"]), ["9", "10", "unknown"]);
        assert_eq!(sorted(DimensionKey::Weekday, &["Friday", "Monday"]), ["Monday", "Friday"]);
        assert_eq!(sorted(DimensionKey::Column("x".into()), &["b", "a", "7"]), ["7", "a", "b"]);
    }
}
