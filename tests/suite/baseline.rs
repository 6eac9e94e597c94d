//! `baseline save` and `baseline check`: what is slower than in a good period, again and again.

use serde_json::{Value, json};

use crate::command::{Workspace, ndjson};

/// 400 requests of a day, each within 1 % of `typical` milliseconds.
fn day(date: &str, version: &str, typical: f64) -> Vec<Value> {
    let request = |number: u32| {
        let spread = f64::from(number * 7919 % 1000) / 1000.0;
        let (minute, second) = (number / 60, number % 60);
        json!({"request_id": format!("{date}-{version}-{number}"), "timestamp": format!("{date}T10:{minute:02}:{second:02}Z"), "model": "m",
               "model_version": version, "input_tokens": 100, "output_tokens": 1,
               "total_latency_ms": typical * (0.99 + 0.02 * spread), "status": "success"})
    };
    (0..400).map(request).collect()
}

/// What a check says of the median, after a good week of 1,000 ms and days that take so many times as long.
fn checked(days: &[f64], arguments: &[&str]) -> (Workspace, Value, i32) {
    let good: Vec<Value> = (1..=7).flat_map(|date| day(&format!("2025-06-0{date}"), "v1", 1000.0)).collect();
    let workspace = Workspace::with("good.ndjson", ndjson(&good));
    workspace.run(&["baseline", "save", "--format", "json", "-o", "good.json", "good.ndjson"]).exits(0);
    let new = days.iter().enumerate();
    let new = new.flat_map(|(date, times)| day(&format!("2025-06-{}", 10 + date), "v2", 1000.0 * times));
    workspace.write("new.ndjson", ndjson(&new.collect::<Vec<_>>()));
    let check = ["baseline", "check", "--against", "good.json", "--format", "json"];
    let run = workspace.run(&[&check[..], arguments, &["new.ndjson"]].concat());
    let report: Value = serde_json::from_str(run.text()).unwrap();
    let is_median = |row: &&Value| row["metric"] == "total" && row["percentile"] == "p50";
    let row = report["rows"].as_array().unwrap().iter().find(is_median).cloned().unwrap();
    let code = run.status.code().unwrap();
    (workspace, row, code)
}

#[test]
fn one_slow_run_is_no_proof_however_tight_it_is() {
    // +11.6 % on one run
    let (_, row, code) = checked(&[1.116], &[]);
    assert_eq!(
        (&row["status"], &row["judged"], &row["deviating"], code),
        (&json!("unconfirmed"), &json!(1), &json!(1), 0)
    );
    // and +0.9 % on the next
    let (_, row, code) = checked(&[1.116, 1.009, 1.0], &[]);
    assert_eq!(
        (&row["status"], &row["judged"], &row["deviating"], code),
        (&json!("unconfirmed"), &json!(3), &json!(1), 0)
    );
}

#[test]
fn what_is_slow_again_and_again_is_a_breach() {
    let (workspace, row, code) = checked(&[1.116, 1.116], &[]);
    assert_eq!((&row["status"], &row["severity"], code), (&json!("breached"), &json!("error"), 3));
    assert_eq!((&row["judged"], &row["deviating"]), (&json!(2), &json!(2)));
    assert_eq!((&row["version"], &row["baseline_version"]), (&json!("v2"), &json!("v1")));
    assert_eq!(row["first_deviating"], "2025-06-10T00:00:00+00:00");
    let change = row["change"].as_f64().unwrap();
    assert!((0.115..0.117).contains(&change), "{change}");
    // the report is printed all the same, and may be asked not to break a build
    let (_, _, code) = checked(&[1.116, 1.116], &["--fail-on", "never"]);
    assert_eq!(code, 0);
    // as lines and as Parquet the baseline says the same
    for (format, file) in [("jsonl", "good.jsonl"), ("parquet", "good.parquet")] {
        workspace.run(&["baseline", "save", "--format", format, "-o", file, "good.ndjson"]).exits(0);
        workspace.run(&["baseline", "check", "--against", file, "new.ndjson"]).exits(3);
    }
    // the same day twice is one day
    workspace.write("again.ndjson", workspace.read("new.ndjson"));
    let check = ["baseline", "check", "--against", "good.json", "--until", "2025-06-11", "new.ndjson", "again.ndjson"];
    workspace.run(&check).exits(0);
}

#[test]
fn what_is_as_it_was_is_ok_and_too_little_is_not_called_so() {
    let (_, row, code) = checked(&[1.0, 1.05, 0.7], &[]);
    assert_eq!((&row["status"], code), (&json!("ok"), 0));
    let (_, row, code) = checked(&[1.0], &[]);
    assert_eq!((&row["status"], code), (&json!("too few windows"), 0));
}

#[test]
fn a_length_that_the_good_period_lacks_has_no_baseline() {
    let (workspace, ..) = checked(&[1.0], &[]);
    let long: Vec<Value> = day("2025-06-10", "v1", 9000.0)
        .into_iter()
        .map(|mut record| {
            record["input_tokens"] = json!(5000);
            record
        })
        .collect();
    workspace.write("long.ndjson", ndjson(&long));
    let report = workspace.report(&["baseline", "check", "--against", "good.json", "long.ndjson"]);
    assert_eq!(report.rows()[0]["status"], "no baseline");
    assert_eq!(report.rows()[0]["baseline_ms"], json!(null));
}

#[test]
fn what_is_no_answer_is_no_baseline() {
    let workspace = Workspace::with("log.ndjson", "{\"request_id\":\"a\",\"total_latency_ms\":1}\n");
    workspace.write("text.json", "hello");
    let run = workspace.run(&["baseline", "check", "--against", "text.json", "log.ndjson"]).exits(2);
    assert!(run.stderr.contains("text.json holds no rows of an answer"), "{}", run.stderr);
    let run = workspace.run(&["baseline", "check", "--against", "nowhere.json", "log.ndjson"]).exits(2);
    assert!(run.stderr.contains("could not read nowhere.json"), "{}", run.stderr);
}

#[test]
fn windows_that_are_each_too_small_are_a_breach_together() {
    // 40 requests a day that vary by 60 %, and take half as long again: no day alone proves it
    let spread = |date: u32, times: f64| -> Vec<Value> {
        (0..40)
            .map(|number| {
                let varied = 0.4 + 1.2 * f64::from((number * 7919 + date * 31) % 1000) / 1000.0;
                json!({"request_id": format!("{date}-{number}-{times}"), "timestamp": format!("2025-06-{date:02}T10:00:{number:02}Z"),
                       "model": "m", "model_version": "v1", "input_tokens": 100, "output_tokens": 1,
                       "total_latency_ms": 1000.0 * times * varied, "status": "success"})
            })
            .collect()
    };
    let good: Vec<Value> = (1..=10).flat_map(|date| spread(date, 1.0)).collect();
    let workspace = Workspace::with("good.ndjson", ndjson(&good));
    workspace.run(&["baseline", "save", "--format", "json", "-o", "good.json", "good.ndjson"]).exits(0);
    let slow: Vec<Value> = (11..=24).flat_map(|date| spread(date, 1.35)).collect();
    workspace.write("slow.ndjson", ndjson(&slow));
    let check = ["baseline", "check", "--against", "good.json", "--percentiles", "50"];
    let row = |log: &str| {
        let report = workspace.report(&[&check[..], &["--fail-on", "never", log]].concat());
        report.rows().iter().find(|row| row["metric"] == "total").unwrap().clone()
    };
    let slow = row("slow.ndjson");
    assert_eq!((&slow["status"], &slow["judged"]), (&json!("breached"), &json!(14)), "{slow}");
    assert!(slow["deviating"].as_u64().unwrap() < 7 && slow["above_limit"].as_u64().unwrap() >= 7, "{slow}");
    let same: Vec<Value> = (11..=24).flat_map(|date| spread(date, 1.0)).collect();
    workspace.write("same.ndjson", ndjson(&same));
    assert_eq!(row("same.ndjson")["status"], "ok");
    // a baseline of days says nothing of hours
    let report = workspace.report(&[&check[..], &["--every", "1h", "--fail-on", "never", "slow.ndjson"]].concat());
    assert_eq!(report.rows()[0]["status"], "no baseline");
}
