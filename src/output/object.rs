//! A row of an answer as a JSON object: the same text in `json` and in `jsonl`.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use jiff::tz::TimeZone;

use super::cell::Cell;

/// Writes rows as objects, each on one line and in the order of the columns.
pub struct Objects<'a> {
    /// Each column's name as JSON with its colon and the comma or brace before it: made once, not for each row.
    keys: Vec<String>,
    zone: &'a TimeZone,
}

impl<'a> Objects<'a> {
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>, zone: &'a TimeZone) -> Self {
        let key = |(index, name)| {
            let before = if index == 0 { '{' } else { ',' };
            format!("{before}{}:", serde_json::Value::from(name))
        };
        Self { keys: names.into_iter().enumerate().map(key).collect(), zone }
    }

    pub fn write<W: Write>(&self, batch: &RecordBatch, row: usize, out: &mut W) -> io::Result<()> {
        for (key, values) in self.keys.iter().zip(batch.columns()) {
            out.write_all(key.as_bytes())?;
            Cell::at(values, row).write_json(out, self.zone)?;
        }
        out.write_all(if self.keys.is_empty() { b"{}" } else { b"}" })
    }
}
