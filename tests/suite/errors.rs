//! `errors`: what failed, and what failed behind a success.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], settings: &str, arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.write("infer-stats.toml", settings);
    workspace.report(&[&["errors"], arguments, &["log.ndjson"]].concat())
}

fn request(minute: u32, fields: Value) -> Value {
    let mut record = json!({"request_id": minute.to_string(), "timestamp": format!("2025-06-01T10:{minute:02}:00Z"),
                            "input_tokens": 100, "output_tokens": 10});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

#[test]
fn codes_have_names_and_stages_and_shares_of_requests_and_of_errors() {
    let records = [
        request(0, json!({"status": "success", "finish_reason": "stop"})),
        request(1, json!({"error_code": 3, "tenant": "a", "user": "x", "output_tokens": 0})),
        request(2, json!({"error_code": 3, "tenant": "b", "user": "x", "output_tokens": 0})),
        request(3, json!({"error_code": 7, "error_stage": "queue", "output_tokens": null})),
        request(4, json!({"http_status": 429, "output_tokens": null, "input_tokens": null})),
    ];
    let settings = "[errors]\n\"3\" = { name = \"oom\", stage = \"prefill\" }\n";
    let report = report(&records, settings, &[]);
    let shown = |row: &Value| ["code", "name", "stage", "stage_from", "errors"].map(|column| row[column].clone());
    let rows: Vec<_> = report.rows().iter().map(shown).collect();
    assert_eq!(rows[0], [json!("3"), json!("oom"), json!("prefill"), json!("settings"), json!(2)]);
    assert_eq!(rows[1], [json!("429"), json!(null), json!("admission"), json!("derived"), json!(1)]);
    assert_eq!(rows[2], [json!("7"), json!(null), json!("queue"), json!("log"), json!(1)]);
    let oom = &report.rows()[0];
    assert_eq!((&oom["share_of_requests"], &oom["share_of_errors"]), (&json!(0.4), &json!(0.5)));
    assert_eq!([&oom["tenants"], &oom["users"], &oom["input_tokens"]], [2, 1, 200]);
    assert_eq!(oom["first_seen"], "2025-06-01T10:01:00+00:00");
    assert_eq!(oom["last_seen"], "2025-06-01T10:02:00+00:00");
    // nobody knows whom it hit
    assert_eq!(report.rows()[1]["tenants"], json!(null));
    assert_eq!(report.rows()[1]["input_tokens"], json!(null));
}

#[test]
fn what_fails_behind_a_success_is_told_by_the_reason_and_the_raw_word_stays() {
    let records = [
        request(0, json!({"http_status": 200, "finish_reason": "length"})),
        request(1, json!({"http_status": 200, "finish_reason": "MAX_TOKENS"})),
        request(2, json!({"http_status": 200, "finish_reason": "content_filter"})),
        request(3, json!({"http_status": 200, "finish_reason": "stop", "output_tokens": 0})),
        request(4, json!({"http_status": 200, "finish_reason": "tool_calls", "output_tokens": 0})),
        request(5, json!({"http_status": 200, "finish_reason": "stop"})),
        request(6, json!({"http_status": 200, "finish_reason": "abort"})),
    ];
    let report = report(&records, "", &[]);
    let shown = |row: &Value| format!("{} {} {}", row["kind"], row["code"], row["finish_reason"]).replace('"', "");
    let rows: Vec<String> = report.rows().iter().map(shown).collect();
    let expected = [
        "empty stop stop",
        "failed abort abort",
        "filtered content_filter content_filter",
        "truncated MAX_TOKENS length",
        "truncated length length",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn an_error_behind_the_first_token_is_of_the_stream() {
    let records = [
        request(0, json!({"status": "error", "ttft_ms": 100, "output_tokens": 7})),
        request(1, json!({"status": "error", "output_tokens": 0, "prefill_time_ms": 5})),
        request(2, json!({"status": "error", "output_tokens": 0})),
    ];
    let report = report(&records, "", &[]);
    let stages: Vec<_> =
        report.rows().iter().map(|row| (row["stage"].clone(), row["after_first_token"].clone())).collect();
    assert_eq!(stages, [(json!("decode"), json!(1)), (json!("prefill"), json!(0)), (json!(null), json!(0))]);
}

#[test]
fn shares_are_of_the_group_and_errors_are_seen_when_they_failed_if_asked() {
    let records = [
        request(0, json!({"status": "error", "model": "a", "complete_at": "2025-06-01T10:30:00Z"})),
        request(1, json!({"status": "success", "model": "a", "finish_reason": "stop"})),
        request(2, json!({"status": "success", "model": "b", "finish_reason": "stop"})),
    ];
    let by_model = report(&records, "", &["--by", "model", "--time-axis", "failure"]);
    let row = by_model.row();
    assert_eq!((&row["model"], &row["share_of_requests"]), (&json!("a"), &json!(0.5)));
    assert_eq!(row["first_seen"], "2025-06-01T10:30:00+00:00");
}

/// The engine's log of a week, with what `change` makes of its records.
pub fn week(change: impl Fn(&mut Value, usize)) -> Workspace {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "8000", "-o", "week"]).exits(0);
    let log = workspace.read("week/engine.ndjson");
    let changed = log.lines().enumerate().map(|(number, line)| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        change(&mut record, number);
        record.to_string()
    });
    workspace.write("engine.ndjson", changed.collect::<Vec<_>>().join("\n"));
    workspace
}

fn found(workspace: &Workspace, severity: &str) -> Vec<String> {
    let report = workspace.report(&["errors", "--find", "engine.ndjson"]);
    let rows = report.rows().iter().filter(|row| row["severity"] == severity);
    rows.map(|row| format!("{} {}: {}", row["code"], row["factor"], row["value"]).replace('"', "")).collect()
}

#[test]
fn in_clean_logs_only_long_inputs_run_out_of_memory() {
    let workspace = week(|_, _| {});
    assert_eq!(found(&workspace, "warning"), Vec::<String>::new());
    assert!(found(&workspace, "info").contains(&"1 input bucket: 32K-64K".to_owned()));
}

#[test]
fn a_gpu_that_fails_for_an_hour_and_a_line_that_is_cut_from_a_day_on_are_found() {
    let is_at = |record: &Value, from: &str, to: &str| (from..to).contains(&record["timestamp"].as_str().unwrap());
    let workspace = week(|record, number| {
        if record["gpu_id"] == "4" && is_at(record, "2025-06-04T13", "2025-06-04T15") && number % 4 > 0 {
            record["error_code"] = json!(9);
        }
        if record["business_line"] == "finance_ai" && is_at(record, "2025-06-06", "2025-06-08") && number % 4 == 0 {
            record["finish_reason"] = json!("length");
        }
    });
    let warnings = found(&workspace, "warning");
    assert!(warnings.contains(&"9 gpu: 4".to_owned()), "{warnings:?}");
    assert!(warnings.iter().any(|warning| warning.starts_with("9 gpu, hour: 4, 2025-06-04T1")), "{warnings:?}");
    assert!(warnings.contains(&"length business line, day: finance_ai, 2025-06-06".to_owned()), "{warnings:?}");
    let is_planted = |warning: &String| warning.starts_with("9 ") || warning.contains("finance_ai");
    assert!(warnings.iter().all(is_planted), "{warnings:?}");
}

#[test]
fn texts_that_break_answers_are_found_by_what_is_in_them() {
    // one in forty tags of a line has an escape sequence in it, and most of these come back empty
    let workspace = week(|record, number| {
        if record["business_line"] == "support" && number % 40 == 0 {
            record["user_tag"] = json!("widget\u{1b}[31m-user");
            if number % 120 > 0 {
                record["error_code"] = json!(0);
                record["finish_reason"] = json!("stop");
                record["output_tokens"] = json!(0);
            }
        }
    });
    let warnings = found(&workspace, "warning");
    assert!(warnings.contains(&"stop text: control characters".to_owned()), "{warnings:?}");
}
