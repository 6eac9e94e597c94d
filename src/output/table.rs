//! A table for people: at a terminal it fits if it can, and nowhere does it cut or wrap a value.

use std::io::Write;

use comfy_table::{Attribute, Cell, CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use indicatif::HumanCount;

use unicode_width::UnicodeWidthStr;

use crate::report::{Report, Spark};

use super::Style;
use super::legible::{self, Column};

/// Nobody reads more; the rest is for programs.
const MOST_ROWS: usize = 10_000;

/// The frame, the lines between columns, and the blanks around a value.
struct Look {
    style: TableStyle,
    padding: (u16, u16),
    top_lines: usize,
    bottom_lines: usize,
}

const FRAMED: Look = Look {
    style: TableStyle::new()
        .top_border(LineStyle::new('┌', '─', '┬', '┐'))
        .header_lines(ContentLineStyle::new('│', '│', '│'))
        .header_separator(LineStyle::new('├', '─', '┼', '┤'))
        .content_lines(ContentLineStyle::new('│', '│', '│'))
        .bottom_border(LineStyle::new('└', '─', '┴', '┘')),
    padding: (1, 1),
    top_lines: 1,
    bottom_lines: 1,
};

const BARE: Look = Look {
    style: TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')),
    padding: (0, 1),
    top_lines: 0,
    bottom_lines: 0,
};

pub fn write<W: Write>(report: &mut Report, style: Style, out: &mut W) -> anyhow::Result<()> {
    let columns = legible::columns(&report.columns, report.rows.schema(), &report.zone);
    let mut table = Table::new();
    table.force_no_tty();
    if style.color {
        table.enforce_styling();
    }
    let units = columns.iter().any(|column| column.unit().is_some());
    table.set_header(columns.iter().map(|column| heading(column, style.color)));

    let rows = report.rows.len();
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows().min(MOST_ROWS - table.row_count()) {
            let values = columns.iter().zip(batch.columns()).enumerate().map(|(place, (column, values))| {
                let value = column.value(values, row)?;
                Ok::<_, std::io::Error>(match report.heat.filter(|_| place > 0) {
                    Some(heat) => format!("{value} {}", heat.shade(values, row)),
                    None => value,
                })
            });
            add_row(&mut table, &columns, values.collect::<Result<_, _>>()?);
        }
        if table.row_count() == MOST_ROWS {
            break;
        }
    }
    let hidden = rows - table.row_count() as u64;
    let totals = report.totals.as_ref().filter(|totals| totals.num_rows() > 0);
    if let Some(totals) = totals {
        add_row(&mut table, &columns, legible::totals(&columns, totals)?);
    }

    writeln!(out, "{}", legible::text(&report.title))?;
    let header_lines = if units { 2 } else { 1 };
    for line in laid_out(&mut table, header_lines, totals.is_some(), style.width) {
        writeln!(out, "{}", line.trim_end())?;
    }
    for line in sparks(&report.sparks, &columns) {
        writeln!(out, "{line}")?;
    }
    for note in &report.notes {
        writeln!(out, "{}", legible::note_line(note))?;
    }
    if hidden > 0 {
        writeln!(
            out,
            "note: {} more rows are not shown; --format csv and --format jsonl write all",
            HumanCount(hidden)
        )?;
    }
    Ok(())
}

/// Columns over time, with their least and largest values.
fn sparks(sparks: &[Spark], columns: &[Column]) -> Vec<String> {
    let name = |spark: &Spark| {
        let column = columns[spark.column].name();
        if spark.group.is_empty() { column } else { format!("{}: {column}", legible::text(&spark.group)) }
    };
    let width = sparks.iter().map(|spark| name(spark).width()).max().unwrap_or(0);
    let line = |spark: &Spark| {
        let name = name(spark);
        let (least, largest) = spark.range().unwrap_or_default();
        let (least, largest) = (columns[spark.column].float(least), columns[spark.column].float(largest));
        format!("{name}{}  {}  {least} to {largest}", " ".repeat(width - name.width()), spark.drawn())
    };
    sparks.iter().map(line).collect()
}

/// The name as in JSON, and below it the unit.
fn heading(column: &Column, color: bool) -> Cell {
    let text = match column.unit() {
        Some(unit) => format!("{}\n{unit}", column.name()),
        None => column.name(),
    };
    let heading = Cell::new(text).set_alignment(alignment(column));
    if color { heading.add_attribute(Attribute::Bold) } else { heading }
}

fn add_row(table: &mut Table, columns: &[Column], values: Vec<String>) {
    table.add_row(columns.iter().zip(values).map(|(column, value)| Cell::new(value).set_alignment(alignment(column))));
}

fn alignment(column: &Column) -> CellAlignment {
    if column.number { CellAlignment::Right } else { CellAlignment::Left }
}

/// The framed table, or the bare one where the frame does not fit. A table that is too wide even so stays whole:
/// a terminal's own line breaks do less harm than a column of two letters.
fn laid_out(table: &mut Table, header_lines: usize, totals: bool, width: Option<u16>) -> Vec<String> {
    let framed = lines(table, FRAMED, header_lines, totals);
    // The top border is made of characters one column wide.
    let framed_width = framed.first().map_or(0, |border| border.chars().count());
    match width {
        Some(width) if framed_width > usize::from(width) => lines(table, BARE, header_lines, totals),
        _ => framed,
    }
}

fn lines(table: &mut Table, look: Look, header_lines: usize, totals: bool) -> Vec<String> {
    table.load_style(look.style);
    for column in table.column_iter_mut() {
        column.set_padding(look.padding);
    }
    let mut lines: Vec<_> = table.lines().collect();
    if totals {
        let below_header = lines[look.top_lines + header_lines].clone();
        lines.insert(lines.len() - look.bottom_lines - 1, below_header);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Format, sample};

    fn at_width(report: &mut Report, width: u16) -> String {
        let style = Style { width: Some(width), color: false };
        String::from_utf8(sample::written(report, Format::Table, style)).unwrap()
    }

    #[test]
    fn a_report_reads_as_title_table_and_notes() {
        insta::assert_snapshot!(sample::text(&mut sample::every_type(), Format::Table), @r#"
        Latency by tenant
        ┌─────────────────────┬─────────┬───────────┬─────────────┬──────────┬──────────┬──────────┬───────────────────────────┬─────────┬────────────┐
        │ tenant              │ pool    │  requests │ http_status │   p95_ms │    share │     cost │ hour                      │ stream  │ tags       │
        │                     │         │           │             │          │          │      CNY │                           │         │            │
        ├─────────────────────┼─────────┼───────────┼─────────────┼──────────┼──────────┼──────────┼───────────────────────────┼─────────┼────────────┤
        │ =日本|\x1b[31m\n_x_ │ a,"b"   │ 1,234,567 │        1200 │ -9,436.9 │ 99.970 % │ 1,234.50 │ 2025-06-01T08:00:00+08:00 │ true    │ ["a",null] │
        │ unknown             │ unknown │         - │           - │        - │        - │        - │ unknown                   │ unknown │ unknown    │
        ├─────────────────────┼─────────┼───────────┼─────────────┼──────────┼──────────┼──────────┼───────────────────────────┼─────────┼────────────┤
        │ total               │         │ 1,234,567 │             │          │  100.0 % │          │                           │         │            │
        └─────────────────────┴─────────┴───────────┴─────────────┴──────────┴──────────┴──────────┴───────────────────────────┴─────────┴────────────┘
        note: P99 of fewer than 100 values (1,200)
        note: Percentiles are exact.
        "#);
    }

    #[test]
    fn the_frame_goes_first_where_the_terminal_is_narrow() {
        insta::assert_snapshot!(at_width(&mut sample::every_type(), 130), @r#"
        Latency by tenant
        tenant               pool      requests  http_status    p95_ms     share      cost  hour                       stream   tags
                                                                                       CNY
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        =日本|\x1b[31m\n_x_  a,"b"    1,234,567         1200  -9,436.9  99.970 %  1,234.50  2025-06-01T08:00:00+08:00  true     ["a",null]
        unknown              unknown          -            -         -         -         -  unknown                    unknown  unknown
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        total                         1,234,567                          100.0 %
        note: P99 of fewer than 100 values (1,200)
        note: Percentiles are exact.
        "#);
    }

    #[test]
    fn no_value_is_cut_however_narrow_the_terminal_is() {
        let narrow = at_width(&mut sample::every_type(), 1);
        assert_eq!(narrow, at_width(&mut sample::every_type(), 130));
    }

    #[test]
    fn every_line_of_the_frame_has_the_same_display_width() {
        use unicode_width::UnicodeWidthStr;
        let text = sample::text(&mut sample::every_type(), Format::Table);
        let framed = text.lines().filter(|line| line.starts_with(['┌', '│', '├', '└']));
        let mut widths: Vec<_> = framed.map(UnicodeWidthStr::width).collect();
        widths.dedup();
        assert_eq!(widths.len(), 1, "{text}");
    }

    #[test]
    fn no_control_character_reaches_the_terminal() {
        let text = sample::text(&mut sample::every_type(), Format::Table);
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()));
        assert!(text.contains(r"=日本|\x1b[31m\n_x_"));
    }

    #[test]
    fn colour_is_only_for_those_who_ask() {
        let style = Style { width: None, color: true };
        let text = String::from_utf8(sample::written(&mut sample::empty(), Format::Table, style)).unwrap();
        assert!(text.contains("\x1b[1m input_bucket \x1b[0m"), "{text:?}");
    }

    #[test]
    fn an_empty_answer_is_its_header() {
        let text = sample::text(&mut sample::empty(), Format::Table);
        assert_eq!(text, "Latency by tenant\n┌──────────────┐\n│ input_bucket │\n├──────────────┤\n└──────────────┘\n");
    }

    #[test]
    fn a_long_answer_ends_with_how_much_is_left() {
        let text = sample::text(&mut sample::long(12_345), Format::Table);
        assert!(text.contains("│ 9999 │\n└──────┘\n"));
        assert!(text.ends_with("note: 2,345 more rows are not shown; --format csv and --format jsonl write all\n"));
    }
}
