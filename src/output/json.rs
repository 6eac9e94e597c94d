//! The whole report as one JSON object: the contract that other programs build on.
//!
//! Keys stand in a fixed order and each row on a line of its own, so that two answers can be compared with
//! `diff`. Rows are written as they are read: an answer may be longer than memory.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::report::{Note, Report, ReportColumn};
use crate::trace::Life;

use super::cell;
use super::object::Objects;

pub fn write<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let notes = notes(report);
    out.write_all(b"{\n")?;
    for (key, value) in preamble(report) {
        match value {
            Value::Array(items) => list(out, &key, items)?,
            // Indented once more than the member itself; a text never holds a raw newline in JSON.
            value => write!(out, "  \"{key}\": {}", serde_json::to_string_pretty(&value)?.replace('\n', "\n  "))?,
        }
        out.write_all(b",\n")?;
    }
    rows(report, out)?;
    out.write_all(b",\n  \"totals\": ")?;
    totals(report, out)?;
    out.write_all(b",\n")?;
    list(out, "notes", notes)?;
    if report.is_of_lives() {
        out.write_all(b",\n")?;
        list(out, "lives", lives(report)?)?;
    }
    out.write_all(b"\n}\n")?;
    Ok(())
}

/// All that stands before the rows: what was asked, of which records, and what the columns mean.
pub fn preamble(report: &Report) -> Map<String, Value> {
    let source = &report.source;
    let time = |time: Option<Timestamp>| time.map(|time| cell::with_offset(time, &report.zone));
    let column =
        |column: &ReportColumn| json!({ "name": column.name, "unit": column.unit, "definition": column.definition });
    Map::from_iter([
        ("report".to_owned(), json!(report.name)),
        ("title".to_owned(), json!(report.title)),
        ("parameters".to_owned(), json!(report.parameters)),
        (
            "source".to_owned(),
            json!({
                "files": source.files,
                "bytes": source.bytes,
                "damaged_files": source.damaged_files,
                "records": source.records,
                "rejected": source.rejected,
                "skipped": source.skipped,
                "duplicates": source.duplicates,
                "filtered": source.filtered,
                "used": source.used,
                "undated": source.undated,
                "first": time(source.first),
                "last": time(source.last),
            }),
        ),
        ("columns".to_owned(), report.columns.iter().map(column).collect()),
    ])
}

/// The notes as the contract has them.
pub fn notes(report: &Report) -> Vec<Value> {
    let note = |note: &Note| json!({ "code": note.code, "text": note.text, "count": note.count });
    report.notes.iter().map(note).collect()
}

/// The requests of a trace; the origin of each is the zero of all its times.
pub fn lives(report: &Report) -> serde_json::Result<Vec<Value>> {
    let told = |life: &Life| {
        let origin = life.origin_ns.and_then(|ns| Timestamp::from_nanosecond(i128::from(ns)).ok());
        let origin = origin.map(|origin| cell::with_offset(origin, &report.zone));
        let Value::Object(members) = serde_json::to_value(life)? else { return Ok(Value::Null) };
        Ok(Map::from_iter([("origin".to_owned(), json!(origin))].into_iter().chain(members)).into())
    };
    report.lives.iter().map(told).collect()
}

fn rows<W: Write>(report: &mut Report, out: &mut W) -> anyhow::Result<()> {
    let objects = Objects::new(report.columns.iter().map(|column| column.name.as_str()), &report.zone);
    let mut lines = Lines::open("rows", out)?;
    for batch in report.rows.batches()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            objects.write(&batch, row, lines.next()?)?;
        }
    }
    Ok(lines.close()?)
}

fn totals<W: Write>(report: &Report, out: &mut W) -> io::Result<()> {
    match &report.totals {
        Some(totals) if totals.num_rows() > 0 => {
            let schema = totals.schema();
            let names = schema.fields().iter().map(|field| field.name().as_str());
            Objects::new(names, &report.zone).write(totals, 0, out)
        }
        _ => out.write_all(b"null"),
    }
}

fn list<W: Write>(out: &mut W, key: &str, items: Vec<Value>) -> io::Result<()> {
    let mut lines = Lines::open(key, out)?;
    for item in items {
        write!(lines.next()?, "{item}")?;
    }
    lines.close()
}

/// A member that is an array with each element on a line of its own.
struct Lines<'w, W> {
    out: &'w mut W,
    empty: bool,
}

impl<'w, W: Write> Lines<'w, W> {
    fn open(key: &str, out: &'w mut W) -> io::Result<Self> {
        write!(out, "  \"{key}\": [")?;
        Ok(Self { out, empty: true })
    }

    /// Where the next element goes.
    fn next(&mut self) -> io::Result<&mut W> {
        self.out.write_all(if self.empty { b"\n    " } else { b",\n    " })?;
        self.empty = false;
        Ok(self.out)
    }

    fn close(self) -> io::Result<()> {
        self.out.write_all(if self.empty { b"]" } else { b"\n  ]" })
    }
}

#[cfg(test)]
mod tests {
    use crate::output::{Format, sample};

    #[test]
    fn the_contract_holds_key_by_key_in_order() {
        insta::assert_snapshot!(sample::text(&mut sample::every_type(), Format::Json), @r#"
        {
          "report": "latency",
          "title": "Latency by tenant",
          "parameters": {
            "by": [
              "tenant"
            ],
            "since": null
          },
          "source": {
            "files": 1,
            "bytes": 2048,
            "damaged_files": 0,
            "records": 3,
            "rejected": 1,
            "skipped": 0,
            "duplicates": 0,
            "filtered": 0,
            "used": 2,
            "undated": 0,
            "first": "2025-06-01T08:00:00+08:00",
            "last": "2025-06-01T08:00:01.500+08:00"
          },
          "columns": [
            {"name":"tenant","unit":"","definition":"what tenant is"},
            {"name":"pool","unit":"","definition":"what pool is"},
            {"name":"requests","unit":"requests","definition":"what requests is"},
            {"name":"http_status","unit":"","definition":"what http_status is"},
            {"name":"p95_ms","unit":"ms","definition":"what p95_ms is"},
            {"name":"share","unit":"ratio","definition":"what share is"},
            {"name":"cost","unit":"CNY","definition":"what cost is"},
            {"name":"hour","unit":"","definition":"what hour is"},
            {"name":"stream","unit":"","definition":"what stream is"},
            {"name":"tags","unit":"","definition":"what tags is"}
          ],
          "rows": [
            {"tenant":"=日本|\u001b[31m\n_x_","pool":"a,\"b\"","requests":1234567,"http_status":1200,"p95_ms":-9436.927823,"share":0.9997,"cost":"1234.50","hour":"2025-06-01T08:00:00+08:00","stream":true,"tags":["a",null]},
            {"tenant":null,"pool":null,"requests":null,"http_status":null,"p95_ms":null,"share":null,"cost":null,"hour":null,"stream":null,"tags":null}
          ],
          "totals": {"requests":1234567,"share":1.0},
          "notes": [
            {"code":"few_values","text":"P99 of fewer than 100 values.","count":1200},
            {"code":"method","text":"Percentiles are exact.","count":null}
          ]
        }
        "#);
    }

    #[test]
    fn an_empty_answer_is_an_empty_list() {
        let text = sample::text(&mut sample::empty(), Format::Json);
        assert!(text.ends_with("\"rows\": [],\n  \"totals\": null,\n  \"notes\": []\n}\n"), "{text}");
    }

    #[test]
    fn a_long_answer_is_whole_valid_and_the_same_each_time() {
        let mut report = sample::long(30_000);
        let text = sample::text(&mut report, Format::Json);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lines: Vec<_> = read["rows"].as_array().unwrap().iter().map(|row| row["line"].as_i64().unwrap()).collect();
        assert_eq!(lines, (0..30_000).collect::<Vec<_>>());
        assert_eq!(sample::text(&mut report, Format::Json), text);
    }
}
