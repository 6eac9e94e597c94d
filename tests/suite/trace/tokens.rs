//! Tokens one by one: rows of their own, lists in a record, stalls and what else stood still.

use serde_json::{Value, json};

use super::{LOGS, life, lines, moment, near, one, only, percentile, screen, stories, with};
use crate::command::{Workspace, ndjson};

const STALLED: &str = "req-stall-06";

/// The rows of the tokens of a request, as logged.
fn logged(workspace: &Workspace, id: &str) -> Vec<Value> {
    let rows = lines(workspace, "tokens.ndjson").into_iter().map(|(_, row)| row);
    let mut rows: Vec<Value> = rows.filter(|row| row["request_id"] == id).collect();
    rows.sort_by_key(|row| row["token_index"].as_i64());
    rows
}

/// Compares gaps between tokens with what a loop over them gives.
#[track_caller]
fn assert_gaps(itl: &Value, gaps: &[f64]) {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(itl["count"], gaps.len());
    near(&itl["mean_ms"], gaps.iter().sum::<f64>() / gaps.len() as f64, "mean");
    near(&itl["p50_ms"], percentile(&sorted, 0.5), "p50");
    near(&itl["p95_ms"], percentile(&sorted, 0.95), "p95");
    near(&itl["p99_ms"], percentile(&sorted, 0.99), "p99");
    near(&itl["max_ms"], sorted[sorted.len() - 1], "max");
}

#[test]
fn a_token_that_stalls_is_told_with_its_cause_and_who_stalled_with_it() {
    let workspace = stories();
    let life = life(&workspace, STALLED);
    let stalls = life["tokens"]["stalls"].as_array().unwrap();
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    let stall = &stalls[0];
    assert_eq!((&stall["index"], &stall["cause"], &stall["neighbours"]), (&json!(47), &json!("cache_miss"), &json!(3)));
    near(&stall["step_ms"], 334.0, "step");
    near(&stall["over_ms"], 312.0, "over the steps around it");
    let told = "token 47: +312 ms, KV miss, 3 neighbours stalled at the same time";
    assert_eq!(stall["text"], told);
    assert_eq!(one(&life, "findings", json!({"code": "stall"}))["text"], told);
    assert!(screen(&workspace, STALLED).contains(told), "{}", screen(&workspace, STALLED));
    let row = &logged(&workspace, STALLED)[47];
    near(&stall["at_ms"], moment(&row["at"]) - moment(&life["origin"]), "moment of the stall");
    // the eviction on its GPU just before; not the one on another
    let eviction = one(&life, "events", json!({"name": "kv_eviction"}));
    assert_eq!(eviction["gpu_id"], "3");
    let began = stall["at_ms"].as_f64().unwrap() - 334.0;
    let before = began - eviction["at_ms"].as_f64().unwrap();
    assert!((0.0..50.0).contains(&before), "{before}");
    one(&life, "events", json!({"name": "kv_reload"}));
}

#[test]
fn every_step_stands_as_logged_and_the_first_is_no_gap() {
    let workspace = stories();
    let life = life(&workspace, STALLED);
    let rows = logged(&workspace, STALLED);
    let tokens = &life["tokens"];
    assert_eq!(tokens["unit"], "token");
    let steps = tokens["steps"].as_array().unwrap();
    assert_eq!((steps.len(), rows.len()), (200, 200));
    for (step, row) in steps.iter().zip(&rows) {
        assert_eq!(step["index"], row["token_index"]);
        near(&step["at_ms"], moment(&row["at"]) - moment(&life["origin"]), "at");
        near(&step["step_ms"], row["step_ms"].as_f64().unwrap(), "step");
        near(&step["wait_ms"], row["wait_ms"].as_f64().unwrap(), "wait");
        for key in ["context_len", "cache_hit", "recompute", "batch_size"] {
            assert_eq!(step[key], row[key], "{key}");
        }
        let state = match (row["cache_hit"] == true, row["recompute"] == true) {
            (_, true) => "recompute",
            (false, _) => "cache_miss",
            (true, false) => "normal",
        };
        assert_eq!(step["state"], state, "{row}");
        assert_eq!(step["stall"], row["token_index"] == 47);
    }
    let gaps: Vec<f64> = rows[1..].iter().map(|row| row["step_ms"].as_f64().unwrap()).collect();
    assert_gaps(&tokens["itl"], &gaps);
}

#[test]
fn tokens_are_listed_where_they_are_asked_for() {
    let workspace = stories();
    let text = |flags: &[&str]| {
        let run = workspace.run(&[&["trace", STALLED], flags, &LOGS].concat()).exits(0);
        run.text().to_owned()
    };
    let (short, long) = (text(&[]), text(&["--tokens"]));
    assert!(short.lines().count() + 200 <= long.lines().count(), "{long}");
    let line = long.lines().find(|line| line.contains("334") && line.contains("miss") && line.contains("47"));
    assert!(line.is_some(), "{long}");
    // a request without tokens says so instead of showing an empty list
    let run = workspace.run(&[&["trace", "req-retry-03", "--tokens"], &LOGS[..]].concat()).exits(0);
    assert!(run.text().contains("token") || run.stderr.contains("token"), "{run:?}");
    assert_eq!(life(&workspace, "req-retry-03")["tokens"], Value::Null);
}

#[test]
fn rows_of_tokens_may_come_in_any_order_twice_and_without_times() {
    let workspace = stories();
    let expected = life(&workspace, STALLED)["tokens"].clone();
    let mut rows: Vec<String> = workspace.read("tokens.ndjson").lines().map(str::to_owned).collect();
    rows.reverse();
    let replayed: Vec<String> = rows.iter().step_by(5).cloned().collect();
    rows.extend(replayed);
    workspace.write("tokens.ndjson", rows.join("\n"));
    assert_eq!(life(&workspace, STALLED)["tokens"], expected);

    let untimed = |row: &String| {
        let mut row: Value = serde_json::from_str(row).unwrap();
        row.as_object_mut().unwrap().remove("at");
        row.to_string()
    };
    workspace.write("tokens.ndjson", rows.iter().map(untimed).collect::<Vec<_>>().join("\n"));
    let tokens = life(&workspace, STALLED)["tokens"].clone();
    assert_eq!(tokens["itl"], expected["itl"]);
    assert_eq!(tokens["stalls"][0]["index"], 47);
}

#[test]
fn lists_in_a_record_are_its_tokens() {
    let gaps: Vec<f64> = (0..60).map(|index| if index == 30 { 250.0 } else { 20.0 + f64::from(index % 3) }).collect();
    let start = 1_748_768_400.0;
    let times: Vec<f64> = std::iter::once(0.0)
        .chain(gaps.iter().scan(0.0, |sum, gap| {
            *sum += gap / 1e3;
            Some(*sum)
        }))
        .map(|offset| start + 0.1 + offset)
        .collect();
    let total = 100.0 + gaps.iter().sum::<f64>();
    let record = |id: &str, key: &str, list: Value| {
        let mut record = json!({"request_id": id, "timestamp": start, "model": "m", "ttft_ms": 100, "latency_ms": total,
                                "input_tokens": 5, "output_tokens": 61});
        record[key] = list;
        record
    };
    let seconds: Vec<f64> = gaps.iter().map(|gap| gap / 1e3).collect();
    let workspace = Workspace::with_records(&[
        // seconds, as the benchmarks of vLLM and SGLang write them
        record("in-itls", "itls", json!(seconds)),
        record("in-times", "token_times", json!(times)),
    ]);
    for id in ["in-itls", "in-times"] {
        let life = only(&workspace.report(&["trace", id, "log.ndjson"]));
        let tokens = &life["tokens"];
        assert_gaps(&tokens["itl"], &gaps);
        assert_eq!(tokens["steps"].as_array().unwrap().len(), 61, "{id}");
        near(&tokens["steps"][0]["at_ms"], 100.0, id);
        near(&tokens["steps"][60]["at_ms"], total, id);
        let stalls = tokens["stalls"].as_array().unwrap();
        assert_eq!(stalls.len(), 1, "{id}: {stalls:?}");
        // the gap behind the 31st token is the step of the next
        assert_eq!((&stalls[0]["index"], &stalls[0]["cause"]), (&json!(31), &json!("unknown")), "{id}");
    }
}

#[test]
fn even_steps_hold_no_stall_and_one_token_has_no_gap() {
    let step = |id: &str, index: usize, ms: f64| json!({"request_id": id, "token_index": index, "step_ms": ms});
    let mut rows: Vec<Value> = (0..120).map(|index| step("even", index, 20.0)).collect();
    // slower and slower, as contexts grow
    rows.extend((0..120).map(|index| step("growing", index, 20.0 + index as f64 / 10.0)));
    rows.push(step("single", 0, 180.0));
    let requests = ["even", "growing", "single"].map(|id| json!({"request_id": id, "model": "m", "latency_ms": 3000}));
    let workspace = Workspace::with_records(&requests);
    workspace.write("tokens.ndjson", ndjson(&rows));
    let ask = |id| only(&workspace.report(&["trace", id, "log.ndjson", "tokens.ndjson"]));
    for id in ["even", "growing"] {
        assert_eq!(ask(id)["tokens"]["stalls"], json!([]), "{id}");
        assert_eq!(with(&ask(id), "findings", json!({"code": "stall"})), Vec::<Value>::new(), "{id}");
    }
    let single = ask("single");
    assert_eq!((&single["tokens"]["itl"], &single["tokens"]["stalls"]), (&Value::Null, &json!([])));
}

#[test]
fn rows_of_tokens_are_no_requests() {
    let workspace = stories();
    let count = workspace.sql("SELECT count(*) AS n FROM requests", &LOGS[..3]);
    let beside = workspace.sql("SELECT count(*) AS n FROM requests", &LOGS);
    assert_eq!(beside.rows(), count.rows());
}
