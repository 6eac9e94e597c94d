//! `shadow`: the same requests on two sides, pair by pair.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, ndjson};

/// Requests that take from 100 to 100,000 ms, each `times` as long as on the other side.
fn side(count: u32, times: f64) -> Vec<Value> {
    let request = |number: u32| {
        let typical = 100.0 * 10_f64.powf(f64::from(number % 31) / 10.0);
        json!({"request_id": format!("r{number}"), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 100,
               "output_tokens": 10 + number % 2, "total_latency_ms": typical * times, "status": "success"})
    };
    (0..count).map(request).collect()
}

fn compared(live: &[Value], shadow: &[Value], arguments: &[&str]) -> Report {
    let workspace = Workspace::with("live.ndjson", ndjson(live));
    workspace.write("shadow.ndjson", ndjson(shadow));
    let sides = ["shadow", "--split", "source_file", "--a", "live.ndjson", "--b", "shadow.ndjson"];
    workspace.report(&[&sides[..], arguments, &["live.ndjson", "shadow.ndjson"]].concat())
}

#[test]
fn a_change_far_below_the_spread_of_requests_is_seen_in_pairs() {
    let mut shadow = side(100, 1.125);
    // one is lost, one fails there, one is sent there alone
    shadow.remove(7);
    shadow[3]["status"] = json!("error");
    shadow.push(json!({"request_id": "extra", "timestamp": "2025-06-01T10:00:00Z", "input_tokens": 100, "total_latency_ms": 5, "status": "success"}));
    let report = compared(&side(100, 1.0), &shadow, &[]);
    let row = &report.rows()[0];
    assert_eq!(
        (&row["verdict"], &row["change"], &row["low"], &row["high"]),
        (&json!("worse"), &json!(0.125), &json!(0.125), &json!(0.125))
    );
    assert_eq!((&row["pairs"], &row["slower"], &row["same_output"]), (&json!(98), &json!(1.0), &json!(1.0)));
    assert_eq!([&row["only_a"], &row["only_b"], &row["failed_a"], &row["failed_b"]], [1, 1, 0, 1]);
    assert_eq!((&row["scope"], &report.rows()[1]["input_bucket"]), (&json!("all"), &json!("0-1K")));
    // the one that is on B alone has no input tokens of A
    assert_eq!((&report.rows()[2]["input_bucket"], &report.rows()[2]["only_b"]), (&json!(null), &json!(1)));
}

#[test]
fn equal_sides_do_not_differ_and_few_pairs_say_nothing() {
    let report = compared(&side(100, 1.0), &side(100, 1.0), &[]);
    assert_eq!(report.rows()[0]["verdict"], "no difference");
    let report = compared(&side(10, 1.0), &side(10, 2.0), &[]);
    assert_eq!((&report.rows()[0]["verdict"], &report.rows()[0]["pairs"]), (&json!("inconclusive"), &json!(10)));
    // half of them slower, half of them faster
    let mixed: Vec<Value> = side(100, 1.0)
        .into_iter()
        .enumerate()
        .map(|(number, mut record)| {
            let total = record["total_latency_ms"].as_f64().unwrap();
            record["total_latency_ms"] = json!(if number % 2 == 0 { total * 2.0 } else { total / 2.0 });
            record
        })
        .collect();
    assert_eq!(compared(&side(100, 1.0), &mixed, &[]).rows()[0]["verdict"], "inconclusive");
}

#[test]
fn sides_may_be_conditions_on_records() {
    let mut records = side(60, 1.0);
    records.extend(side(60, 1.5).into_iter().map(|mut record| {
        record["stream"] = json!(true);
        record
    }));
    let workspace = Workspace::with_records(&records);
    let sides = ["--a", "where stream IS NULL", "--b", "where stream AND total_latency_ms > 0", "log.ndjson"];
    let report = workspace.report(&[&["shadow"], &sides[..]].concat());
    assert_eq!((&report.rows()[0]["verdict"], &report.rows()[0]["change"]), (&json!("worse"), &json!(0.5)));
    let report = workspace.report(&[&["compare"], &sides[..]].concat());
    assert_eq!((&report.rows()[0]["measured_a"], &report.rows()[0]["measured_b"]), (&json!(60), &json!(60)));
    assert_eq!(report.0["parameters"]["a"], "where \"stream\" IS NULL");
    for (condition, sentence) in [
        ("where nonsense", "there is no column `nonsense`"),
        ("where input_tokens", "is no condition"),
        ("where count(*) > 1", "asks about many records"),
        ("where 1 = 1) OR (1 = 1", "not valid"),
    ] {
        let run = workspace.run(&["compare", "--a", condition, "--b", "x", "log.ndjson"]).exits(2);
        assert!(run.stderr.contains(sentence), "{condition}: {}", run.stderr);
    }
}

#[test]
fn a_side_that_nobody_is_on_is_told() {
    let workspace = Workspace::with_records(&side(3, 1.0));
    let report = workspace.report(&["compare", "--split", "model", "--a", "m", "--b", "n", "log.ndjson"]);
    let notes: Vec<&str> =
        report.0["notes"].as_array().unwrap().iter().filter_map(|note| note["text"].as_str()).collect();
    assert!(notes.contains(&"side b has no measured request: is \"n\" written as in the logs?"), "{notes:?}");
}

#[test]
fn a_key_that_no_two_records_share_is_told() {
    let workspace = Workspace::with_records(&side(3, 1.0));
    let report = workspace.report(&["shadow", "--split", "model", "--a", "m", "--b", "n", "log.ndjson"]);
    let notes: Vec<&str> =
        report.0["notes"].as_array().unwrap().iter().filter_map(|note| note["code"].as_str()).collect();
    assert!(notes.contains(&"empty_side"), "{notes:?}");
    // a condition that makes several rows of one is none
    let run = workspace.run(&["compare", "--a", "WHERE unnest([true, false])", "--b", "m", "log.ndjson"]).exits(2);
    assert!(run.stderr.contains("asks about many records"), "{}", run.stderr);
}
