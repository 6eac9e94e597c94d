//! `causes`: why requests are slow.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};
use crate::errors::week;

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn request(id: usize, queue: f64, prefill: f64, tpot: f64, output: u64) -> Value {
    let (ttft, decode) = (queue + prefill, tpot * (output - 1) as f64);
    json!({"request_id": format!("r{id:05}"), "timestamp": format!("2025-06-01T{:02}:{:02}:00Z", id / 60 % 24, id % 60), "model": "m",
           "input_tokens": 100, "output_tokens": output, "queue_wait_ms": queue, "prefill_time_ms": prefill, "decode_time_ms": decode,
           "ttft_ms": ttft, "tpot_ms": tpot, "total_latency_ms": ttft + decode, "status": "success"})
}

/// Makes decoding five times as long.
fn slow_down(record: &mut Value) {
    let (Some(decode), Some(total)) = (record["decode_time_ms"].as_f64(), record["total_latency_ms"].as_f64()) else {
        return;
    };
    record["decode_time_ms"] = json!(5.0 * decode);
    record["total_latency_ms"] = json!(total + 4.0 * decode);
}

fn warnings(workspace: &Workspace, by: &str) -> Vec<Value> {
    let report = workspace.report(&["causes", "--by", by, "engine.ndjson"]);
    report.rows().iter().filter(|row| row["severity"] != "info").cloned().collect()
}

#[test]
fn each_slow_request_has_one_pattern_and_the_stage_of_its_excess() {
    let mut records: Vec<Value> = (0..20).map(|id| request(id, 1.0, 9.0, 1.0, 11)).collect();
    records.push(request(20, 91.0, 9.0, 1.0, 11));
    records.push(request(21, 1.0, 99.0, 1.0, 11));
    records.push(request(22, 1.0, 189.0, 1.0, 11));
    records.push(request(23, 1.0, 9.0, 5.0, 11));
    records.push(request(24, 101.0, 9.0, 5.0, 11));
    records.push(request(25, 1.0, 9.0, 1.0, 101));
    let report = report(&records, &["causes"]);
    let shown = |row: &Value| {
        format!("{} {} of {}: {}", row["pattern"], row["slow"], row["measured"], row["stage"]).replace('"', "")
    };
    let rows: Vec<String> = report.rows().iter().map(shown).collect();
    let expected = [
        "first token 3 of 26: prefill",
        "decoding 1 of 26: decode",
        "long answer 1 of 26: decode",
        "overload 1 of 26: queue",
    ];
    assert_eq!(rows, expected);
    // prefill 90 + 180 of an excess with 90 of the queue
    assert_eq!(report.rows()[0]["stage_share"], json!(0.75));
    // too few to say more
    assert!(report.column("cause").iter().chain(&report.column("timing")).all(Value::is_null));
    assert!(report.column("severity").iter().all(|severity| severity == "info"));
}

#[test]
fn what_failed_or_has_no_duration_is_not_measured() {
    let mut records: Vec<Value> = (0..4).map(|id| request(id, 1.0, 9.0, 1.0, 11)).collect();
    records.push(request(4, 900.0, 9.0, 1.0, 11));
    records.push(request(5, 900.0, 9.0, 1.0, 11));
    records[5]["status"] = json!("error");
    records.push(json!({"request_id": "bare", "timestamp": "2025-06-01T10:00:00Z", "model": "m", "status": "success"}));
    let report = report(&records, &["causes"]);
    let row = report.row();
    assert_eq!([&row["requests"], &row["measured"], &row["slow"]], [7, 5, 1]);
    assert_eq!((&row["share"], &row["stage"]), (&json!(0.2), &json!("queue")));
}

#[test]
fn clean_logs_have_nothing_above_info() {
    let workspace = week(|_, _| {});
    for by in ["", "model", "gpu", "business-line", "version", "day"] {
        assert_eq!(warnings(&workspace, by), Vec::<Value>::new(), "{by}");
    }
}

#[test]
fn decoding_that_is_slow_in_one_hour_of_every_day_is_a_scheduled_job() {
    let workspace = week(|record, _| {
        if &record["timestamp"].as_str().unwrap()[11..13] == "02" {
            slow_down(record);
        }
    });
    let found = warnings(&workspace, "");
    let row = found.iter().find(|row| row["pattern"] == "decoding").unwrap();
    assert_eq!((&row["timing"], &row["hours"], &row["peak_hour"]), (&json!("fixed hours"), &json!("2"), &json!(2)));
    assert_eq!((&row["stage"], &row["gpus"]), (&json!("decode"), &json!("none")));
    assert_eq!(row["cause"], "likely a scheduled job: slow at the same hours of day");
}

#[test]
fn peaks_of_one_gpu_over_all_the_time_are_of_a_shared_gpu() {
    let workspace = week(|record, number| {
        if record["gpu_id"] == "2" && number % 8 == 0 {
            slow_down(record);
        }
    });
    let found = warnings(&workspace, "model");
    let row = found.iter().find(|row| row["pattern"] == "decoding").unwrap();
    assert_eq!((&row["gpus"], &row["hours"]), (&json!("2"), &json!("none")));
    assert_eq!(row["cause"], "likely a shared GPU: slow on few GPUs, over all the time");
}
