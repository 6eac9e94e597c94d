//! Small reports that the tests of all formats print, so that their texts can be laid side by side.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use jiff::tz::TimeZone;
use serde_json::json;

use crate::report::{Accounting, Note, Report, ReportColumn, Rows};

use super::{Destination, Format, Outcome, Style};

/// Two rows of every type: one of ordinary and hostile values, one where all is unknown.
pub fn every_type() -> Report {
    let cells: [(&str, &str, ArrayRef); 10] = [
        ("tenant", "", Arc::new(StringViewArray::from(vec![Some("=日本|\x1b[31m\n_x_"), None]))),
        ("pool", "", Arc::new([Some("a,\"b\""), None].into_iter().collect::<DictionaryArray<Int32Type>>())),
        ("requests", "requests", Arc::new(Int64Array::from(vec![Some(1_234_567), None]))),
        ("http_status", "", Arc::new(UInt64Array::from(vec![Some(1200), None]))),
        ("p95_ms", "ms", Arc::new(Float64Array::from(vec![Some(-9436.927823), Some(f64::NAN)]))),
        ("share", "ratio", Arc::new(Float64Array::from(vec![Some(0.9997), None]))),
        ("cost", "CNY", {
            let units = vec![Some(1_234_500_000_000_000), None];
            Arc::new(Decimal128Array::from(units).with_precision_and_scale(38, 12).unwrap())
        }),
        ("hour", "", Arc::new(TimestampNanosecondArray::from(vec![Some(1_748_736_000_000_000_000), None]))),
        ("stream", "", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("tags", "", {
            let mut tags = ListBuilder::new(StringBuilder::new());
            tags.append_value([Some("a"), None]);
            tags.append_null();
            Arc::new(tags.finish())
        }),
    ];
    let fields: Vec<_> =
        cells.iter().map(|(name, _, values)| Field::new(*name, values.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = cells.iter().map(|(name, unit, _)| column(name, unit)).collect();
    let batch = RecordBatch::try_new(schema.clone(), cells.map(|(.., values)| values).into()).unwrap();
    let mut rows = Rows::new(schema);
    rows.push(batch).unwrap();
    let totals = [
        ("requests", Arc::new(Int64Array::from(vec![1_234_567])) as ArrayRef),
        ("share", Arc::new(Float64Array::from(vec![1.0]))),
    ];
    Report {
        totals: Some(RecordBatch::try_from_iter(totals).unwrap()),
        notes: vec![
            Note { code: "few_values".to_owned(), text: "P99 of fewer than 100 values.".to_owned(), count: Some(1200) },
            Note { code: "method".to_owned(), text: "Percentiles are exact.".to_owned(), count: None },
        ],
        ..report(columns, rows)
    }
}

/// One column and no row.
pub fn empty() -> Report {
    report(vec![column("input_bucket", "")], Rows::new(one_column("input_bucket", DataType::Utf8)))
}

/// `count` rows that go through a temporary file, since each batch is as large as what memory may hold.
pub fn long(count: i64) -> Report {
    let mut rows = Rows::new(one_column("line", DataType::Int64));
    let batch = |values: Vec<i64>| {
        RecordBatch::try_new(one_column("line", DataType::Int64), vec![Arc::new(Int64Array::from(values))]).unwrap()
    };
    let mut large = Vec::with_capacity(8 << 20);
    large.push(0);
    rows.push(batch(large)).unwrap();
    for from in (1..count).step_by(1000) {
        rows.push(batch((from..count.min(from + 1000)).collect())).unwrap();
    }
    report(vec![column("line", "")], rows)
}

/// What a format writes, through a file as in a run.
pub fn written(report: &mut Report, format: Format, style: Style) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    let destination = Destination::open(Some(&path), format).unwrap();
    assert_eq!(super::write(report, format, style, destination).unwrap(), Outcome::Written);
    std::fs::read(path).unwrap()
}

/// The same as text, off a terminal.
pub fn text(report: &mut Report, format: Format) -> String {
    String::from_utf8(written(report, format, Style::default())).unwrap()
}

fn column(name: &str, unit: &str) -> ReportColumn {
    ReportColumn { name: name.to_owned(), unit: unit.to_owned(), definition: format!("what {name} is") }
}

fn one_column(name: &str, data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, data_type, true)]))
}

fn report(columns: Vec<ReportColumn>, rows: Rows) -> Report {
    let parameters = json!({ "by": ["tenant"], "since": null });
    Report {
        name: "latency".to_owned(),
        title: "Latency by tenant".to_owned(),
        parameters: parameters.as_object().cloned().unwrap(),
        source: Accounting {
            files: 1,
            bytes: 2048,
            records: 3,
            rejected: 1,
            used: 2,
            first: Some("2025-06-01T00:00:00Z".parse().unwrap()),
            last: Some("2025-06-01T00:00:01.5Z".parse().unwrap()),
            ..Accounting::default()
        },
        columns,
        rows,
        totals: None,
        sparks: Vec::new(),
        lives: Vec::new(),
        nothing_found: false,
        heat: None,
        notes: Vec::new(),
        reads_logs: true,
        details: Vec::new(),
        concerns: 0,
        zone: TimeZone::get("Asia/Shanghai").unwrap(),
    }
}
