//! A GitHub table with everything around it: for a CI job summary, an issue, a chat.

use std::io::Write;

use crate::report::Report;

use super::accounting::accounting_line;
use super::legible;

pub fn write<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let columns = legible::columns(&report.columns, report.rows.schema(), &report.zone);
    writeln!(out, "## {}\n", escaped(&legible::text(&report.title)))?;
    write_row(
        out,
        columns.iter().map(|column| match column.unit() {
            Some(unit) => format!("{} ({unit})", column.name()),
            None => column.name(),
        }),
    )?;
    write!(out, "|")?;
    for column in &columns {
        write!(out, "{}", if column.number { " --: |" } else { " :-- |" })?;
    }
    writeln!(out)?;
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().zip(batch.columns()).map(|(column, values)| column.value(values, row));
            write_row(out, values.collect::<Result<Vec<_>, _>>()?)?;
        }
    }
    if let Some(totals) = report.totals.as_ref().filter(|totals| totals.num_rows() > 0) {
        write_row(out, legible::totals(&columns, totals)?)?;
    }
    writeln!(out)?;
    for note in &report.notes {
        writeln!(out, "- {}", escaped(&legible::note(note)))?;
    }
    if !report.notes.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", escaped(&accounting_line(&report.source, &report.zone)))?;
    Ok(())
}

fn write_row<W: Write>(out: &mut W, values: impl IntoIterator<Item = String>) -> std::io::Result<()> {
    write!(out, "|")?;
    for value in values {
        write!(out, " {} |", escaped(&value))?;
    }
    writeln!(out)
}

/// Puts a backslash before what Markdown would read as markup: a pipe ends the cell, `<unk>` would vanish.
///
/// An underscore inside a word (`p95_ms`) is no markup and stays readable.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        let markup = match char {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '#' => true,
            '_' => {
                !before.is_some_and(char::is_alphanumeric) || !rest.peek().copied().is_some_and(char::is_alphanumeric)
            }
            _ => false,
        };
        if markup {
            escaped.push('\\');
        }
        escaped.push(char);
        before = Some(char);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Format, sample};

    #[test]
    fn a_report_reads_as_heading_table_notes_and_accounting() {
        insta::assert_snapshot!(sample::text(&mut sample::every_type(), Format::Markdown), @r#"
        ## Latency by tenant

        | tenant | pool | requests | http_status | p95_ms | share | cost (CNY) | hour | stream | tags |
        | :-- | :-- | --: | --: | --: | --: | --: | :-- | :-- | :-- |
        | =日本\|\\x1b\[31m\\n_x\_ | a,"b" | 1,234,567 | 1200 | -9,436.9 | 99.970 % | 1,234.50 | 2025-06-01T08:00:00+08:00 | true | \["a",null\] |
        | unknown | unknown | - | - | - | - | - | unknown | unknown | unknown |
        | total |  | 1,234,567 |  |  | 100.0 % |  |  |  |  |

        - P99 of fewer than 100 values (1,200)
        - Percentiles are exact.

        1 file, 2.05 kB, 3 records: 2 used, 1 rejected; 2025-06-01T08:00:00+08:00 to 2025-06-01T08:00:01.500+08:00
        "#);
    }

    #[test]
    fn markup_in_values_is_shown_and_not_obeyed() {
        assert_eq!(escaped(r"a|b\|c"), r"a\|b\\\|c");
        assert_eq!(escaped("<unk> *x* [y](z) `w`"), r"\<unk\> \*x\* \[y\](z) \`w\`");
        assert_eq!(escaped("p95_ms _x_"), r"p95_ms \_x\_");
    }

    #[test]
    fn an_empty_answer_is_its_header() {
        let text = sample::text(&mut sample::empty(), Format::Markdown);
        assert!(text.starts_with("## Latency by tenant\n\n| input_bucket |\n| :-- |\n\n1 file, "), "{text}");
    }
}
