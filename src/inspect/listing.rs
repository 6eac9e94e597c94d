//! The rows of an inspection: the facts of each log, then its keys.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use indicatif::HumanCount;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::assignment::Assignment;
use super::key::{Extreme, Key};
use super::kind::Type;
use super::survey::Survey;
use crate::profile::Profile;
use crate::report::ReportColumn;
use crate::request::Word;
use crate::source::compression::Compression;
use crate::source::value::Reject;

/// What stands in the column of a key that no column takes.
const NOT_MAPPED: &str = "not mapped";

/// Name, unit and definition of each column.
const COLUMNS: [(&str, &str, &str); 9] = [
    ("file", "", "the log"),
    (
        "key",
        "",
        "key of the log, nested keys joined by dots, arrays with []; in parentheses facts of the whole file: (file), \
         (rejected), (skipped), (profile), (undated), (first), (last)",
    ),
    ("records", "records", "records in which the key has a value"),
    ("present", "ratio", "their share of all records that were not rejected; of rejected ones, of all records"),
    (
        "types",
        "",
        "types of the values, each with its share where there are several; for (file) its format, for (rejected) and (skipped) why, for (profile) its name",
    ),
    ("range", "", "smallest to largest number; for (first) and (last) the time, to the second"),
    ("column", "", "the column that the key fills, or `not mapped`"),
    ("unit", "", "unit of the values in the log"),
    ("evidence", "", "what says that the key fills the column, and in this unit; (2nd) where another key comes first"),
];

/// The rows of one log, column by column.
#[derive(Default)]
pub struct Listing {
    /// Whether the rows stand for themselves: with the name of their log and its time range, which a title may tell.
    standalone: bool,
    file: Vec<String>,
    key: Vec<String>,
    records: Vec<Option<i64>>,
    present: Vec<Option<f64>>,
    types: Vec<String>,
    range: Vec<String>,
    column: Vec<String>,
    unit: Vec<String>,
    evidence: Vec<String>,
}

/// One row, with nothing in it that was not said.
#[derive(Default)]
struct Row {
    key: String,
    records: Option<u64>,
    present: Option<f64>,
    types: String,
    range: String,
    column: String,
    unit: String,
    evidence: String,
}

impl Listing {
    /// No rows yet. Rows of several logs, and rows for programs, are `standalone`: they name their log and its time range.
    pub fn new(standalone: bool) -> Self {
        Self { standalone, ..Self::default() }
    }

    /// Adds the rows of a log: its facts, then the keys at the positions `listed`.
    pub fn with(mut self, survey: &Survey, assigned: &[Vec<Assignment>], listed: &[usize], zone: &TimeZone) -> Self {
        let file = &survey.file.input.name;
        facts(survey).into_iter().for_each(|row| self.push(file, row));
        if self.standalone {
            span(survey, zone).into_iter().for_each(|row| self.push(file, row));
        }
        for &index in listed {
            self.push(file, key_row(&survey.keys[index], &assigned[index], survey));
        }
        self
    }

    fn push(&mut self, file: &str, row: Row) {
        self.file.push(file.to_owned());
        self.key.push(row.key);
        self.records.push(row.records.and_then(|records| i64::try_from(records).ok()));
        self.present.push(row.present);
        self.types.push(row.types);
        self.range.push(row.range);
        self.column.push(row.column);
        self.unit.push(row.unit);
        self.evidence.push(row.evidence);
    }

    /// The rows as one batch.
    pub fn batch(self) -> anyhow::Result<RecordBatch> {
        let text = |values: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let arrays: [ArrayRef; 9] = [
            text(self.file),
            text(self.key),
            Arc::new(Int64Array::from(self.records)),
            Arc::new(Float64Array::from(self.present)),
            text(self.types),
            text(self.range),
            text(self.column),
            text(self.unit),
            text(self.evidence),
        ];
        let named = COLUMNS.iter().zip(arrays).map(|((name, ..), array)| (*name, array, true));
        Ok(RecordBatch::try_from_iter_with_nullable(named.skip(usize::from(!self.standalone)))?)
    }
}

/// The meanings of the columns of a listing.
pub fn columns(standalone: bool) -> Vec<ReportColumn> {
    let column = |(name, unit, definition): &(&str, &str, &str)| ReportColumn {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        definition: (*definition).to_owned(),
    };
    COLUMNS.iter().skip(usize::from(!standalone)).map(column).collect()
}

fn facts(survey: &Survey) -> Vec<Row> {
    let evidence = if survey.damaged { "damaged".to_owned() } else { String::new() };
    let unread = survey.damaged && survey.records == 0;
    let records = (!unread).then_some(survey.records);
    let mut rows = vec![Row { key: "(file)".to_owned(), records, types: format(survey), evidence, ..Row::default() }];
    for why in Reject::ALL {
        let rejected = survey.counts.rejected[why as usize];
        if rejected > 0 {
            rows.push(Row {
                key: "(rejected)".to_owned(),
                records: Some(rejected),
                present: share(rejected, survey.records),
                types: why.code().to_owned(),
                ..Row::default()
            });
        }
    }
    for (reason, count) in &survey.counts.skipped {
        rows.push(Row {
            key: "(skipped)".to_owned(),
            records: Some(*count),
            present: share(*count, survey.records),
            types: reason.clone(),
            ..Row::default()
        });
    }
    for (profile, count) in survey.profiles.iter().filter_map(|(profile, count)| Some((profile.as_ref()?, *count))) {
        rows.push(Row {
            key: "(profile)".to_owned(),
            records: Some(count),
            present: share(count, survey.records),
            types: profile.name.clone(),
            evidence: deciding(profile),
            ..Row::default()
        });
    }
    let undated = survey.counts.undated;
    if undated > 0 {
        let present = share(undated, survey.accepted());
        rows.push(Row { key: "(undated)".to_owned(), records: Some(undated), present, ..Row::default() });
    }
    rows
}

/// What the records of a profile are known by.
fn deciding(profile: &Profile) -> String {
    match profile.recognise.first() {
        Some(condition) => condition.deciding().join(", "),
        None => "pattern".to_owned(),
    }
}

/// First and last record, where they are known.
fn span(survey: &Survey, zone: &TimeZone) -> Vec<Row> {
    let row = |key: &str, range| Row { key: key.to_owned(), range, ..Row::default() };
    let times = [("(first)", survey.tally.first), ("(last)", survey.tally.last)].into_iter();
    times.filter_map(|(key, time)| Some(row(key, instant(time?, zone)?))).collect()
}

/// A log in one line: its name, its format, how much it holds and from when.
pub fn title(survey: &Survey, zone: &TimeZone) -> String {
    let records = if survey.records == 1 { "record" } else { "records" };
    let mut title = format!("{}: {}, {} {records}", survey.file.input.name, format(survey), HumanCount(survey.records));
    let instant = |time: Option<i64>| time.and_then(|time| instant(time, zone));
    if let (Some(first), Some(last)) = (instant(survey.tally.first), instant(survey.tally.last)) {
        title += &format!(", {first} to {last}");
    }
    title
}

fn format(survey: &Survey) -> String {
    let input = &survey.file.input;
    match input.compression {
        Compression::None => input.format.to_string(),
        compression => format!("{}, {compression}", input.format),
    }
}

fn key_row(key: &Key, assigned: &[Assignment], survey: &Survey) -> Row {
    let types = key.types();
    let is_array = matches!(types[..], [(Type::Array, _)]);
    let evidence = |assignment: &Assignment| {
        let second = if assignment.after.is_some() { " (2nd)" } else { "" };
        format!("{}{second}", assignment.evidence)
    };
    let mut evidences: Vec<String> = assigned.iter().map(evidence).collect();
    evidences.dedup();
    let columns: Vec<&str> = assigned.iter().map(|assignment| assignment.column.as_str()).collect();
    Row {
        key: format!("{}{}", shown(key), if is_array { "[]" } else { "" }),
        records: key.present,
        present: key.present.and_then(|present| share(present, survey.accepted())),
        types: type_shares(&types.iter().map(|(kind, seen)| (*kind, seen.count)).collect::<Vec<_>>()),
        range: key.range.map(range).unwrap_or_default(),
        column: if columns.is_empty() { NOT_MAPPED.to_owned() } else { columns.join(", ") },
        unit: assigned
            .iter()
            .find_map(|assignment| assignment.unit)
            .map_or(String::new(), |unit| unit.word().to_owned()),
        evidence: evidences.join(", "),
    }
}

/// A data frame's index has a column without a name.
fn shown(key: &Key) -> String {
    if key.name.is_empty() { "(unnamed)".to_owned() } else { key.dotted() }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `integer`, or `integer 98 %, text 2 %`.
fn type_shares(types: &[(Type, u64)]) -> String {
    match types {
        [] => "null".to_owned(),
        [(kind, _)] => kind.word().to_owned(),
        _ => {
            let all = types.iter().map(|(_, count)| *count as f64).sum::<f64>();
            let part =
                |(kind, count): &(Type, u64)| format!("{} {}", kind.word(), percent(*count as f64 / all * 100.0));
            types.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Without decimals, but neither none nor all where it is neither.
fn percent(share: f64) -> String {
    let from_an_end = share.min(100.0 - share);
    let decimals = if from_an_end >= 1.0 { 0 } else { (-from_an_end.log10()).ceil().clamp(0.0, 6.0) as usize };
    format!("{share:.decimals$} %")
}

fn range((low, high): (Extreme, Extreme)) -> String {
    let (low, high) = (number(low.value), number(high.value));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Short, since only the size matters here.
fn number(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        format!("{value}")
    } else if (1e-3..1e15).contains(&size) {
        let digits = format!("{value:.3}");
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.2e}")
    }
}

/// RFC 3339 to the second; None for a time that no calendar reaches.
fn instant(nanoseconds: i64, zone: &TimeZone) -> Option<String> {
    let time = Timestamp::from_second(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    Some(match *zone == TimeZone::UTC {
        true => time.to_string(),
        false => time.display_with_offset(zone.to_offset(time)).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_type_is_not_none_and_a_frequent_one_is_not_all() {
        assert_eq!(type_shares(&[(Type::Integer, 98), (Type::Text, 2)]), "integer 98 %, text 2 %");
        assert_eq!(type_shares(&[(Type::Integer, 9999), (Type::Text, 1)]), "integer 99.99 %, text 0.01 %");
        assert_eq!(type_shares(&[(Type::Text, 3)]), "text");
        assert_eq!(type_shares(&[]), "null");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (21073.0, "21073"),
            (33900.532961, "33900.533"),
            (0.25, "0.25"),
            (1747441360.598019, "1747441360.598"),
            (0.00001234, "1.23e-5"),
            (1e21, "1.00e21"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
