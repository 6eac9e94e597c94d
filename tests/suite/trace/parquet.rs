//! A look-up in Parquet reads only the row groups that can hold the id: all others are spoiled here, so that reading
//! one of them fails.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};

use super::only;
use crate::command::Workspace;

const ROWS: usize = 400;
const GROUP: usize = 100;

/// Writes requests with these ids in row groups of a hundred.
fn write(workspace: &Workspace, ids: &[String], properties: WriterPropertiesBuilder) {
    let numbers = || 0..ids.len();
    let columns: [(&str, ArrayRef); 4] = [
        ("request_id", Arc::new(StringArray::from_iter_values(ids))),
        ("model_name", Arc::new(StringArray::from_iter_values(numbers().map(|_| "m")))),
        ("input_tokens", Arc::new(Int64Array::from_iter_values(numbers().map(|number| number as i64)))),
        ("total_latency_ms", Arc::new(Float64Array::from_iter_values(numbers().map(|number| number as f64)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(workspace.path("log.parquet")).unwrap();
    let properties = properties.set_max_row_group_row_count(Some(GROUP)).build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Overwrites the pages of all row groups but one.
fn spoil_all_but(workspace: &Workspace, group: usize) {
    let path = workspace.path("log.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), ROWS / GROUP);
    for (number, row_group) in reader.metadata().row_groups().iter().enumerate() {
        for column in row_group.columns().iter().filter(|_| number != group) {
            let (start, length) = column.byte_range();
            bytes[start as usize..(start + length) as usize].fill(0xff);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

/// The place of an id, and its row group.
fn place(ids: &[String], id: &str) -> (usize, usize) {
    let row = ids.iter().position(|other| other == id).unwrap();
    (row, row / GROUP)
}

#[track_caller]
fn assert_found_alone(workspace: &Workspace, ids: &[String], written: &str, asked: &str) {
    let (row, group) = place(ids, written);
    spoil_all_but(workspace, group);
    // a full scan meets what is spoiled
    let scan = workspace.run(&["sql", "SELECT sum(input_tokens) AS n FROM logs", "--format", "json", "log.parquet"]);
    assert!(!scan.status.success() || scan.report_anyway().counted("damaged_files") == 1, "{scan:?}");
    let report = workspace.report(&["trace", asked, "--alone", "log.parquet"]);
    assert_eq!(report.counted("damaged_files"), 0, "{}", report.0);
    assert_eq!(only(&report)["records"][0]["values"]["input_tokens"], row, "{}", report.0);
}

#[test]
fn of_a_sorted_file_one_row_group_is_opened() {
    let ids: Vec<String> = (0..ROWS).map(|number| format!("req-{number:04}")).collect();
    for asked in ["req-0000", "req-0199", "req-0200", "req-0399"] {
        let workspace = Workspace::new();
        write(&workspace, &ids, WriterProperties::builder());
        assert_found_alone(&workspace, &ids, asked, asked);
    }
}

#[test]
fn of_a_file_with_bloom_filters_one_row_group_is_opened() {
    // in no order: the first and the last id of a row group tell nothing
    let ids: Vec<String> = (0..ROWS).map(|number| format!("req-{:04}", number * 173 % ROWS)).collect();
    for asked in ["req-0007", "req-0250"] {
        let workspace = Workspace::new();
        let filters = WriterProperties::builder().set_bloom_filter_enabled(true).set_bloom_filter_fpp(1e-6);
        write(&workspace, &ids, filters.set_bloom_filter_max_ndv(GROUP as u64));
        assert_found_alone(&workspace, &ids, asked, asked);
    }
}

#[test]
fn filters_are_asked_for_the_id_as_producers_write_it() {
    let ids: Vec<String> = (0..ROWS).map(|number| format!("chatcmpl-{:04}", number * 173 % ROWS)).collect();
    let filters = WriterProperties::builder().set_bloom_filter_enabled(true).set_bloom_filter_fpp(1e-6);
    let filters = filters.set_bloom_filter_max_ndv(GROUP as u64);
    let sorted: Vec<String> = (0..ROWS).map(|number| format!("chatcmpl-{number:04}")).collect();
    for (ids, properties) in [(ids, filters), (sorted, WriterProperties::builder())] {
        for asked in ["0123", "chatcmpl-0123"] {
            let workspace = Workspace::new();
            write(&workspace, &ids, properties.clone());
            assert_found_alone(&workspace, &ids, "chatcmpl-0123", asked);
        }
    }
}

#[test]
fn an_id_that_no_row_group_can_hold_opens_none() {
    let ids: Vec<String> = (0..ROWS).map(|number| format!("req-{number:04}")).collect();
    let workspace = Workspace::new();
    write(&workspace, &ids, WriterProperties::builder());
    spoil_all_but(&workspace, ROWS);
    let run = workspace.run(&["trace", "zzz", "--alone", "--format", "json", "log.parquet"]).exits(5);
    assert_eq!(run.report_anyway().counted("damaged_files"), 0, "{run:?}");
}
