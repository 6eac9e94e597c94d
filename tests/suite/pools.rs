//! `pools`: how many GPUs a pool needs.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn request(id: &str, time: &str, tokens: u64, total: f64, fields: Value) -> Value {
    let mut record = json!({"request_id": id, "timestamp": format!("2025-06-01T{time}Z"), "gpu_pool": "p", "gpu_id": "0",
                            "input_tokens": tokens, "output_tokens": 0, "total_latency_ms": total, "status": "success"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

/// Two requests in each of ten minutes, 10, 20, ... 100 tokens/s; from the eighth on they take 9 s instead of 1 s.
fn rising() -> Vec<Value> {
    let pair = |minute: u64| {
        let total = if minute < 7 { 1000.0 } else { 9000.0 };
        [0, 20].map(|second| {
            let (id, time) = (format!("{minute}-{second}"), format!("10:{minute:02}:{second:02}"));
            request(&id, &time, 300 * (minute + 1), total, json!({}))
        })
    };
    (0..10).flat_map(pair).collect()
}

#[test]
fn what_a_gpu_sustains_is_the_highest_load_that_kept_the_limit() {
    let report = report(&rising(), &["pools", "--limit", "2s", "--min-count", "2"]);
    let row = report.row();
    assert_eq!((&row["sustained"], &row["sustained_by"]), (&json!(70.0), &json!("limit")));
    assert_eq!([&row["load_class"], &row["judged"], &row["broken"]], [7, 10, 3]);
    assert_eq!((&row["kept"], &row["demand"], &row["demand_p99"]), (&json!(1.0), &json!(100.0), &json!(100.0)));
    assert_eq!(row["demand_at"], json!("2025-06-01T10:09:00+00:00"));
    // 100 / 70 x 1.2
    assert_eq!(
        [&row["needed"], &row["needed_p99"], &row["gpus"], &row["gpus_at_once"], &row["gpu_minutes"]],
        [2, 2, 1, 1, 10]
    );
    assert_eq!([&row["requests"], &row["counted"], &row["left_out"], &row["measured"]], [20, 20, 0, 20]);
    assert_eq!(row["status"], json!("short"));
}

#[test]
fn the_status_says_why_there_is_no_answer_or_how_sure_it_is() {
    let few = ["pools", "--limit", "2s"];
    let never = ["pools", "--limit", "500ms", "--min-count", "2"];
    // no load was too much: the GPU may carry more
    let unproven = ["pools", "--limit", "10s", "--min-count", "2"];
    let given = ["pools", "--per-gpu", "100", "--headroom", "0"];
    let cases: [(&[&str], &str, Value); 5] = [
        (&["pools"], "no limit given", Value::Null),
        (&few, "too few requests", Value::Null),
        (&never, "limit never kept", Value::Null),
        (&unproven, "unproven", json!(100.0)),
        (&given, "ok", json!(100.0)),
    ];
    for (arguments, status, sustained) in cases {
        let report = report(&rising(), arguments);
        assert_eq!(
            (&report.row()["status"], &report.row()["sustained"]),
            (&json!(status), &sustained),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_long_request_is_no_load_to_itself() {
    // alone on the GPU, the long ones slow: that is their length
    let alone = |minute: u64| {
        let (id, time) = (format!("{minute}"), format!("10:{minute:02}:00"));
        request(&id, &time, 100 * (minute + 1), if minute < 5 { 1000.0 } else { 9000.0 }, json!({}))
    };
    let records: Vec<Value> = (0..10).map(alone).collect();
    let report = report(&records, &["pools", "--limit", "2s", "--min-count", "2"]);
    let row = report.row();
    assert_eq!((&row["judged"], &row["broken"], &row["status"]), (&json!(1), &json!(1), &json!("limit never kept")));
}

#[test]
fn tokens_are_spread_over_the_minutes_that_a_request_runs_in() {
    // a quarter, a half and a quarter of the time
    let records = [request("1", "10:00:30", 600, 120_000.0, json!({}))];
    let spread = report(&records, &["pools"]);
    assert_eq!((&spread.row()["demand"], &spread.row()["demand_p99"]), (&json!(5.0), &json!(5.0)));
    assert_eq!(spread.row()["demand_at"], json!("2025-06-01T10:01:00+00:00"));
    assert_eq!(spread.row()["gpu_minutes"], 3);
    let at_once = report(&records, &["pools", "--tokens-at", "start"]);
    assert_eq!((&at_once.row()["demand"], &at_once.row()["gpu_minutes"]), (&json!(10.0), &json!(1)));
}

#[test]
fn requests_without_pool_or_gpu_are_rows_and_demand_of_their_own() {
    let records = [
        request("1", "10:00:00", 600, 1000.0, json!({"gpu_util": 0.25})),
        request("2", "10:00:10", 600, 1000.0, json!({"gpu_util": 0.75, "gpu_id": "1"})),
        request("3", "10:01:10", 60, 1000.0, json!({"gpu_id": null})),
        request("4", "10:00:10", 120, 1000.0, json!({"gpu_id": null, "gpu_pool": null})),
        request(
            "5",
            "10:00:10",
            120,
            1000.0,
            json!({"gpu_pool": null, "gpu_id": null, "input_tokens": null, "output_tokens": null}),
        ),
    ];
    let report = report(&records, &["pools", "--per-gpu", "10"]);
    let [pool, none] = report.rows() else { panic!("{:?}", report.rows()) };
    assert_eq!([&pool["requests"], &pool["measured"], &pool["gpus"], &pool["gpus_at_once"]], [3, 2, 2, 2]);
    // 20 tokens/s; 20 / 10 x 1.2 is 2.4
    assert_eq!((&pool["demand"], &pool["needed"], &pool["status"]), (&json!(20.0), &json!(3), &json!("short")));
    assert_eq!((&pool["util_p50"], &none["util_p50"]), (&json!(0.5), &Value::Null));
    assert_eq!((&none["gpu_pool"], &none["status"]), (&Value::Null, &json!("no GPU ids")));
    assert_eq!([&none["requests"], &none["counted"], &none["left_out"]], [2, 1, 1]);
}

#[test]
fn failed_requests_are_measured_only_when_asked() {
    let mut records = rising();
    records.push(request("f", "10:00:30", 0, 60_000.0, json!({"status": "error"})));
    let asked: [(&[&str], u64); 2] = [(&["pools"], 20), (&["pools", "--include-failed"], 21)];
    for (arguments, measured) in asked {
        assert_eq!(report(&records, arguments).row()["measured"], measured);
    }
}
