//! `knee`: where latency bends over input length.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

/// One request for each length, whose time to first token `takes` so long.
fn lengths(takes: impl Fn(f64) -> f64) -> Vec<Value> {
    let lengths = (7..=16).map(|power| 1_u64 << power);
    lengths
        .map(|tokens| {
            json!({"request_id": tokens.to_string(), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "status": "success",
                   "business_line": if tokens > 16384 { "long" } else { "short" }, "input_tokens": tokens, "ttft_ms": takes(tokens as f64)})
        })
        .collect()
}

#[test]
fn latency_bends_where_two_lines_meet() {
    let records = lengths(|tokens| tokens / 64.0 + (tokens - 8192.0).max(0.0) * 3.0 / 64.0);
    let report = report(&records, &["knee", "--min-count", "1"]);
    let [long, short] = report.rows() else { panic!("{:?}", report.rows()) };
    assert_eq!((&long["business_line"], &short["business_line"]), (&json!("long"), &json!("short")));
    assert_eq!((&short["status"], &short["knee_tokens"]), (&json!("knee"), &json!(8192)));
    let about = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-6;
    assert!(about(&short["ms_per_1k_tokens_before"], 16.0), "{short}");
    assert!(about(&short["ms_per_1k_tokens_after"], 64.0), "{short}");
    assert_eq!([&short["measured"], &short["beyond"], &short["tokens_beyond"]], [8, 1, 16384]);
    assert_eq!([&long["measured"], &long["beyond"], &long["tokens_beyond"]], [2, 2, 32768 + 65536]);
    assert_eq!((&short["share"], &short["ttft_p50_beyond_ms"]), (&json!(0.125), &json!(640.0)));
}

#[test]
fn a_straight_line_has_no_knee_and_few_lengths_say_too_little() {
    let line = report(&lengths(|tokens| 5.0 + tokens / 64.0), &["knee", "--by", "", "--min-count", "1"]);
    let row = line.row();
    assert_eq!((&row["status"], &row["knee_tokens"], &row["beyond"]), (&json!("no knee"), &json!(null), &json!(null)));
    assert!((row["ms_per_1k_tokens_before"].as_f64().unwrap() - 16.0).abs() < 1e-6, "{row}");
    let flatter = report(&lengths(|tokens| tokens.min(8192.0)), &["knee", "--by", "", "--min-count", "1"]);
    assert_eq!(flatter.row()["status"], "no knee");
    let few = report(&lengths(|tokens| tokens), &["knee", "--by", ""]);
    assert_eq!((&few.row()["status"], &few.row()["requests"]), (&json!("too little"), &json!(10)));
}
