//! Hours, days, weeks and months of a zone, also where a day has 23 or 25 hours; time ranges in that zone.

use serde_json::{Value, json};

use crate::command::Workspace;

/// A request an hour, from `start` (RFC 3339, UTC, whole hour) on.
fn hourly(date: &str, hours: u32) -> Workspace {
    let log: String = (0..hours)
        .map(|hour| {
            let day: u32 = date[8..].parse().unwrap();
            format!(
                "{{\"timestamp\":\"{}{:02}T{:02}:00:00Z\",\"latency_ms\":1}}\n",
                &date[..8],
                day + hour / 24,
                hour % 24
            )
        })
        .collect();
    Workspace::with("log.ndjson", log)
}

fn grouped(workspace: &Workspace, by: &str, arguments: &[&str]) -> Vec<(Value, Value)> {
    let report = workspace.report(&[&["workload", "--by", by, "log.ndjson"], arguments].concat());
    let name = by.replace('-', "_");
    report.column(&name).into_iter().zip(report.column("requests")).collect()
}

fn pairs(pairs: &[(&str, u64)]) -> Vec<(Value, Value)> {
    pairs.iter().map(|(label, count)| (json!(label), json!(count))).collect()
}

#[test]
fn the_day_that_summer_time_begins_has_23_hours() {
    let workspace = hourly("2025-03-29", 72);
    let berlin = ["--tz", "Europe/Berlin"];
    assert_eq!(
        grouped(&workspace, "day", &berlin),
        pairs(&[
            ("2025-03-29T00:00:00+01:00", 23),
            ("2025-03-30T00:00:00+01:00", 23),
            ("2025-03-31T00:00:00+02:00", 24),
            ("2025-04-01T00:00:00+02:00", 2),
        ])
    );
    let by_hour = grouped(
        &workspace,
        "hour-of-day",
        &[&berlin[..], &["--since", "2025-03-30", "--until", "2025-03-31"]].concat(),
    );
    assert_eq!(by_hour.len(), 23);
    assert!(!by_hour.contains(&(json!(2), json!(1))), "the second hour does not exist: {by_hour:?}");
}

#[test]
fn the_day_that_summer_time_ends_has_25_hours() {
    let workspace = hourly("2025-10-25", 72);
    let berlin = ["--tz", "Europe/Berlin"];
    assert_eq!(
        grouped(&workspace, "day", &berlin),
        pairs(&[
            ("2025-10-25T00:00:00+02:00", 22),
            ("2025-10-26T00:00:00+02:00", 25),
            ("2025-10-27T00:00:00+01:00", 24),
            ("2025-10-28T00:00:00+01:00", 1),
        ])
    );
    // both are two o'clock, told apart by their offsets
    let hours = grouped(&workspace, "hour", &berlin);
    for hour in ["2025-10-26T02:00:00+02:00", "2025-10-26T02:00:00+01:00"] {
        assert!(hours.contains(&(json!(hour), json!(1))), "{hour}: {hours:?}");
    }
    let by_hour = grouped(
        &workspace,
        "hour-of-day",
        &[&berlin[..], &["--since", "2025-10-26", "--until", "2025-10-27"]].concat(),
    );
    assert_eq!((by_hour.len(), &by_hour[2]), (24, &(json!(2), json!(2))));
}

#[test]
fn a_zone_may_be_off_by_half_an_hour() {
    let workspace = hourly("2025-06-01", 24);
    let kolkata = ["--tz", "Asia/Kolkata"];
    assert_eq!(
        grouped(&workspace, "day", &kolkata),
        pairs(&[("2025-06-01T00:00:00+05:30", 19), ("2025-06-02T00:00:00+05:30", 5)])
    );
    assert_eq!(grouped(&workspace, "hour", &kolkata)[0].0, "2025-06-01T05:00:00+05:30");
    assert_eq!(grouped(&workspace, "minute", &kolkata)[0].0, "2025-06-01T05:30:00+05:30");
    assert_eq!(grouped(&workspace, "minute", &["--tz", "-03:30"])[0].0, "2025-05-31T20:30:00-03:30");
}

#[test]
fn weeks_begin_on_monday_or_on_sunday() {
    // 2025-06-01 is a Sunday
    let workspace = hourly("2025-06-01", 72);
    assert_eq!(
        grouped(&workspace, "week", &[]),
        pairs(&[("2025-05-26T00:00:00+00:00", 24), ("2025-06-02T00:00:00+00:00", 48)])
    );
    assert_eq!(grouped(&workspace, "week", &["--week-start", "sunday"]), pairs(&[("2025-06-01T00:00:00+00:00", 72)]));
    assert_eq!(grouped(&workspace, "weekday", &[]), pairs(&[("Monday", 24), ("Tuesday", 24), ("Sunday", 24)]));
    assert_eq!(
        grouped(&workspace, "weekday", &["--week-start", "sunday"]),
        pairs(&[("Sunday", 24), ("Monday", 24), ("Tuesday", 24)])
    );
}

#[test]
fn months_are_cut_in_the_zone_of_the_report() {
    let workspace = Workspace::with(
        "log.ndjson",
        "{\"ts\":\"2025-05-31T15:59:59Z\"}\n{\"ts\":\"2025-05-31T16:00:00Z\"}\n{\"ts\":\"2025-06-30T16:00:00Z\"}\n",
    );
    let shanghai = ["--tz", "Asia/Shanghai"];
    assert_eq!(
        grouped(&workspace, "month", &shanghai),
        pairs(&[("2025-05-01T00:00:00+08:00", 1), ("2025-06-01T00:00:00+08:00", 1), ("2025-07-01T00:00:00+08:00", 1)])
    );
    let june = workspace.report(&["workload", "--month", "2025-06", "--tz", "Asia/Shanghai", "log.ndjson"]);
    assert_eq!((june.records().used, june.counted("filtered")), (1, 2));
    assert_eq!(
        (&june.0["parameters"]["since"], &june.0["parameters"]["until"]),
        (&json!("2025-05-31T16:00:00Z"), &json!("2025-06-30T16:00:00Z"))
    );
}

#[test]
fn a_time_range_includes_its_start_and_not_its_end() {
    let workspace = hourly("2025-06-01", 24);
    let used = |since: &str, until: &str| {
        workspace
            .report(&["workload", "--since", since, "--until", until, "--now", "2025-06-02T00:00:00Z", "log.ndjson"])
            .records()
            .used
    };
    assert_eq!(used("2025-06-01T03:00:00Z", "2025-06-01T05:00:00Z"), 2);
    assert_eq!(used("2025-06-01T05:00:00+02:00", "2025-06-01T03:00:00.000000001Z"), 1);
    assert_eq!(used("6h", "now"), 6);
}

#[test]
fn a_record_without_a_timestamp_is_outside_every_range_and_counted() {
    let workspace = Workspace::with(
        "log.ndjson",
        "{\"request_id\":\"a\"}\n{\"request_id\":\"b\",\"ts\":\"2025-06-01T00:00:00Z\"}\n",
    );
    let report = workspace.report(&["workload", "--since", "2025-01-01", "log.ndjson"]);
    assert_eq!((report.records().used, report.counted("filtered"), report.counted("undated")), (1, 1, 1));
    assert_eq!(report.note("undated").1, Some(1));
    let whole = workspace.report(&["workload", "--by", "day", "log.ndjson"]);
    assert_eq!(whole.column("day"), [json!("2025-06-01T00:00:00+00:00"), Value::Null]);
}

#[test]
fn a_range_that_holds_no_record_ends_with_5_and_a_whole_report() {
    let run =
        hourly("2025-06-01", 2).run(&["latency", "--since", "2030-01-01", "--format", "json", "log.ndjson"]).exits(5);
    assert_eq!((run.report_anyway().records().records, run.report_anyway().records().used), (2, 0));
}
