//! From the rows of a query to a report: what the columns mean, where the records went, what the reader must know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use datafusion::arrow::compute::{cast, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, SchemaRef};
use jiff::Timestamp;

use crate::engine::Answer;
use crate::engine::accounting::Counted;
use crate::record::Column;
use crate::report::dimension;
use crate::report::header::Header;
use crate::report::parameter::ParameterValue;
use crate::report::template::Filled;
use crate::report::{Accounting, Note, Report, ReportColumn, Rows, Spark};
use crate::request::{Ask, Dimension, Percentile, Request, Word};
use crate::source::Place;
use crate::source::logs::Logs;
use crate::source::parquet::ParquetLog;
use crate::source::reader::REQUEST;
use crate::source::rejects::positions;

/// What was asked, as far as a report repeats it.
pub struct Question<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub header: &'a Header,
    pub dimensions: &'a [Dimension],
    pub values: &'a BTreeMap<String, ParameterValue>,
}

impl<'a> Question<'a> {
    pub fn of(filled: &'a Filled<'_>) -> Self {
        let query = filled.query;
        Self {
            name: &query.name,
            title: &query.header.title,
            header: &query.header,
            dimensions: filled.dimensions(),
            values: &filled.values,
        }
    }
}

/// Puts an answer, its accounting and its notes together.
pub fn report(question: &Question<'_>, answer: Answer, logs: &Logs, request: &Request) -> anyhow::Result<Report> {
    let mut counted = Counted::of(answer.plan.as_ref());
    counted.counts.zone_assumed +=
        logs.parquets.iter().filter_map(|log| log.span).map(|span| span.zone_assumed).sum::<u64>();
    let mut rows = match &question.header.place {
        Some(column) => with_lines(answer.rows, column, logs)?,
        None => answer.rows,
    };
    let source = accounting(&counted, logs, request);
    let mut notes: Vec<Note> = request.notes.iter().map(Note::from).collect();
    notes.extend(logs.notes());
    notes.extend(record_notes(&counted, &source, logs, request));
    let sums = Sums::of(&question.header.totals, &mut rows)?;
    notes.extend(request_notes(question, &sums, &source, request));
    notes.extend(own_notes(answer.notes)?);
    notes.extend(few_values(question, &mut rows)?);
    notes.extend(empty_sides(question, &mut rows)?);
    notes.extend(nothing_compared(&mut rows)?);
    let columns = columns(question, &rows);
    let columns_of_rows = rows.schema().clone();
    let is_dimension = |column: &ReportColumn| question.dimensions.iter().any(|by| by.name == column.name);
    let labels: Vec<usize> = (0..columns.len()).filter(|&column| is_dimension(&columns[column])).collect();
    let sparks = Spark::all(|name| question.header.draws(name), &labels, &columns, &mut rows)?;
    Ok(Report {
        name: question.name.to_owned(),
        title: question.title.to_owned(),
        parameters: parameters(question, request),
        source,
        columns,
        lives: Vec::new(),
        nothing_found: false,
        sparks,
        heat: None,
        totals: totals(&sums, &rows)?,
        rows,
        notes,
        // A question about logs of which none can be read scans nothing, and has found nothing.
        reads_logs: counted.scanned || !matches!(request.ask, Ask::Sql { .. } | Ask::Run { .. }),
        details: question.header.details.clone(),
        concerns: concerned(question.header, &columns_of_rows),
        zone: if question.header.in_utc { jiff::tz::TimeZone::UTC } else { request.zone.rules.clone() },
    })
}

/// The column that says whom a row concerns.
fn concerned(header: &Header, schema: &SchemaRef) -> usize {
    header.statements.iter().find_map(|name| schema.index_of(name).ok()).unwrap_or(0)
}

/// The rows with the places of records as `FILE:LINE`, which are counted only for the few that are shown.
fn with_lines(mut rows: Rows, column: &str, logs: &Logs) -> anyhow::Result<Rows> {
    let schema = rows.schema().clone();
    let index = schema.index_of(column)?;
    let mut shown = Rows::new(schema.clone());
    let place_of = |text: &str| {
        let (name, offset) = text.rsplit_once(BYTE)?;
        let file = logs.files.iter().position(|file| file.input.name == name)?;
        Some(Place { file, offset: offset.parse().ok()? })
    };
    let batches = rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?;
    for batch in batches {
        let texts = cast(batch.column(index), &DataType::Utf8)?;
        let texts: Vec<Option<&str>> = texts.as_string::<i32>().iter().collect();
        let mut places: Vec<Place> = texts.iter().flatten().filter_map(|text| place_of(text)).collect();
        places.sort();
        let positions = positions(&logs.files, &places);
        let line_of = |text: &str| {
            let place = place_of(text)?;
            Some(positions[places.binary_search(&place).ok()?].clone())
        };
        let lines = texts.iter().map(|text| text.map(|text| line_of(text).unwrap_or_else(|| text.to_owned())));
        let mut columns = batch.columns().to_vec();
        columns[index] = cast(&lines.collect::<StringArray>(), schema.field(index).data_type())?;
        shown.push(RecordBatch::try_new(schema.clone(), columns)?)?;
    }
    Ok(shown)
}

/// What stands between the file of a record and its offset.
const BYTE: &str = ", byte ";

pub(crate) fn accounting(counted: &Counted, logs: &Logs, request: &Request) -> Accounting {
    let mut source = logs.accounting();
    if !counted.scanned {
        source.records = 0;
        return source;
    }
    let (counts, mut tally) = (&counted.counts, counted.tally.clone());
    // With a predicate the rows themselves were looked at.
    if !request.narrows() && logs.spans_known() {
        for span in logs.parquets.iter().filter_map(|log| log.span) {
            tally.include(span.first);
            tally.include(span.last);
        }
    }
    let instant = |nanoseconds: Option<i64>| nanoseconds.and_then(|ns| Timestamp::from_nanosecond(i128::from(ns)).ok());
    source.damaged_files += counts.damaged_files;
    source.records += counts.records;
    if counted.of_tokens {
        source.records += logs.token_parquets.iter().map(ParquetLog::rows).sum::<u64>();
    }
    source.rejected = counts.rejected_total();
    // What a query's own conditions let a scan pass over was asked for all the same.
    source.skipped = counts.skipped_total();
    source.duplicates = counts.duplicates;
    let requests = source.records.saturating_sub(source.rejected + source.skipped + source.duplicates);
    source.used = if request.narrows() { tally.used } else { requests };
    source.filtered = requests.saturating_sub(source.used);
    source.undated = counts.undated;
    source.first = instant(tally.first);
    source.last = instant(tally.last);
    source
}

/// Notes about what happened to records and values while reading.
pub(crate) fn record_notes(counted: &Counted, source: &Accounting, logs: &Logs, request: &Request) -> Vec<Note> {
    let counts = &counted.counts;
    let mut notes = Vec::new();
    let mut note = |code: &str, count: u64, text: String| {
        if count > 0 {
            notes.push(Note { code: code.to_owned(), text, count: Some(count) });
        }
    };
    let examples = logs.rejects.examples(&logs.files);
    let more = if source.rejected > examples.len() as u64 { "; and others" } else { "" };
    note("rejected", source.rejected, format!("rejected records: {}{more}", examples.join("; ")));
    for (reason, count) in &counts.skipped {
        let text = match reason.as_str() {
            REQUEST if counted.of_tokens => "records are requests that tell of no single tokens".to_owned(),
            REQUEST => "records are no events but requests".to_owned(),
            reason => format!("records are no requests: {reason}"),
        };
        note("skipped", *count, text);
    }
    let text =
        "records have no time of their own; theirs is that of the envelope around them, about when they were written";
    note("envelope_time", counts.envelope_time, text.to_owned());
    let text = "requests have the id of another request: another tenant or prompt, or more than an hour apart; they are not merged";
    note("collision", counts.collisions, text.to_owned());
    let text =
        "ids stand in several logs without a role, which are not merged: give their sources a role in the config";
    note("no_role", counts.unrelated, text.to_owned());
    for skew in logs.skews.corrected() {
        note("clock_corrected", skew.requests, format!("{}; set right, as --fix-skew asks", skew.sentence()));
    }
    for found in logs.matches.found() {
        // none matched is worth saying too
        note("matched_asof", found.matched.max(1), found.sentence());
    }
    for skew in logs.skews.measured() {
        note("clock_skew", skew.requests, skew.sentence());
    }
    let text =
        "records count more cached tokens than input tokens: their input leaves the cached ones out, which are added";
    note("cached_above_input", counts.disjoint, text.to_owned());
    for (column, why, count) in &counts.unfit {
        let text = format!("values of {column} that are {} count as missing", why.phrase());
        note("unfit_value", *count, text);
    }
    for (column, count) in &counts.derived {
        note(
            "derived",
            *count,
            format!(
                "{} is not logged in some of the records read and was derived from their other fields",
                column.name()
            ),
        );
    }
    note("duplicate_keys", counts.duplicate_keys, "keys stand twice in a record; the last value counts".to_owned());
    let zone = request.source_zone.as_ref().map_or("UTC", |zone| zone.name.as_str());
    note(
        "zone_assumed",
        counts.zone_assumed,
        format!("times name no zone and are read as {zone}, or as their source's zone"),
    );
    if request.time.since.is_some() || request.time.until.is_some() {
        note("undated", source.undated, "records without a timestamp are outside every time range".to_owned());
    }
    let unknown = "requests do not say whether they failed; they are measured like successes".to_owned();
    note("outcome_unknown", counted.tally.outcome_unknown, unknown);
    notes
}

/// Notes about requests that the rows leave out or do not measure, by the sums of what adds up.
fn request_notes(question: &Question<'_>, sums: &Sums, source: &Accounting, request: &Request) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |code: &str, count: u64, text: String| {
        if count > 0 {
            notes.push(Note { code: code.to_owned(), text, count: Some(count) });
        }
    };
    if source.used == 0 {
        note("nothing_used", source.filtered, "records are all outside what was asked for".to_owned());
    }
    let is_cut =
        request.top.is_some() || matches!(question.values.get("min_count"), Some(ParameterValue::Integer(1..)));
    if let (true, Some(requests)) = (is_cut, sums.count("requests")) {
        let text = "requests are in rows that are left out, by --top or by --min-count; totals are of the rows shown";
        note("left_out", source.used.saturating_sub(requests), text.to_owned());
    }
    let counts = (sums.count("requests"), sums.count("failed"), sums.count("measured"));
    if let (Some(requests), Some(failed), Some(measured)) = counts {
        let apart = if question.values.get("include_failed") == Some(&ParameterValue::Flag(true)) { 0 } else { failed };
        let text = "requests are not measured, since their records hold neither the duration nor what it follows from; \
                    `infer-stats inspect` shows what they hold";
        note("not_measured", requests.saturating_sub(measured + apart), text.to_owned());
    }
    notes
}

/// A percentile so far out that fewer values than one lie beyond it is close to the maximum: said, not hidden.
fn few_values(question: &Question<'_>, rows: &mut Rows) -> anyhow::Result<Vec<Note>> {
    let percentiles = question.values.values().find_map(|value| match value {
        ParameterValue::Percentiles(percentiles) => Some(percentiles.as_slice()),
        _ => None,
    });
    let is_count = |index: &usize| rows.schema().field(*index).data_type() == &DataType::Int64;
    let Some(measured) = rows.schema().index_of("measured").ok().filter(is_count) else { return Ok(Vec::new()) };
    let wanted: Vec<(&Percentile, i64)> = percentiles
        .unwrap_or_default()
        .iter()
        .filter_map(|percentile| Some((percentile, enough(percentile)?)))
        .collect();
    let mut few = vec![0u64; wanted.len()];
    for batch in rows.batches()? {
        let batch = batch?;
        let measured = batch.column(measured).as_primitive_opt::<Int64Type>().context("`measured` is no count")?;
        for count in measured.iter().flatten().filter(|count| *count > 0) {
            for (few, (_, enough)) in few.iter_mut().zip(&wanted) {
                *few += u64::from(count < *enough);
            }
        }
    }
    let notes = wanted.iter().zip(few).filter(|(_, few)| *few > 0).map(|((percentile, enough), few)| Note {
        code: "few_values".to_owned(),
        text: format!(
            "rows whose {} rests on fewer than {enough} values: there it says little more than the maximum",
            percentile.name
        ),
        count: Some(few),
    });
    Ok(notes.collect())
}

/// A baseline that fits nothing gates nothing.
fn nothing_compared(rows: &mut Rows) -> anyhow::Result<Option<Note>> {
    let Ok(baseline) = rows.schema().index_of("baseline_ms") else { return Ok(None) };
    for batch in rows.batches()? {
        let values = batch?.column(baseline).clone();
        if values.null_count() < values.len() {
            return Ok(None);
        }
    }
    let text = "nothing was compared: the baseline holds no such models, buckets, percentiles, or windows of this length (--every)";
    Ok(Some(Note { code: "nothing_compared".to_owned(), text: text.to_owned(), count: None }))
}

/// A side of a comparison that no row has a measured request of is hardly what was meant.
fn empty_sides(question: &Question<'_>, rows: &mut Rows) -> anyhow::Result<Vec<Note>> {
    let mut notes = Vec::new();
    for (side, column) in [("a", "measured_a"), ("b", "measured_b"), ("a, or b,", "pairs")] {
        let Ok(measured) = rows.schema().index_of(column) else { continue };
        let mut is_empty = true;
        for batch in rows.batches()? {
            let counts = batch?.column(measured).clone();
            is_empty &=
                counts.as_primitive_opt::<Int64Type>().is_none_or(|counts| counts.iter().flatten().all(|n| n == 0));
        }
        if is_empty {
            let value = |side: &str| question.values.get(side).map(|value| value.json().to_string());
            let text = match value(side) {
                Some(value) => format!("side {side} has no measured request: is {value} written as in the logs?"),
                None => {
                    "no request is on both sides: are they written as in the logs, and do they have the key in common?"
                        .to_owned()
                }
            };
            notes.push(Note { code: "empty_side".to_owned(), text, count: None });
        }
    }
    Ok(notes)
}

/// How many values a percentile above the ninetieth needs before one lies beyond it.
fn enough(percentile: &Percentile) -> Option<i64> {
    let beyond = 1.0 - percentile.fraction;
    (percentile.fraction >= 0.99 && beyond > 0.0).then(|| (1.0 / beyond).round() as i64)
}

fn columns(question: &Question<'_>, rows: &Rows) -> Vec<ReportColumn> {
    let column = |name: &String| {
        if let Some(dimension) = question.dimensions.iter().find(|dimension| dimension.name == *name) {
            return ReportColumn {
                name: name.clone(),
                unit: String::new(),
                definition: dimension::definition(dimension),
            };
        }
        let help = question.header.column(name).map(|help| (help.unit.clone(), help.definition.clone()));
        let canonical =
            || Column::named(name).map(|column| (column.kind().unit().to_owned(), column.definition().to_owned()));
        let (unit, definition) = help.or_else(canonical).unwrap_or_default();
        ReportColumn { name: name.clone(), unit, definition }
    };
    rows.schema().fields().iter().map(|field| column(field.name())).collect()
}

/// The sums of the columns that add up, by column; None where no row has a value. Where one request stands in several
/// rows (one a metric), nothing adds up, and money of several currencies does not.
struct Sums {
    schema: SchemaRef,
    summed: Vec<usize>,
    /// Counts, and amounts in the units of their column.
    sums: Vec<Option<i128>>,
}

/// The column of the currency that amounts are in.
const CURRENCY: &str = "currency";

/// The column that tells rows from sums of several of them.
const LEVEL: &str = "level";

impl Sums {
    fn of(names: &[String], rows: &mut Rows) -> anyhow::Result<Self> {
        let schema = rows.schema().clone();
        let names = if schema.index_of("metric").is_ok() { &[] } else { names };
        let adds_up =
            |index: &usize| matches!(schema.field(*index).data_type(), DataType::Int64 | DataType::Decimal128(_, _));
        let mut summed: Vec<usize> =
            names.iter().filter_map(|name| schema.index_of(name).ok()).filter(adds_up).collect();
        let mut sums = vec![None::<i128>; schema.fields().len()];
        let (currency, level) = (schema.index_of(CURRENCY).ok(), schema.index_of(LEVEL).ok());
        let mut currencies = BTreeSet::new();
        if !summed.is_empty() {
            for batch in rows.batches()? {
                let batch = batch?;
                let batch = match level {
                    Some(level) => without_subtotals(&batch, level)?,
                    None => batch,
                };
                if let Some(currency) = currency {
                    let texts = cast(batch.column(currency), &DataType::Utf8)?;
                    currencies.extend(texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
                }
                for &index in &summed {
                    let column = batch.column(index);
                    let values: Box<dyn Iterator<Item = i128>> = match column.data_type() {
                        DataType::Int64 => {
                            Box::new(column.as_primitive::<Int64Type>().iter().flatten().map(i128::from))
                        }
                        _ => Box::new(column.as_primitive::<Decimal128Type>().iter().flatten()),
                    };
                    for value in values {
                        let sum = sums[index].unwrap_or(0).checked_add(value);
                        let too_large = || format!("the total of {} is too large", schema.field(index).name());
                        sums[index] = Some(sum.with_context(too_large)?);
                    }
                }
            }
        }
        if currencies.len() > 1 {
            summed.retain(|index| schema.field(*index).data_type() == &DataType::Int64);
            schema.fields().iter().zip(&mut sums).for_each(|(field, sum)| {
                *sum = sum.filter(|_| field.data_type() == &DataType::Int64);
            });
        }
        Ok(Self { schema, summed, sums })
    }

    /// The sum of a column of counts, if it adds up.
    fn count(&self, name: &str) -> Option<u64> {
        let index = self.schema.index_of(name).ok().filter(|index| self.summed.contains(index))?;
        u64::try_from(self.sums[index].unwrap_or(0)).ok()
    }
}

/// The rows that are no sums of others.
fn without_subtotals(batch: &RecordBatch, level: usize) -> anyhow::Result<RecordBatch> {
    let levels = cast(batch.column(level), &DataType::Utf8)?;
    let kept: BooleanArray = levels.as_string::<i32>().iter().map(|level| Some(level != Some("subtotal"))).collect();
    Ok(filter_record_batch(batch, &kept)?)
}

/// One row with the sums, where there are several rows to add up.
fn totals(sums: &Sums, rows: &Rows) -> anyhow::Result<Option<RecordBatch>> {
    if sums.summed.is_empty() || rows.len() < 2 || sums.schema.index_of("metric").is_ok() {
        return Ok(None);
    }
    let column = |(index, field): (usize, &Arc<Field>)| -> anyhow::Result<ArrayRef> {
        Ok(match (sums.sums[index], field.data_type()) {
            (Some(sum), DataType::Decimal128(_, scale)) => {
                Arc::new(Decimal128Array::from(vec![sum]).with_precision_and_scale(38, *scale)?)
            }
            (Some(sum), _) => {
                let too_large = || format!("the total of {} is too large", field.name());
                Arc::new(Int64Array::from(vec![i64::try_from(sum).ok().with_context(too_large)?]))
            }
            (None, kind) => new_null_array(kind, 1),
        })
    };
    let columns = sums.schema.fields().iter().enumerate().map(column).collect::<anyhow::Result<_>>()?;
    // a column that is never null in the rows has no total all the same
    let fields = sums.schema.fields().iter().enumerate().map(|(index, field)| {
        let kind = match (sums.sums[index], field.data_type()) {
            (Some(_), DataType::Decimal128(_, scale)) => DataType::Decimal128(38, *scale),
            (_, kind) => kind.clone(),
        };
        Field::new(field.name(), kind, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Some(RecordBatch::try_new(schema, columns)?))
}

/// The totals of some of the rows: of the columns that have one in `totals`.
pub(super) fn totals_like(totals: &RecordBatch, rows: &mut Rows) -> anyhow::Result<Option<RecordBatch>> {
    let schema = totals.schema();
    let has_total = |(field, column): &(&Arc<Field>, &ArrayRef)| !field.name().is_empty() && column.null_count() == 0;
    let names: Vec<String> =
        schema.fields().iter().zip(totals.columns()).filter(has_total).map(|(field, _)| field.name().clone()).collect();
    let sums = Sums::of(&names, rows)?;
    self::totals(&sums, rows)
}

/// What a report says about its own numbers.
fn own_notes(notes: Option<Rows>) -> anyhow::Result<Vec<Note>> {
    let Some(mut rows) = notes else { return Ok(Vec::new()) };
    let mut notes = Vec::new();
    for batch in rows.batches()? {
        let batch = batch?;
        let column = |name: &str, kind: DataType| -> anyhow::Result<ArrayRef> {
            let column =
                batch.column_by_name(name).with_context(|| format!("the step `notes` has no column {name}"))?;
            Ok(cast(column, &kind)?)
        };
        let (codes, texts) = (column("code", DataType::Utf8)?, column("text", DataType::Utf8)?);
        let counts = column("count", DataType::Int64)?;
        let rows = codes.as_string::<i32>().iter().zip(texts.as_string::<i32>().iter());
        for ((code, text), count) in rows.zip(counts.as_primitive::<Int64Type>().iter()) {
            let (Some(code), Some(text)) = (code, text) else { continue };
            let count = count.and_then(|count| u64::try_from(count).ok());
            notes.push(Note { code: code.to_owned(), text: text.to_owned(), count });
        }
    }
    Ok(notes)
}

pub(crate) fn parameters(question: &Question<'_>, request: &Request) -> serde_json::Map<String, serde_json::Value> {
    let mut parameters: serde_json::Map<String, serde_json::Value> =
        question.values.iter().map(|(name, value)| (name.clone(), value.json())).collect();
    let instant = |time: Option<Timestamp>| {
        time.map(|time| time.to_zoned_datetime(request.zone.rules.clone()).timestamp().to_string())
    };
    parameters.insert("since".into(), instant(request.time.since).into());
    parameters.insert("until".into(), instant(request.time.until).into());
    parameters.insert("tz".into(), request.zone.name.clone().into());
    parameters.insert("where".into(), request.predicate.clone().into());
    let maps: Vec<String> = request.maps.iter().map(|map| format!("{}={}", map.canonical, map.path)).collect();
    if !maps.is_empty() {
        parameters.insert("map".into(), maps.into());
    }
    if let Some(sort) = &request.sort {
        parameters.insert("sort".into(), format!("{}:{}", sort.column, sort.order.word()).into());
    }
    if let Some(top) = request.top {
        parameters.insert("top".into(), top.into());
    }
    parameters
}
