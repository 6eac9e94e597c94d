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
    assert_eq!(example("TTFT above the total"), "log.ndjson:2");
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
    assert_eq!(workspace.report(&["audit", "log.ndjson"]).rows().len(), 2);
}

#[test]
fn clean_logs_have_nothing_above_info() {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "3000", "-o", "."]).exits(0);
    workspace.write("infer-stats.toml", ROLES);
    let report = workspace.report(&["audit", "gateway.ndjson", "engine.ndjson", "app.ndjson"]);
    assert!(report.column("severity").iter().all(|severity| severity == "info"), "{:?}", found(&report));
}

fn at(id: &str, second: u32, fields: Value) -> Value {
    let mut record = record(id, fields);
    record["timestamp"] = json!(format!("2025-06-01T10:{:02}:{:02}Z", second / 60, second % 60));
    record
}

fn audit(records: &[Value], flags: &[&str]) -> Report {
    Workspace::with_records(records).report(&[&["audit"], flags, &["log.ndjson"]].concat())
}

#[test]
fn a_retry_names_a_request_that_is_in_the_log() {
    let records = [
        at("a", 0, json!({})),
        at("b", 70, json!({})),
        at("c", 80, json!({"previous_request_id": "b"})),
        at("d", 90, json!({"previous_request_id": "gone"})),
        // its first try may stand in the log before this one
        at("e", 30, json!({"previous_request_id": "earlier"})),
    ];
    let report = audit(&records, &[]);
    assert_eq!(found(&report), ["warning a retry of a request that is not there: 1 of 2"]);
    assert_eq!(report.row()["example"], "gone");
}

#[test]
fn a_batch_lacks_members_where_other_batches_have_as_many_as_they_say() {
    let member = |batch: &str, number: u32, size: u32| {
        record(&format!("{batch}{number}"), json!({"batch_id": batch, "batch_size": size}))
    };
    let short = [member("z", 0, 4), member("z", 1, 4)];
    let whole = [member("x", 0, 2), member("x", 1, 2), member("y", 0, 3), member("y", 1, 3), member("y", 2, 3)];
    let report = audit(&[&short[..], &whole].concat(), &[]);
    assert_eq!(found(&report), ["warning members of a batch that is not complete: 2 of 7"]);
    assert_eq!(report.row()["example"], "z");
    // nothing says that the size is of the batch
    assert_eq!(found(&audit(&short, &[])), ["info a batch size above the records of its batch: 2 of 2"]);
    // what runs at once changes from member to member
    let running = [member("x", 0, 5), member("x", 1, 9), member("y", 0, 7), member("y", 1, 8)];
    assert_eq!(found(&audit(&running, &[])), [""; 0]);
}

#[test]
fn durations_in_another_unit_are_a_second_heap() {
    let took = |id: String, total: f64| record(&id, json!({"total_latency_ms": total, "ttft_ms": null}));
    let usual: Vec<Value> = (0..40).map(|number| took(format!("m{number}"), 1000.0 + f64::from(number))).collect();
    let in_seconds: Vec<Value> =
        (0..4).map(|number| took(format!("s{number}"), 1.0 + f64::from(number) / 100.0)).collect();
    let report = audit(&[usual.clone(), in_seconds].concat(), &[]);
    assert_eq!(found(&report), ["warning durations a thousand times as long or short: 4 of 44"]);
    // one that hung is no unit
    let hung = audit(&[usual, vec![took("hung".to_owned(), 900_000.0)]].concat(), &[]);
    assert_eq!(found(&hung), [""; 0]);
}

#[test]
fn records_are_older_than_they_may_be_kept() {
    let day = |day: u32| {
        let mut record = record(&format!("k{day}"), json!({}));
        record["timestamp"] = json!(format!("2025-06-{day:02}T10:00:00Z"));
        record
    };
    let records: Vec<Value> = (1..=10).map(day).collect();
    let kept = |flags: &[&str]| found(&audit(&records, flags));
    assert_eq!(kept(&[]), [""; 0]);
    assert_eq!(kept(&["--keep", "5d"]), ["warning older than may be kept: 4 of 10"]);
    assert_eq!(kept(&["--keep", "5d", "--until", "2025-06-20"]), ["warning older than may be kept: 10 of 10"]);
}

#[test]
fn a_weight_of_nothing_is_an_unknown_rate() {
    let records =
        [record("a", json!({"sample_weight": 10})), record("b", json!({})), record("c", json!({"sample_weight": 0}))];
    let expected = ["warning sampled at an unknown rate: 1 of 3", "info sampled records: 1 of 3"];
    assert_eq!(found(&audit(&records, &[])), expected);
}

#[test]
fn units_that_differ_between_roles_and_clocks_of_a_part_are_found_by_their_ids() {
    let workspace = Workspace::with("infer-stats.toml", ROLES);
    let at = |id: u32, hour: u32, total: f64| {
        json!({"request_id": format!("r{id}"), "timestamp": format!("2025-06-01T{hour:02}:{:02}:00Z", id % 60), "input_tokens": 100,
               "output_tokens": 10, "total_latency_ms": total, "status": "success"})
    };
    // eleven of forty seconds where ms should stand; twelve of forty records eight hours off
    let gateway: Vec<Value> = (0..40).map(|id| at(id, 2, if id < 11 { 1.5 } else { 1500.0 })).collect();
    let engine: Vec<Value> = (0..40).map(|id| at(id, if id >= 28 { 10 } else { 2 }, 1400.0)).collect();
    workspace.write("gateway.ndjson", ndjson(&gateway));
    workspace.write("engine.ndjson", ndjson(&engine));
    let report = workspace.report(&["audit", "gateway.ndjson", "engine.ndjson"]);
    let expected = [
        "error some of the engine's records are minutes off the gateway's: 12 of 40",
        "error the gateway's total is a small part of the engine's: 11 of 40",
    ];
    assert_eq!(found(&report)[..2], expected);
    assert_eq!(report.rows()[0]["example"], "28800.0 s");
}

#[test]
fn a_retry_under_a_new_id_is_found_by_who_asked_what_after_a_failure() {
    let tried = |id: &str, second: u32, fields: Value| {
        let mut tried =
            record(id, json!({"timestamp": format!("2025-06-01T10:00:{second:02}Z"), "user": "u", "prompt_hash": "p"}));
        tried.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        tried
    };
    let workspace = Workspace::with_records(&[
        tried("first", 0, json!({"status": "error"})),
        // another user, another prompt, the same id again, one that names the first, one that is too late
        tried("other", 1, json!({"user": "v"})),
        tried("else", 1, json!({"prompt_hash": "q"})),
        tried("first", 2, json!({"attempt": 2})),
        tried("named", 3, json!({"previous_request_id": "first"})),
        tried("again", 4, json!({})),
        tried("late", 59, json!({})),
    ]);
    let report = workspace.report(&["audit", "log.ndjson"]);
    assert!(
        found(&report).contains(&"warning a retry under a new id that names no other: 1 of 1".to_owned()),
        "{:?}",
        found(&report)
    );
    let row = report.rows().iter().find(|row| row["check"].as_str().unwrap().contains("new id")).unwrap();
    assert_eq!(row["example"], "again");
}

#[test]
fn a_ttft_of_nothing_of_everything_or_below_its_stages_is_named() {
    let timed = |id: &str, ttft: f64, queue: f64, prefill: f64| {
        record(
            id,
            json!({"ttft_ms": ttft, "queue_wait_ms": queue, "prefill_time_ms": prefill, "total_latency_ms": 9000.0, "output_tokens": 50}),
        )
    };
    let workspace = Workspace::with_records(&[
        timed("fine", 300.0, 100.0, 200.0),
        timed("zero", 0.0, 0.0, 0.0),
        timed("all", 9000.0, 4000.0, 5000.0),
        timed("seconds", 0.3, 100.0, 200.0),
    ]);
    let found = found(&workspace.report(&["audit", "log.ndjson"]));
    for expected in [
        "error no time until the first token: 1 of 4",
        "warning TTFT is the whole total: 1 of 3",
        "error TTFT below queue + prefill: 1 of 4",
    ] {
        assert!(found.contains(&expected.to_owned()), "{expected}: {found:?}");
    }
}

#[test]
fn numbers_of_cards_and_persons_are_found_in_tags() {
    let tagged = |id: &str, tag: &str| record(id, json!({"user": tag}));
    let workspace = Workspace::with_records(&[
        tagged("a", "chat-user-0156 4111 1111 1111 1111"),
        tagged("b", "chat-user-4111111111111112"),
        tagged("c", "11010519491231002X"),
        tagged("4111111111111111", "plain"),
    ]);
    let found = found(&workspace.report(&["audit", "log.ndjson"]));
    let personal: Vec<&String> = found.iter().filter(|line| line.contains("number")).collect();
    assert_eq!(personal, ["error a card number: 1 of 4", "error an identity number: 1 of 4"]);
}
