//! `audit`: whether logs can be trusted.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, ndjson};

const ROLES: &str = r#"
[[source]]
name = "gateway"
role = "gateway"
paths = ["gateway.ndjson"]
[[source]]
name = "engine"
role = "engine"
paths = ["engine.ndjson"]
"#;

fn record(id: &str, fields: Value) -> Value {
    let mut record = json!({"request_id": id, "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 100,
                            "output_tokens": 10, "total_latency_ms": 100, "ttft_ms": 20, "status": "success"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

fn found(report: &Report) -> Vec<String> {
    let shown = |row: &Value| {
        format!("{} {}: {} of {}", row["severity"], row["check"], row["found"], row["of"]).replace('"', "")
    };
    report.rows().iter().map(shown).collect()
}

#[test]
fn every_fault_of_a_record_is_named_with_its_count() {
    let records = [
        record("fine", json!({})),
        record("a", json!({"ttft_ms": 200})),
        record("b", json!({"queue_wait_ms": 80, "decode_time_ms": 90})),
        record("d", json!({"complete_at": "2025-06-01T09:00:00Z"})),
        record("e", json!({"total_tokens": 300})),
        record("f", json!({"total_latency_ms": 0, "ttft_ms": null})),
        record("g", json!({"input_tokens": null, "output_tokens": null})),
        record("h\u{0001}", json!({})),
        record("i\u{202e}", json!({})),
        record("j", json!({"user": "jane.doe@example.org"})),
        record("k", json!({"tags": "sk-abcdefghijklmnopqrstuvwxyz012345"})),
        record("l", json!({"user": "13812345678"})),
        json!({"timestamp": "2025-06-01T10:00:00Z", "input_tokens": 1, "output_tokens": 1, "total_latency_ms": 1, "status": "success"}),
        record("m", json!({"timestamp": null})),
        // of what failed, no output and no time are no wonder
        record("n", json!({"status": "error", "output_tokens": 0, "total_latency_ms": 0, "ttft_ms": null})),
    ];
    let workspace = Workspace::with_records(&records);
    let report = workspace.report(&["audit", "log.ndjson"]);
    let mut rows = found(&report);
    rows.sort();
    let expected = [
        "error TTFT above the total: 1 of 12",
        "error a key or token: 1 of 15",
        "error a phone number: 1 of 15",
        "error an e-mail address: 1 of 15",
        "error end before arrival: 1 of 1",
        "error no time with output: 1 of 12",
        "error stages longer than the total: 1 of 13",
        "warning control characters in a text: 1 of 15",
        "warning direction marks in a text: 1 of 15",
        "warning no request id: 1 of 15",
        "warning no timestamp: 1 of 15",
        "warning no token counts: 1 of 14",
        "warning total tokens are not input + output: 1 of 1",
    ];
    assert_eq!(rows, expected);
    let example = |check: &str| report.rows().iter().find(|row| row["check"] == check).unwrap()["example"].clone();
    let first = record("fine", json!({})).to_string().len() + 1;
    assert_eq!(example("TTFT above the total"), format!("log.ndjson, byte {first}"));
    assert_eq!(example("no token counts"), "g");
}

#[test]
fn faults_between_roles_are_found_by_their_ids() {
    let at = |hour: u32, id: &str| record(id, json!({"timestamp": format!("2025-06-01T{hour:02}:00:00Z")}));
    let ids: Vec<String> = (0..20).map(|number| format!("r{number:02}")).collect();
    let refused = record("refused", json!({"status": "error", "http_status": 429}));
    let workspace = Workspace::with("infer-stats.toml", ROLES);
    let mut gateway: Vec<Value> = ids.iter().map(|id| at(2, id)).collect();
    gateway.extend([gateway[3].clone(), refused]);
    workspace.write("gateway.ndjson", ndjson(&gateway));
    // three are lost, and the clock is eight hours off
    let engine: Vec<Value> = ids[3..].iter().map(|id| at(10, id)).chain([at(10, "around")]).collect();
    workspace.write("engine.ndjson", ndjson(&engine));
    let report = workspace.report(&["audit", "gateway.ndjson", "engine.ndjson"]);
    let expected = [
        "error the engine's clock is off by a minute or more: 17 of 17",
        "error duplicate records: 1 of 40",
        "warning in the gateway's log, not in the engine's: 3 of 20",
        "warning in the engine's log, not in the gateway's: 1 of 18",
    ];
    assert_eq!(found(&report), expected);
    assert_eq!(report.rows()[0]["example"], "28800.0 s");
    assert_eq!(report.rows()[2]["example"], "r00");
}

#[test]
fn a_gate_breaks_where_a_finding_is_as_severe_as_asked() {
    let workspace = Workspace::with_records(&[
        record("a", json!({})),
        json!({"timestamp": "2025-06-01T10:00:00Z", "input_tokens": 5, "status": "ok"}),
    ]);
    for (level, code) in [("never", 0), ("warning", 3), ("error", 0)] {
        workspace.run(&["audit", "--fail-on", level, "log.ndjson"]).exits(code);
    }
    assert_eq!(workspace.report(&["audit", "log.ndjson"]).rows().len(), 1);
}

#[test]
fn clean_logs_have_nothing_above_info() {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "3000", "-o", "."]).exits(0);
    workspace.write("infer-stats.toml", ROLES);
    let report = workspace.report(&["audit", "gateway.ndjson", "engine.ndjson", "app.ndjson"]);
    assert!(report.column("severity").iter().all(|severity| severity == "info"), "{:?}", found(&report));
}
