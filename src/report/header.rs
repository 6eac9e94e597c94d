//! The head of a query file: comments that say what the report answers, what it takes and what its columns mean.
//!
//! ```sql
//! -- title: Latency
//! -- question: How long do requests take?
//! -- example: latency --by input-bucket logs/
//! -- param: percentiles percentiles 50,95,99 | which percentiles to show
//! -- column: p*_ms ms | a percentile of the metric
//! -- total: requests failed
//! SELECT ...
//! ```

use anyhow::{Context, bail};

use crate::report::parameter::{OPTIONAL, Parameter, ParameterKind};
use crate::request::Word;

/// What a query file says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    pub title: String,
    pub question: String,
    /// What may be typed behind `infer-stats`.
    pub examples: Vec<String>,
    pub parameters: Vec<Parameter>,
    pub columns: Vec<ColumnHelp>,
    /// Columns whose sum stands in the totals.
    pub totals: Vec<String>,
    /// Columns that are drawn over the rows, which are windows of time; one `*` in a name stands for any letters.
    pub sparks: Vec<String>,
    /// The column in the cells of a heat table.
    pub pivot: Option<String>,
    /// A column of texts `FILE, byte N`, to be shown as `FILE:LINE`.
    pub place: Option<String>,
    /// How it takes logs that are a sample.
    pub sampled: Sampled,
    /// A flag that asks for the records of the period before too.
    pub lookback: Option<String>,
    /// Columns by which `--explode` takes the rows apart: the first that the answer has; else its first column.
    pub statements: Vec<String>,
    /// Columns that people need not see where they are 0 or unknown everywhere.
    pub details: Vec<String>,
    /// Its times are in UTC, whatever the zone of the report.
    pub in_utc: bool,
    /// It is about all requests of whole months: no condition, and no other range of time.
    pub is_of_months: bool,
    /// Its file must not be there yet: what it stores never changes.
    pub is_kept: bool,
}

/// What a report makes of sampled logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampled {
    /// It is about requests: each record counts for as many as its weight says.
    #[default]
    Weighted,
    /// It is about the records themselves.
    AsRecords,
    /// It needs every request.
    Refused,
}

impl Word for Sampled {
    const KIND: &'static str = "way to take a sample";
    const WORDS: &'static [(&'static str, Self)] =
        &[("weighted", Sampled::Weighted), ("records", Sampled::AsRecords), ("refused", Sampled::Refused)];
}

/// Unit and meaning of an output column, or of several whose names share a pattern with one `*`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnHelp {
    pub pattern: String,
    pub unit: String,
    pub definition: String,
}

impl Header {
    /// Reads the leading comment lines of a query; an error names the line.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut header = Header::default();
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.strip_prefix("--") else { break };
            let Some((key, value)) = comment.trim().split_once(':') else { continue };
            header.read(key.trim(), value.trim()).with_context(|| format!("line {}", index + 1))?;
        }
        Ok(header)
    }

    fn read(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        match key {
            "title" => self.title = value.to_owned(),
            "question" => self.question = value.to_owned(),
            "example" => self.examples.push(value.to_owned()),
            "param" => self.parameters.push(Parameter::parse(value)?),
            "column" => {
                let Some((names, definition)) = value.split_once('|') else {
                    bail!("`column: {value}` has no meaning: write `column: NAME UNIT | what it means`");
                };
                let (pattern, unit) = names.trim().split_once(' ').unwrap_or((names.trim(), ""));
                self.columns.push(ColumnHelp {
                    pattern: pattern.to_owned(),
                    unit: unit.trim().to_owned(),
                    definition: definition.trim().to_owned(),
                });
            }
            "spark" => self.sparks = value.split_whitespace().map(str::to_owned).collect(),
            "pivot" => self.pivot = Some(value.to_owned()),
            "explode" => self.statements = value.split_whitespace().map(str::to_owned).collect(),
            "detail" => self.details = value.split_whitespace().map(str::to_owned).collect(),
            "times" => self.in_utc = value == "utc",
            "whole" => self.is_of_months = value == "months",
            "keeps" => self.is_kept = value == "file",
            "lookback" => self.lookback = Some(value.to_owned()),
            "place" => self.place = Some(value.to_owned()),
            "sampled" => self.sampled = Sampled::from_word(value)?,
            "total" => self.totals = value.split_whitespace().map(str::to_owned).collect(),
            // a comment that happens to hold a colon
            _ => {}
        }
        Ok(())
    }

    /// Whether it is about money: calls upstream, charged by a price book.
    pub fn is_of_money(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == ParameterKind::Book)
    }

    /// Whether it says nothing without a price book.
    pub fn needs_prices(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == ParameterKind::Book && parameter.default != OPTIONAL)
    }

    /// Whether a column is drawn over time.
    pub fn draws(&self, name: &str) -> bool {
        self.sparks.iter().any(|pattern| fits(pattern, name))
    }

    /// What the header says about an output column.
    pub fn column(&self, name: &str) -> Option<&ColumnHelp> {
        let exact = self.columns.iter().find(|help| help.pattern == name);
        exact.or_else(|| self.columns.iter().find(|help| fits(&help.pattern, name)))
    }
}

/// Whether a name is like a pattern, in which a `*` stands for any letters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|end| {
            end.char_indices().map(|(at, _)| at).chain([end.len()]).any(|at| fits(rest, &end[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_titles_parameters_and_the_meaning_of_columns() {
        let header = Header::parse("-- title: T\n-- question: Q?\n-- param: n integer 3 | how many\n-- column: p*_ms ms | a percentile\n-- total: a b\nSELECT 1 -- title: no").unwrap();
        assert_eq!((header.title.as_str(), header.question.as_str()), ("T", "Q?"));
        assert_eq!(header.parameters[0].name, "n");
        assert_eq!(header.column("p99_9_ms").map(|help| help.unit.as_str()), Some("ms"));
        assert_eq!(header.column("mean_ms"), None);
        assert_eq!(header.totals, ["a", "b"]);
    }

    #[test]
    fn a_column_without_meaning_is_an_error_that_names_the_line() {
        let error = Header::parse("-- title: T\n-- column: requests").unwrap_err();
        assert!(format!("{error:#}").starts_with("line 2: `column: requests`"), "{error:#}");
    }
}
