//! How a value reads to a person: rounded to what matters, grouped by thousands, safe for a terminal.
//!
//! `table` and `markdown` share it. Nothing here may make an unknown look like zero, a small share like none or
//! a large one like all.

use std::fmt::Write;
use std::io;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema};
use indicatif::HumanCount;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::{Note, ReportColumn};

use super::cell::{self, Cell};

/// One column as people see it.
pub struct Column<'a> {
    meaning: &'a ReportColumn,
    zone: &'a TimeZone,
    /// Numbers stand to the right, and an unknown one is `-`.
    pub number: bool,
}

/// The columns of a report, in its order.
pub fn columns<'a>(meanings: &'a [ReportColumn], schema: &Schema, zone: &'a TimeZone) -> Vec<Column<'a>> {
    let types = schema.fields().iter().map(|field| is_number(field.data_type()));
    meanings.iter().zip(types).map(|(meaning, number)| Column { meaning, zone, number }).collect()
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

impl Column<'_> {
    pub fn name(&self) -> String {
        text(&self.meaning.name)
    }

    /// The unit, where neither the name (`p95_ms`) nor the values (`12.3 %`) say it.
    pub fn unit(&self) -> Option<String> {
        let unit = &self.meaning.unit;
        let said = unit.is_empty() || self.is_share() || self.meaning.name.split('_').any(|word| word == unit);
        (!said).then(|| text(unit))
    }

    pub fn value(&self, values: &dyn Array, row: usize) -> io::Result<String> {
        let cell = Cell::at(values, row);
        Ok(match (&cell, self.meaning.unit.as_str()) {
            (Cell::Null, _) if self.number => "-".to_owned(),
            (Cell::Null, _) => "unknown".to_owned(),
            (Cell::Int(value), "%") => percent(*value as f64),
            (Cell::Float(value), "%") => percent(*value),
            (Cell::Int(value), "ratio") => percent(*value as f64 * 100.0),
            (Cell::Float(value), "ratio") => percent(*value * 100.0),
            // A whole number without a unit is a label, such as an HTTP status.
            (Cell::Int(value), "") => value.to_string(),
            (Cell::Int(value), _) => grouped(&value.to_string()),
            (Cell::Float(value), _) => float(*value),
            (Cell::Decimal(digits), _) => grouped(digits),
            (Cell::Time(instant), _) => time(*instant, self.zone),
            _ => {
                let mut plain = Vec::new();
                cell.write_plain(&mut plain, self.zone)?;
                text(&String::from_utf8_lossy(&plain))
            }
        })
    }

    /// A number of this column, with its unit where the name does not say it.
    pub fn float(&self, value: f64) -> String {
        match self.meaning.unit.as_str() {
            "ratio" => percent(value * 100.0),
            "%" => percent(value),
            _ => number(value),
        }
    }

    fn total(&self, totals: &RecordBatch) -> io::Result<String> {
        match totals.column_by_name(&self.meaning.name) {
            Some(values) if self.number || !values.is_null(0) => self.value(values, 0),
            _ => Ok(String::new()),
        }
    }

    fn is_share(&self) -> bool {
        matches!(self.meaning.unit.as_str(), "%" | "ratio")
    }
}

/// The row of totals, which says so in its first column; blank where a total makes no sense.
pub fn totals(columns: &[Column], totals: &RecordBatch) -> io::Result<Vec<String>> {
    let mut row = columns.iter().map(|column| column.total(totals)).collect::<io::Result<Vec<_>>>()?;
    if let Some(first) = row.first_mut() {
        *first = format!("total {first}").trim_end().to_owned();
    }
    Ok(row)
}

/// A note with its count.
pub fn note(note: &Note) -> String {
    match note.count {
        Some(count) => format!("{} ({})", text(note.text.trim_end_matches('.')), HumanCount(count)),
        None => text(&note.text),
    }
}

/// A note as a line of its own, in a table or on standard error.
pub fn note_line(about: &Note) -> String {
    format!("note: {}", note(about))
}

/// RFC 3339 in the zone; `Z` in UTC.
pub fn time(time: Timestamp, zone: &TimeZone) -> String {
    if *zone == TimeZone::UTC { cell::printer(time).timestamp_to_string(&time) } else { cell::with_offset(time, zone) }
}

/// A text that cannot move the cursor, colour the screen, break the line or reorder what stands around it.
pub fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' => safe.extend(char.escape_default()),
            // Writing to a String cannot fail.
            _ if char.is_control() => _ = write!(safe, "\\x{:02x}", u32::from(char)),
            // Bidirectional marks, embeddings, overrides and isolates; line and paragraph separators.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                safe.extend(char.escape_unicode());
            }
            _ => safe.push(char),
        }
    }
    safe
}

/// Whole where it is whole.
pub(super) fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 { grouped(&format!("{value:.0}")) } else { float(value) }
}

/// At least three significant digits.
fn float(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-6..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    let decimals = match size {
        100.0.. => 1,
        10.0.. => 2,
        1.0.. => 3,
        _ => decimals_for(size, 3),
    };
    grouped(&format!("{value:.decimals$}"))
}

/// One decimal, and more where it would read as none or as all: 0.03 % and 99.97 % are neither.
pub(super) fn percent(value: f64) -> String {
    let from_an_end = value.abs().min((100.0 - value.abs()).abs());
    // What floating point leaves of a whole is a whole.
    let decimals = if (1e-9..1.0).contains(&from_an_end) { decimals_for(from_an_end, 2).max(1) } else { 1 };
    format!("{} %", grouped(&format!("{value:.decimals$}")))
}

/// How many decimals show `digits` significant digits of a size below one.
fn decimals_for(size: f64, digits: i32) -> usize {
    (digits - 1 - size.log10().floor() as i32).max(0) as usize
}

/// `-1234567.5` as `-1,234,567.5`.
pub(super) fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut grouped = String::with_capacity(number.len() + whole / 3);
    for (index, char) in number.char_indices() {
        let left = whole.saturating_sub(index);
        if left > 0 && left % 3 == 0 && grouped.ends_with(|before: char| before.is_ascii_digit()) {
            grouped.push(',');
        }
        grouped.push(char);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_what_matters() {
        let shown: Vec<_> =
            [0.0, 0.000_012_34, 0.1234, 1.23456, 76.253958, 100.0, -9436.927823, 1_234_567.89, 1e18, 3e-9]
                .map(float)
                .into();
        let expected =
            ["0", "0.0000123", "0.123", "1.235", "76.25", "100.0", "-9,436.9", "1,234,567.9", "1.00e18", "3.00e-9"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_small_share_is_not_none_and_a_large_one_is_not_all() {
        let shown: Vec<_> =
            [0.0, 0.03, 0.5, 12.345, 99.97, 100.0, 0.1 * 3.0 / 0.3 * 100.0, 1234.5, -0.04].map(percent).into();
        let expected =
            ["0.0 %", "0.030 %", "0.50 %", "12.3 %", "99.970 %", "100.0 %", "100.0 %", "1,234.5 %", "-0.040 %"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn thousands_are_grouped_left_of_the_point_only() {
        for (number, expected) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-100", "-100"),
            ("-123456", "-123,456"),
            ("1234567.1234567", "1,234,567.1234567"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn hostile_text_is_shown_and_not_obeyed() {
        assert_eq!(text("\x1b[31mred\x1b[0m"), r"\x1b[31mred\x1b[0m");
        assert_eq!(text("a\r\nb\tc\u{7f}\u{9b}0"), r"a\r\nb\tc\x7f\x9b0");
        assert_eq!(text("\u{202e}txt.exe\u{2066}"), r"\u{202e}txt.exe\u{2066}");
        assert_eq!(text("日本語 naïve 🙂"), "日本語 naïve 🙂");
    }
}
