//! `reuse` and `route`: requests that need not be made, or not of this model.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn prompt(id: u32, second: u32, hash: Option<&str>, user: &str, fields: Value) -> Value {
    let mut record = json!({"request_id": id.to_string(), "timestamp": format!("2025-06-01T10:{:02}:{:02}Z", second / 60, second % 60),
                            "prompt_hash": hash, "user": user, "model": "m", "input_tokens": 100, "output_tokens": 10,
                            "prefill_time_ms": 5, "status": "success"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

#[test]
fn repeats_are_of_one_prompt_and_model_and_saved_within_the_ttl() {
    let records = [
        prompt(1, 0, Some("a"), "x", json!({})),
        // a loop
        prompt(2, 5, Some("a"), "x", json!({"output_tokens": 20})),
        // longer ago than the TTL
        prompt(3, 700, Some("a"), "y", json!({})),
        // the answer before failed: there is none to reuse
        prompt(4, 0, Some("b"), "x", json!({"status": "error"})),
        prompt(5, 9, Some("b"), "z", json!({})),
        // another model
        prompt(6, 10, Some("a"), "x", json!({"model": "n"})),
        prompt(7, 11, None, "x", json!({})),
        prompt(8, 12, None, "x", json!({})),
        // equal hashes, unlike prompts
        prompt(9, 60, Some("c"), "q", json!({})),
        prompt(10, 90, Some("c"), "r", json!({"input_tokens": 900, "prefill_time_ms": null})),
    ];
    let report = report(&records, &["reuse", "--ttl", "10m"]);
    let row = report.row();
    assert_eq!([&row["requests"], &row["hashed"], &row["prompts"], &row["repeats"]], [10, 8, 4, 4]);
    assert_eq!([&row["cacheable"], &row["loops"], &row["differing"]], [2, 1, 1]);
    assert_eq!([&row["saved_input_tokens"], &row["saved_output_tokens"]], [1000, 30]);
    assert_eq!(
        (&row["saved_prefill_ms"], &row["repeat_share"], &row["cacheable_share"]),
        (&json!(5.0), &json!(0.5), &json!(0.25))
    );
}

#[test]
fn a_smaller_model_takes_short_requests_that_were_answered_in_full() {
    let records = [
        prompt(1, 0, None, "x", json!({"business_line": "a"})),
        prompt(2, 0, None, "x", json!({"business_line": "a", "finish_reason": "length"})),
        prompt(3, 0, None, "x", json!({"business_line": "a", "input_tokens": 5000})),
        prompt(4, 0, None, "x", json!({"business_line": "a", "output_tokens": null})),
        prompt(5, 0, None, "x", json!({"business_line": "a", "status": "error"})),
    ];
    let report = report(&records, &["route"]);
    let row = report.row();
    assert_eq!([&row["requests"], &row["known"], &row["small"], &row["small_tokens"]], [5, 3, 1, 110]);
    assert_eq!(row["token_share"], json!(110.0 / (110.0 + 110.0 + 5010.0)));
}
