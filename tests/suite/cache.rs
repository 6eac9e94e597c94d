//! `cache`: what came from the prefix cache, and what a cache would have held.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, real_data};

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[&["cache"], arguments, &["log.ndjson"]].concat())
}

fn request(id: u32, input: Option<u64>, cached: Option<u64>, prefill: Option<f64>) -> Value {
    json!({"request_id": id.to_string(), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": input,
           "cached_tokens": cached, "prefill_time_ms": prefill, "output_tokens": 5})
}

#[test]
fn three_ratios_are_of_what_is_known_and_a_missing_field_is_in_none() {
    let records = [
        request(1, Some(1000), Some(800), Some(20.0)),
        request(2, Some(100), Some(0), Some(10.0)),
        request(3, Some(10), Some(5), None),
        request(4, Some(500), None, Some(50.0)),
        // hit, but nobody says how much
        json!({"request_id": "5", "timestamp": "2025-06-01T10:00:00Z", "input_tokens": 7, "cache_hit": true}),
    ];
    let report = report(&records, &[]);
    let row = report.row();
    assert_eq!([&row["requests"], &row["known"], &row["hits"], &row["cached_tokens"]], [5, 4, 3, 805]);
    assert!(close(&row["request_hit_ratio"], 3.0 / 4.0), "{row}");
    assert!(close(&row["token_hit_ratio"], 805.0 / 1110.0), "{row}");
    assert!(close(&row["mean_hit_ratio"], (0.8 + 0.0 + 0.5) / 3.0), "{row}");
}

#[test]
fn saved_prefill_is_measured_on_misses_of_the_same_model_and_bucket() {
    let records = [
        request(1, Some(100), Some(0), Some(10.0)),
        request(2, Some(300), Some(0), Some(30.0)),
        request(3, Some(500), Some(200), Some(30.0)),
        // as slow as a miss: the hit was of no use
        request(4, Some(5000), Some(4000), Some(700.0)),
        request(5, Some(5000), Some(0), Some(500.0)),
        // no miss of this length was measured
        request(6, Some(9000), Some(1000), Some(100.0)),
    ];
    let report = report(&records, &[]);
    let row = report.row();
    // 0.1 ms a token both below 1K and from 4K to 8K
    assert!(close(&row["saved_prefill_ms"], 200.0 * 0.1 + 4000.0 * 0.1), "{row}");
    assert_eq!([&row["unvalued_tokens"], &row["hits_not_faster"]], [1000, 1]);
}

#[test]
fn a_prompt_shorter_than_a_block_cannot_hit() {
    let records = [request(1, Some(240), Some(0), None), request(2, Some(784), Some(0), None)];
    assert_eq!(report(&records, &["--block-size", "784"]).row()["misses_below_block"], 1);
    assert_eq!(report(&records, &[]).row()["misses_below_block"], 0);
}

fn hashed(id: u32, second: u32, input: u64, hashes: &[u64]) -> Value {
    json!({"request_id": id.to_string(), "timestamp": format!("2025-06-01T10:00:{second:02}Z"), "input_tokens": input,
           "hash_ids": hashes})
}

#[test]
fn block_hashes_are_replayed_in_the_order_of_arrival() {
    let records = [
        // logged late
        hashed(2, 20, 900, &[1, 2]),
        hashed(1, 0, 1200, &[1, 2, 3]),
        hashed(3, 40, 600, &[1, 9]),
        hashed(4, 41, 10, &[8]),
    ];
    let row = report(&records, &["--what-if", "infinite"]).row().clone();
    assert_eq!([&row["replayed"], &row["blocks"], &row["reused_blocks"], &row["block_tokens"]], [4, 8, 3, 512]);
    // the last block of request 2 holds 900 - 512 tokens
    assert_eq!(row["reused_tokens"], 900 + 512);
    assert!(close(&row["block_hit_ratio"], 3.0 / 8.0) && close(&row["request_hit_ratio"], 2.0 / 4.0), "{row}");
    assert!(close(&row["token_hit_ratio"], 1412.0 / 2710.0), "{row}");
    assert!(close(&row["mean_hit_ratio"], (1.0 + 512.0 / 600.0) / 4.0), "{row}");
    let short = report(&records, &["--what-if", "ttl=15s,block=512"]).row().clone();
    assert_eq!([&short["reused_blocks"], &short["reused_tokens"]], [0, 0]);
    let small = report(&records, &["--what-if", "blocks=1"]).row().clone();
    assert_eq!(small["reused_blocks"], 2);
}

#[test]
fn what_is_not_replayed_is_in_no_ratio() {
    let no_hashes =
        json!({"request_id": "9", "timestamp": "2025-06-01T10:00:59Z", "input_tokens": 5000, "output_tokens": 1});
    let undated = json!({"request_id": "8", "input_tokens": 512, "hash_ids": [1]});
    let records = [hashed(1, 0, 512, &[1]), hashed(2, 1, 512, &[1]), no_hashes, undated];
    let row = report(&records, &["--what-if", "ttl=1m,block=512"]).row().clone();
    assert_eq!([&row["requests"], &row["replayed"], &row["blocks"], &row["reused_tokens"]], [4, 2, 2, 512]);
    assert_eq!((&row["token_hit_ratio"], &row["mean_hit_ratio"]), (&json!(0.5), &json!(0.5)));
    let nothing = report(&records[2..3], &["--what-if", "infinite"]).row().clone();
    assert_eq!((&nothing["token_hit_ratio"], &nothing["reused_tokens"]), (&json!(null), &json!(null)));
}

#[test]
fn the_four_hit_ratios_of_the_mooncake_trace() {
    let Some(path) = real_data("mooncake/synthetic_trace.jsonl") else { return };
    let report = Workspace::new().report(&["cache", "--what-if", "infinite", path.to_str().unwrap()]);
    let row = report.row();
    let given = [
        ("block_hit_ratio", "0.6396038629"),
        ("token_hit_ratio", "0.6512444360"),
        ("request_hit_ratio", "0.4462809917"),
        ("mean_hit_ratio", "0.4315210362"),
    ];
    for (column, given) in given {
        assert_eq!(format!("{:.10}", row[column].as_f64().unwrap()), given, "{column}");
    }
}

#[test]
fn a_replay_without_a_limit_that_it_knows_is_refused() {
    let workspace = Workspace::with("log.ndjson", hashed(1, 0, 5, &[1]).to_string());
    let refusal = workspace.run(&["cache", "--what-if", "size=5", "log.ndjson"]).refusal(2);
    assert!(refusal.contains("ttl=10m,blocks=100000,block=16"), "{refusal}");
}
