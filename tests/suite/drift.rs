//! `drift`: what one day lacks that others have.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// Five days of 100 requests, 70 of them of line a, every fourth failed; `change` may change or drop each.
fn drift(change: impl Fn(u32, u32, Value) -> Option<Value>) -> Report {
    let record = |day: u32, number: u32| {
        json!({"request_id": format!("r{day}-{number}"), "timestamp": format!("2025-06-{day:02}T10:00:00Z"), "model": "m",
               "business_line": if number < 70 { "a" } else { "b" }, "prompt_hash": "h", "input_tokens": 100, "output_tokens": 10,
               "total_latency_ms": 100, "ttft_ms": 20, "status": if number.is_multiple_of(4) { "error" } else { "success" }})
    };
    let all = (1..=5).flat_map(|day| (0..100).map(move |number| (day, number)));
    let records: Vec<Value> = all.filter_map(|(day, number)| change(day, number, record(day, number))).collect();
    Workspace::with_records(&records).report(&["drift", "log.ndjson"])
}

fn set(mut record: Value, name: &str, value: Value) -> Option<Value> {
    record[name] = value;
    Some(record)
}

fn found(report: &Report) -> Vec<String> {
    let shown = |row: &Value| {
        format!("{}: {} of {}, {}", row["check"], row["found"], row["of"], row["example"]).replace('"', "")
    };
    report.rows().iter().map(shown).collect()
}

#[test]
fn days_that_are_alike_are_silent() {
    assert_eq!(found(&drift(|_, _, record| Some(record))), [""; 0]);
}

#[test]
fn a_column_that_is_missing_for_a_day_is_named() {
    let report = drift(|day, _, record| if day == 3 { set(record, "prompt_hash", json!(null)) } else { Some(record) });
    // of what did not fail
    let expected = ["a column that comes and goes: 75 of 375, prompt_hash: not on 2025-06-03, but on 2025-06-01"];
    assert_eq!(found(&report), expected);
}

#[test]
fn a_business_line_that_is_gone_for_a_day_is_named_with_what_was_to_be_expected() {
    let report = drift(|day, number, record| (day != 4 || number < 70).then_some(record));
    // 30 of 100 on the other days, of 70 here
    let expected = ["a model of a business line that is gone for a day: 21 of 120, m, b: none on 2025-06-04"];
    assert_eq!(found(&report), expected);
    // one that starts later was not gone before
    assert_eq!(found(&drift(|day, number, record| (day > 2 || number < 70).then_some(record))), [""; 0]);
}

#[test]
fn a_day_without_any_error_is_too_good() {
    let report = drift(|day, _, record| if day == 2 { set(record, "status", json!("success")) } else { Some(record) });
    assert_eq!(found(&report), ["no errors at all on a day: 100 of 500, none on 2025-06-02, usually 25.0 %"]);
}

#[test]
fn generated_logs_do_not_drift() {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "3000", "-o", "."]).exits(0);
    let report = workspace.report(&["drift", "gateway.ndjson", "engine.ndjson", "app.ndjson"]);
    assert_eq!(found(&report), [""; 0]);
}

#[test]
fn a_business_line_whose_inputs_grow_is_named_with_the_day_and_by_how_much() {
    // lengths from 50 to 150, each day another few
    let length = |day: u32, number: u32| 50 + (number * 37 + day * 11) % 101;
    let report = drift(|day, number, record| {
        let times = if day >= 4 && number < 70 { 2 } else { 1 };
        set(record, "input_tokens", json!(times * length(day, number)))
    });
    // of the 350 of line a 140 came on the last two days
    let [row] = report.rows() else { panic!("{:?}", found(&report)) };
    assert_eq!(
        (&row["check"], &row["found"], &row["of"]),
        (&json!("longer inputs of a business line"), &json!(140), &json!(350))
    );
    let example = row["example"].as_str().unwrap();
    assert!(example.starts_with("a: x ") && example.ends_with(" since 2025-06-04"), "{example}");
    let times: f64 = example.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((1.9..2.1).contains(&times), "{example}");
    assert_eq!(found(&drift(|day, number, record| set(record, "input_tokens", json!(length(day, number))))), [""; 0]);
}
