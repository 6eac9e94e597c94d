//! `slow` and `memory`: single requests against others like them.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn request(id: &str, queue: f64, ttft: f64, tpot: f64, output: u64) -> Value {
    let total = ttft + tpot * (output - 1) as f64;
    json!({"request_id": id, "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 100, "output_tokens": output,
           "queue_wait_ms": queue, "prefill_time_ms": ttft - queue, "decode_time_ms": total - ttft, "ttft_ms": ttft,
           "tpot_ms": tpot, "total_latency_ms": total, "status": "success"})
}

#[test]
fn the_slowest_come_first_with_their_stage_and_pattern() {
    let mut records: Vec<Value> = (0..20).map(|n| request(&format!("usual-{n:02}"), 1.0, 10.0, 1.0, 11)).collect();
    records.push(request("queued", 900.0, 910.0, 1.0, 11));
    records.push(request("decoding", 1.0, 10.0, 50.0, 11));
    records.push(request("overload", 500.0, 600.0, 90.0, 11));
    records.push(request("long", 1.0, 10.0, 1.0, 301));
    let report = report(&records, &["slow", "--top", "4"]);
    let shown = |row: &Value| {
        format!("{} {} {} {}", row["request_id"], row["total_ms"], row["stage"], row["pattern"]).replace('"', "")
    };
    let rows: Vec<String> = report.rows().iter().map(shown).collect();
    let expected = [
        "overload 1500.0 decode overload",
        "queued 920.0 queue first token",
        "decoding 510.0 decode decoding",
        "long 310.0 decode long answer",
    ];
    assert_eq!(rows, expected);
    let first = &report.rows()[0];
    // 20 of 24 take 20 ms
    assert_eq!(
        (&first["median_ms"], &first["times_median"], &first["stage_share"]),
        (&json!(20.0), &json!(75.0), &json!(0.6))
    );
}

#[test]
fn memory_grows_with_the_length_of_sequences() {
    let record = |tokens: u64, peak: Option<f64>| {
        json!({"request_id": format!("{tokens}"), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": tokens - 10,
               "output_tokens": 10, "gpu_mem_peak_mb": peak, "batch_size": 4})
    };
    let peak = |tokens: u64| Some(1000.0 + 0.5 * tokens as f64);
    let records = [
        record(100, peak(100)),
        record(200, peak(200)),
        record(300, peak(300)),
        record(2048, peak(2048)),
        record(3000, None),
    ];
    let report = report(&records, &["memory"]);
    let [short, long] = report.rows() else { panic!("{:?}", report.rows()) };
    assert_eq!((&short["total_bucket"], &long["total_bucket"]), (&json!("0-1K"), &json!("2K-4K")));
    assert_eq!([&short["requests"], &short["measured"], &long["requests"], &long["measured"]], [3, 3, 2, 1]);
    assert_eq!((&short["memory_p50_mb"], &short["memory_max_mb"]), (&json!(1100.0), &json!(1150.0)));
    assert_eq!((&short["mb_per_token"], &short["correlation"]), (&json!(0.5), &json!(1.0)));
    assert_eq!((&long["jump_mb"], &long["mb_per_token"]), (&json!(924.0), &json!(null)));
}

#[test]
fn the_kv_cache_is_estimated_from_the_shape_of_the_model() {
    let record = |tokens: u64| {
        json!({"request_id": format!("{tokens}"), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": tokens - 8,
               "output_tokens": 8})
    };
    let records = [record(64), record(128), record(192)];
    let shape = ["memory", "--layers", "32", "--kv-heads", "8", "--head-dim", "128"];
    // 2 x 32 x 8 x 128 x 2 bytes are 1/8 MB a token
    let estimate = |more: &[&str]| {
        let report = report(&records, &[&shape, more].concat());
        [report.row()["kv_p50_mb"].clone(), report.row()["kv_p99_mb"].clone()]
    };
    assert_eq!(estimate(&[]), [json!(16.0), json!(23.84)]);
    assert_eq!(estimate(&["--kv-bytes", "1"]), [json!(8.0), json!(11.92)]);
}

#[test]
fn without_the_whole_shape_there_is_no_estimate() {
    let records = [
        json!({"request_id": "a", "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 5, "output_tokens": 5}),
    ];
    for flags in [&["memory"][..], &["memory", "--layers", "32", "--kv-heads", "8"]] {
        let report = report(&records, flags);
        assert_eq!([&report.row()["kv_p50_mb"], &report.row()["kv_p99_mb"]], [&json!(null), &json!(null)]);
    }
}
