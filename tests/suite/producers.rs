//! The records of every known producer, each against rows that were written by hand from its documentation.
//!
//! `testdata/producers/NAME.sample.EXT` is what the producer writes, `NAME.expected.jsonl` the canonical rows of the
//! requests in it, and `NAME.skipped.json` how many of its other records are left out, by reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::command::Workspace;

/// Columns that say where a row comes from, and the weight that every row has.
const APART: [&str; 3] = ["source_file", "source_offset", "sample_weight"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/producers")
}

/// Name and path of every sample.
fn samples() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.split_once(".sample.")?.0.to_owned();
        Some((name, path))
    };
    let mut samples: Vec<_> = entries.filter_map(named).collect();
    samples.sort();
    assert!(samples.len() > 50, "{}", samples.len());
    samples
}

fn expected(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(format!("{name}.expected.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn skipped(name: &str) -> BTreeMap<String, u64> {
    match fs::read_to_string(folder().join(format!("{name}.skipped.json"))) {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(_) => BTreeMap::new(),
    }
}

/// The reasons of a report's skipped records.
fn reasons(report: &Value) -> BTreeMap<String, u64> {
    let notes = report["notes"].as_array().unwrap().iter();
    let skipped = notes.filter(|note| note["code"] == "skipped");
    let reason = |note: &Value| note["text"].as_str().unwrap().split_once(": ").unwrap().1.to_owned();
    skipped.map(|note| (reason(note), note["count"].as_u64().unwrap())).collect()
}

/// A row without what is null and what is not the record's own.
fn values(row: &Value) -> Map<String, Value> {
    let is_own = |name: &str, value: &Value| !value.is_null() && !APART.contains(&name);
    row.as_object()
        .unwrap()
        .iter()
        .filter(|(name, value)| is_own(name, value))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect()
}

/// Times and money as what they mean; numbers may differ by what a float holds.
fn are_equal(column: &str, got: &Value, expected: &Value) -> bool {
    let instant = |value: &Value| value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    match (got, expected) {
        (Value::Number(got), Value::Number(expected)) => {
            let (got, expected) = (got.as_f64().unwrap(), expected.as_f64().unwrap());
            (got - expected).abs() <= 1e-9 * expected.abs().max(1.0)
        }
        _ if column.ends_with("_at") || column == "timestamp" => {
            instant(got).is_some() && instant(got) == instant(expected)
        }
        _ if column == "cost_logged" => {
            let number = |value: &Value| value.as_str().map(|text| text.parse::<f64>().unwrap()).or(value.as_f64());
            number(got) == number(expected)
        }
        _ => got == expected,
    }
}

fn difference(got: &Map<String, Value>, expected: &Map<String, Value>) -> Vec<String> {
    let columns: BTreeSet<&String> = got.keys().chain(expected.keys()).collect();
    let differs = |column: &&String| match (got.get(*column), expected.get(*column)) {
        (Some(got), Some(expected)) => !are_equal(column, got, expected),
        _ => true,
    };
    let told = |column: &String| format!("{column}: {:?} instead of {:?}", got.get(column), expected.get(column));
    columns.into_iter().filter(differs).map(told).collect()
}

#[test]
fn every_sample_reads_as_its_hand_written_rows() {
    let workspace = Workspace::new();
    let mut wrong = Vec::new();
    for (name, path) in samples() {
        let path = path.to_str().unwrap();
        let run = workspace.run(&["inspect", "--format", "jsonl", path]);
        let rows: Vec<Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = expected(&name);
        if rows.len() != expected.len() {
            wrong.push(format!("{name}: {} rows instead of {}", rows.len(), expected.len()));
        }
        for (number, (row, expected)) in rows.iter().zip(&expected).enumerate() {
            let differing = difference(&values(row), expected.as_object().unwrap());
            wrong.extend(differing.into_iter().map(|text| format!("{name}, row {}: {text}", number + 1)));
        }
        let report = workspace.run(&["sql", "--format", "json", "SELECT count(*) FROM logs", path]).report_anyway();
        if reasons(&report.0) != skipped(&name) || report.counted("rejected") > 0 {
            wrong.push(format!("{name}: {:?} skipped instead of {:?}", reasons(&report.0), skipped(&name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_profile_recognises_a_sample_of_its_own_name() {
    let workspace = Workspace::new();
    let profiles = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles")).unwrap();
    for path in profiles.map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (_, sample) = samples().into_iter().find(|(sample, _)| *sample == name).unwrap_or_else(|| panic!("{name}"));
        let report = workspace.run(&["inspect", "--format", "json", sample.to_str().unwrap()]).report_anyway();
        let named = |row: &&Value| row["key"] == "(profile)";
        let known: Vec<&Value> = report.rows().iter().filter(named).map(|row| &row["types"]).collect();
        let listed = workspace.run(&["profiles", &name]).exits(0);
        // an envelope or a stream is not what a record is read by, and an event no row
        let others = ["[envelope]", "table = \"events\"", "restructure = \"streams\""];
        let is_read = !others.iter().any(|other| listed.text().contains(other));
        assert!(!is_read || expected(&name).is_empty() || known.contains(&&json!(name)), "{name}: {known:?}");
    }
}

#[test]
fn a_folder_of_all_samples_gives_one_report_with_every_record_accounted_for() {
    let workspace = Workspace::new();
    for (_, path) in samples() {
        let name = path.file_name().unwrap().to_str().unwrap();
        workspace.write(&format!("logs/{name}"), fs::read(&path).unwrap());
    }
    let report = workspace.report(&["workload", "logs"]);
    let requests: usize = samples().iter().map(|(name, _)| expected(name).len()).sum();
    report.records();
    assert_eq!(report.row()["requests"], requests);
    let mut expected_reasons = BTreeMap::new();
    for (name, _) in samples() {
        skipped(&name).into_iter().for_each(|(reason, count)| *expected_reasons.entry(reason).or_default() += count);
    }
    assert_eq!(reasons(&report.0), expected_reasons);
}

#[test]
fn what_only_says_something_about_a_request_is_an_event_of_it() {
    let log = [
        r#"{"request_id":"a","timestamp":"2026-01-02T03:00:00Z","input_tokens":7,"latency_ms":10}"#,
        r#"{"request_id":"a","timestamp":"2026-01-02T03:00:01Z","event":"kv_evict","message":"evicted 12 blocks"}"#,
        r#"2026-01-02T03:00:02Z stdout F INFO 01-02 03:00:02 [logger.py:39] Received request chatcmpl-a: prompt: 'x'"#,
        r#"{"level":"INFO","message":"engine ready"}"#,
    ];
    let workspace = Workspace::with("pod.log", log.join("\n"));
    let query = "SELECT request_id, timestamp, event, message, source_offset FROM events ORDER BY timestamp";
    let report = workspace.sql(query, &["pod.log"]);
    let line = "INFO 01-02 03:00:02 [logger.py:39] Received request chatcmpl-a: prompt: 'x'";
    assert_eq!(
        report.rows(),
        [
            json!({"request_id": "a", "timestamp": "2026-01-02T03:00:01+00:00", "event": "kv_evict",
                   "message": "evicted 12 blocks", "source_offset": log[0].len() + 1}),
            json!({"request_id": "chatcmpl-a", "timestamp": "2026-01-02T03:00:02+00:00", "event": "Received request",
                   "message": line, "source_offset": log[0].len() + log[1].len() + 2}),
        ]
    );
    let records = report.records();
    assert_eq!((records.records, records.used, report.counted("skipped")), (4, 2, 2));
    let late = ["sql", "SELECT count(*) AS n FROM events", "--since", "2026-01-02T03:00:02Z", "pod.log"];
    assert_eq!(workspace.report(&late).row()["n"], 1);
    // the records themselves are counted where a query reads both
    let both = "SELECT count(e.event) AS n FROM logs l JOIN events e ON e.request_id = l.request_id";
    let report = workspace.sql(both, &["pod.log"]);
    assert_eq!((&report.row()["n"], report.records().used), (&json!(1), 1));
}

#[test]
fn a_proposed_profile_is_accepted_whatever_the_keys_are() {
    let record =
        r#"{"id":"x","a\nb = 1":1,"q\"z":"v","ttft_ms":4,"model":"m","k\\w":2,"a.b":1,"*":1,"x[0]":2,"":3,"日本":1}"#;
    let workspace = Workspace::with("log.ndjson", record);
    let proposal = workspace.run(&["profiles", "init", "log.ndjson"]).exits(0);
    workspace.write("mine.toml", proposal.text());
    let report =
        workspace.report(&["sql", "SELECT request_id, ttft_ms FROM logs", "--profile", "./mine.toml", "log.ndjson"]);
    assert_eq!(report.rows(), [json!({"request_id": "x", "ttft_ms": 4.0})]);
}
