//! `--pivot` and the lines of `trend`: answers to look at.

use serde_json::{Value, json};

use crate::command::Workspace;

fn record(id: u32, hour: u32, input: u64, total: f64) -> Value {
    json!({"request_id": id.to_string(), "timestamp": format!("2025-06-02T{hour:02}:00:00Z"), "model": "m", "input_tokens": input,
           "output_tokens": 10, "total_latency_ms": total, "status": "success"})
}

fn workspace() -> Workspace {
    Workspace::with_records(&[
        record(1, 9, 100, 10.0),
        record(2, 9, 100, 30.0),
        record(3, 9, 20_000, 500.0),
        record(4, 10, 3000, 70.0),
    ])
}

#[test]
fn one_dimension_stands_down_and_another_across() {
    let report = workspace().report(&["latency", "--pivot", "hour-of-day,input-bucket,max_ms", "log.ndjson"]);
    let names: Vec<&str> =
        report.0["columns"].as_array().unwrap().iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(names, ["hour_of_day", "0-1K", "2K-4K", "16K-32K"]);
    let expected = [
        json!({"hour_of_day": 9, "0-1K": 30.0, "2K-4K": null, "16K-32K": 500.0}),
        json!({"hour_of_day": 10, "0-1K": null, "2K-4K": 70.0, "16K-32K": null}),
    ];
    assert_eq!(report.rows(), expected);
    assert_eq!(report.0["columns"][1]["unit"], "ms");
    assert_eq!(report.0["parameters"]["by"], json!(["hour_of_day", "input_bucket"]));
}

#[test]
fn a_heat_table_is_darkest_where_the_most_is() {
    let table = workspace().run(&["workload", "--pivot", "hour-of-day,input-bucket", "log.ndjson"]).exits(0);
    let line =
        |hour: &str| table.text().lines().find(|line| line.starts_with(&format!("│ {hour:>11}"))).unwrap().to_owned();
    assert!(line("9").contains("2 █") && line("9").contains("1 ·") && line("10").contains("-  "), "{}", table.text());
}

#[test]
fn what_cannot_be_put_across_is_said() {
    let workspace = workspace();
    for (arguments, sentence) in [
        (&["latency", "--pivot", "model,hour", "--by", "model"][..], "--pivot says what to group by: drop --by"),
        (&["latency", "--pivot", "model"], "write the dimension of the rows"),
        (&["latency", "--pivot", "model,hour,p98_ms"], "no column of numbers `p98_ms`; it has requests"),
        (&["latency", "--stages", "--pivot", "model,hour"], "several rows for m and"),
        (&["slow", "--pivot", "model,hour"], "no parameter `by`"),
    ] {
        let run = workspace.run(&[arguments, &["log.ndjson"]].concat()).exits(2);
        assert!(run.stderr.contains(sentence), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_trend_is_drawn_as_a_line_for_each_column() {
    let table = workspace().run(&["trend", "--every", "1h", "log.ndjson"]).exits(0);
    assert!(table.text().contains("requests      █▁  1 to 3"), "{}", table.text());
    // only in tables
    assert!(
        !workspace().run(&["trend", "--every", "1h", "--format", "csv", "log.ndjson"]).exits(0).text().contains('█')
    );
}

#[test]
fn labels_that_look_like_others_stay_apart() {
    let named = |id: u32, tenant: Value, model: &str| json!({"request_id": id.to_string(), "timestamp": "2025-06-02T10:00:00Z", "tenant": tenant, "model": model, "total_latency_ms": 10, "status": "ok"});
    let records = [named(1, json!("t"), "tenant"), named(2, json!("unknown"), "m"), named(3, json!(null), "m")];
    let workspace = Workspace::with_records(&records);
    let report = workspace.report(&["workload", "--pivot", "tenant,model", "log.ndjson"]);
    assert_eq!(report.rows()[0], json!({"tenant": "t", "m": null, "model=tenant": 1}));
    let report = workspace.report(&["workload", "--pivot", "model,tenant", "log.ndjson"]);
    assert_eq!(report.rows()[0], json!({"model": "m", "t": null, "unknown": 1, "not logged": 1}));
    assert!(
        workspace
            .run(&["sql", "SELECT 1", "--pivot", "model,tenant", "log.ndjson"])
            .exits(2)
            .stderr
            .contains("--pivot")
    );
}
