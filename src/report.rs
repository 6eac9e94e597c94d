//! A report: what was asked, what its numbers mean, how the rows of the logs were accounted for, and the answer.
//!
//! It is the one thing that the outputs know: whatever produced it, every format prints it alike.

pub mod answer;
pub mod catalog;
pub mod dimension;
pub mod header;
pub mod heat;
pub mod mistake;
pub mod parameter;
pub mod rows;
pub mod spark;
pub mod statement;
pub mod stored;
pub mod template;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use jiff::Timestamp;

use crate::request;
use crate::trace::Life;

pub use heat::Heat;
pub use rows::Rows;
pub use spark::Spark;

/// An answer with everything that must stand beside it.
#[derive(Debug)]
pub struct Report {
    /// Machine name of the report, for example `latency`.
    pub name: String,
    /// The question in words.
    pub title: String,
    /// What was asked, resolved: instants, dimensions, percentiles. Never threads, memory or absolute paths.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    pub source: Accounting,
    /// In the order of the columns of `rows`.
    pub columns: Vec<ReportColumn>,
    pub rows: Rows,
    /// One value for each column where a total makes sense; never among the rows.
    pub totals: Option<datafusion::arrow::array::RecordBatch>,
    /// The requests that a trace is of.
    pub lives: Vec<Life>,
    /// Columns over time, for people.
    pub sparks: Vec<Spark>,
    /// Of the cells of a heat table.
    pub heat: Option<Heat>,
    pub notes: Vec<Note>,
    /// Whether the question looked at the logs at all; one that did not cannot find nothing.
    pub reads_logs: bool,
    /// Whether something was asked for by name that the logs do not have.
    pub nothing_found: bool,
    /// Columns that people need not see where they say nothing.
    pub details: Vec<String>,
    /// The column that says whom a row concerns.
    pub concerns: usize,
    /// The zone that every time in the output is written in.
    pub zone: jiff::tz::TimeZone,
}

/// How severe a finding is, the worst last.
const SEVERITIES: [&str; 3] = ["info", "warning", "error"];

/// The place of a severity among all, the worst last; None where the word is none.
pub fn severity_level(word: &str) -> Option<usize> {
    SEVERITIES.iter().position(|severity| *severity == word)
}

impl Report {
    /// Rows that no query made, with the meanings of their columns: name, unit, definition.
    ///
    /// # Errors
    /// The rows cannot be kept.
    pub fn of_rows(
        name: &str,
        title: &str,
        rows: RecordBatch,
        meanings: &[(&str, &str, &str)],
    ) -> anyhow::Result<Self> {
        let column = |(name, unit, definition): &(&str, &str, &str)| ReportColumn {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            definition: (*definition).to_owned(),
        };
        let mut held = Rows::new(rows.schema());
        held.push(rows)?;
        Ok(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            parameters: serde_json::Map::new(),
            source: Accounting::default(),
            columns: meanings.iter().map(column).collect(),
            rows: held,
            totals: None,
            lives: Vec::new(),
            nothing_found: false,
            sparks: Vec::new(),
            heat: None,
            notes: Vec::new(),
            reads_logs: false,
            details: Vec::new(),
            concerns: 0,
            zone: jiff::tz::TimeZone::UTC,
        })
    }

    /// Whether it is a trace, which people see as lives rather than rows.
    pub fn is_of_lives(&self) -> bool {
        self.name == "trace"
    }

    /// Whether a row's `severity` is what the parameter `fail_on` names, or worse.
    ///
    /// # Errors
    /// The rows cannot be read back.
    pub fn has_finding_to_fail_on(&mut self) -> anyhow::Result<bool> {
        let Some(least) = self.parameters.get("fail_on").and_then(|word| severity_level(word.as_str()?)) else {
            return Ok(false);
        };
        let Ok(severity) = self.rows.schema().index_of("severity") else { return Ok(false) };
        for batch in self.rows.batches()? {
            let severities = cast(batch?.column(severity), &DataType::Utf8)?;
            let is_breach = |word: Option<&str>| word.and_then(severity_level).is_some_and(|found| found >= least);
            if severities.as_string::<i32>().iter().any(is_breach) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One column of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportColumn {
    /// snake_case, the key in JSON and the header in CSV.
    pub name: String,
    /// `ms`, `tokens`, `requests`, `ratio`, `%` ...; empty for names and labels.
    pub unit: String,
    pub definition: String,
}

/// Something the reader must know to use the numbers rightly.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Stable and machine readable, for example `few_values`.
    pub code: String,
    /// A sentence.
    pub text: String,
    /// How many rows or values it concerns, where that makes sense.
    pub count: Option<u64>,
}

impl From<&request::Note> for Note {
    fn from(note: &request::Note) -> Self {
        Note { code: note.code.to_owned(), text: note.text.clone(), count: None }
    }
}

/// Where every record of the inputs went: records = rejected + skipped + duplicates + filtered + used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounting {
    pub files: u64,
    /// On disk, before decompression.
    pub bytes: u64,
    /// Files whose bytes are broken: a compressed stream that ends in the middle, a Parquet file without its footer.
    pub damaged_files: u64,
    pub records: u64,
    /// No record by its form: no object, bad UTF-8, cut off, too long, too deep.
    pub rejected: u64,
    /// Well formed, but not a request.
    pub skipped: u64,
    pub duplicates: u64,
    /// Outside the asked time range or predicate.
    pub filtered: u64,
    pub used: u64,
    /// Records without a timestamp: outside every asked time range.
    pub undated: u64,
    /// Of the used records.
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}
