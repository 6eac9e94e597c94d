//! The parameters of a report: their types, their defaults, and values for them.
//!
//! A command such as `latency` and `run latency --param ...` fill the same parameters, so that a report has one way in.

use std::path::PathBuf;

use anyhow::bail;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use crate::record::Kind;
use crate::report::mistake::ReportMistake;
use crate::request::{Clock, Dimension, Metric, Mistake, Percentile, Replay, Word, milliseconds};

/// The default of a parameter that must be given.
pub const REQUIRED: &str = "!";

/// The default of a price book that a report can do without.
pub const OPTIONAL: &str = "none";

/// A named parameter of a query file.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub kind: ParameterKind,
    pub default: String,
    /// The words of a choice, the default among them.
    pub choices: Vec<String>,
    /// The least and the largest number that it may be.
    pub range: Option<(f64, f64)>,
    pub help: String,
}

/// What a parameter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A list of `--by` words.
    Dimensions,
    /// A list of latency metrics.
    Metrics,
    /// One of them.
    Metric,
    /// A list of numbers from 0 to 100.
    Percentiles,
    Flag,
    Integer,
    Number,
    Text,
    /// One of some words, the first of which is the default.
    Choice,
    /// An instant, or a local date.
    Time,
    /// A length of time, in milliseconds.
    Span,
    /// A cache to replay block hashes through. `$name_ttl_ms`, `$name_blocks` and `$name_block` are its limits.
    Replay,
    /// A file that an answer was written to; `NAME` is the table of its rows.
    Table,
    /// A side of a comparison: a value, or `where` and a condition on records.
    Side,
    /// A price book; without one that of the config. Its pools and prices are tables, and calls are charged by it.
    Book,
    /// An invoice; its lines are the table `bill`.
    Bill,
}

impl Word for ParameterKind {
    const KIND: &'static str = "parameter type";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("dimensions", ParameterKind::Dimensions),
        ("metrics", ParameterKind::Metrics),
        ("metric", ParameterKind::Metric),
        ("percentiles", ParameterKind::Percentiles),
        ("flag", ParameterKind::Flag),
        ("integer", ParameterKind::Integer),
        ("number", ParameterKind::Number),
        ("text", ParameterKind::Text),
        ("choice", ParameterKind::Choice),
        ("time", ParameterKind::Time),
        ("span", ParameterKind::Span),
        ("replay", ParameterKind::Replay),
        ("table", ParameterKind::Table),
        ("side", ParameterKind::Side),
        ("book", ParameterKind::Book),
        ("bill", ParameterKind::Bill),
    ];
}

/// A parameter's value, understood.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    Dimensions(Vec<Dimension>),
    Metrics(Vec<Metric>),
    Percentiles(Vec<Percentile>),
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    Time(jiff::Timestamp),
    /// Milliseconds, and how they were written.
    Span(i64, String),
    Replay(Replay),
    Table(PathBuf),
    /// SQL as typed, not parsed yet; see [`ParameterValue::checked`].
    Condition(String),
    Book(PathBuf),
    Bill(PathBuf),
    /// A default that was left empty: `$name` is NULL, so that `$name IS NULL OR ...` makes a filter optional.
    Unset,
}

impl Parameter {
    /// Reads `NAME TYPE [DEFAULT] [LEAST..LARGEST] | what it is for`; a default of `!` says that it must be given.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (declaration, help) = text.split_once('|').unwrap_or((text, ""));
        let mut words = declaration.split_whitespace();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else {
            bail!("`param: {text}` is no parameter: write `param: NAME TYPE DEFAULT | what it is for`");
        };
        let kind = ParameterKind::from_word(kind)?;
        let words: Vec<String> = words.map(str::to_owned).collect();
        let range = words.last().and_then(|word| {
            let (least, largest) = word.split_once("..")?;
            Some((least.parse().ok()?, largest.parse().ok()?))
        });
        let range = range.filter(|_| matches!(kind, ParameterKind::Integer | ParameterKind::Number));
        let words = &words[..words.len() - usize::from(range.is_some())];
        let (default, choices) = match kind {
            ParameterKind::Choice => (words.first().cloned().unwrap_or_default(), words.to_vec()),
            _ => (words.join(" "), Vec::new()),
        };
        Ok(Self { name: name.to_owned(), kind, default, choices, range, help: help.trim().to_owned() })
    }

    /// The range, in words, if the number is outside it.
    fn check_range(&self, number: f64) -> Result<(), String> {
        match self.range {
            Some((least, largest)) if !(least..=largest).contains(&number) => {
                Err(format!("a number from {least} to {largest}"))
            }
            _ => Ok(()),
        }
    }

    /// Its name as a flag of its report, without the dashes in front.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The value that a text means for this parameter.
    pub fn value(&self, text: &str, clock: &Clock) -> anyhow::Result<ParameterValue> {
        let wrong = |expected: &str| {
            let (name, text, expected) = (self.name.clone(), text.to_owned(), expected.to_owned());
            ReportMistake::WrongValue { name, text, expected }
        };
        let list =
            || text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect::<Vec<_>>();
        if text == REQUIRED {
            return Err(ReportMistake::Missing { flag: self.flag() }.into());
        }
        if text.is_empty()
            && !matches!(self.kind, ParameterKind::Dimensions | ParameterKind::Metrics | ParameterKind::Flag)
        {
            return Ok(ParameterValue::Unset);
        }
        Ok(match self.kind {
            ParameterKind::Dimensions => ParameterValue::Dimensions(Dimension::parse_all(&list())?),
            ParameterKind::Metrics => ParameterValue::Metrics(Metric::parse_all(&list())?),
            ParameterKind::Metric => ParameterValue::Metrics(vec![Metric::from_word(text)?]),
            ParameterKind::Percentiles => ParameterValue::Percentiles(Percentile::parse_all(&list())?),
            ParameterKind::Flag => match text {
                "true" | "yes" | "1" => ParameterValue::Flag(true),
                "false" | "no" | "0" | "" => ParameterValue::Flag(false),
                _ => return Err(wrong("true or false").into()),
            },
            ParameterKind::Integer => {
                let number: i64 = text.parse().or(Err(wrong("a whole number")))?;
                self.check_range(number as f64).map_err(|expected| wrong(&expected))?;
                ParameterValue::Integer(number)
            }
            ParameterKind::Number => {
                let number: f64 = text.parse().or(Err(wrong("a number")))?;
                self.check_range(number).map_err(|expected| wrong(&expected))?;
                ParameterValue::Number(number)
            }
            ParameterKind::Text => ParameterValue::Text(text.to_owned()),
            ParameterKind::Side => match text.split_once(char::is_whitespace) {
                Some((word, condition)) if word.eq_ignore_ascii_case("where") => {
                    ParameterValue::Condition(condition.trim().to_owned())
                }
                _ => ParameterValue::Text(text.to_owned()),
            },
            ParameterKind::Choice => match self.choices.iter().find(|word| *word == text) {
                Some(word) => ParameterValue::Text(word.clone()),
                None => return Err(wrong(&self.choices.join(", ")).into()),
            },
            ParameterKind::Span => {
                let not_a_span = || Mistake::NotASpan { flag: self.flag(), text: text.to_owned() };
                ParameterValue::Span(milliseconds(text).ok_or_else(not_a_span)?, text.to_owned())
            }
            ParameterKind::Replay => ParameterValue::Replay(Replay::parse(text)?),
            ParameterKind::Table => ParameterValue::Table(text.into()),
            ParameterKind::Book if text == OPTIONAL => ParameterValue::Unset,
            ParameterKind::Book => ParameterValue::Book(text.into()),
            ParameterKind::Bill => ParameterValue::Bill(text.into()),
            ParameterKind::Time => ParameterValue::Time(clock.read("--param", text, &mut Vec::new())?),
        })
    }
}

impl ParameterValue {
    /// The value with a condition as `check` writes it; all else as it is.
    ///
    /// # Errors
    /// Those of `check`.
    pub fn checked(self, check: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Self> {
        match self {
            ParameterValue::Condition(sql) => Ok(ParameterValue::Condition(check(&sql)?)),
            other => Ok(other),
        }
    }

    /// The values as SQL binds them, by name; none for what shapes the statement instead.
    pub fn bound(&self, name: &str) -> Vec<(String, ScalarValue)> {
        let whole = |number: Option<i64>| ScalarValue::Int64(number);
        let value = match self {
            ParameterValue::Dimensions(_)
            | ParameterValue::Metrics(_)
            | ParameterValue::Table(_)
            | ParameterValue::Book(_)
            | ParameterValue::Bill(_)
            | ParameterValue::Condition(_) => return Vec::new(),
            ParameterValue::Replay(replay) => {
                return vec![
                    (format!("{name}_ttl_ms"), whole(replay.ttl_ms)),
                    (format!("{name}_blocks"), whole(replay.blocks)),
                    (format!("{name}_block"), whole(replay.block)),
                ];
            }
            ParameterValue::Span(milliseconds, _) => whole(Some(*milliseconds)),
            ParameterValue::Percentiles(percentiles) => {
                floats(percentiles.iter().map(|percentile| percentile.fraction))
            }
            ParameterValue::Flag(flag) => ScalarValue::Boolean(Some(*flag)),
            ParameterValue::Integer(integer) => ScalarValue::Int64(Some(*integer)),
            ParameterValue::Number(number) => ScalarValue::Float64(Some(*number)),
            ParameterValue::Text(text) => ScalarValue::Utf8(Some(text.clone())),
            ParameterValue::Time(time) => instant(Some(*time)),
            ParameterValue::Unset => ScalarValue::Null,
        };
        vec![(name.to_owned(), value)]
    }

    /// The value as a report shows it.
    pub fn json(&self) -> serde_json::Value {
        match self {
            ParameterValue::Dimensions(dimensions) => {
                dimensions.iter().map(|dimension| dimension.name.clone()).collect()
            }
            ParameterValue::Metrics(metrics) => metrics.iter().map(|metric| metric.word()).collect(),
            ParameterValue::Percentiles(percentiles) => {
                percentiles.iter().map(|percentile| percentile.name.clone()).collect()
            }
            ParameterValue::Flag(flag) => (*flag).into(),
            ParameterValue::Integer(integer) => (*integer).into(),
            ParameterValue::Number(number) => (*number).into(),
            ParameterValue::Text(text) => text.clone().into(),
            ParameterValue::Time(time) => time.to_string().into(),
            ParameterValue::Span(_, text) => text.clone().into(),
            ParameterValue::Replay(replay) => replay.text.clone().into(),
            // where it lies says nothing about the answer
            ParameterValue::Table(path) | ParameterValue::Book(path) | ParameterValue::Bill(path) => {
                path.file_name().map(|name| name.to_string_lossy()).into()
            }
            ParameterValue::Condition(sql) => format!("where {sql}").into(),
            ParameterValue::Unset => serde_json::Value::Null,
        }
    }
}

/// A list of floats as one bound value.
pub fn floats(values: impl Iterator<Item = f64>) -> ScalarValue {
    let values: Vec<ScalarValue> = values.map(|value| ScalarValue::Float64(Some(value))).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64))
}

/// A list of whole numbers as one bound value.
pub fn integers(values: &[i64]) -> ScalarValue {
    let values: Vec<ScalarValue> = values.iter().map(|value| ScalarValue::Int64(Some(*value))).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Int64))
}

/// A list of texts as one bound value.
pub fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ScalarValue {
    let values: Vec<ScalarValue> = values.map(|value| ScalarValue::Utf8(value.map(str::to_owned))).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))
}

/// An instant as one bound value.
pub fn instant(time: Option<jiff::Timestamp>) -> ScalarValue {
    let nanoseconds = time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    let DataType::Timestamp(_, zone) = Kind::Time.data_type() else { return ScalarValue::Null };
    ScalarValue::TimestampNanosecond(nanoseconds, zone)
}
