//! Findings for CI: JUnit XML that every CI shows as tests, and the annotations of GitHub's workflow commands.
//!
//! Both are for reports whose rows have a severity; each row is a test, and fails where it is as severe as the gate says.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;

use super::cell::Cell;
use crate::report::mistake::ReportMistake;
use crate::report::{Report, severity_level};

/// One row in words.
struct Finding {
    severity: String,
    name: String,
    message: String,
    fails: bool,
}

/// The rows as test cases of one suite.
///
/// # Errors
/// The rows have no severity, or cannot be written.
pub fn junit<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let findings = findings(report)?;
    let failures = findings.iter().filter(|finding| finding.fails).count();
    let suite = xml(&report.name);
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<testsuites tests="{}" failures="{failures}">"#, findings.len())?;
    writeln!(out, r#"  <testsuite name="{suite}" tests="{}" failures="{failures}">"#, findings.len())?;
    for finding in findings {
        let (name, message) = (xml(&finding.name), xml(&finding.message));
        write!(out, r#"    <testcase classname="{suite}" name="{name}">"#)?;
        match finding.fails {
            true => write!(out, r#"<failure type="{}" message="{message}"/>"#, xml(&finding.severity))?,
            false => write!(out, "<system-out>{message}</system-out>")?,
        }
        writeln!(out, "</testcase>")?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")?;
    Ok(())
}

/// The rows as annotations of a workflow.
///
/// # Errors
/// As [`junit`].
pub fn github<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    for finding in findings(report)? {
        let command = match (finding.severity.as_str(), finding.fails) {
            ("error", _) | (_, true) => "error",
            ("warning", _) => "warning",
            _ => "notice",
        };
        writeln!(out, "::{command} title={}::{}", property(&finding.name), data(&finding.message))?;
    }
    Ok(())
}

fn findings(report: &mut Report) -> anyhow::Result<Vec<Finding>> {
    let schema = report.rows.schema().clone();
    let Ok(severity) = schema.index_of("severity") else {
        return Err(ReportMistake::NoFindings { report: report.name.clone() }.into());
    };
    // a gate that nobody set is that of errors
    let gate = report.parameters.get("fail_on").and_then(|word| word.as_str()).unwrap_or("error").to_owned();
    let least = severity_level(&gate);
    let mut findings = Vec::new();
    let zone = report.zone.clone();
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let text = |column: usize| text(&batch, column, row, &zone);
            let severity = text(severity)?.unwrap_or_default();
            let mut parts = Vec::new();
            for (column, field) in schema.fields().iter().enumerate().filter(|(_, field)| field.name() != "severity") {
                if let Some(value) = text(column)? {
                    parts.push((field.name().clone(), value));
                }
            }
            let name = parts.first().map_or(String::new(), |(_, value)| value.clone());
            let message = parts.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ");
            let fails = least.is_some() && severity_level(&severity) >= least;
            findings.push(Finding { severity, name, message, fails });
        }
    }
    Ok(findings)
}

fn text(batch: &RecordBatch, column: usize, row: usize, zone: &jiff::tz::TimeZone) -> io::Result<Option<String>> {
    let cell = Cell::at(batch.column(column), row);
    if matches!(cell, Cell::Null) {
        return Ok(None);
    }
    let mut plain = Vec::new();
    cell.write_plain(&mut plain, zone)?;
    Ok(Some(String::from_utf8_lossy(&plain).into_owned()))
}

/// Text inside an attribute or element; characters that XML has not are shown as such.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command, which commas and colons end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_finding_says_cannot_become_markup_or_a_command() {
        assert_eq!(xml("a<b> & \"c\"\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}");
        assert_eq!(property("100 %, x: y\n::error::"), "100 %25%2C x%3A y%0A%3A%3Aerror%3A%3A");
    }
}
