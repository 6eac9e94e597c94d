//! `forecast`: what the days to come will bring, and how well that could have been said before.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

/// So many requests in one minute.
fn minute(time: &str, requests: usize) -> Vec<Value> {
    let record =
        |n: usize| json!({"request_id": format!("{time}-{n}"), "timestamp": time, "tenant": "a", "model": "m"});
    (0..requests).map(record).collect()
}

/// From Monday 2025-06-02 to Sunday 2025-06-29: Mondays with 4, 6, 5 and 10 requests at ten, no Saturdays, else 2. The days around
/// them are cut.
fn june() -> Vec<Value> {
    let peak = |day: u32| match day {
        2 => 4,
        9 => 6,
        16 => 5,
        23 => 10,
        _ if day.is_multiple_of(7) => 0,
        _ => 2,
    };
    let mut records = minute("2025-06-01T12:00:00Z", 40);
    records.extend((2..30).flat_map(|day| minute(&format!("2025-06-{day:02}T10:20:00Z"), peak(day))));
    records.extend(minute("2025-06-30T12:00:00Z", 50));
    records
}

#[test]
fn a_weekday_gets_the_median_of_its_days_and_one_never_seen_gets_none() {
    let report = report(&june(), &["forecast"]);
    let days = ["2025-06-30", "2025-07-01", "2025-07-02", "2025-07-03", "2025-07-04", "2025-07-05", "2025-07-06"];
    assert_eq!(report.column("day"), days);
    let two = || json!(2.0);
    assert_eq!(report.column("expected_peak"), [json!(5.5), two(), two(), two(), two(), json!(null), two()]);
    assert_eq!(report.column("days"), [4, 4, 4, 4, 4, 0, 4]);
    let (monday, saturday) = (&report.rows()[0], &report.rows()[5]);
    assert_eq!((&monday["status"], &saturday["status"]), (&json!("ok"), &json!("no such weekday")));
    assert_eq!((&saturday["high"], &saturday["scale_up_at"]), (&json!(null), &json!(null)));
    assert_eq!((&monday["peak_hour"], &monday["scale_up_at"]), (&json!(10), &json!("2025-06-30T09:30:00+00:00")));
    // 28 days, 4 of them without a record; the cut days are left out
    assert_eq!(
        [&monday["history_days"], &monday["gap_days"], &monday["counted"], &monday["left_out"]],
        [24, 4, 65, 90]
    );
}

#[test]
fn the_band_is_tested_on_days_that_it_has_not_seen() {
    let report = report(&june(), &["forecast"]);
    let monday = &report.rows()[0];
    // Mondays were 6/4, 5/5 and 10/5 of the median up to then, the others 1: the range of 18 days, as 19 are needed for 90 %
    assert_eq!([&monday["low"], &monday["high"]], [5.5, 11.0]);
    assert_eq!(monday["band_days"], 18);
    // the 15th day is the first with 14 before it; of the ten from then on the last Monday is above all before
    assert_eq!([&monday["backtest_days"], &monday["backtest_inside"]], [10, 9]);
    assert_eq!(monday["coverage"], json!(0.9));
}

#[test]
fn too_few_days_give_a_status_and_no_numbers() {
    let report = report(&june(), &["forecast", "--min-days", "25", "--days", "1"]);
    let row = report.row();
    assert_eq!((&row["status"], &row["history_days"]), (&json!("not enough history"), &json!(24)));
    for column in
        ["expected_peak", "low", "high", "peak_hour", "scale_up_at", "expected_total", "coverage", "p99_minute_30d"]
    {
        assert_eq!(row[column], json!(null), "{column}");
    }
}

#[test]
fn a_tenant_that_is_gone_is_stale_and_the_latest_days_are_missing_not_zero() {
    let mut records = june();
    for mut record in (2..18).flat_map(|day| minute(&format!("2025-06-{day:02}T11:00:00Z"), 1)) {
        record["tenant"] = json!("b");
        records.push(record);
    }
    let report = report(&records, &["forecast", "--by", "tenant", "--days", "1", "--now", "2025-07-20"]);
    assert_eq!(report.column("tenant"), ["a", "b"]);
    assert_eq!(report.column("status"), ["ok", "stale"]);
    // the day after the last full one, which may have been long ago
    assert_eq!(report.column("day"), ["2025-06-30", "2025-06-30"]);
    assert_eq!(report.column("history_days"), [24, 16]);
    assert_eq!(report.column("gap_days"), [4, 12]);
    assert_eq!(report.column("expected_peak"), [json!(5.5), json!(null)]);
}

#[test]
fn hours_are_those_of_the_wall_clock_across_its_change() {
    // ten o'clock in Berlin is 8:00 UTC until 2025-10-26
    let mut records = minute("2025-10-01T06:00:00Z", 1);
    records.extend((2..24).flat_map(|day| minute(&format!("2025-10-{day:02}T08:05:00Z"), 3)));
    records.extend(minute("2025-10-24T06:00:00Z", 1));
    let report = report(&records, &["forecast", "--tz", "Europe/Berlin", "--days", "3", "--lead", "1h"]);
    let expected = ["2025-10-24T09:00:00+02:00", "2025-10-25T09:00:00+02:00", "2025-10-26T09:00:00+01:00"];
    assert_eq!(report.column("scale_up_at"), expected);
}

#[test]
fn tokens_that_are_not_known_are_left_out() {
    let request = |time: &str, input: Value, output: Value| json!({"request_id": time, "timestamp": time, "input_tokens": input, "output_tokens": output});
    let records = [
        request("2025-06-01T12:00:00Z", json!(900), json!(900)),
        request("2025-06-02T10:00:00Z", json!(100), json!(20)),
        request("2025-06-02T10:00:30Z", json!(100), json!(null)),
        request("2025-06-02T11:00:00Z", json!(null), json!(null)),
        request("2025-06-03T10:00:00Z", json!(null), json!(null)),
        request("2025-06-04T12:00:00Z", json!(900), json!(900)),
    ];
    let report = report(&records, &["forecast", "--measure", "tokens", "--min-days", "1", "--days", "6"]);
    assert_eq!(report.column("day")[0], "2025-06-04");
    // of Tuesday's request no tokens are known: a day that is unknown
    let monday = &report.rows()[5];
    assert_eq!((&monday["weekday"], &monday["expected_peak"]), (&json!("Monday"), &json!(220.0)));
    assert_eq!([&monday["history_days"], &monday["counted"], &monday["left_out"]], [1, 2, 4]);
    assert_eq!((&monday["low"], &monday["coverage"]), (&json!(null), &json!(null)));
}

#[test]
fn percentiles_of_minutes_count_the_empty_ones() {
    let mut records = minute("2025-06-01T12:00:00Z", 1);
    records.extend((0..15).flat_map(|n| minute(&format!("2025-06-02T10:{n:02}:00Z"), 2)));
    records.extend(minute("2025-06-03T12:00:00Z", 1));
    let report = report(&records, &["forecast", "--weekdays", "--min-days", "1"]);
    assert_eq!(report.column("weekday"), ["all", "Monday"]);
    let all = &report.rows()[0];
    assert_eq!([&all["median_total"], &all["median_peak"]], [30.0, 2.0]);
    // 0.99 x 1439 lies 0.61 of the way from the last empty minute to the first of the 15
    assert!((all["p99_minute_30d"].as_f64().unwrap() - 1.22).abs() < 1e-9, "{all}");
    assert_eq!(all["p95_minute_30d"], json!(0.0));
}
