//! The files: their bytes, order and shared ids, the two formats, and what is left of a failed run.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMillisecondType};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use super::*;

#[test]
fn the_same_plan_gives_the_same_bytes_and_another_seed_does_not() {
    for (format, name) in [(LogFormat::Ndjson, "engine.ndjson"), (LogFormat::Parquet, "engine.parquet")] {
        let first = logs(1_000, format);
        assert_eq!(first.bytes(name), logs(1_000, format).bytes(name));
        let folder = tempfile::tempdir().unwrap();
        generate(&Generation { seed: 43, ..plan(folder.path(), 1_000, format) }).unwrap();
        assert_ne!(first.bytes(name), fs::read(folder.path().join(name)).unwrap());
    }
}

#[test]
fn the_bytes_are_the_same_on_every_machine() {
    // FNV-1a; a change here changes everyone's generated logs
    let hash = |name| {
        logs(1_000, LogFormat::Ndjson)
            .bytes(name)
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    assert_eq!(
        ["engine.ndjson", "gateway.ndjson", "app.ndjson"].map(hash),
        [9169830917401789103, 7169914318290885622, 14178281258359200650]
    );
}

#[test]
fn the_app_has_a_line_per_row_and_the_others_one_per_call_and_attempt() {
    let logs = logs(5_000, LogFormat::Ndjson);
    let [engine, gateway, app] = ["engine", "gateway", "app"].map(|log| logs.lines(log));
    assert_eq!(app.len(), 5_000);
    let refused = gateway.iter().filter(|line| (400..500).contains(&line["http_status"].as_u64().unwrap())).count();
    assert_eq!(engine.len(), gateway.len() - refused);
    let second = gateway.iter().filter(|line| line["attempt"] == 2 || !line["previous_request_id"].is_null()).count();
    assert_eq!(gateway.len(), app.len() + second);
    for (file, lines) in logs.generated.files.iter().zip([engine, gateway, app]) {
        assert_eq!(file.rows, lines.len() as u64);
        assert_eq!(file.bytes, fs::metadata(&file.path).unwrap().len());
    }
}

#[test]
fn the_three_files_share_their_ids_and_each_is_in_order() {
    let logs = logs(5_000, LogFormat::Ndjson);
    let [engine, gateway, app] = ["engine", "gateway", "app"].map(|log| logs.lines(log));
    for lines in [&engine, &gateway, &app] {
        assert!(lines.iter().map(|line| text(line, "timestamp")).is_sorted());
    }
    let ids =
        |lines: &[Value]| -> HashSet<String> { lines.iter().map(|line| text(line, "request_id").into()).collect() };
    let (app_ids, gateway_ids) = (ids(&app), ids(&gateway));
    assert_eq!(app_ids.len(), app.len());
    assert!(ids(&engine).is_subset(&gateway_ids) && app_ids.is_subset(&gateway_ids));
    for line in gateway.iter().filter(|line| !app_ids.contains(text(line, "request_id"))) {
        assert!(app_ids.contains(text(line, "previous_request_id")));
    }
}

#[test]
fn the_app_knows_the_outcome_of_the_last_call() {
    let logs = logs(5_000, LogFormat::Ndjson);
    let mut last = HashMap::new();
    for line in logs.lines("gateway") {
        let first_id = line["previous_request_id"].as_str().unwrap_or(text(&line, "request_id")).to_owned();
        last.insert(first_id, line["http_status"] == 200);
    }
    for line in logs.lines("app") {
        let answered = last[text(&line, "request_id")];
        assert_eq!(text(&line, "status"), if answered { "success" } else { "error" });
        assert!(text(&line, "complete_at") > text(&line, "timestamp"));
    }
}

#[test]
fn the_written_stages_add_up_to_the_written_totals() {
    let logs = logs(5_000, LogFormat::Ndjson);
    let mut engine_totals = HashMap::new();
    for line in logs.lines("engine") {
        let stages = ["queue_wait_ms", "prefill_time_ms", "decode_time_ms", "postprocess_ms"];
        let total = thousandths(&line["total_latency_ms"]);
        assert_eq!(stages.iter().map(|stage| thousandths(&line[*stage])).sum::<u64>(), total, "{line}");
        if !line["ttft_ms"].is_null() {
            let until_first = thousandths(&line["queue_wait_ms"]) + thousandths(&line["prefill_time_ms"]);
            assert_eq!(thousandths(&line["ttft_ms"]), until_first);
            assert_eq!(line["stream"], true);
        }
        engine_totals.insert((text(&line, "request_id").to_owned(), line["attempt"].as_u64()), total);
    }
    for line in logs.lines("gateway") {
        let engine = engine_totals.get(&(text(&line, "request_id").to_owned(), line["attempt"].as_u64()));
        let own = thousandths(&line["auth_ms"]) + thousandths(&line["network_ms"]);
        assert_eq!(thousandths(&line["latency_ms"]), own + engine.copied().unwrap_or(0), "{line}");
    }
}

#[test]
fn parquet_holds_the_values_of_ndjson_with_types() {
    let (ndjson, parquet) = (logs(1_000, LogFormat::Ndjson), logs(1_000, LogFormat::Parquet));
    for log in ["engine", "gateway", "app"] {
        let file = File::open(parquet.folder.path().join(format!("{log}.parquet"))).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let ids = reader.metadata().row_group(0).column(0);
        assert!(ids.bloom_filter_offset().is_some() && ids.statistics().is_some(), "{log}");
        let rows: Vec<Value> = reader.build().unwrap().flat_map(|batch| json_rows(&batch.unwrap())).collect();
        assert_eq!(rows, ndjson.lines(log), "{log}");
    }
}

fn json_rows(batch: &RecordBatch) -> Vec<Value> {
    let schema = batch.schema();
    let row = |index: usize| {
        let columns = schema.fields().iter().zip(batch.columns());
        Value::Object(columns.map(|(field, column)| (field.name().clone(), json_value(column, index))).collect())
    };
    (0..batch.num_rows()).map(row).collect()
}

fn json_value(column: &dyn Array, index: usize) -> Value {
    if column.is_null(index) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => json!(column.as_string::<i32>().value(index)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(index)),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(index)),
        DataType::Boolean => json!(column.as_boolean().value(index)),
        DataType::Timestamp(..) => {
            let millisecond = column.as_primitive::<TimestampMillisecondType>().value(index);
            json!(format!("{:.3}", Timestamp::from_millisecond(millisecond).unwrap()))
        }
        other => panic!("a column of type {other}"),
    }
}

#[test]
fn a_log_that_is_there_is_kept_unless_it_may_be_replaced() {
    let logs = logs(10, LogFormat::Ndjson);
    let before = logs.bytes("app.ndjson");
    let again = plan(logs.folder.path(), 20, LogFormat::Ndjson);
    let refused = generate(&again).err().unwrap().to_string();
    assert!(refused.ends_with("engine.ndjson is there already: choose another folder, or replace it with --force"));
    assert_eq!(logs.bytes("app.ndjson"), before);
    generate(&Generation { force: true, ..again }).unwrap();
    assert_eq!(logs.lines("app").len(), 20);
}

#[test]
fn an_error_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gateway.ndjson"), "kept").unwrap();
    assert!(generate(&plan(folder.path(), 10, LogFormat::Ndjson)).is_err());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["gateway.ndjson"]);
}

#[test]
fn impossible_plans_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let none = generate(&plan(folder.path(), 0, LogFormat::Ndjson)).err().unwrap().to_string();
    assert_eq!(none, "cannot generate logs of 0 rows: give at least 1");
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let at_file = generate(&plan(&file, 10, LogFormat::Ndjson)).err().unwrap().to_string();
    assert!(at_file.starts_with("cannot make the folder "), "{at_file}");
}

/// The thousandths that a number with three decimals was written from; 0 for null.
fn thousandths(value: &Value) -> u64 {
    (value.as_f64().unwrap_or(0.0) * 1_000.0).round() as u64
}
