//! `idle`: stretches of minutes with hardly any requests.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// A report about requests of a GPU in minutes after 10:00, as many as given.
fn report(arguments: &[&str], minutes: &[(u32, &str, u32)]) -> Report {
    let records: Vec<Value> = minutes
        .iter()
        .flat_map(|&(minute, gpu, count)| (0..count).map(move |number| (minute, gpu, number)))
        .map(|(minute, gpu, number)| {
            json!({"request_id": format!("{minute}-{gpu}-{number}"), "gpu_id": gpu, "status": "success",
                   "timestamp": format!("2025-06-01T{:02}:{:02}:{:02}Z", 10 + minute / 60, minute % 60, number)})
        })
        .collect();
    let workspace = Workspace::with_records(&records);
    workspace.report(&[arguments, &["log.ndjson"]].concat())
}

fn shown(report: &Report, columns: &[&str]) -> Vec<String> {
    let row = |row: &Value| {
        let cells = columns.iter().map(|column| row[column].to_string().replace('"', "").replace("2025-06-01T", ""));
        cells.collect::<Vec<_>>().join(" ")
    };
    report.rows().iter().map(row).collect()
}

const SPANS: [&str; 6] = ["idle_from", "idle_until", "minutes", "requests", "peak", "edge"];

#[test]
fn empty_minutes_and_those_below_the_mark_make_a_span() {
    let minutes = [(0, "x", 5), (2, "x", 1), (3, "x", 2), (6, "x", 3), (7, "x", 2), (8, "x", 4)];
    let report = report(&["idle", "--mark", "3", "--span", "1m"], &minutes);
    let expected = ["10:01:00+00:00 10:06:00+00:00 5 3 2 inside", "10:07:00+00:00 10:08:00+00:00 1 2 2 inside"];
    assert_eq!(shown(&report, &SPANS), expected);
    // of nine minutes
    assert_eq!(report.column("share"), [json!(5.0 / 9.0), json!(1.0 / 9.0)]);
    assert_eq!(report.0["totals"]["minutes"], 6);
}

#[test]
fn spans_shorter_than_asked_are_left_out() {
    let minutes = [(0, "x", 1), (15, "x", 1), (31, "x", 1)];
    // 14 minutes, and 15
    let report = report(&["idle"], &minutes);
    assert_eq!(shown(&report, &SPANS), ["10:16:00+00:00 10:31:00+00:00 15 0 0 inside"]);
}

#[test]
fn a_gpu_that_starts_late_or_falls_silent_is_idle_until_the_end_of_the_logs() {
    let minutes = [(0, "x", 1), (1, "x", 1), (2, "y", 1), (3, "z", 1), (4, "z", 1)];
    let report = report(&["idle", "--by", "gpu", "--span", "2m"], &minutes);
    let expected = [
        "x 10:02:00+00:00 10:05:00+00:00 3 0 0 last",
        "y 10:00:00+00:00 10:02:00+00:00 2 0 0 first",
        "y 10:03:00+00:00 10:05:00+00:00 2 0 0 last",
        "z 10:00:00+00:00 10:03:00+00:00 3 0 0 first",
    ];
    assert_eq!(shown(&report, &[&["gpu"][..], &SPANS].concat()), expected);
}

#[test]
fn a_group_that_never_reaches_the_mark_is_idle_all_the_time() {
    let report = report(&["idle", "--mark", "9", "--span", "1m"], &[(0, "x", 2), (3, "x", 1)]);
    assert_eq!(shown(&report, &SPANS), ["10:00:00+00:00 10:04:00+00:00 4 3 2 both"]);
}

#[test]
fn without_a_mark_it_is_a_tenth_of_the_busy_minute() {
    // 20 minutes: one has 59, the busy one 31, 18 have 3 or 4
    let mut minutes = vec![(0, "x", 59), (1, "x", 31)];
    minutes.extend((2..18).map(|minute| (minute, "x", 3)));
    minutes.extend([(18, "x", 4), (19, "x", 4)]);
    let report = report(&["idle"], &minutes);
    assert_eq!(shown(&report, &SPANS), ["10:02:00+00:00 10:18:00+00:00 16 48 3 inside"]);
    assert_eq!(report.row()["mark"], 4);
}

#[test]
fn the_longest_spans_are_the_top() {
    let minutes = [(0, "x", 1), (3, "x", 1), (9, "x", 1)];
    let report = report(&["idle", "--span", "1m", "--top", "1"], &minutes);
    assert_eq!(report.row()["minutes"], 5);
}
