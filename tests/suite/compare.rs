//! `compare`: one side of the traffic against the other.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, real_data};

/// Latencies around a median, the same in every run.
fn latency(median: f64, number: u32) -> f64 {
    let spread = f64::from(number * 7919 % 1000) / 1000.0;
    median * (0.8 + 0.4 * spread)
}

fn records(version: &str, input: u64, median: f64, count: u32) -> Vec<Value> {
    let record = |number| {
        json!({"request_id": format!("{version}-{input}-{number}"), "timestamp": "2025-06-01T10:00:00Z", "model_version": version,
               "input_tokens": input, "output_tokens": 100, "total_latency_ms": latency(median, number), "status": "success",
               "finish_reason": if number % 10 == 0 { "length" } else { "stop" }})
    };
    (0..count).map(record).collect()
}

fn report(sides: &[Vec<Value>], arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(&sides.concat());
    let compared = ["compare", "--split", "version", "--a", "v1", "--b", "v2", "--percentiles", "50"];
    workspace.report(&[&compared, arguments, &["log.ndjson"]].concat())
}

fn verdicts(report: &Report) -> Vec<String> {
    let text = |row: &Value| format!("{} {} {}", row["scope"], row["input_bucket"], row["verdict"]).replace('"', "");
    report.rows().iter().map(text).collect()
}

#[test]
fn what_is_slower_on_long_inputs_is_named_and_the_rest_is_not() {
    let sides = [
        records("v1", 500, 100.0, 400),
        records("v2", 500, 100.0, 400),
        records("v1", 9000, 300.0, 400),
        records("v2", 9000, 450.0, 400),
    ];
    let report = report(&sides, &[]);
    assert_eq!(verdicts(&report), ["all, same mix null worse", "part 0-1K no difference", "part 8K-16K worse"]);
    let row = &report.rows()[2];
    let number = |column: &str| row[column].as_f64().unwrap();
    assert!((number("change") - 0.5).abs() < 1e-9, "{row}");
    assert!(number("low") > 0.4 && number("low") < 0.5 && number("high") > 0.5 && number("high") < 0.6, "{row}");
    assert_eq!((&row["measured_a"], &row["truncated_a"], &row["output_b"]), (&json!(400), &json!(0.1), &json!(100.0)));
    // half of the traffic is half slower: the geometric mean
    assert!((report.rows()[0]["change"].as_f64().unwrap() - 1.5_f64.sqrt() + 1.0).abs() < 1e-9);
}

#[test]
fn another_mix_of_lengths_is_no_change() {
    let sides = [
        records("v1", 500, 100.0, 900),
        records("v2", 500, 100.0, 100),
        records("v1", 9000, 300.0, 100),
        records("v2", 9000, 300.0, 900),
    ];
    assert_eq!(verdicts(&report(&sides, &[]))[0], "all, same mix null no difference");
}

#[test]
fn a_few_requests_are_inconclusive_and_a_log_differs_not_from_itself() {
    let sides = [records("v1", 500, 100.0, 10), records("v2", 500, 200.0, 10)];
    assert_eq!(verdicts(&report(&sides, &[])), ["all, same mix null inconclusive", "part 0-1K inconclusive"]);
    // nothing is on the other side
    let alone = report(&[records("v1", 500, 100.0, 400)], &[]);
    assert_eq!(verdicts(&alone), ["all, same mix null inconclusive", "part 0-1K inconclusive"]);
    let workspace = Workspace::with_records(&records("v1", 500, 100.0, 400));
    let itself = workspace.report(&[
        "compare",
        "--split",
        "source_file",
        "--a",
        "log.ndjson",
        "--b",
        "log.ndjson",
        "log.ndjson",
    ]);
    assert!(itself.column("verdict").iter().all(|verdict| verdict == "no difference"), "{:?}", itself.rows());
    assert!(itself.column("change").iter().all(|change| change == &json!(0.0)), "{:?}", itself.rows());
}

#[test]
fn the_same_seed_gives_the_same_bytes_at_any_number_of_threads() {
    let sides = [records("v1", 500, 100.0, 300), records("v2", 9000, 110.0, 300), records("v2", 500, 90.0, 50)];
    let one = report(&sides, &["--threads", "1"]);
    assert_eq!(one.rows(), report(&sides, &["--threads", "4"]).rows());
    assert_ne!(one.rows(), report(&sides, &["--seed", "2"]).rows());
}

#[test]
fn the_cache_of_aibrix_makes_the_first_token_faster() {
    let files = ["aibrix/aibrix_naive_output_4.1.csv", "aibrix/aibrix_kvcache_dram_output_4.1.csv"].map(real_data);
    let [Some(naive), Some(cached)] = files else { return };
    let [naive, cached] = [naive, cached].map(|path| path.to_str().unwrap().to_owned());
    let split =
        ["compare", "--split", "source_file", "--metric", "ttft", "--percentiles", "50", "--a", &naive, "--b", &cached];
    let report = Workspace::new().report(&[&split[..], &[&naive, &cached]].concat());
    assert_eq!(verdicts(&report), ["all, same mix null better", "part 16K-32K better"]);
    let row = &report.rows()[1];
    assert_eq!([&row["measured_a"], &row["measured_b"]], [405, 455]);
    assert!(row["high"].as_f64().unwrap() < -0.9, "{row}");
    let same = ["compare", "--split", "source_file", "--metric", "ttft", "--a", &naive, "--b", &naive, &naive];
    let report = Workspace::new().report(&same);
    assert!(report.column("verdict").iter().all(|verdict| verdict == "no difference"), "{:?}", report.rows());
}

#[test]
fn sides_are_named_as_reports_show_them() {
    let days = [("2025-06-01T20:00:00Z", 100.0), ("2025-06-02T20:00:00Z", 200.0)];
    let record = |(time, median): (&str, f64), number| {
        json!({"request_id": format!("{time}{number}"), "timestamp": time, "total_latency_ms": latency(median, number), "status": "ok",
               "input_tokens": 10, "output_tokens": 10})
    };
    let lines: Vec<String> =
        days.into_iter().flat_map(|day| (0..50).map(move |number| record(day, number).to_string())).collect();
    let workspace = Workspace::with("log.ndjson", lines.join("\n"));
    for (split, a, b) in [("day", "2025-06-02", "2025-06-03"), ("weekday", "Monday", "Tuesday")] {
        // in Kolkata it is the day after
        let compared = [
            "compare",
            "--split",
            split,
            "--a",
            a,
            "--b",
            b,
            "--tz",
            "Asia/Kolkata",
            "--percentiles",
            "50",
            "log.ndjson",
        ];
        let report = workspace.report(&compared);
        assert_eq!(
            (&report.rows()[0]["verdict"], &report.rows()[0]["measured_a"]),
            (&json!("worse"), &json!(50)),
            "{split}"
        );
    }
    workspace.run(&["compare", "--a", "x", "log.ndjson"]).refusal(2);
    workspace.run(&["compare", "--a", "x", "--b", "y", "--confidence", "99", "log.ndjson"]).refusal(2);
}
