//! `tokens` and the reports below it: how evenly tokens come, what stalls them, what step times go with.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn sample(report: &str, arguments: &[&str]) -> Report {
    let workspace = Workspace::with("log.ndjson", include_str!("../../testdata/tokens.ndjson"));
    let words: Vec<&str> = report.split(' ').collect();
    workspace.report(&[words.as_slice(), arguments, &["log.ndjson"]].concat())
}

fn report(records: &[Value], arguments: &[&str]) -> Report {
    Workspace::with_records(records).report(&[arguments, &["log.ndjson"]].concat())
}

fn row<'a>(report: &'a Report, unit: &str, metric: &str) -> &'a Value {
    let is_asked = |row: &&Value| row["unit"] == unit && row["metric"] == metric;
    report.rows().iter().find(is_asked).unwrap_or_else(|| panic!("no {metric} of {unit}: {:?}", report.rows()))
}

fn about(value: &Value, expected: f64) {
    assert!(value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9), "{value}, not {expected}");
}

/// A request of one step each 20 ms but for what `late` adds.
fn steps(id: &str, count: u64, late: impl Fn(u64) -> u64) -> Vec<Value> {
    let mut at = 100;
    let mut records =
        vec![json!({"request_id": id, "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 10,
                                  "output_tokens": count, "ttft_ms": 100, "status": "success"})];
    for index in 0..count {
        at += if index == 0 { 0 } else { 20 + late(index) };
        let clock = format!("2025-06-01T10:00:{:02}.{:03}Z", at / 1000, at % 1000);
        records.push(json!({"request_id": id, "token_index": index, "timestamp": clock}));
    }
    records
}

#[test]
fn tpot_counts_each_request_once_and_itl_each_token() {
    let tokens = sample("tokens", &[]);
    // gaps of a: 20, 20, 40, 20; of c: 12 x 20, waits among them; of e and g: 14 x 20 and 332; of f: 13 x 20, 332 and 170; b has none
    let tpot = row(&tokens, "token", "tpot");
    assert_eq!((&tpot["weighting"], &tpot["measured"], &tpot["unknown"]), (&json!("request"), &json!(5), &json!(0)));
    about(&tpot["mean_ms"], (25.0 + 20.0 + 40.8 + 50.8 + 40.8) / 5.0);
    let itl = row(&tokens, "token", "itl");
    assert_eq!((&itl["weighting"], &itl["measured"], &itl["max_ms"]), (&json!("token"), &json!(61), &json!(332.0)));
    about(&itl["mean_ms"], (100.0 + 240.0 + 612.0 + 762.0 + 612.0) / 61.0);
}

#[test]
fn the_first_token_is_in_no_gap_and_one_token_alone_has_none() {
    let tokens = sample("tokens", &["--where", "request_id = 'b'"]);
    let ttft = row(&tokens, "token", "ttft");
    assert_eq!((&ttft["measured"], &ttft["max_ms"]), (&json!(1), &json!(300.0)));
    for metric in ["tpot", "itl", "jitter"] {
        let row = row(&tokens, "token", metric);
        assert_eq!((&row["measured"], &row["unknown"], &row["mean_ms"]), (&json!(0), &json!(0), &json!(null)));
    }
}

#[test]
fn gaps_between_chunks_are_apart_from_gaps_between_tokens() {
    let tokens = sample("tokens", &[]);
    let chunks = row(&tokens, "chunk", "icl");
    assert_eq!(
        (&chunks["weighting"], &chunks["measured"], &chunks["max_ms"]),
        (&json!("chunk"), &json!(3), &json!(100.0))
    );
    // 200 ms for the 8 tokens after the first
    about(&row(&tokens, "chunk", "tpot")["mean_ms"], 25.0);
    assert!(tokens.rows().iter().all(|row| row["unit"] != "chunk" || row["metric"] != "itl"));
}

#[test]
fn jitter_is_the_mean_change_from_gap_to_gap() {
    let tokens = sample("tokens", &["--where", "request_id = 'a'"]);
    about(&row(&tokens, "token", "jitter")["mean_ms"], (0.0 + 20.0 + 20.0) / 3.0);
}

#[test]
fn a_step_that_is_logged_twice_comes_once_and_one_that_is_missing_makes_no_gap() {
    let mut records = steps("r", 6, |_| 0);
    records.push(records[2].clone());
    records.remove(4);
    let tokens = report(&records, &["tokens"]);
    let itl = row(&tokens, "token", "itl");
    assert_eq!((&itl["steps"], &itl["measured"], &itl["unknown"]), (&json!(5), &json!(3), &json!(1)));
    about(&itl["max_ms"], 20.0);
    about(&row(&tokens, "token", "tpot")["mean_ms"], 20.0);
}

#[test]
fn each_stall_has_its_excess_over_the_median_around_and_one_cause() {
    let stalls = sample("tokens outliers", &[]);
    let shown = |row: &Value| {
        format!(
            "{} {} {} {} {}",
            row["request_id"], row["token_index"], row["excess_ms"], row["cause"], row["neighbours"]
        )
        .replace('"', "")
    };
    let rows: Vec<String> = stalls.rows().iter().map(shown).collect();
    let expected =
        ["e 10 312.0 cache miss 2", "f 10 312.0 neighbours 2", "g 10 312.0 neighbours 2", "f 14 150.0 recompute 0"];
    assert_eq!(rows, expected);
    let causes = sample("tokens stalls", &[]);
    assert_eq!(causes.column("cause"), ["neighbours", "cache miss", "recompute"]);
    assert_eq!(causes.column("excess_ms"), [624.0, 312.0, 150.0]);
    assert_eq!(causes.column("requests"), [2, 1, 1]);
}

#[test]
fn a_stall_needs_both_its_excess_and_its_distance_from_what_is_usual() {
    // gaps of 20 to 110 ms in turn, with a median of 70: one of 140 is nothing unusual
    let uneven = steps("r", 60, |index| index % 10 * 10 + if index == 30 { 120 } else { 0 });
    assert_eq!(report(&uneven, &["tokens", "outliers"]).rows().len(), 0);
    assert_eq!(report(&uneven, &["tokens", "outliers", "--times", "1", "--least-excess", "60"]).rows().len(), 1);
    // equal gaps have a MAD of 0
    let even = steps("r", 60, |index| if index == 30 { 49 } else { 0 });
    assert_eq!(report(&even, &["tokens", "outliers"]).rows().len(), 0);
    assert_eq!(report(&even, &["tokens", "outliers", "--least-excess", "49"]).rows().len(), 1);
}

#[test]
fn an_event_of_the_request_within_the_gap_is_the_cause() {
    let mut records = steps("r", 40, |index| if index == 20 { 300 } else { 0 });
    // step 20 comes at 100 + 20 x 20 + 300 = 800 ms
    records.push(json!({"request_id": "r", "timestamp": "2025-06-01T10:00:00.600Z", "event": "kv_eviction"}));
    let stalls = report(&records, &["tokens", "stalls"]);
    assert_eq!((&stalls.row()["cause"], &stalls.row()["event"]), (&json!("event"), &json!("kv_eviction")));
    let last = records.len() - 1;
    records[last]["timestamp"] = json!("2025-06-01T10:00:00.900Z");
    assert_eq!(report(&records, &["tokens", "stalls"]).row()["cause"], "unknown");
}

#[test]
fn an_event_of_the_gpu_is_the_cause_and_one_of_another_gpu_is_not() {
    let mut records = steps("r", 40, |index| if index == 20 { 300 } else { 0 });
    records[0]["gpu_id"] = json!("gpu-0");
    records.push(json!({"gpu_id": "gpu-1", "timestamp": "2025-06-01T10:00:00.590Z", "event": "kv_swap"}));
    assert_eq!(report(&records, &["tokens", "stalls"]).row()["cause"], "unknown");
    records.push(json!({"gpu_id": "gpu-0", "timestamp": "2025-06-01T10:00:00.600Z", "event": "kv_eviction"}));
    let stalls = report(&records, &["tokens", "stalls"]);
    assert_eq!((&stalls.row()["cause"], &stalls.row()["event"]), (&json!("event"), &json!("kv_eviction")));
}

#[test]
fn the_word_of_a_request_on_its_prefix_is_none_on_the_steps_of_its_list() {
    let gaps: Vec<u64> = (1..=40).map(|step| if step == 20 { 320 } else { 20 }).collect();
    let records = [json!({"request_id": "r", "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 10,
                          "output_tokens": 41, "ttft_ms": 100, "status": "success", "cache_hit": false, "itls_ms": gaps})];
    let row = |report: &Report, keys: [&str; 3]| keys.map(|key| report.row()[key].clone());
    let of_steps = row(&report(&records, &["tokens", "steps"]), ["steps", "stalls", "cache_known"]);
    assert_eq!(of_steps, [json!(41), json!(1), json!(0)]);
    let outlier = row(&report(&records, &["tokens", "outliers"]), ["token_index", "excess_ms", "cause"]);
    assert_eq!(outlier, [json!(20), json!(300.0), json!("unknown")]);
}

#[test]
fn stalls_and_misses_are_shares_of_the_steps_that_can_have_them() {
    let steps = sample("tokens steps", &[]);
    let row = &steps.rows()[0];
    // a has 4 gaps, which are too few to tell what is usual
    assert_eq!([&row["gaps"], &row["judged"], &row["stalls"], &row["stalled_requests"]], [61, 57, 4, 3]);
    about(&row["stalls_per_1k"], 4000.0 / 57.0);
    assert_eq!([&row["cache_known"], &row["misses"], &row["recompute_known"], &row["recomputes"]], [48, 1, 48, 1]);
}

#[test]
fn step_time_that_goes_with_the_context_has_a_correlation_of_one() {
    let mut records = vec![];
    for index in 0..40 {
        records.push(json!({"request_id": "r", "token_index": index, "step_ms": 10.0 + 0.5 * index as f64,
                            "context_len": 1000 + 100 * index, "batch_size": 40 - index}));
    }
    let relate = report(&records, &["tokens", "relate", "--by", ""]);
    let [context, batch] = relate.rows() else { panic!("{:?}", relate.rows()) };
    assert_eq!(
        (&context["factor"], &context["measured"], &batch["factor"]),
        (&json!("context length"), &json!(39), &json!("batch size"))
    );
    about(&context["pearson"], 1.0);
    about(&context["spearman"], 1.0);
    about(&context["slope"], 5.0);
    about(&batch["spearman"], -1.0);
    let few = report(&records, &["tokens", "relate", "--by", "", "--min-count", "40"]);
    assert!(few.column("pearson").iter().all(Value::is_null));
}

#[test]
fn ranks_see_what_bends_where_a_line_sees_it_less() {
    let step =
        |index: u64| json!({"request_id": "r", "token_index": index, "step_ms": index.pow(3), "context_len": index});
    let records: Vec<Value> = (0..40).map(step).collect();
    let relate = report(&records, &["tokens", "relate", "--by", ""]);
    about(&relate.row()["spearman"], 1.0);
    assert!(relate.row()["pearson"].as_f64().is_some_and(|pearson| pearson < 0.95), "{:?}", relate.row());
}

#[test]
fn late_first_tokens_differ_from_fast_ones_in_what_made_them_late() {
    let requests: Vec<Value> = (0..200)
        .map(|id| {
            let queue = if id % 10 == 0 { 900 } else { 5 + id % 3 };
            json!({"request_id": id.to_string(), "timestamp": format!("2025-06-01T10:{:02}:{:02}Z", id / 60, id % 60),
                   "model": "m", "input_tokens": 100, "queue_wait_ms": queue, "prefill_time_ms": 50,
                   "ttft_ms": queue + 50, "status": "success",
                   "priority": if id % 10 == 0 { "low" } else { "high" }})
        })
        .collect();
    let first = report(&requests, &["tokens", "first"]);
    let shown = |row: &Value| {
        format!("{} {}: {} {}", row["factor"], row["value"], row["verdict"], row["effect"]).replace('"', "")
    };
    let rows: Vec<String> = first.rows().iter().map(shown).collect();
    assert_eq!(rows[..2], ["queue wait more: large 1.0", "priority low: large 1.0"]);
    assert!(first.rows()[2..].iter().all(|row| row["verdict"] == "chance"), "{rows:?}");
    let few = report(&requests[..50], &["tokens", "first"]);
    assert!(few.column("verdict").iter().all(|verdict| verdict == "too few"));
}
