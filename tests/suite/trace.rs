//! `trace`: one request, end to end; testdata/trace holds seven requests with a story among ordinary ones.

mod containers;
mod flags;
mod formats;
mod ids;
mod parquet;
mod real;
mod stories;
mod tokens;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

pub const LOGS: [&str; 6] =
    ["gateway.ndjson", "engine.ndjson", "app.ndjson", "tokens.ndjson", "events.ndjson", "engine.log"];

/// What fits on a screen.
const SCREEN: usize = 24;

/// A workspace with the logs of the stories.
pub fn stories() -> Workspace {
    let workspace = Workspace::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/trace");
    for name in LOGS.iter().chain(&["infer-stats.toml"]) {
        workspace.write(name, std::fs::read(folder.join(name)).unwrap());
    }
    workspace
}

/// A trace of ids in all logs of the stories.
pub fn trace(workspace: &Workspace, asked: &[&str]) -> Report {
    workspace.report(&[&["trace"], asked, &LOGS].concat())
}

pub fn lives(report: &Report) -> &[Value] {
    report.0["lives"].as_array().unwrap_or_else(|| panic!("no lives: {}", report.0))
}

/// The life of the one request that was asked for.
#[track_caller]
pub fn only(report: &Report) -> Value {
    assert_eq!(lives(report).len(), 1, "{}", report.0);
    lives(report)[0].clone()
}

#[track_caller]
pub fn life(workspace: &Workspace, id: &str) -> Value {
    let life = only(&trace(workspace, &[id]));
    assert_eq!(life["id"], id);
    life
}

/// What a person sees first.
fn screen(workspace: &Workspace, id: &str) -> String {
    let run = workspace.run(&[&["trace", id], &LOGS[..]].concat()).exits(0);
    run.text().lines().take(SCREEN).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
}

/// Checks that a duration is told, in one of the ways to write it.
#[track_caller]
fn assert_tells(text: &str, ways: &[&str]) {
    assert!(ways.iter().any(|way| text.contains(way)), "none of {ways:?} is in:\n{text}");
}

/// The entries of a list of a life that have these values.
pub fn with(life: &Value, list: &str, values: Value) -> Vec<Value> {
    let entries = life[list].as_array().unwrap_or_else(|| panic!("{list}: {life}"));
    let fits = |entry: &&Value| values.as_object().unwrap().iter().all(|(key, value)| entry[key] == *value);
    entries.iter().filter(fits).cloned().collect()
}

/// The one entry with these values.
#[track_caller]
pub fn one(life: &Value, list: &str, values: Value) -> Value {
    let found = with(life, list, values.clone());
    assert_eq!(found.len(), 1, "{list} with {values}: {}", life[list]);
    found[0].clone()
}

/// The text of the one finding with this code.
#[track_caller]
fn finding(life: &Value, code: &str) -> String {
    one(life, "findings", json!({ "code": code }))["text"].as_str().unwrap().to_owned()
}

fn codes(life: &Value) -> Vec<&str> {
    life["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

fn fact(life: &Value, name: &str) -> Value {
    one(life, "facts", json!({ "name": name }))["value"].clone()
}

/// The ids of neighbours with this relation.
fn neighbours(life: &Value, relation: &str) -> BTreeSet<String> {
    let found = with(life, "neighbours", json!({ "relation": relation }));
    found.iter().map(|neighbour| neighbour["id"].as_str().unwrap().to_owned()).collect()
}

fn names(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// The records of a log, with the number of their line.
pub fn lines(workspace: &Workspace, name: &str) -> Vec<(usize, Value)> {
    let text = workspace.read(name);
    text.lines().enumerate().map(|(index, line)| (index + 1, serde_json::from_str(line).unwrap())).collect()
}

/// The record of a log with this id.
#[track_caller]
fn logged(workspace: &Workspace, name: &str, id: &str) -> (usize, Value) {
    lines(workspace, name).into_iter().find(|(_, line)| line["request_id"] == id).unwrap()
}

/// Milliseconds since 1970.
pub fn moment(value: &Value) -> f64 {
    let time: jiff::Timestamp = value.as_str().unwrap_or_else(|| panic!("no time: {value}")).parse().unwrap();
    time.as_nanosecond() as f64 / 1e6
}

#[track_caller]
pub fn near(value: &Value, expected: f64, what: &str) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{what}: {value} is no number"));
    assert!((value - expected).abs() < 1e-3, "{what}: {value} and not {expected}");
}

/// The value below which this part of the sorted values lies, between two of them in proportion.
pub fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// A duration of all successful requests of the engine with this model and an input of 2K to 4K, but one.
fn usual(workspace: &Workspace, column: &str, model: &Value, but: &str) -> Vec<f64> {
    let alike = |line: &Value| {
        line["model_name"] == *model
            && (2048..4096).contains(&line["input_tokens"].as_i64().unwrap())
            && line["error_code"].is_null()
            && !line["request_id"].as_str().unwrap().ends_with(but)
    };
    let lines = lines(workspace, "engine.ndjson");
    let mut found: Vec<f64> =
        lines.iter().filter(|(_, line)| alike(line)).filter_map(|(_, line)| line[column].as_f64()).collect();
    found.sort_by(f64::total_cmp);
    found
}

const ENGINE_STAGES: [(&str, &str); 3] =
    [("queue", "queue_wait_ms"), ("prefill", "prefill_time_ms"), ("decode", "decode_time_ms")];

/// Requests of the logs without a story.
fn ordinary(workspace: &Workspace) -> Vec<String> {
    let id = |line: &Value| line["request_id"].as_str().unwrap().to_owned();
    let ids = lines(workspace, "gateway.ndjson").into_iter().map(|(_, line)| id(&line));
    let hex = |id: &String| id.len() == 12 && id[4..].bytes().all(|byte| byte.is_ascii_hexdigit());
    ids.filter(hex).collect()
}
