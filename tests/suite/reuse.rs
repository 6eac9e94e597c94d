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

#[test]
fn near_repeats_have_a_key_that_came_within_the_ttl_with_another_prompt() {
    let key = |key: &str| json!({"simhash": key});
    let records = [
        prompt(1, 0, Some("a"), "x", key("k")),
        prompt(2, 5, Some("b"), "x", key("k")),
        // an exact repeat
        prompt(3, 6, Some("a"), "x", key("k")),
        // longer ago than the TTL
        prompt(4, 800, Some("c"), "x", key("k")),
        // another model
        prompt(5, 801, Some("d"), "x", json!({"simhash": "k", "model": "n"})),
        // there is no answer to reuse
        prompt(6, 810, Some("e"), "x", json!({"simhash": "q", "status": "error"})),
        prompt(7, 811, Some("f"), "x", key("q")),
        prompt(8, 812, Some("g"), "x", json!({})),
    ];
    let report = report(&records, &["reuse", "--column", "key=simhash", "--similar", "key", "--ttl", "10m"]);
    let row = report.row();
    assert_eq!([&row["comparable"], &row["near_repeats"], &row["repeats"]], [6, 1, 1]);
    assert_eq!(row["near_share"], json!(1.0 / 6.0));
}

#[test]
fn near_repeats_share_the_front_of_an_earlier_prompt() {
    let blocks = |shared: u32, other: u32| {
        let own = (shared..10).map(|block| 1000 * other + block);
        json!({"hash_ids": (0..shared).chain(own).collect::<Vec<u32>>()})
    };
    let with = |mut fields: Value, name: &str, value: &str| {
        fields[name] = json!(value);
        fields
    };
    let records = [
        prompt(1, 0, None, "x", blocks(10, 0)),
        prompt(2, 1, None, "x", blocks(9, 1)),
        prompt(3, 2, None, "x", blocks(8, 2)),
        prompt(4, 3, None, "x", with(blocks(9, 3), "model", "n")),
        prompt(5, 4, None, "x", with(blocks(9, 4), "status", "error")),
        prompt(6, 5, None, "x", json!({})),
        prompt(7, 6, None, "x", json!({"hash_ids": []})),
        prompt(8, 7, Some("p"), "x", blocks(10, 0)),
        // an exact repeat
        prompt(9, 8, Some("p"), "x", blocks(10, 0)),
    ];
    let counts = |near: &str| {
        let report = report(&records, &["reuse", "--near", near]);
        let row = report.row();
        [row["comparable"].as_i64().unwrap(), row["near_repeats"].as_i64().unwrap()]
    };
    assert_eq!(counts("0.9"), [6, 2]);
    assert_eq!(counts("0.8"), [6, 3]);
}

#[test]
fn saved_cost_is_summed_exactly_and_never_over_two_currencies() {
    let cost =
        |line: &str, cost: f64, currency: &str| json!({"business_line": line, "cost": cost, "currency": currency});
    let records = [
        prompt(1, 0, Some("a"), "x", cost("one", 0.1, "USD")),
        prompt(2, 1, Some("a"), "x", cost("one", 0.1, "USD")),
        prompt(3, 2, Some("a"), "x", cost("one", 0.2, "usd")),
        prompt(4, 3, Some("a"), "x", json!({"business_line": "one"})),
        prompt(5, 3, Some("b"), "x", cost("two", 1.0, "USD")),
        prompt(6, 4, Some("b"), "x", cost("two", 1.0, "USD")),
        prompt(7, 5, Some("b"), "x", cost("two", 1.0, "CNY")),
    ];
    let report = report(&records, &["reuse", "--by", "business-line"]);
    let [one, two] = report.rows() else { panic!("{:?}", report.rows()) };
    assert_eq!([&one["cacheable"], &one["priced"], &two["priced"]], [3, 2, 2]);
    assert_eq!((&one["saved_cost"], &one["currency"]), (&json!("0.30"), &json!("USD")));
    assert_eq!((&two["saved_cost"], &two["currency"]), (&json!(null), &json!(null)));
}

#[test]
fn long_prompts_are_counted_by_what_the_prefix_cache_did_not_hold() {
    let records = [
        prompt(1, 0, None, "x", json!({"input_tokens": 5000, "cached_tokens": 4000})),
        prompt(2, 0, None, "x", json!({"input_tokens": 5000, "cache_hit": false})),
        // it does not say
        prompt(3, 0, None, "x", json!({"input_tokens": 4096, "prefill_time_ms": null})),
        prompt(4, 0, None, "x", json!({"input_tokens": 4095, "cached_tokens": 0})),
    ];
    let report = report(&records, &["reuse"]);
    let row = report.row();
    assert_eq!([&row["long"], &row["long_known"], &row["long_tokens"]], [3, 2, 6000]);
    assert_eq!(row["long_prefill_ms"], json!(10.0));
}
