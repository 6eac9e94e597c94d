//! What flags change of a trace, and what they must not; logs that know little of a request.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    LOGS, assert_says, finding, life, lines, logged, moment, near, neighbours, one, only, stories, trace, with,
};
use crate::command::Workspace;

#[test]
fn what_is_asked_alone_has_no_neighbours_and_no_comparison() {
    let workspace = stories();
    for id in ["req-starved-05", "req-slowqueue-01", "req-stall-06"] {
        let alone = only(&trace(&workspace, &[id, "--alone"]));
        let whole = life(&workspace, id);
        assert_eq!(alone["neighbours"], json!([]));
        assert!(alone["stages"].as_array().unwrap().iter().all(|stage| stage["standing"].is_null()), "{alone}");
        assert_eq!(alone["records"], whole["records"]);
        let durations = |life: &Value| {
            let stages = life["stages"].as_array().unwrap();
            stages.iter().map(|stage| (stage["name"].clone(), stage["duration_ms"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(durations(&alone), durations(&whole));
        assert_eq!(alone["tokens"]["steps"], whole["tokens"]["steps"]);
    }
}

#[test]
fn the_context_is_what_ran_on_the_gpu_around_that_time() {
    let workspace = stories();
    let id = "req-starved-05";
    let engine = lines(&workspace, "engine.ndjson");
    let (_, own) = logged(&workspace, "engine.ndjson", id);
    let span = |line: &Value| (moment(&line["timestamp"]), moment(&line["completed_at"]));
    // those that certainly are within so many milliseconds on the same GPU, but for itself and its batch
    let beside = |margin: f64| -> BTreeSet<String> {
        let (start, end) = span(&own);
        let near = |line: &Value| {
            let (from, to) = span(line);
            line["gpu_id"] == own["gpu_id"]
                && line["batch_id"] != own["batch_id"]
                && from <= end + margin
                && to >= start - margin
        };
        let ids = engine.iter().filter(|(_, line)| near(line));
        ids.map(|(_, line)| line["request_id"].as_str().unwrap().to_owned()).collect()
    };
    for (asked, margin) in [("5s", 5_000.0), ("30s", 30_000.0), ("2m", 120_000.0)] {
        let life = only(&trace(&workspace, &[id, "--context", asked]));
        let found = neighbours(&life, "gpu");
        let (sure, possible) = (beside(margin - 500.0), beside(margin + 500.0));
        assert!(found.is_superset(&sure) && found.is_subset(&possible), "{asked}: {found:?} and not {sure:?}");
        assert_eq!(neighbours(&life, "batch").len(), 3, "{asked}");
    }
    assert!(beside(119_500.0).len() > beside(30_500.0).len());
    let wrong = workspace.run(&[&["trace", id, "--context", "soon"], &LOGS[..]].concat()).refusal(2);
    assert_says(&wrong, &["--context", "soon"]);
}

#[test]
fn a_required_role_that_is_missing_breaches_the_gate_and_is_still_shown() {
    let workspace = stories();
    let ask = |id: &str, roles: &str, logs: &[&str]| {
        workspace.run(&[&["trace", id, "--require", roles, "--format", "json"], logs].concat())
    };
    ask("req-slowqueue-01", "gateway,engine,app", &LOGS).exits(0);
    ask("req-lostengine-02", "gateway,app", &LOGS).exits(0);
    let breached = ask("req-lostengine-02", "gateway,engine,app", &LOGS).exits(3);
    assert_says(&breached.stderr, &["engine", "req-lostengine-02"]);
    assert_eq!(only(&breached.report_anyway())["missing"][0]["role"], "engine");
    // also where no log of that role was read at all, and where one of several lacks it
    ask("req-slowqueue-01", "engine", &LOGS[..1]).exits(3);
    ask("req-slowqueue-01,req-lostengine-02", "engine", &LOGS).exits(3);
    ask("req-slowqueue-01", "engine", &LOGS[1..2]).exits(0);
    assert_says(&ask("req-slowqueue-01", "gatway", &LOGS).refusal(2), &["gatway", "gateway"]);
    // a request that is not there at all lacks every role: the gate goes before nothing found
    ask("req-nowhere-98", "engine", &LOGS).exits(3);
}

#[test]
fn the_log_of_one_role_alone_tells_what_it_knows() {
    let workspace = stories();
    let ask = |log: &str| only(&workspace.report(&["trace", "req-slowqueue-01", log]));
    let gateway = ask("gateway.ndjson");
    near(&gateway["total_ms"], 4185.0, "total of the gateway");
    let engine = ask("engine.ndjson");
    near(&engine["total_ms"], 4180.0, "total of the engine");
    let app = ask("app.ndjson");
    for life in [&gateway, &engine, &app] {
        // what was not read is not missing
        assert_eq!(life["missing"], json!([]));
        assert_eq!(life["records"].as_array().unwrap().len(), 1);
    }
    assert_eq!(one(&engine, "stages", json!({"name": "queue"}))["dominant"], true);
    assert_says(&finding(&engine, "slow_stage"), &["queue"]);
    assert_eq!(with(&gateway, "stages", json!({"name": "queue"})), Vec::<Value>::new());
}

#[test]
fn logs_without_roles_and_records_without_times_are_shown_as_far_as_they_go() {
    let workspace = Workspace::with_records(&[
        json!({"request_id": "a", "model": "m", "queue_ms": 40, "prefill_time_ms": 10, "decode_time_ms": 50,
               "input_tokens": 9, "output_tokens": 3, "status": "success"}),
        json!({"request_id": "b", "model": "m", "latency_ms": 7, "status": "success"}),
        json!({"request_id": "c", "model": "m", "input_tokens": 9, "status": "success"}),
    ]);
    let ask = |id: &str| only(&workspace.report(&["trace", id, "log.ndjson"]));
    let staged = ask("a");
    assert_eq!((&staged["origin"], &staged["missing"]), (&Value::Null, &json!([])));
    near(&staged["total_ms"], 100.0, "the stages add up");
    near(&one(&staged, "stages", json!({"name": "prefill"}))["start_ms"], 40.0, "one stage behind the other");
    assert_eq!(staged["records"][0]["start_ms"], Value::Null);
    let total = ask("b");
    near(&one(&total, "stages", json!({"name": "request"}))["duration_ms"], 7.0, "a total alone is one stage");
    let bare = ask("c");
    assert_eq!((&bare["total_ms"], &bare["stages"]), (&Value::Null, &json!([])), "what is not known is not zero");
    for id in ["a", "b", "c"] {
        workspace.run(&["trace", id, "log.ndjson"]).exits(0);
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let workspace = stories();
    let ids = "req-slowqueue-01,req-first-03,req-starved-05,req-stall-06";
    for format in ["table", "json", "jsonl", "csv", "perfetto", "otlp", "html"] {
        let ask = |threads| {
            let flags = ["trace", ids, "--context", "30s", "--format", format, "--threads", threads];
            let run = workspace.run(&[&flags[..], &LOGS].concat()).exits(0);
            (run.text().to_owned(), run.stderr)
        };
        assert_eq!(ask("1"), ask("8"), "{format}");
    }
}

#[test]
fn the_accounting_counts_every_record_once_however_often_the_logs_are_read() {
    let workspace = stories();
    for flags in [&["--alone"][..], &[], &["--context", "30s", "--tokens"]] {
        let report = trace(&workspace, &[&["req-stall-06"], flags].concat());
        report.records();
        assert_eq!(report.counted("files"), LOGS.len() as u64, "{flags:?}");
        assert_eq!(report.counted("damaged_files"), 0);
    }
}
