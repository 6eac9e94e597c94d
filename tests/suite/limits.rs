//! `limits`: tokens and requests a minute of each tenant against a limit.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn request(id: &str, time: Option<&str>, tokens: Option<(u64, u64)>) -> Value {
    json!({"request_id": id, "timestamp": time.map(|time| format!("2025-06-01T{time}Z")), "tenant": "a", "status": "success",
           "input_tokens": tokens.map(|tokens| tokens.0), "output_tokens": tokens.map(|tokens| tokens.1), "total_latency_ms": 30_000})
}

fn requests() -> [Value; 5] {
    [
        request("1", Some("10:00:10"), Some((60, 40))),
        request("2", Some("10:00:50"), Some((50, 0))),
        request("3", Some("10:01:20"), Some((200, 100))),
        request("4", Some("10:02:00"), None),
        request("5", None, Some((5, 5))),
    ]
}

#[test]
fn minutes_above_the_limit_are_counted_with_what_arrived_in_them() {
    let report = report(&requests(), &["limits", "--limit-tokens", "200", "--limit-requests", "2"]);
    let [tokens, requests] = report.rows() else { panic!("{:?}", report.rows()) };
    // minutes of 150 and 300 tokens; the one without known tokens is none
    assert_eq!([&tokens["active_minutes"], &tokens["peak"], &tokens["limit_per_minute"]], [2, 300, 200]);
    assert_eq!([&tokens["p50"], &tokens["p95"], &tokens["p99"]], [150.0, 300.0, 300.0]);
    assert_eq!((&tokens["peak_of_limit"], &tokens["status"]), (&json!(1.5), &json!("over")));
    let at = json!("2025-06-01T10:01:00+00:00");
    assert_eq!([&tokens["peak_at"], &tokens["first_over"], &tokens["last_over"]], [&at, &at, &at]);
    assert_eq!([&tokens["minutes_over"], &tokens["arrived_over"]], [1, 1]);
    assert_eq!([&tokens["counted"], &tokens["left_out"]], [3, 2]);
    // as many as the limit are not above it
    assert_eq!([&requests["active_minutes"], &requests["peak"], &requests["minutes_over"]], [3, 2, 0]);
    assert_eq!([&requests["counted"], &requests["left_out"]], [4, 1]);
    assert_eq!((&requests["status"], &requests["first_over"]), (&json!("near"), &Value::Null));
}

#[test]
fn tokens_can_count_where_the_answer_ends() {
    // 100 tokens at 10:00:40, 50 at 10:01:20, 300 at 10:01:50
    let report = report(&requests(), &["limits", "--limit-tokens", "349", "--tokens-at", "end"]);
    let row = report.row();
    assert_eq!((&row["measure"], &row["peak"], &row["status"]), (&json!("tokens"), &json!(350), &json!("over")));
    assert_eq!(row["peak_at"], json!("2025-06-01T10:01:00+00:00"));
    // of those that used them, one arrived in that minute
    assert_eq!([&row["minutes_over"], &row["arrived_over"]], [1, 1]);
}

#[test]
fn a_peak_is_near_from_four_fifths_of_the_limit() {
    for (limit, status) in [("299", "over"), ("300", "near"), ("375", "near"), ("376", "ok")] {
        let report = report(&requests(), &["limits", "--limit-tokens", limit]);
        assert_eq!(report.row()["status"], json!(status), "{limit}");
    }
}

#[test]
fn without_a_limit_the_minutes_are_shown_and_nothing_is_over() {
    let report = report(&requests(), &["limits"]);
    assert_eq!(report.column("measure"), ["tokens", "requests"]);
    assert_eq!(report.column("status"), ["no limit", "no limit"]);
    assert_eq!(report.column("minutes_over"), [Value::Null, Value::Null]);
    assert_eq!(report.column("peak"), [300, 2]);
}

#[test]
fn what_is_not_known_is_neither_zero_nor_within_the_limit() {
    let report = report(&[request("1", Some("10:00:00"), None)], &["limits", "--limit-tokens", "10"]);
    let row = report.row();
    assert_eq!([&row["active_minutes"], &row["counted"], &row["left_out"]], [0, 0, 1]);
    assert_eq!([&row["peak"], &row["p50"], &row["status"]], [&Value::Null, &Value::Null, &Value::Null]);
}

#[test]
fn more_tokens_than_64_bits_hold_are_over_the_limit() {
    let huge = Some((9_000_000_000_000_000_000, 9_000_000_000_000_000_000));
    let report = report(&[request("1", Some("10:00:00"), huge)], &["limits", "--limit-tokens", "10"]);
    assert_eq!((&report.row()["peak"], &report.row()["status"]), (&json!(i64::MAX), &json!("over")));
}
