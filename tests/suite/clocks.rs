//! Timestamps in every form that logs write, and what is no timestamp.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// A log with one record for each of these JSON values of `key`.
fn timestamps(key: &str, values: &[&str], arguments: &[&str]) -> Report {
    let log: String = values.iter().map(|value| format!("{{\"{key}\":{value}}}\n")).collect();
    let workspace = Workspace::with("log.ndjson", log);
    workspace.sql("SELECT timestamp FROM logs ORDER BY source_offset", &[arguments, &["log.ndjson"]].concat())
}

#[track_caller]
fn assert_all(report: &Report, expected: &str) {
    assert_eq!(report.column("timestamp"), vec![json!(expected); report.rows().len()]);
    assert_eq!((report.notes("unfit_value"), report.counted("undated")), (vec![], 0));
}

#[test]
fn rfc_3339_and_its_relatives_are_read() {
    let forms = [
        "\"2025-06-01T00:00:00Z\"",
        "\"2025-06-01 00:00:00Z\"",
        "\"2025-06-01T08:00:00+08:00\"",
        "\"2025-06-01T08:00:00+0800\"",
        "\"2025-05-31T19:30:00-04:30\"",
        "\"2025-06-01T00:00:00.0Z\"",
        "\"2025-06-01T00:00:00.000000000+00:00\"",
    ];
    let report = timestamps("timestamp", &forms, &[]);
    assert_all(&report, "2025-06-01T00:00:00+00:00");
    assert_eq!(report.notes("zone_assumed"), []);
}

#[test]
fn a_second_may_have_up_to_nine_digits() {
    let digits = "123456789";
    let values: Vec<String> = (1..=9).map(|count| format!("\"2025-06-01T00:00:00.{}Z\"", &digits[..count])).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let log: String = values.iter().map(|value| format!("{{\"timestamp\":{value}}}\n")).collect();
    let workspace = Workspace::with("log.ndjson", log);
    let query = "SELECT CAST(timestamp AS BIGINT) AS ns FROM logs ORDER BY source_offset";
    let expected: Vec<i64> = (1..=9)
        .map(|count| 1_748_736_000_000_000_000 + digits[..count].parse::<i64>().unwrap() * 10_i64.pow(9 - count as u32))
        .collect();
    assert_eq!(workspace.sql(query, &["log.ndjson"]).column("ns"), expected);
}

#[test]
fn a_time_without_zone_takes_that_of_its_source_and_is_counted() {
    let forms = ["\"2025-06-01T08:00:00\"", "\"2025-06-01 08:00:00.000\""];
    let utc = timestamps("ts", &forms, &[]);
    assert_eq!(utc.column("timestamp"), vec!["2025-06-01T08:00:00+00:00"; 2]);
    assert_eq!(utc.note("zone_assumed").1, Some(2));
    let shanghai = timestamps("ts", &forms, &["--source-tz", "Asia/Shanghai"]);
    assert_all(&shanghai, "2025-06-01T00:00:00+00:00");
    let (text, count) = shanghai.note("zone_assumed");
    assert!(text.contains("Asia/Shanghai") && count == Some(2), "{text}");
}

#[test]
fn epochs_are_read_in_four_units_as_number_or_text() {
    let forms = [
        "1748736000",
        "1748736000000",
        "1748736000000000",
        "1748736000000000000",
        "1748736000.0",
        "\"1748736000\"",
        "\"1748736000000\"",
        "\"1748736000000000\"",
        "\"1748736000000000000\"",
        "\"1748736000.000000\"",
    ];
    assert_all(&timestamps("timestamp", &forms, &[]), "2025-06-01T00:00:00+00:00");
    let fractions = ["1748736000.25", "1748736000250", "1748736000250.0", "1748736000250000", "\"1748736000.25\""];
    assert_all(&timestamps("created", &fractions, &[]), "2025-06-01T00:00:00.250+00:00");
}

#[test]
fn the_suffix_of_a_key_states_the_unit_of_an_epoch() {
    for (key, value) in [
        ("timestamp_s", "1748736000"),
        ("start_time_ms", "1748736000000"),
        ("ts_us", "1748736000000000"),
        ("created_at_ns", "\"1748736000000000000\""),
    ] {
        assert_all(&timestamps(key, &[value], &[]), "2025-06-01T00:00:00+00:00");
    }
}

#[test]
fn a_relative_or_monotonic_clock_is_no_timestamp_and_is_counted() {
    for (key, value) in [
        ("start_time_ms", "123456.789"),
        ("timestamp", "27482.5"),
        ("timestamp", "0"),
        ("timestamp", "0.0"),
        // a size that contradicts the suffix
        ("timestamp_ms", "1748736000"),
        ("timestamp_s", "1748736000000"),
        // years before 2015 and after the next
        ("timestamp", "1262304000"),
        ("timestamp", "4102444800"),
    ] {
        let report = timestamps(key, &[value, value], &[]);
        assert_eq!(report.column("timestamp"), [Value::Null, Value::Null], "{key}: {value}");
        assert_eq!(report.counted("undated"), 2, "{key}: {value}");
        let (text, count) = report.note("unfit_value");
        assert!(text.starts_with("values of timestamp") && text.contains("clock"), "{text}");
        assert_eq!(count, Some(2));
    }
}

#[test]
fn garbage_in_or_after_a_timestamp_is_no_timestamp() {
    let forms = [
        "\"2025-06-01T00:00:45ZZTOP\"",
        "\"2025-06-01T00:00:00Z \u{1f600}\"",
        "\"2025-06-01T00:00:00.1234567890Z\"",
        "\"2025-06-01T00:00:00+8\"",
        "\"2025-06-01T00:00:00+08:00:99\"",
        "\"2025-06-01T25:00:00Z\"",
        "\"2025-02-30T00:00:00Z\"",
        "\"2025-13-01T00:00:00Z\"",
        "\"x2025-06-01T00:00:00Z\"",
        "\"1748736000x\"",
        "\"yesterday\"",
    ];
    let report = timestamps("timestamp", &forms, &[]);
    assert_eq!(report.column("timestamp"), vec![Value::Null; forms.len()]);
    assert_eq!(report.counted("undated"), forms.len() as u64);
    let counted: u64 = report.notes("unfit_value").iter().filter_map(|(_, count)| *count).sum();
    assert_eq!(counted, forms.len() as u64);
}

#[test]
fn times_are_shown_in_the_zone_of_the_report() {
    let report = timestamps("ts", &["\"2025-06-01T00:00:00Z\""], &["--tz", "Asia/Shanghai"]);
    assert_eq!(report.row()["timestamp"], "2025-06-01T08:00:00+08:00");
    assert_eq!(report.0["source"]["first"], "2025-06-01T08:00:00+08:00");
    assert_eq!(report.0["parameters"]["tz"], "Asia/Shanghai");
}

#[test]
fn the_times_of_a_trace_count_from_the_start_that_the_user_names() {
    let trace = "{\"timestamp\":0,\"input_length\":10,\"output_length\":2,\"hash_ids\":[1]}\n\
                 {\"timestamp\":27482,\"input_length\":20,\"output_length\":3,\"hash_ids\":[1]}\n";
    let workspace = Workspace::with("mooncake.jsonl", trace);
    let query = "SELECT timestamp FROM logs ORDER BY input_tokens";
    let unknown = workspace.sql(query, &["mooncake.jsonl"]);
    assert_eq!(unknown.column("timestamp"), [json!(null), json!(null)]);
    let named = ["--clock-start", "2026-01-02T03:00:00Z"];
    let report = workspace.report(&[&["sql", query], &named[..], &["mooncake.jsonl"]].concat());
    let expected = ["2026-01-02T03:00:00+00:00", "2026-01-02T03:00:27.482+00:00"];
    assert_eq!(report.column("timestamp"), expected);
    let source = "[[source]]\nname = \"trace\"\npaths = [\"*.jsonl\"]\nclock_start = \"2026-01-02 03:00:00\"\nsource_tz = \"+08:00\"\n";
    workspace.write("infer-stats.toml", source);
    let local = ["2026-01-01T19:00:00+00:00", "2026-01-01T19:00:27.482+00:00"];
    assert_eq!(workspace.sql(query, &["mooncake.jsonl"]).column("timestamp"), local);
}
