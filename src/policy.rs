//! `policy.toml`: what must hold of the logs, rule by rule, for `infer-stats check`.
//!
//! A rule names a report, a column of its answer and the limits of that column; or a report whose rows are findings, and the
//! severity from which on one is a breach. So everything that a report tells can be a gate.

use std::fs;
use std::path::Path;

use crate::config::table::{Document, Table, Value};
use crate::cost::FACTOR_SCALE;
use crate::request::{Mistake, Parameter, Word};

/// Something that must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub name: String,
    pub report: String,
    pub parameters: Vec<Parameter>,
    /// Only these records, as `--where` says it.
    pub predicate: Option<String>,
    pub kind: RuleKind,
    /// Whether a breach is an error or a warning.
    pub severity: Gate,
    /// Whether a value that is not known is a breach.
    pub unknown: Unknown,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleKind {
    /// A column of each row.
    Limits {
        column: String,
        /// Its total over all rows, rather than each row.
        total: bool,
        /// Values of columns that a row must have to be judged.
        rows: Vec<(String, String)>,
        /// In 10^-12.
        min: Option<i128>,
        max: Option<i128>,
        /// Rows of fewer requests say too little.
        min_count: Option<i64>,
    },
    /// The severity of each row.
    Findings { fail_on: Gate },
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    Error,
    Warning,
    Info,
}

impl Word for Gate {
    const KIND: &'static str = "severity";
    const WORDS: &'static [(&'static str, Self)] =
        &[("error", Gate::Error), ("warning", Gate::Warning), ("info", Gate::Info)];
}

/// What a value that is not known means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It is told as a warning.
    Warn,
    Fail,
}

impl Word for Unknown {
    const KIND: &'static str = "way to take unknown values";
    const WORDS: &'static [(&'static str, Self)] = &[("warn", Unknown::Warn), ("fail", Unknown::Fail)];
}

/// Reads the rules of a policy.
///
/// # Errors
/// The file cannot be read, or something in it is wrong; the mistake names the line.
pub fn read(path: &Path) -> Result<Vec<Rule>, Mistake> {
    let text =
        fs::read_to_string(path).map_err(|reason| Mistake::UnreadablePolicy { path: path.to_owned(), reason })?;
    parse(&path.display().to_string(), &text)
}

fn parse(path: &str, text: &str) -> Result<Vec<Rule>, Mistake> {
    let mut table = Document { path, text }.parse()?;
    let rules = table.tables("rule")?.into_iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    table.finish()?;
    if rules.is_empty() {
        return Err(table.mistake("a policy needs at least one [[rule]]"));
    }
    Ok(rules)
}

fn rule(mut table: Table) -> Result<Rule, Mistake> {
    let name = table.text("name")?;
    let report = table.text("report")?;
    let mut parameters = Vec::new();
    if let Some(mut given) = table.table("parameters")? {
        for name in given.keys() {
            if let Some(value) = given.take(&name) {
                parameters.push(Parameter { name: name.replace('-', "_"), value: value.plain_text()? });
            }
        }
    }
    if let Some(by) = table.text("by")? {
        parameters.push(Parameter { name: "by".to_owned(), value: by });
    }
    let predicate = table.text("where")?;
    let column = table.text("column")?;
    let mut rows = Vec::new();
    if let Some(mut wanted) = table.table("rows")? {
        for name in wanted.keys() {
            if let Some(value) = wanted.take(&name) {
                rows.push((name, value.plain_text()?));
            }
        }
    }
    let mut limit = |key: &str| table.take(key).map(|value: Value| value.decimal(FACTOR_SCALE)).transpose();
    let (min, max) = (limit("min")?, limit("max")?);
    let min_count = table.take("min_count").map(|value| value.integer()).transpose()?;
    let total = table.take("total").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    let fail_on = table.read("fail_on", Gate::from_word)?;
    let severity = table.read("severity", Gate::from_word)?.unwrap_or(Gate::Error);
    let unknown = table.read("unknown", Unknown::from_word)?.unwrap_or(Unknown::Warn);
    table.finish()?;
    let (Some(name), Some(report)) = (name, report) else {
        return Err(table.mistake("a [[rule]] needs a name and a report, as in report = \"latency\""));
    };
    let kind = match column {
        Some(column) if total && !rows.is_empty() => {
            return Err(table.mistake(&format!("rule `{name}` is about the total of {column}: drop `rows`")));
        }
        Some(column) if min.is_some() || max.is_some() => RuleKind::Limits { column, total, rows, min, max, min_count },
        None if min.is_none() && max.is_none() && rows.is_empty() && min_count.is_none() => {
            RuleKind::Findings { fail_on: fail_on.unwrap_or(Gate::Error) }
        }
        _ => {
            return Err(table.mistake(&format!(
                "rule `{name}` needs a column with max or min, or, of a report whose rows are findings, fail_on"
            )));
        }
    };
    Ok(Rule { name, report, parameters, predicate, kind, severity, unknown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_column_with_limits_or_findings() {
        let rules = parse(
            "policy.toml",
            r#"
            [[rule]]
            name = "P99"
            report = "latency"
            by = "input-bucket"
            parameters = { metrics = "ttft", min-count = 5 }
            column = "p99_ms"
            max = 2000
            rows = { input_bucket = "0-1K" }
            [[rule]]
            name = "audit"
            report = "audit"
            fail_on = "warning"
            "#,
        )
        .unwrap();
        assert_eq!(rules[0].parameters.len(), 3);
        assert!(matches!(&rules[0].kind, RuleKind::Limits { max: Some(2_000_000_000_000_000), .. }));
        assert_eq!(rules[1].kind, RuleKind::Findings { fail_on: Gate::Warning });
    }

    #[test]
    fn a_rule_that_judges_nothing_is_a_mistake_with_its_line() {
        let sentence = |text: &str| parse("policy.toml", text).unwrap_err().to_string();
        assert!(
            sentence("[[rule]]\nname = \"a\"\nreport = \"cost\"\ncolumn = \"cost\"")
                .starts_with("policy.toml:1: rule `a` needs")
        );
        assert!(sentence("[[rule]]\nname = \"a\"\nreports = \"cost\"").contains("did you mean `report`?"));
        assert!(sentence("").contains("at least one [[rule]]"));
    }
}
