//! What a trace is written as: its formats hold the same request, and nothing of it can break out of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{LOGS, life, lives, moment, near, one, only, stories, trace};
use crate::command::{Workspace, ndjson};

fn written(workspace: &Workspace, id: &str, format: &str) -> String {
    let run = workspace.run(&[&["trace", id, "--format", format], &LOGS[..]].concat()).exits(0);
    run.text().to_owned()
}

#[test]
fn json_has_the_lives_behind_the_keys_of_every_report() {
    let workspace = stories();
    let report = trace(&workspace, &["req-stall-06"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    for key in ["report", "title", "parameters", "source", "columns", "rows", "notes", "lives"] {
        assert!(!report.0[key].is_null(), "{key}: {}", keys(&report.0));
    }
    assert_eq!(report.0["report"], "trace");
    assert_eq!(
        keys(&lives(&report)[0]),
        "origin id asked trace_id length_ms total_ms outcome facts records stages events tokens missing skews \
         neighbours findings"
    );
    assert_eq!(moment(&lives(&report)[0]["origin"]), moment(&json!("2025-06-01T09:08:00Z")));
}

#[test]
fn lines_and_tables_of_text_hold_the_rows_of_the_report() {
    let workspace = stories();
    let report = trace(&workspace, &["req-stall-06"]);
    let rows: Vec<Value> =
        written(&workspace, "req-stall-06", "jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows, report.rows());
    let csv = written(&workspace, "req-stall-06", "csv");
    assert_eq!(csv.lines().next().unwrap(), report.column_names().join(","));
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn spans_are_read_back_as_the_request_that_they_were() {
    let workspace = stories();
    for id in ["req-slowqueue-01", "req-lostengine-02", "req-first-03", "req-stall-06"] {
        workspace.write("spans.json", written(&workspace, id, "otlp"));
        let back = only(&workspace.report(&["trace", id, "--alone", "spans.json"]));
        let life = life(&workspace, id);
        for key in ["id", "trace_id", "outcome", "origin"] {
            assert_eq!(back[key], life[key], "{key} of {id}");
        }
        near(&back["total_ms"], life["total_ms"].as_f64().unwrap(), "total");
        let records = |life: &Value| -> BTreeMap<String, Value> {
            let mut records = BTreeMap::new();
            for record in life["records"].as_array().unwrap() {
                let mut values = record["values"].clone();
                values.as_object_mut().unwrap().retain(|name, _| !name.starts_with("source_"));
                records.insert(record["role"].as_str().unwrap().to_owned(), values);
            }
            records
        };
        assert_eq!(records(&back), records(&life), "{id}");
        let stages = |life: &Value| {
            let stages = life["stages"].as_array().unwrap();
            stages.iter().map(|stage| (stage["name"].clone(), stage["duration_ms"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(stages(&back), stages(&life), "{id}");
        let states = |life: &Value| -> Vec<Value> {
            let steps = life["tokens"]["steps"].as_array();
            steps.map(|steps| steps.iter().map(|step| step["state"].clone()).collect()).unwrap_or_default()
        };
        assert_eq!(states(&back), states(&life), "{id}");
        // one request, and not one more for each span
        let count = workspace.sql("SELECT count(*) AS n FROM requests", &["spans.json"]);
        assert_eq!(count.row()["n"], 1, "{id}");
    }
}

#[test]
fn perfetto_gets_its_events_in_microseconds() {
    let workspace = stories();
    let life = lives(&trace(&workspace, &["req-slowqueue-01"]))[0].clone();
    let file: Value = serde_json::from_str(&written(&workspace, "req-slowqueue-01", "perfetto")).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let queue = one(&life, "stages", json!({"name": "queue"}));
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X" && event["name"] == "queue").collect();
    assert_eq!(spans.len(), 1, "{file}");
    near(&spans[0]["dur"], queue["duration_ms"].as_f64().unwrap() * 1e3, "microseconds");
    for event in events {
        assert!(event["ph"].is_string() && event["pid"].is_number(), "{event}");
    }
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = written(&stories(), "req-stall-06", "html");
    assert!(page.to_lowercase().starts_with("<!doctype html"), "{}", &page[..100.min(page.len())]);
    for source in ["src=\"http", "href=\"http", "url(http", "@import", "src=//", "<link rel=\"stylesheet\" href"] {
        assert!(!page.contains(source), "{source}");
    }
    assert!(page.contains("req-stall-06") && page.contains("token 47: +312 ms"));
}

#[test]
fn hostile_ids_and_texts_stay_text() {
    let id = "</script><img src=x onerror=alert(1)>";
    let event = json!({"request_id": id, "timestamp": "2025-06-01T09:00:00Z", "event": "=cmd|' /C calc'!A1",
                       "message": "<script>alert(2)</script>\u{1b}[31m"});
    let request = json!({"request_id": id, "timestamp": "2025-06-01T09:00:00Z", "model": "<b>m</b>", "latency_ms": 5,
                         "tenant": "=1+1", "status": "success"});
    let workspace = Workspace::with("log.ndjson", ndjson(&[request, event]));
    workspace.write("ids.txt", id);
    let text = |format: &str| {
        let flags = ["trace", "--ids-from", "ids.txt", "--format", format, "log.ndjson"];
        workspace.run(&flags).exits(0).text().to_owned()
    };
    let page = text("html");
    for raw in ["</script><img", "<script>alert(2)", "<b>m</b>"] {
        assert!(!page.contains(raw), "{raw}");
    }
    for format in ["json", "perfetto", "otlp"] {
        serde_json::from_str::<Value>(&text(format)).unwrap();
    }
    for format in ["table", "html", "json"] {
        assert!(!text(format).contains('\u{1b}'), "a terminal would obey: {format}");
    }
    assert!(text("csv").lines().all(|line| line.split(',').all(|cell| !cell.starts_with(['=', '@']))));
}

#[test]
fn a_file_is_written_where_that_is_asked() {
    let workspace = stories();
    for (format, name) in [("json", "life.json"), ("perfetto", "life.perfetto.json"), ("html", "life.html")] {
        let flags = ["trace", "req-skew-07", "--format", format, "-o", name];
        let run = workspace.run(&[&flags[..], &LOGS].concat()).exits(0);
        assert_eq!(run.text(), "");
        assert_eq!(workspace.read(name), written(&workspace, "req-skew-07", format), "{format}");
    }
}
