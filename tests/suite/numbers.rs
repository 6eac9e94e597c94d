//! The numbers of `latency` and `workload` against a slow and obvious oracle.

use serde_json::{Value, json};

use crate::command::Workspace;
use crate::traffic::{self, Request, assert_close, continuous, nearest};

/// Inner edges and labels of the input buckets.
const BUCKETS: [(u64, &str); 9] = [
    (1 << 10, "0-1K"),
    (2 << 10, "1K-2K"),
    (4 << 10, "2K-4K"),
    (8 << 10, "4K-8K"),
    (16 << 10, "8K-16K"),
    (32 << 10, "16K-32K"),
    (64 << 10, "32K-64K"),
    (128 << 10, "64K-128K"),
    (u64::MAX, "128K+"),
];

/// Requests by input bucket in the order of a report: the buckets, then those of unknown input.
fn by_bucket(requests: &[Request]) -> Vec<(Value, Vec<&Request>)> {
    let mut low = 0;
    let mut groups = Vec::new();
    for (high, label) in BUCKETS {
        let inside = |request: &&Request| request.input.is_some_and(|tokens| (low..high).contains(&tokens));
        groups.push((json!(label), requests.iter().filter(inside).collect::<Vec<_>>()));
        low = high;
    }
    groups.push((Value::Null, requests.iter().filter(|request| request.input.is_none()).collect()));
    groups.retain(|(_, group)| !group.is_empty());
    groups
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Checks a `latency --by input-bucket` against the oracle; `taken` says which requests are measured.
fn assert_latency(arguments: &[&str], taken: fn(&Request) -> bool, percentile: fn(&[f64], usize) -> f64) {
    let requests = traffic::requests(700);
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&requests));
    let question = ["latency", "--by", "input-bucket", "--percentiles", "0,50,95,99.9,100"];
    let report = workspace.report(&[&question, arguments, &["log.ndjson"]].concat());
    let groups = by_bucket(&requests);
    assert_eq!(report.rows().len(), groups.len());
    for (row, (label, group)) in report.rows().iter().zip(groups) {
        let values = sorted(group.iter().filter(|request| taken(request)).map(|request| request.total_ms()).collect());
        assert_eq!(row["input_bucket"], label);
        assert_eq!(row["requests"], group.len());
        assert_eq!(row["failed"], group.iter().filter(|request| request.failed == Some(true)).count());
        assert_eq!(row["measured"], values.len());
        assert_close(&row["mean_ms"], values.iter().sum::<f64>() / values.len() as f64, "mean");
        for (name, per_thousand) in
            [("p0_ms", 0), ("p50_ms", 500), ("p95_ms", 950), ("p99_9_ms", 999), ("p100_ms", 1000)]
        {
            assert_close(&row[name], percentile(&values, per_thousand), name);
        }
        assert_eq!(row["max_ms"], *values.last().unwrap());
        assert_eq!((&row["p0_ms"], &row["p100_ms"]), (&json!(values[0]), &row["max_ms"]));
    }
    let unknown = requests.iter().filter(|request| request.failed.is_none()).count() as u64;
    assert_eq!(report.note("outcome_unknown").1, Some(unknown));
}

#[test]
fn latency_agrees_with_sorting_the_values() {
    let succeeded = |request: &Request| request.failed != Some(true);
    assert_latency(&[], succeeded, |values, per_thousand| continuous(values, per_thousand as f64 / 1000.0));
    assert_latency(&["--method", "nearest"], succeeded, nearest);
    assert_latency(
        &["--include-failed"],
        |_| true,
        |values, per_thousand| continuous(values, per_thousand as f64 / 1000.0),
    );
}

#[test]
fn the_columns_of_latency_stand_in_the_promised_order() {
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(5)));
    let numbers = ["requests", "failed", "measured", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"];
    let names = |arguments: &[&str]| {
        let report = workspace.report(&[arguments, &["log.ndjson"]].concat());
        assert_eq!(report.rows()[0].as_object().unwrap().keys().collect::<Vec<_>>(), report.column_names());
        report.column_names().join(" ")
    };
    assert_eq!(names(&["latency"]), numbers.join(" "));
    assert_eq!(names(&["latency", "--by", "input-bucket,model"]), format!("input_bucket model {}", numbers.join(" ")));
    assert_eq!(names(&["latency", "--metric", "ttft,tpot"]), format!("metric {}", numbers.join(" ")));
    assert_eq!(
        names(&["latency", "--percentiles", "50,99.9"]),
        "requests failed measured mean_ms p50_ms p99_9_ms max_ms"
    );
    assert_eq!(
        names(&["workload", "--by", "model"]),
        "model requests share input_tokens output_tokens input_p50 input_p95 input_p99 output_p50 output_p95 output_p99"
    );
}

#[test]
fn workload_agrees_with_sorting_the_values() {
    let requests = traffic::requests(400);
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&requests));
    let report = workspace.report(&["workload", "--by", "input-bucket", "log.ndjson"]);
    for (row, (label, group)) in report.rows().iter().zip(by_bucket(&requests)) {
        assert_eq!((&row["input_bucket"], &row["requests"]), (&label, &json!(group.len())));
        assert_close(&row["share"], group.len() as f64 / 400.0, "share");
        let output = sorted(group.iter().map(|request| request.output as f64).collect());
        let input = sorted(group.iter().filter_map(|request| request.input).map(|tokens| tokens as f64).collect());
        for (side, values) in [("input", input), ("output", output)] {
            let sum = &row[format!("{side}_tokens")];
            if values.is_empty() {
                // unknown is not zero
                assert_eq!((sum, &row[format!("{side}_p50")]), (&Value::Null, &Value::Null));
                continue;
            }
            assert_eq!(*sum, values.iter().sum::<f64>() as u64);
            for (name, fraction) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                assert_close(&row[format!("{side}_{name}")], continuous(&values, fraction), name);
            }
        }
    }
    let input: u64 = requests.iter().filter_map(|request| request.input).sum();
    let output: u64 = requests.iter().map(|request| request.output).sum();
    let totals = &report.0["totals"];
    assert_eq!(
        (&totals["requests"], &totals["input_tokens"], &totals["output_tokens"]),
        (&json!(400), &json!(input), &json!(output))
    );
}

/// How long a part of a request took.
type Duration = fn(&Request) -> f64;

#[test]
fn every_metric_is_measured_by_its_definition() {
    let requests = traffic::requests(200);
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&requests));
    let report = workspace.report(&["latency", "--metric", "all", "log.ndjson"]);
    let metrics: [(&str, Duration); 6] = [
        ("total", Request::total_ms),
        ("ttft", |request| request.queue + request.prefill),
        ("tpot", |request| (request.total_ms() - request.queue - request.prefill) / (request.output - 1) as f64),
        ("queue", |request| request.queue),
        ("prefill", |request| request.prefill),
        ("decode", |request| request.decode),
    ];
    assert_eq!(report.rows().len(), metrics.len());
    for (row, (name, value)) in report.rows().iter().zip(metrics) {
        // where total and stages contradict each other, nothing below zero is derived from them
        let measured = requests.iter().filter(|request| request.failed != Some(true)).map(value);
        let values = sorted(measured.filter(|value| *value >= 0.0).collect());
        assert_eq!((&row["metric"], &row["measured"]), (&json!(name), &json!(values.len())));
        assert_close(&row["mean_ms"], values.iter().sum::<f64>() / values.len() as f64, name);
        assert_close(&row["p95_ms"], continuous(&values, 0.95), name);
    }
}

#[test]
fn metrics_and_stages_stand_in_one_order_within_every_group() {
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(300)));
    for (question, metrics) in [
        (&["--metric", "all"][..], &["total", "ttft", "tpot", "queue", "prefill", "decode"][..]),
        (&["--metric", "decode,total"], &["decode", "total"]),
        (&["--stages"], &["queue", "prefill", "decode", "other", "total"]),
    ] {
        let report = workspace.report(&[&["latency", "--by", "input-bucket,model", "log.ndjson"], question].concat());
        for group in report.rows().chunks(metrics.len()) {
            let found: Vec<&str> = group.iter().map(|row| row["metric"].as_str().unwrap()).collect();
            assert_eq!(found, metrics);
            assert!(group.iter().all(|row| row["model"] == group[0]["model"]), "{group:?}");
        }
    }
}

#[test]
fn stages_show_that_most_of_the_time_was_queue() {
    let record = |queue: f64, total: f64| {
        format!(
            "{{\"queue_wait_ms\":{queue},\"prefill_time_ms\":30,\"decode_time_ms\":50,\"total_latency_ms\":{total}}}\n"
        )
    };
    let workspace = Workspace::with("log.ndjson", record(880.0, 980.0) + &record(920.0, 1020.0));
    let report = workspace.report(&["latency", "--stages", "log.ndjson"]);
    let shares: Vec<_> = report.rows().iter().map(|row| (&row["metric"], &row["mean_ms"], &row["share"])).collect();
    let expected = [
        ("queue", 900.0, 0.9),
        ("prefill", 30.0, 0.03),
        ("decode", 50.0, 0.05),
        ("other", 20.0, 0.02),
        ("total", 1000.0, 1.0),
    ];
    for ((metric, mean, share), (name, expected_mean, expected_share)) in shares.iter().zip(expected) {
        assert_eq!(*metric, name);
        assert_close(mean, expected_mean, name);
        assert_close(share, expected_share, name);
    }
    assert_eq!(shares.len(), 5);
    let table = workspace.run(&["latency", "--stages", "log.ndjson"]).exits(0);
    assert!(table.text().lines().any(|line| line.contains("queue") && line.contains("90.0 %")), "{table:?}");
}

#[test]
fn shares_of_stages_add_up_to_the_whole() {
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(200)));
    let report = workspace.report(&["latency", "--stages", "--by", "model", "log.ndjson"]);
    for model in ["large", "small", "中文"] {
        let rows = report.rows().iter().filter(|row| row["model"] == model && row["metric"] != "total");
        let shares: f64 = rows.map(|row| row["share"].as_f64().unwrap()).sum();
        assert_close(&json!(shares), 1.0, model);
    }
}

#[test]
fn groups_with_too_few_measured_requests_are_left_out() {
    let record =
        |model: &str, status: &str| format!("{{\"model\":\"{model}\",\"status\":\"{status}\",\"latency_ms\":5}}\n");
    let log = record("a", "ok").repeat(3) + &record("b", "ok").repeat(2) + &record("b", "error").repeat(9);
    let workspace = Workspace::with("log.ndjson", log);
    let models =
        |count| workspace.report(&["latency", "--by", "model", "--min-count", count, "log.ndjson"]).column("model");
    assert_eq!(models("2"), ["a", "b"]);
    assert_eq!(models("3"), ["a"]);
    assert_eq!(models("4"), Vec::<Value>::new());
}

#[test]
fn requests_that_are_left_out_or_not_measured_are_counted_in_a_note() {
    let log = "{\"model\":\"a\",\"status\":\"ok\",\"latency_ms\":5}\n".repeat(3)
        + &"{\"model\":\"a\",\"status\":\"ok\"}\n".repeat(2)
        + "{\"model\":\"b\",\"status\":\"error\",\"latency_ms\":5}\n";
    let workspace = Workspace::with("log.ndjson", log);
    let notes = |flags: &[&str]| {
        let report = workspace.report(&[&["latency", "--by", "model", "log.ndjson"], flags].concat());
        ["left_out", "not_measured"].map(|code| report.notes(code).first().and_then(|(_, count)| *count))
    };
    assert_eq!(notes(&[]), [None, Some(2)]);
    assert_eq!(notes(&["--include-failed"]), [None, Some(2)]);
    assert_eq!(notes(&["--top", "1"]), [Some(1), Some(2)]);
    assert_eq!(notes(&["--min-count", "1"]), [Some(1), Some(2)]);
    assert_eq!(notes(&["--min-count", "4"]), [Some(6), None]);
}

#[test]
fn a_p99_of_fewer_than_100_values_is_marked() {
    let record = |model: &str| format!("{{\"model\":\"{model}\",\"status\":\"ok\",\"latency_ms\":5}}\n");
    let log = record("a").repeat(100) + &record("b").repeat(99) + &record("c");
    let workspace = Workspace::with("log.ndjson", log);
    let report = workspace.report(&["latency", "--by", "model", "log.ndjson"]);
    let (text, rows) = report.note("few_values");
    assert!(text.contains("p99") && text.contains("100"), "{text}");
    assert_eq!(rows, Some(2));
    let enough = workspace.report(&["latency", "--by", "model", "--where", "model_name = 'a'", "log.ndjson"]);
    assert_eq!(enough.notes("few_values"), []);
}

#[test]
fn of_one_value_every_percentile_is_that_value_and_of_none_unknown() {
    let workspace = Workspace::with(
        "log.ndjson",
        "{\"model\":\"a\",\"latency_ms\":7.25,\"status\":\"ok\"}\n{\"model\":\"b\",\"status\":\"ok\"}\n",
    );
    let report = workspace.report(&["latency", "--by", "model", "log.ndjson"]);
    for name in ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"] {
        assert_eq!(report.column(name), [json!(7.25), Value::Null], "{name}");
    }
    assert_eq!(report.column("measured"), [1, 0]);
}

#[test]
fn buckets_include_their_lower_edge_and_stand_in_order() {
    let mut log = String::from("{\"output_tokens\":1}\n");
    for tokens in [131_072, 131_071, 65_536, 32_768, 16_384, 8192, 4096, 2048, 2047, 1024, 1023, 0] {
        log += &format!("{{\"input_tokens\":{tokens},\"output_tokens\":1}}\n");
    }
    let workspace = Workspace::with("log.ndjson", log);
    let report = workspace.report(&["workload", "--by", "input-bucket", "log.ndjson"]);
    let mut expected: Vec<Value> = BUCKETS.iter().map(|(_, label)| json!(label)).collect();
    expected.push(Value::Null);
    assert_eq!(report.column("input_bucket"), expected);
    assert_eq!(report.column("requests"), [2, 2, 1, 1, 1, 1, 1, 2, 1, 1]);
    // 1,023 and 131,071 tokens of input and one of output
    let total = workspace.report(&["workload", "--by", "total-bucket", "log.ndjson"]);
    assert_eq!(total.column("total_bucket"), expected);
    assert_eq!(total.column("requests"), [1, 2, 2, 1, 1, 1, 1, 1, 2, 1]);
}

#[test]
fn output_buckets_have_edges_of_their_own() {
    let log: String = [0, 15, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 8191]
        .map(|tokens| format!("{{\"output_tokens\":{tokens}}}\n"))
        .concat();
    let report = Workspace::with("log.ndjson", log).report(&["workload", "--by", "output-bucket", "log.ndjson"]);
    let labels = ["0-16", "16-64", "64-128", "128-256", "256-512", "512-1K", "1K-2K", "2K-4K", "4K-8K", "8K+"];
    assert_eq!(report.column("output_bucket"), labels);
    assert_eq!(report.column("requests"), [2, 1, 1, 1, 1, 1, 1, 1, 2, 1]);
}

#[test]
fn buckets_may_have_other_edges() {
    let log: String = [499, 500, 1999, 2000, 7999, 8000]
        .map(|tokens| format!("{{\"input_tokens\":{tokens},\"output_tokens\":{tokens}}}\n"))
        .concat();
    let workspace = Workspace::with("log.ndjson", log);
    let report = workspace.report(&[
        "workload",
        "--by",
        "input-bucket,output-bucket",
        "--input-buckets",
        "500,2000,8000",
        "--output-buckets",
        "8000",
        "log.ndjson",
    ]);
    assert_eq!(report.column("input_bucket"), ["0-500", "500-2000", "2000-8000", "8000+"]);
    assert_eq!(report.column("output_bucket"), ["0-8000", "0-8000", "0-8000", "8000+"]);
    assert_eq!(report.column("requests"), [1, 2, 2, 1]);
}

#[test]
fn the_first_rows_in_another_order_may_be_asked_for() {
    let log =
        ["a", "b", "b", "b", "c", "c"].map(|model| format!("{{\"model\":\"{model}\",\"latency_ms\":1}}\n")).concat();
    let workspace = Workspace::with("log.ndjson", log);
    let report = workspace.report(&["latency", "--by", "model", "--sort", "requests:desc", "--top", "2", "log.ndjson"]);
    assert_eq!(report.column("model"), ["b", "c"]);
    let message = workspace.run(&["latency", "--sort", "request", "log.ndjson"]).refusal(2);
    assert!(message.contains("request") && message.contains("did you mean `requests`?"), "{message}");
}

#[test]
fn a_dimension_that_is_called_like_a_column_of_the_answer_is_told_apart() {
    let workspace = Workspace::with(
        "log.ndjson",
        "{\"total_latency_ms\":1,\"error_code\":0,\"input_tokens\":7}\n{\"total_latency_ms\":3,\"error_code\":5,\"input_tokens\":7}\n",
    );
    let report = workspace.report(&["latency", "--by", "failed", "--include-failed", "log.ndjson"]);
    let found: Vec<_> = report.rows().iter().map(|row| (row["by_failed"].clone(), row["failed"].clone())).collect();
    assert_eq!(found, [(json!(false), json!(0)), (json!(true), json!(1))]);
    let workload = workspace.report(&["workload", "--by", "input_tokens", "log.ndjson"]);
    assert_eq!((&workload.row()["by_input_tokens"], &workload.row()["input_tokens"]), (&json!(7), &json!(14)));
}
