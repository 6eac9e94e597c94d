//! `sample`, and every report over what it wrote: estimates of what it was drawn from.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// The engine's log of 20,000 requests, and a sample of it.
fn sampled(rate: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "20000", "-o", "all"]).exits(0);
    let arguments = ["sample", "--rate", rate, "--least", "20", "--format", "jsonl", "-o", "sample.ndjson"];
    workspace.run(&[&arguments[..], &["all/engine.ndjson"]].concat()).exits(0);
    workspace
}

fn number(report: &Report, row: usize, column: &str) -> f64 {
    report.rows()[row][column].as_f64().unwrap()
}

/// Whether a note of that code stands in the report.
fn notes(report: &Report, code: &str) -> bool {
    report.0["notes"].as_array().unwrap().iter().any(|note| note["code"] == code)
}

#[test]
fn a_sample_keeps_every_failure_and_counts_as_many_requests_as_there_were() {
    let workspace = sampled("0.05");
    for by in ["business-line", "version", "input-bucket"] {
        let all = workspace.report(&["workload", "--by", by, "all/engine.ndjson"]);
        let some = workspace.report(&["workload", "--by", by, "sample.ndjson"]);
        assert!(notes(&some, "sampled") && !notes(&all, "sampled"));
        let counts = |report: &Report| -> Vec<(Value, Value)> {
            report.rows().iter().map(|row| (row[by.replace('-', "_")].clone(), row["requests"].clone())).collect()
        };
        // strata of these three dimensions: their counts are exact
        assert_eq!(counts(&some), counts(&all), "{by}");
        let tokens =
            |report: &Report| -> f64 { (0..report.rows().len()).map(|row| number(report, row, "input_tokens")).sum() };
        let ratio = tokens(&some) / tokens(&all);
        assert!((0.9..1.1).contains(&ratio), "{by}: {ratio}");
    }
    let failed = |log: &str| number(&workspace.report(&["latency", log]), 0, "failed");
    assert_eq!(failed("sample.ndjson"), failed("all/engine.ndjson"));
    let lines = |log: &str| workspace.read(log).lines().count() as f64;
    let part = lines("sample.ndjson") / lines("all/engine.ndjson");
    assert!((0.05..0.35).contains(&part), "{part}");
}

#[test]
fn percentiles_of_a_sample_are_near_those_of_all() {
    let workspace = sampled("0.2");
    let all = workspace.report(&["latency", "all/engine.ndjson"]);
    let some = workspace.report(&["latency", "sample.ndjson"]);
    for column in ["mean_ms", "p50_ms", "p95_ms"] {
        let ratio = number(&some, 0, column) / number(&all, 0, column);
        assert!((0.9..1.1).contains(&ratio), "{column}: {ratio}");
    }
    // failures and long answers are all kept: records as they are would show them too often
    let unweighted = workspace.report(&["sql", "SELECT median(total_latency_ms) AS p50_ms FROM logs", "sample.ndjson"]);
    assert!(notes(&unweighted, "sampled"));
    assert!(number(&unweighted, 0, "p50_ms") > 1.1 * number(&all, 0, "p50_ms"));
}

#[test]
fn the_same_seed_draws_the_same_records_and_another_draws_others() {
    let workspace = sampled("0.05");
    let ids = |seed: &str| {
        let report = workspace.report(&["sample", "--rate", "0.05", "--seed", seed, "all/engine.ndjson"]);
        report.rows().iter().map(|row| row["request_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("7"), ids("7"));
    assert_ne!(ids("7"), ids("8"));
}

fn record(id: &str, total: f64, weight: Value) -> Value {
    json!({"request_id": id, "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 100, "output_tokens": 10,
           "total_latency_ms": total, "status": "success", "sample_weight": weight})
}

#[test]
fn weights_count_like_records_that_stand_so_many_times() {
    let weighted = [record("a", 10.0, json!(3)), record("b", 20.0, json!(1)), record("c", 30.0, json!(2))];
    let workspace = Workspace::with_records(&weighted);
    let copies: Vec<Value> = [("a", 10.0), ("a2", 10.0), ("a3", 10.0), ("b", 20.0), ("c", 30.0), ("c2", 30.0)]
        .iter()
        .map(|(id, total)| record(id, *total, json!(1)))
        .collect();
    workspace.write("copies.ndjson", crate::command::ndjson(&copies));
    for report in
        [&["latency", "--percentiles", "10,50,90,99"][..], &["workload"], &["trend", "--every", "1d"], &["route"]]
    {
        let of = |log: &str| workspace.report(&[report, &[log]].concat());
        assert_eq!(of("log.ndjson").rows(), of("copies.ndjson").rows(), "{report:?}");
    }
    let row = workspace.report(&["latency", "log.ndjson"]);
    assert_eq!((row.row()["requests"].clone(), row.row()["p50_ms"].clone()), (json!(6), json!(15.0)));
}

#[test]
fn where_a_rate_is_unknown_totals_are_refused_and_can_be_had_without_such_records() {
    let records = [record("a", 10.0, json!(3)), record("b", 20.0, json!(null)), record("c", 30.0, json!(0))];
    let workspace = Workspace::with_records(&records);
    for report in ["workload", "latency", "errors", "cache"] {
        let run = workspace.run(&[report, "log.ndjson"]).exits(2);
        assert!(run.stderr.contains("2 records were sampled at an unknown rate"), "{}", run.stderr);
    }
    let report = workspace.report(&["workload", "--where", "sample_weight > 0", "log.ndjson"]);
    assert_eq!(report.row()["requests"], 3);
    // what can be read only once is not looked at before: its totals are unknown
    let log = workspace.read("log.ndjson");
    let run = workspace.command(&["workload", "--format", "json", "-"]).input(log).run().exits(0);
    let report: Value = serde_json::from_str(run.text()).unwrap();
    assert_eq!((&report["rows"][0]["requests"], &report["rows"][0]["input_tokens"]), (&json!(null), &json!(null)));
}

#[test]
fn what_a_sample_cannot_tell_is_refused() {
    let workspace = Workspace::with_records(&[record("a", 10.0, json!(3))]);
    for report in
        [&["capacity"][..], &["compare", "--a", "x", "--b", "y"], &["reuse"], &["sample"], &["errors", "--find"]]
    {
        let run = workspace.run(&[report, &["log.ndjson"]].concat()).exits(2);
        assert!(run.stderr.contains("ask the whole logs"), "{}", run.stderr);
    }
}
