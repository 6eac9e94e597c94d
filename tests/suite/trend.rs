//! `trend` and `capacity`: traffic over time.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, real_data};

fn report(arguments: &[&str], arrivals: &[(&str, u64)]) -> Report {
    let record = |(number, (time, tokens)): (usize, &(&str, u64))| {
        json!({"request_id": number.to_string(), "timestamp": time, "input_tokens": tokens, "output_tokens": 0,
               "total_latency_ms": tokens, "status": "success"})
    };
    let records: Vec<Value> = arrivals.iter().enumerate().map(record).collect();
    let workspace = Workspace::with_records(&records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn shown(report: &Report, columns: &[&str]) -> Vec<String> {
    let text = |row: &Value| columns.iter().map(|column| row[*column].to_string()).collect::<Vec<_>>().join(" ");
    report.rows().iter().map(|row| text(row).replace('"', "")).collect()
}

#[test]
fn windows_without_requests_are_there_and_know_nothing() {
    let arrivals = [("2025-06-01T10:01:00Z", 10), ("2025-06-01T10:02:00Z", 30), ("2025-06-01T10:16:00Z", 50)];
    let report = report(&["trend", "--every", "5m"], &arrivals);
    let rows = shown(&report, &["window_start", "requests", "input_tokens_per_minute", "error_rate", "total_p50_ms"]);
    let expected = [
        "2025-06-01T10:00:00+00:00 2 8.0 0.0 20.0",
        "2025-06-01T10:05:00+00:00 0 null null null",
        "2025-06-01T10:10:00+00:00 0 null null null",
        "2025-06-01T10:15:00+00:00 1 10.0 0.0 50.0",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn windows_may_be_shifted_and_overlap() {
    let arrivals = [("2025-06-01T10:01:00Z", 1), ("2025-06-01T10:07:00Z", 1)];
    let shifted = report(&["trend", "--every", "5m", "--offset", "2m"], &arrivals);
    assert_eq!(
        shown(&shifted, &["window_start", "requests"]),
        ["2025-06-01T09:57:00+00:00 1", "2025-06-01T10:02:00+00:00 0", "2025-06-01T10:07:00+00:00 1"]
    );
    let sliding = report(&["trend", "--every", "5m", "--sliding", "2"], &arrivals);
    // 10 minutes each
    assert_eq!(
        shown(&sliding, &["window_start", "requests", "input_tokens_per_minute"]),
        ["2025-06-01T09:55:00+00:00 1 0.1", "2025-06-01T10:00:00+00:00 2 0.2", "2025-06-01T10:05:00+00:00 1 0.1"]
    );
}

#[test]
fn a_day_of_the_clock_change_is_as_long_as_it_is() {
    let arrivals = [("2026-10-24T22:00:00Z", 1), ("2026-10-25T22:59:59Z", 1), ("2026-10-25T23:00:00Z", 1)];
    let report = report(&["trend", "--every", "1d", "--tz", "Europe/Berlin"], &arrivals);
    let rows = shown(&report, &["window_start", "requests"]);
    assert_eq!(rows, ["2026-10-25T00:00:00+02:00 2", "2026-10-26T00:00:00+01:00 1"]);
    let rates = [2.0 / (25.0 * 3600.0), 1.0 / (24.0 * 3600.0)];
    for (row, rate) in report.rows().iter().zip(rates) {
        assert!((row["per_second"].as_f64().unwrap() - rate).abs() < 1e-15, "{row}");
    }
}

#[test]
fn a_window_that_does_not_divide_the_day_is_refused() {
    let workspace =
        Workspace::with("log.ndjson", r#"{"request_id":"a","timestamp":"2025-06-01T10:01:00Z","latency_ms":1}"#);
    let refusal = workspace.run(&["trend", "--every", "7m", "log.ndjson"]).refusal(2);
    assert!(refusal.contains("divide a day"), "{refusal}");
    let refusal = workspace.run(&["trend", "--every", "often", "log.ndjson"]).refusal(2);
    assert!(refusal.contains("--every often"), "{refusal}");
}

#[test]
fn a_peak_across_two_minutes_of_the_clock_is_found() {
    let arrivals = [
        ("2025-06-01T10:00:50Z", 5),
        ("2025-06-01T10:00:55Z", 5),
        ("2025-06-01T10:01:10Z", 5),
        ("2025-06-01T10:01:50Z", 20_000),
        ("2025-06-01T10:04:00Z", 1),
    ];
    let report = report(&["capacity", "--percentiles", "50"], &arrivals);
    let rows = shown(&report, &["measure", "span", "p50", "peak", "peak_at"]);
    let expected = [
        "requests calendar minute 1.0 2 2025-06-01T10:00:00+00:00",
        // the first is 60 s before the last, and no longer within them
        "requests any 60 s null 3 2025-06-01T10:01:10+00:00",
        "requests any 10 s null 2 2025-06-01T10:00:55+00:00",
        "tokens calendar minute 1.0 20005 2025-06-01T10:01:00+00:00",
        "tokens any 60 s null 20010 2025-06-01T10:01:50+00:00",
        "tokens any 10 s null 20000 2025-06-01T10:01:50+00:00",
        // idle for most of the 190 s
        "at once instant 0.0 1 2025-06-01T10:00:50+00:00",
    ];
    assert_eq!(rows, expected);
    assert_eq!([&report.rows()[0]["counted"], &report.rows()[0]["left_out"]], [5, 0]);
}

#[test]
fn requests_at_once_are_weighted_by_how_long_they_were() {
    // 10 s each, from :00, :04 and :12: two at once from :04 to :10 and from :12 to :14
    let arrivals =
        [("2025-06-01T10:00:00Z", 10_000), ("2025-06-01T10:00:04Z", 10_000), ("2025-06-01T10:00:12Z", 10_000)];
    let report = report(&["capacity", "--percentiles", "50,60,70"], &arrivals);
    let row = &report.rows()[6];
    assert_eq!(["p50", "p60", "p70"].map(|column| row[column].clone()), [json!(1.0), json!(1.0), json!(2.0)]);
    assert_eq!((&row["peak"], &row["peak_at"]), (&json!(2), &json!("2025-06-01T10:00:04+00:00")));
}

#[test]
fn the_peaks_of_the_azure_trace() {
    let Some(path) = real_data("azure/AzureLLMInferenceTrace_code.csv") else { return };
    let report = Workspace::new().report(&["capacity", path.to_str().unwrap()]);
    let rows = shown(&report, &["measure", "span", "peak"]);
    assert_eq!(rows[..2], ["requests calendar minute 585", "requests any 60 s 723"]);
    assert_eq!(rows[3..5], ["tokens calendar minute 1257868", "tokens any 60 s 1409698"]);
}

#[test]
fn the_short_window_at_the_end_of_a_changed_day_is_shown_once() {
    // 23 hours: the last window of two hours has one
    let arrivals = [("2025-03-30T18:30:00Z", 1), ("2025-03-30T22:30:00Z", 1)];
    let report = report(&["trend", "--every", "2h", "--tz", "Europe/Berlin"], &arrivals);
    let expected = [
        "2025-03-30T19:00:00+02:00 1",
        "2025-03-30T21:00:00+02:00 0",
        "2025-03-30T23:00:00+02:00 0",
        "2025-03-31T00:00:00+02:00 1",
    ];
    assert_eq!(shown(&report, &["window_start", "requests"]), expected);
}

#[test]
fn tokens_that_nobody_logged_have_no_peak() {
    let workspace =
        Workspace::with("log.ndjson", r#"{"request_id":"a","timestamp":"2025-06-01T10:01:00Z","latency_ms":1000}"#);
    let report = workspace.report(&["capacity", "--percentiles", "50", "log.ndjson"]);
    assert_eq!(shown(&report, &["measure", "p50", "peak", "left_out"])[3], "tokens null null 1");
}

#[test]
fn tokens_can_be_spread_from_arrival_to_end() {
    // 600 tokens from half past to half a minute later: half in each of two minutes
    let workspace = Workspace::with_records(&[
        json!({"request_id": "a", "timestamp": "2025-06-01T10:00:30Z", "input_tokens": 500, "output_tokens": 100, "total_latency_ms": 60_000}),
        json!({"request_id": "b", "timestamp": "2025-06-01T10:05:00Z", "input_tokens": 7, "output_tokens": null, "total_latency_ms": null}),
    ]);
    let peak = |tokens_at: &str| {
        let report = workspace.report(&["capacity", "--tokens-at", tokens_at, "log.ndjson"]);
        let row = |measure: &str| {
            let is_it = |row: &&Value| row["measure"] == measure && row["span"] == "calendar minute";
            report.rows().iter().find(is_it).unwrap().clone()
        };
        assert_eq!((&row("requests")["counted"], &row("tokens")["counted"]), (&json!(2), &json!(2)));
        (row("tokens")["peak"].clone(), row("tokens")["peak_at"].clone())
    };
    assert_eq!(peak("start"), (json!(600), json!("2025-06-01T10:00:00+00:00")));
    assert_eq!(peak("spread"), (json!(300), json!("2025-06-01T10:00:00+00:00")));
    assert_eq!(peak("end"), (json!(600), json!("2025-06-01T10:01:00+00:00")));
}
