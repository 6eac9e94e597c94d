//! The generated files as a whole: the truth of the front page, the ids they share, the formats,
//! the bytes.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::Path;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMillisecondType};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::failure::{Fault, Refusal};
use super::population::{BUSINESS_LINES, BusinessLine, MODELS, VERSIONS};
use super::quantiles::Quantiles;
use super::rhythm::Load;
use super::*;

const FRONT_PAGE: &str = include_str!("../generate.rs");
const ROWS: u64 = 20_000;

/// Three generated logs in a folder of their own.
struct Logs {
    folder: tempfile::TempDir,
    generated: Generated,
}

fn plan(folder: &Path, rows: u64, format: Format) -> Generate {
    let output = folder.to_path_buf();
    Generate { rows, seed: 42, format, output, start: DEFAULT_START, days: DEFAULT_DAYS, force: false }
}

fn logs(rows: u64, format: Format) -> Logs {
    let folder = tempfile::tempdir().unwrap();
    let generated = generate(&plan(folder.path(), rows, format)).unwrap();
    Logs { folder, generated }
}

impl Logs {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    fn lines(&self, log: &str) -> Vec<Value> {
        let text = String::from_utf8(self.bytes(&format!("{log}.ndjson"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The thousandths that a number with three decimals was written from; 0 for null.
fn thousandths(value: &Value) -> u64 {
    (value.as_f64().unwrap_or(0.0) * 1_000.0).round() as u64
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap()
}

/// Fails unless `seen` of `all` is `share`, within four standard deviations of its sampling error.
#[track_caller]
fn assert_share(seen: usize, all: usize, share: f64) {
    let spread = (share * (1.0 - share) / all as f64).sqrt();
    let found = seen as f64 / all as f64;
    assert!((found - share).abs() < 4.0 * spread, "{found} where {share} is the truth");
}

fn share_up_to(table: impl Fn(&BusinessLine) -> &Quantiles, tokens: f64) -> f64 {
    BUSINESS_LINES.iter().map(|line| f64::from(line.weight) / 100.0 * table(line).share_up_to(tokens)).sum()
}

#[test]
fn the_same_plan_gives_the_same_bytes_and_another_seed_does_not() {
    for (format, name) in [(Format::Ndjson, "engine.ndjson"), (Format::Parquet, "engine.parquet")] {
        let first = logs(1_000, format);
        assert_eq!(first.bytes(name), logs(1_000, format).bytes(name));
        let folder = tempfile::tempdir().unwrap();
        generate(&Generate { seed: 43, ..plan(folder.path(), 1_000, format) }).unwrap();
        assert_ne!(first.bytes(name), fs::read(folder.path().join(name)).unwrap());
    }
}

#[test]
fn the_bytes_are_the_same_on_every_machine() {
    // FNV-1a; a change here changes everyone's generated logs
    let hash = |name| {
        logs(1_000, Format::Ndjson)
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
    let logs = logs(ROWS, Format::Ndjson);
    let [engine, gateway, app] = ["engine", "gateway", "app"].map(|log| logs.lines(log));
    assert_eq!(app.len() as u64, ROWS);
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
    let logs = logs(5_000, Format::Ndjson);
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
    let logs = logs(5_000, Format::Ndjson);
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
    let logs = logs(5_000, Format::Ndjson);
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
fn token_lengths_have_the_percentiles_of_the_front_page() {
    let logs = logs(ROWS, Format::Ndjson);
    let first: Vec<Value> = logs.lines("engine").into_iter().filter(|line| line["attempt"] == 1).collect();
    for (share, tokens) in [(0.5, 982.5), (0.95, 11_851.5), (0.99, 32_408.5)] {
        assert!((share_up_to(|line| &line.input_tokens, tokens) - share).abs() < 5e-4);
        let seen = first.iter().filter(|line| line["input_tokens"].as_f64().unwrap() <= tokens).count();
        assert_share(seen, first.len(), share);
    }
    let answered: Vec<&Value> = first.iter().filter(|line| line["error_code"] == 0).collect();
    for (share, tokens) in [(0.5, 99.6), (0.95, 862.1), (0.99, 2_268.1)] {
        assert!((share_up_to(|line| &line.output_tokens, tokens) - share).abs() < 5e-4);
        let seen = answered.iter().filter(|line| line["output_tokens"].as_f64().unwrap() <= tokens.round()).count();
        assert_share(seen, answered.len(), share_up_to(|line| &line.output_tokens, tokens.round() + 0.5));
    }
}

#[test]
fn failures_come_as_often_as_their_shares_and_the_rhythm_say() {
    let logs = logs(ROWS, Format::Ndjson);
    let rhythm = Rhythm::new(DEFAULT_START, DEFAULT_DAYS).unwrap();
    let long = 1.0 - share_up_to(|line| &line.input_tokens, f64::from(super::failure::LONG_INPUT as u32) - 0.5);
    // the share of first calls that end so, over the hours' loads and the long and short inputs
    let mean = |share: &dyn Fn(Load, u64) -> u32| -> f64 {
        let loads = [Load::Calm, Load::Busy, Load::Peak].map(|load| {
            let (short_inputs, long_inputs) = (share(load, 0), share(load, super::failure::LONG_INPUT));
            rhythm.share_under(load) * (f64::from(short_inputs) * (1.0 - long) + f64::from(long_inputs) * long)
        });
        loads.iter().sum::<f64>() / 10_000.0
    };
    let first: Vec<Value> = logs
        .lines("gateway")
        .into_iter()
        .filter(|line| line["attempt"] == 1 && line["previous_request_id"].is_null())
        .collect();
    let seen = |status: u16| first.iter().filter(|line| line["http_status"] == status).count();
    let mut failed = 0.0;
    for refusal in [Refusal::InvalidRequest, Refusal::InvalidKey, Refusal::RateLimited] {
        let share = mean(&|load, _| weight_of(&Refusal::shares(load), refusal));
        assert_share(seen(refusal.http_status()), first.len(), share);
        failed += share;
    }
    let passed = 1.0 - failed;
    for fault in [Fault::QueueTimeout, Fault::PrefillOutOfMemory, Fault::DecodeFault] {
        let share = passed * mean(&|load, input| weight_of(&Fault::shares(load, input), fault));
        assert_share(seen(fault.http_status()), first.len(), share);
        failed += share;
    }
    assert!((0.025..0.035).contains(&failed), "{failed} of the requests fail");
}

fn weight_of<T: PartialEq>(shares: &[(Option<T>, u32)], wanted: T) -> u32 {
    shares.iter().filter(|(kind, _)| kind.as_ref() == Some(&wanted)).map(|(_, share)| share).sum()
}

#[test]
fn second_calls_follow_within_the_hour() {
    let logs = logs(ROWS, Format::Ndjson);
    let engine = logs.lines("engine");
    let faults = engine.iter().filter(|line| line["attempt"] == 1 && line["error_code"] != 0).count();
    let retried: Vec<&Value> = engine.iter().filter(|line| line["attempt"] == 2).collect();
    // reconnects that fail are not tried again: about one fault in a thousand
    assert_share(retried.len(), faults, 0.4);
    let time = |line: &Value| text(line, "timestamp").parse::<Timestamp>().unwrap();
    for second in retried {
        let same_id = engine.iter().filter(|line| line["request_id"] == second["request_id"]);
        let first = same_id.min_by_key(|line| line["attempt"].as_u64()).unwrap();
        let between = time(second).duration_since(time(first)).as_secs();
        assert!((0..3_600).contains(&between), "{between} s");
        assert_ne!(first["error_code"], 0);
    }
}

#[test]
fn nights_are_quieter_than_days() {
    let logs = logs(ROWS, Format::Ndjson);
    let mut hours = [0; 24];
    for line in logs.lines("app") {
        hours[text(&line, "timestamp")[11..13].parse::<usize>().unwrap()] += 1;
    }
    assert!(hours[3] * 8 < hours[15], "{hours:?}");
}

#[test]
fn the_front_page_tells_the_tables_that_are_drawn_from() {
    for line in &BUSINESS_LINES {
        let [_, _, i50, _, _, i95, i99, _, most_input] = line.input_tokens.0;
        let [_, _, o50, _, _, o95, o99, _, most_output] = line.output_tokens.0;
        let shares = format!("| {} | {} | {} | {} |", line.name, line.weight, line.streamed, line.cached);
        let tokens = format!(" {i50} | {i95} | {i99} | {most_input} | {o50} | {o95} | {o99} | {most_output} |");
        assert!(FRONT_PAGE.contains(&(shares + &tokens)), "{}", line.name);
    }
    for model in &MODELS {
        let row = format!(
            "| {} | {} | {} ms + {} µs a token | {} ms | {}-{}, {} |",
            model.name,
            model.weight,
            model.prefill_base_us / 1_000,
            model.prefill_ns_per_token / 1_000,
            model.decode_us_per_token / 1_000,
            model.gpus.start,
            model.gpus.end - 1,
            model.gpu_pool
        );
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
    for version in &VERSIONS {
        let [a, b, c, d] = version.weights;
        let row = format!("| {} | {} % | {a} | {b} | {c} | {d} |", version.name, version.decode_percent);
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
    for (load, table) in ["calm", "busy", "peak"].into_iter().zip(&super::attempt::QUEUE_WAIT_US) {
        let [p50, p95, p99] = [2, 5, 6].map(|share| table.0[share] / 1_000);
        let row = format!("| {load} | {p50} ms | {p95} ms | {p99} ms |");
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
}

#[test]
fn parquet_holds_the_values_of_ndjson_with_types() {
    let (ndjson, parquet) = (logs(1_000, Format::Ndjson), logs(1_000, Format::Parquet));
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
    let logs = logs(10, Format::Ndjson);
    let before = logs.bytes("app.ndjson");
    let again = plan(logs.folder.path(), 20, Format::Ndjson);
    let refused = generate(&again).err().unwrap().to_string();
    assert!(refused.ends_with("engine.ndjson is there already: choose another folder, or replace it with --force"));
    assert_eq!(logs.bytes("app.ndjson"), before);
    generate(&Generate { force: true, ..again }).unwrap();
    assert_eq!(logs.lines("app").len(), 20);
}

#[test]
fn an_error_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gateway.ndjson"), "kept").unwrap();
    assert!(generate(&plan(folder.path(), 10, Format::Ndjson)).is_err());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["gateway.ndjson"]);
}

#[test]
fn impossible_plans_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let none = generate(&plan(folder.path(), 0, Format::Ndjson)).err().unwrap().to_string();
    assert_eq!(none, "cannot generate logs of 0 rows: give at least 1");
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let at_file = generate(&plan(&file, 10, Format::Ndjson)).err().unwrap().to_string();
    assert!(at_file.starts_with("cannot make the folder "), "{at_file}");
}
