//! `infer-stats check`: each rule of a policy against the report that it names.
//!
//! Rules that ask the same of the same records share one run.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};

use super::ask;
use crate::cost::ONE;
use crate::policy::{self, Gate, Rule, RuleKind, Unknown};
use crate::report::mistake::ReportMistake;
use crate::report::{Note, Report, severity_level};
use crate::request::{Ask, Parameter, Request, Word};
use crate::source::logs::Logs;

/// Breaches of one rule that are listed.
const LISTED: usize = 20;

/// Columns that count what a row rests on, the most telling first.
const COUNTS: [&str; 3] = ["measured", "known", "requests"];

/// What the answer's columns mean.
const MEANINGS: [(&str, &str, &str); 8] = [
    ("severity", "", "error: the rule is broken; warning: it could not be judged, or is only to warn; info: it holds"),
    ("rule", "", "the rule's name in the policy"),
    ("verdict", "", "ok, broken, unknown (a value is missing), too few (requests), or no data"),
    ("report", "", "the report that was asked"),
    ("rows", "", "the rows of it that the verdict is about, by their labels, or how many"),
    ("column", "", "the column that was looked at"),
    ("value", "", "its value; of several rows the worst"),
    ("limit", "", "what the rule allows"),
];

/// Asks every rule.
///
/// # Errors
/// The policy is wrong, a rule names no report or column, or a report cannot be made.
pub(super) async fn check(
    path: &Path,
    prices: Option<&Path>,
    request: &Request,
    logs: &Logs,
    spill: &Path,
) -> anyhow::Result<Report> {
    let rules = policy::read(path)?;
    let mut verdicts = Vec::new();
    let mut answered: Vec<(Ask, Option<String>, Report)> = Vec::new();
    for rule in &rules {
        let question = question(rule, prices, request);
        let is_same = |(ask, predicate, _): &(Ask, Option<String>, Report)| {
            *ask == question.ask && *predicate == question.predicate
        };
        let position = match answered.iter().position(is_same) {
            Some(position) => position,
            None => {
                let answer = Box::pin(ask(&question, logs, spill)).await;
                let report = answer.with_context(|| format!("rule `{}`", rule.name))?;
                answered.push((question.ask.clone(), question.predicate.clone(), report));
                answered.len() - 1
            }
        };
        let report = &mut answered[position].2;
        verdicts.extend(judged(rule, report).with_context(|| format!("rule `{}`", rule.name))?);
    }
    let mut notes: Vec<Note> = Vec::new();
    for note in answered.iter().flat_map(|(_, _, report)| &report.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let source = answered.first().map(|(_, _, report)| report.source.clone()).unwrap_or_default();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut report = Report::of_rows("check", "Policy", batch(&verdicts)?, &MEANINGS)?;
    report.parameters.insert("policy".to_owned(), name.into());
    report.parameters.insert("fail_on".to_owned(), Gate::Error.word().into());
    report.source = source;
    report.notes = notes;
    report.reads_logs = true;
    report.zone = request.zone.rules.clone();
    Ok(report)
}

/// The question that a rule puts to the logs.
fn question(rule: &Rule, prices: Option<&Path>, request: &Request) -> Request {
    let mut parameters = rule.parameters.clone();
    let of_rule = crate::report::catalog::Catalog::embedded().iter().find(|query| query.name == rule.report);
    if let (Some(prices), Some(_)) = (prices, of_rule.filter(|query| query.header.is_of_money())) {
        parameters.push(Parameter { name: "prices".to_owned(), value: prices.display().to_string() });
    }
    let both = |one: &String, other: &String| format!("({one}) AND ({other})");
    let predicate = match (&request.predicate, &rule.predicate) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    Request { ask: Ask::Run { name: rule.report.clone(), parameters }, predicate, ..request.clone() }
}

/// What became of a rule, or of one row that it is about.
struct Verdict {
    severity: Gate,
    rule: String,
    verdict: &'static str,
    report: String,
    rows: String,
    column: Option<String>,
    value: Option<String>,
    limit: Option<String>,
}

fn judged(rule: &Rule, report: &mut Report) -> anyhow::Result<Vec<Verdict>> {
    match &rule.kind {
        RuleKind::Findings { fail_on } => findings(rule, *fail_on, report),
        RuleKind::Limits { .. } => limits(rule, report),
    }
}

fn verdict(rule: &Rule, verdict: &'static str, rows: String) -> Verdict {
    let severity = match verdict {
        "ok" => Gate::Info,
        "broken" => rule.severity,
        "unknown" | "no data" if rule.unknown == Unknown::Fail => rule.severity,
        _ => Gate::Warning,
    };
    let (name, report) = (rule.name.clone(), rule.report.clone());
    Verdict { severity, rule: name, verdict, report, rows, column: None, value: None, limit: None }
}

/// Each row as severe as the gate is a breach.
fn findings(rule: &Rule, fail_on: Gate, report: &mut Report) -> anyhow::Result<Vec<Verdict>> {
    let no_findings = || ReportMistake::RuleOfNoFindings { report: rule.report.clone() };
    let severity = report.rows.schema().index_of("severity").ok().with_context(no_findings)?;
    let mut broken = Vec::new();
    let mut count = 0u64;
    for batch in report.rows.batches()? {
        let batch = batch?;
        let severities = cast(batch.column(severity), &DataType::Utf8)?;
        for (row, word) in severities.as_string::<i32>().iter().enumerate() {
            count += 1;
            if word.and_then(severity_level).is_some_and(|found| Some(found) >= severity_level(fail_on.word())) {
                broken.push(labels(&batch, row)?);
            }
        }
    }
    let limit = Some(format!("no finding of severity {} or worse", fail_on.word()));
    if broken.is_empty() {
        return Ok(vec![Verdict { limit, ..verdict(rule, "ok", counted(count, "finding")) }]);
    }
    let listed = broken.iter().take(LISTED).cloned();
    let mut verdicts: Vec<Verdict> =
        listed.map(|rows| Verdict { limit: limit.clone(), ..verdict(rule, "broken", rows) }).collect();
    if broken.len() > LISTED {
        verdicts.push(verdict(rule, "broken", format!("and {} more", broken.len() - LISTED)));
    }
    Ok(verdicts)
}

/// The values of a column against its limits.
fn limits(rule: &Rule, report: &mut Report) -> anyhow::Result<Vec<Verdict>> {
    let RuleKind::Limits { column, total, rows, min, max, min_count } = &rule.kind else { return Ok(Vec::new()) };
    let schema = report.rows.schema().clone();
    let no_column = |name: &str| ReportMistake::NoRuleColumn {
        report: rule.report.clone(),
        name: name.to_owned(),
        names: schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", "),
    };
    let index = schema.index_of(column).ok().with_context(|| no_column(column))?;
    let is_number = schema.field(index).data_type().is_numeric();
    anyhow::ensure!(is_number, ReportMistake::NoRuleNumber { report: rule.report.clone(), name: column.clone() });
    let wanted =
        rows.iter().map(|(name, value)| Ok((schema.index_of(name).ok().with_context(|| no_column(name))?, value)));
    let wanted: Vec<(usize, &String)> = wanted.collect::<anyhow::Result<_>>()?;
    let count = COUNTS.iter().find_map(|name| schema.index_of(name).ok());
    let shown = |limit: i128| trimmed(limit);
    let limit = [min.map(|min| format!("at least {}", shown(min))), max.map(|max| format!("at most {}", shown(max)))];
    let limit = Some(limit.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let filled = |verdict: Verdict, value: Option<String>| Verdict {
        column: Some(column.clone()),
        value,
        limit: limit.clone(),
        ..verdict
    };
    let (mut broken, mut unknown, mut few, mut good) = (Vec::new(), 0u64, 0u64, 0u64);
    let mut worst: Option<(i128, String)> = None;
    // a single row is its own total
    let totals = report.totals.clone().filter(|_| *total && report.rows.len() > 1);
    let batches = match totals {
        Some(totals) => vec![totals],
        None => report.rows.batches()?.collect::<anyhow::Result<Vec<_>>>()?,
    };
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut fits = true;
            for (column, value) in &wanted {
                fits &= text(batch.column(*column), row)?.as_deref() == Some(value.as_str());
            }
            if !fits {
                continue;
            }
            let counted = count.map(|count| number(batch.column(count), row)).transpose()?.flatten();
            let has_few = min_count.zip(counted).is_some_and(|(least, count)| count < i128::from(least) * ONE);
            let value = number(batch.column(index), row)?;
            match value {
                _ if has_few => few += 1,
                None => unknown += 1,
                Some(value) if min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max) => {
                    broken.push(filled(verdict(rule, "broken", labels(&batch, row)?), text(batch.column(index), row)?));
                }
                Some(value) => {
                    good += 1;
                    let is_worse = |worst: i128| if max.is_some() { value > worst } else { value < worst };
                    if worst.as_ref().is_none_or(|(worst, _)| is_worse(*worst)) {
                        worst = text(batch.column(index), row)?.map(|text| (value, text));
                    }
                }
            }
        }
    }
    let mut verdicts = Vec::new();
    let more = broken.len().saturating_sub(LISTED);
    let has_broken = !broken.is_empty();
    verdicts.extend(broken.into_iter().take(LISTED));
    if more > 0 {
        verdicts.push(filled(verdict(rule, "broken", format!("and {more} more")), None));
    }
    if unknown > 0 {
        verdicts.push(filled(verdict(rule, "unknown", counted(unknown, "row")), None));
    }
    if few > 0 {
        let text = format!("{} with fewer than {} requests", counted(few, "row"), min_count.unwrap_or_default());
        verdicts.push(filled(verdict(rule, "too few", text), None));
    }
    if good > 0 && !has_broken {
        verdicts.push(filled(verdict(rule, "ok", counted(good, "row")), worst.map(|(_, text)| text)));
    }
    if verdicts.is_empty() && good == 0 {
        verdicts.push(filled(verdict(rule, "no data", "no row".to_owned()), None));
    }
    Ok(verdicts)
}

/// So many things, in words.
fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A number in 10^-12; None where it is not known.
fn number(array: &ArrayRef, row: usize) -> anyhow::Result<Option<i128>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(match array.data_type() {
        DataType::Int64 => Some(i128::from(array.as_primitive::<Int64Type>().value(row)) * ONE),
        DataType::Decimal128(_, _) => {
            let scaled = cast(&array.slice(row, 1), &DataType::Decimal128(38, 12))?;
            Some(scaled.as_primitive::<Decimal128Type>().value(0))
        }
        _ => {
            let float = cast(&array.slice(row, 1), &DataType::Float64)?;
            let float = float.as_primitive::<Float64Type>();
            let value = float.is_valid(0).then(|| float.value(0));
            value.filter(|value| value.is_finite()).map(|value| (value * ONE as f64).round() as i128)
        }
    })
}

/// A limit without the zeros behind it.
fn trimmed(limit: i128) -> String {
    let (sign, size) = (if limit < 0 { "-" } else { "" }, limit.abs());
    let fraction = format!("{:012}", size % ONE);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", size / ONE)
}

fn text(array: &ArrayRef, row: usize) -> anyhow::Result<Option<String>> {
    let text = cast(&array.slice(row, 1), &DataType::Utf8)?;
    let text = text.as_string::<i32>();
    Ok(text.is_valid(0).then(|| text.value(0).to_owned()))
}

/// The texts of a row, which tell it from others.
fn labels(batch: &RecordBatch, row: usize) -> anyhow::Result<String> {
    let mut labels = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let is_text = matches!(
            field.data_type(),
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Timestamp(_, _)
        );
        if is_text && field.name() != "severity" {
            labels.extend(text(array, row)?);
        }
    }
    Ok(if labels.is_empty() { "all".to_owned() } else { labels.join(", ") })
}

fn batch(verdicts: &[Verdict]) -> anyhow::Result<RecordBatch> {
    let column = |of: &dyn Fn(&Verdict) -> Option<String>| -> ArrayRef {
        Arc::new(verdicts.iter().map(of).collect::<StringArray>())
    };
    let columns = [
        ("severity", column(&|verdict| Some(verdict.severity.word().to_owned()))),
        ("rule", column(&|verdict| Some(verdict.rule.clone()))),
        ("verdict", column(&|verdict| Some(verdict.verdict.to_owned()))),
        ("report", column(&|verdict| Some(verdict.report.clone()))),
        ("rows", column(&|verdict| Some(verdict.rows.clone()))),
        ("column", column(&|verdict| verdict.column.clone())),
        ("value", column(&|verdict| verdict.value.clone())),
        ("limit", column(&|verdict| verdict.limit.clone())),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))?)
}
