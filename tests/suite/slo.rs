//! `slo`: whether requests are good enough, and how fast the error budget goes.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

fn report(records: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.report(&[&["slo"][..], arguments, &["log.ndjson"]].concat())
}

fn request(id: usize, time: &str, fields: Value) -> Value {
    let mut record = json!({"request_id": id.to_string(), "timestamp": format!("2025-06-{time}Z"), "model": "m", "status": "success"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

fn outcome(is_bad: bool) -> Value {
    json!({"status": if is_bad { "error" } else { "success" }})
}

/// Ten requests every five minutes from 10:00 to 12:00, all bad where the number of the five minutes is listed.
fn two_hours(bad: &[usize]) -> Vec<Value> {
    let at = |n: usize| format!("01T{}:{:02}:{:02}", 10 + n / 120, n / 10 * 5 % 60, n % 10 * 30 % 60);
    (0..240).map(|n| request(n, &at(n), outcome(bad.contains(&(n / 10))))).collect()
}

#[test]
fn an_hour_at_14_4_times_the_budget_spends_two_percent_of_thirty_days() {
    // one each 0.36 s, the last ends at 11:00:00
    let at = |n: usize| format!("01T10:{:02}:{:02}.{:02}0", n * 36 / 6000, n * 36 / 100 % 60, n * 36 % 100);
    let each = |n: usize| {
        request(n, &at(n), json!({"total_latency_ms": 360, "status": if n < 144 { "error" } else { "success" }}))
    };
    let records: Vec<Value> = (0..10_000).map(each).collect();
    let report = report(&records, &["--objective", "99.9"]);
    let row = report.row();
    assert_eq!(
        [&row["requests"], &row["failed"], &row["good"], &row["bad"], &row["unknown"]],
        [10_000, 144, 9856, 144, 0]
    );
    assert_eq!([&row["attainment"], &row["error_rate"]], [&json!(0.9856), &json!(0.0144)]);
    assert_eq!([&row["burn_rate"], &row["budget_spent"]], [&json!(14.4), &json!(0.02)]);
    assert_eq!(
        [&row["worst_burn"], &row["last_burn"], &row["exhaustion_h"]],
        [&json!(14.4), &json!(14.4), &json!(50.0)]
    );
    assert_eq!([&row["observed_s"], &row["goodput_per_s"]], [&json!(3600.0), &json!(9856.0 / 3600.0)]);
    assert_eq!(row["severity"], "error");
}

#[test]
fn a_good_request_is_within_each_limit_and_an_unknown_value_decides_nothing() {
    let time = "01T10:00:00";
    let records = [
        // as much as each limit
        request(1, time, json!({"ttft_ms": 100, "tpot_ms": 10, "total_latency_ms": 1000, "output_tokens": 91})),
        request(2, time, json!({"ttft_ms": 100.5, "tpot_ms": 10, "total_latency_ms": 1000, "output_tokens": 91})),
        request(3, time, json!({"status": "error"})),
        // no first token is known
        request(4, time, json!({"tpot_ms": 10, "total_latency_ms": 1000, "output_tokens": 91})),
        // nor here, but it took too long
        request(5, time, json!({"tpot_ms": 10, "total_latency_ms": 1001, "output_tokens": 91})),
        // there is no time between the tokens of one
        request(6, time, json!({"ttft_ms": 50, "total_latency_ms": 50, "output_tokens": 1})),
        // there may be
        request(7, time, json!({"ttft_ms": 50, "total_latency_ms": 60})),
    ];
    let report = report(&records, &["--ttft", "100", "--tpot", "10", "--total", "1000"]);
    let row = report.row();
    assert_eq!([&row["requests"], &row["failed"], &row["good"], &row["bad"], &row["unknown"]], [7, 1, 2, 3, 2]);
    assert_eq!(row["attainment"], json!(0.4));
    assert_eq!([&row["token_goodput"], &row["token_counted"]], [92, 2]);
}

#[test]
fn as_many_bad_requests_as_the_objective_allows_do_not_miss_it() {
    let severity = |bad: usize, more: &[&str]| {
        let records: Vec<Value> = (0..1000).map(|n| request(n, "01T10:00:00", outcome(n < bad))).collect();
        report(&records, &[&["--objective", "99.7"][..], more].concat()).row()["severity"].clone()
    };
    assert_eq!(severity(3, &[]), "info");
    assert_eq!(severity(4, &[]), "error");
    assert_eq!(severity(4, &["--min-count", "1001"]), "info");
}

#[test]
fn the_last_long_and_the_last_short_window_warn_together_and_can_fail_the_run() {
    let records = two_hours(&[22, 23]);
    let arguments = ["--objective", "90", "--min-count", "10"];
    let burning = report(&records, &arguments);
    let row = burning.row();
    assert_eq!([&row["attainment"], &row["burn_rate"]], [&json!(220.0 / 240.0), &json!(2000.0 / 2400.0)]);
    assert_eq!([&row["last_burn"], &row["last_judged"]], [&json!(2000.0 / 1200.0), &json!(120)]);
    assert_eq!([&row["last_short_burn"], &row["last_short_judged"]], [&json!(10.0), &json!(10)]);
    assert_eq!(
        [&row["worst_window"], &row["worst_burn"]],
        [&json!("2025-06-01T11:00:00+00:00"), &json!(2000.0 / 1200.0)]
    );
    assert_eq!((&row["severity"], &row["exhaustion_h"]), (&json!("warning"), &json!(432.0)));
    let calm = report(&records, &[&arguments[..], &["--max-burn", "2"]].concat());
    assert_eq!(calm.row()["severity"], "info");
    // the long window still burns, the short one does not any more
    let over = report(&two_hours(&[21, 22]), &arguments);
    assert_eq!([&over.row()["last_burn"], &over.row()["last_short_burn"]], [&json!(2000.0 / 1200.0), &json!(0.0)]);
    assert_eq!(over.row()["severity"], "info");
    let workspace = Workspace::with_records(&records);
    for (level, code) in [("warning", 3), ("error", 0)] {
        workspace.run(&[&["slo"][..], &arguments, &["--fail-on", level, "log.ndjson"]].concat()).exits(code);
    }
}

#[test]
fn the_worst_window_is_a_whole_one_wherever_the_clock_stands() {
    let worst = |bad: &[usize], more: &[&str]| {
        let least: &[&str] = if more.contains(&"--min-count") { &[] } else { &["--min-count", "10"] };
        let report = report(&two_hours(bad), &[&["--objective", "90"][..], least, more].concat());
        let row = report.row();
        [row["worst_window"].clone(), row["worst_burn"].clone(), row["worst_judged"].clone()]
    };
    let at = |time: &str| json!(format!("2025-06-01T{time}:00+00:00"));
    // across the hour
    assert_eq!(worst(&[11, 12], &[]), [at("10:05"), json!(2000.0 / 1200.0), json!(120)]);
    // the five minutes that the data begins with are no hour
    assert_eq!(worst(&[0], &[]), [at("10:00"), json!(1000.0 / 1200.0), json!(120)]);
    assert_eq!(worst(&[0], &["--window", "5m"]), [at("10:00"), json!(10.0), json!(10)]);
    // all data is shorter
    assert_eq!(worst(&[0], &["--window", "6h"]), [at("10:00"), json!(1000.0 / 2400.0), json!(240)]);
    assert_eq!(worst(&[0], &["--min-count", "121"]), [json!(null), json!(null), json!(null)]);
}

#[test]
fn a_month_has_a_budget_of_its_own() {
    // three days, two of a hundred bad
    let each = |n: usize| request(n, if n == 0 { "10T00:00:00" } else { "13T00:00:00" }, outcome(n < 2));
    let records: Vec<Value> = (0..100).map(each).collect();
    let spent = |more: &[&str]| {
        let report = report(&records, more);
        [report.row()["burn_rate"].clone(), report.row()["budget_spent"].clone()]
    };
    assert_eq!(spent(&[]), [json!(2.0), json!(0.2)]);
    assert_eq!(spent(&["--month", "2025-06"]), [json!(2.0), json!(2.0)]);
    assert_eq!(spent(&["--since", "2025-06-01", "--until", "2025-06-30"]), [json!(2.0), json!(0.2)]);
}

#[test]
fn rates_are_of_what_is_known_and_of_all_the_time_that_was_seen() {
    let of = |model: &str, fields: Value| {
        let mut fields = fields;
        fields["model"] = json!(model);
        fields
    };
    let records = [
        request(1, "01T10:00:00", of("a", json!({"finish_reason": "max_tokens"}))),
        request(2, "01T10:00:10", of("a", json!({"finish_reason": "stop", "input_truncated": true}))),
        request(3, "01T10:00:20", of("a", json!({"finish_reason": "stop"}))),
        request(4, "01T10:00:30", of("a", json!({"input_truncated": false}))),
        request(5, "01T10:00:40", of("a", json!({"status": null}))),
        request(6, "01T10:01:00", of("b", json!({"total_latency_ms": 40_000}))),
        json!({"request_id": "7", "model": "b", "status": "error"}),
    ];
    let report = report(&records, &["--by", "model"]);
    let [a, b] = report.rows() else { panic!("{:?}", report.rows()) };
    assert_eq!([&a["truncation_rate"], &a["truncation_known"]], [&json!(0.5), &json!(4)]);
    assert_eq!([&a["error_rate"], &b["error_rate"]], [0.0, 0.5]);
    // from 10:00:00 to 10:01:40, for both
    assert_eq!([&a["observed_s"], &b["observed_s"]], [100.0, 100.0]);
    assert_eq!([&a["goodput_per_s"], &b["goodput_per_s"]], [0.05, 0.01]);
    assert_eq!([&a["undated"], &b["undated"]], [0, 1]);
    assert_eq!([&b["good"], &b["bad"], &b["truncation_known"]], [1, 1, 0]);
}
