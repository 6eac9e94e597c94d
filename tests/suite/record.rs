//! What a record means: names, units, clocks, what follows from what, and whether the request failed.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// The rows of a log, all columns, in the order of the records.
fn rows(records: &[&str], arguments: &[&str]) -> Report {
    let workspace = Workspace::with("log.ndjson", records.join("\n"));
    workspace.sql("SELECT * FROM logs ORDER BY source_offset", &[arguments, &["log.ndjson"]].concat())
}

/// Each record with a column that it fills and the value there.
#[track_caller]
fn assert_filled(cases: &[(&str, &str, Value)]) {
    let records: Vec<&str> = cases.iter().map(|(record, ..)| *record).collect();
    let report = rows(&records, &[]);
    assert_eq!(report.rows().len(), cases.len(), "{}", report.0["notes"]);
    for (row, (record, column, value)) in report.rows().iter().zip(cases) {
        assert_eq!(row[column], *value, "{column} of {record}");
    }
}

#[test]
fn well_known_names_map_by_themselves() {
    assert_filled(&[
        (r#"{"id":"x"}"#, "request_id", json!("x")),
        (r#"{"model":"m"}"#, "model_name", json!("m")),
        (r#"{"prompt_tokens":1}"#, "input_tokens", json!(1)),
        (r#"{"context_tokens":2}"#, "input_tokens", json!(2)),
        (r#"{"ContextTokens":3}"#, "input_tokens", json!(3)),
        (r#"{"number_input_tokens":4}"#, "input_tokens", json!(4)),
        (r#"{"completion_tokens":5}"#, "output_tokens", json!(5)),
        (r#"{"generated_tokens":6}"#, "output_tokens", json!(6)),
        (r#"{"generation_tokens":7}"#, "output_tokens", json!(7)),
        (r#"{"GeneratedTokens":8}"#, "output_tokens", json!(8)),
        (r#"{"usage":{"completion_tokens":9}}"#, "output_tokens", json!(9)),
        (r#"{"usage":{"prompt_tokens_details":{"cached_tokens":10}}}"#, "cached_tokens", json!(10)),
        (r#"{"cache_prefix_length":11}"#, "cached_tokens", json!(11)),
        (r#"{"TIMESTAMP":"2025-06-01T00:00:00Z"}"#, "timestamp", json!("2025-06-01T00:00:00+00:00")),
        (r#"{"complete_at":"2025-06-01T00:00:00Z"}"#, "completed_at", json!("2025-06-01T00:00:00+00:00")),
        (r#"{"gpu_id":3}"#, "gpu_id", json!("3")),
        (r#"{"error_code":-1}"#, "error_code", json!("-1")),
    ]);
}

#[test]
fn the_unit_of_a_duration_is_the_suffix_of_its_key() {
    assert_filled(&[
        (r#"{"latency_ms":1.5}"#, "total_latency_ms", json!(1.5)),
        (r#"{"latency_total_ms":2}"#, "total_latency_ms", json!(2.0)),
        (r#"{"total_time_ms":3}"#, "total_latency_ms", json!(3.0)),
        (r#"{"end_to_end_latency_s":0.25}"#, "total_latency_ms", json!(250.0)),
        (r#"{"total_latency_us":1500}"#, "total_latency_ms", json!(1.5)),
        (r#"{"total_latency_ns":1500000}"#, "total_latency_ms", json!(1.5)),
        (r#"{"ttft_s":"0.5"}"#, "ttft_ms", json!(500.0)),
        (r#"{"latency_ttft_ms":4}"#, "ttft_ms", json!(4.0)),
        (r#"{"latency_prefill_ms":5}"#, "prefill_time_ms", json!(5.0)),
        (r#"{"latency_decode_ms":6}"#, "decode_time_ms", json!(6.0)),
        (r#"{"queue_ms":7}"#, "queue_wait_ms", json!(7.0)),
        // without a suffix there is no unit, whatever the size
        (r#"{"request_id":"x","latency":1500}"#, "total_latency_ms", Value::Null),
        (r#"{"request_id":"x","ttft":0.5}"#, "ttft_ms", Value::Null),
    ]);
}

#[test]
fn a_per_token_time_of_another_definition_never_fills_tpot() {
    assert_filled(&[
        (r#"{"request_id":"x","inter_token_latency_s":0.1}"#, "tpot_ms", Value::Null),
        (r#"{"request_id":"x","time_per_output_token_ms":100}"#, "tpot_ms", Value::Null),
        (r#"{"tpot_ms":12.5}"#, "tpot_ms", json!(12.5)),
    ]);
}

#[test]
fn the_worked_example_of_the_definitions_comes_out_of_its_timestamps() {
    // arrival 0, scheduled after 200 ms, first token after 500, end after 1500, 11 tokens
    let record = |tokens: u64| {
        let times = json!({
            "timestamp": "2025-06-01T00:00:00Z",
            "first_token_at": "2025-06-01T00:00:00.500Z",
            "completed_at": "2025-06-01T00:00:01.5Z",
            "queue_wait_ms": 200,
            "output_tokens": tokens,
        });
        times.to_string()
    };
    let report = rows(&[&record(11), &record(1)], &[]);
    let expected = [
        ("total_latency_ms", 1500.0),
        ("ttft_ms", 500.0),
        ("queue_wait_ms", 200.0),
        ("prefill_time_ms", 300.0),
        ("decode_time_ms", 1000.0),
    ];
    for (column, value) in expected {
        assert_eq!(report.column(column), [value, value], "{column}");
    }
    assert_eq!(report.column("tpot_ms"), [json!(100.0), Value::Null]);
    let derived: Vec<_> = report.notes("derived").iter().map(|(text, _)| text.split(' ').next().unwrap()).collect();
    assert_eq!(derived, ["prefill_time_ms", "decode_time_ms", "ttft_ms", "tpot_ms", "total_latency_ms"]);
}

#[test]
fn what_is_not_logged_follows_from_what_is() {
    assert_filled(&[
        (r#"{"queue_wait_ms":1,"prefill_time_ms":2,"decode_time_ms":3}"#, "total_latency_ms", json!(6.0)),
        (r#"{"queue_wait_ms":1,"prefill_time_ms":2}"#, "total_latency_ms", Value::Null),
        (r#"{"queue_wait_ms":1,"prefill_time_ms":2}"#, "ttft_ms", json!(3.0)),
        (r#"{"queue_wait_ms":1,"prefill_time_ms":2,"stream":false}"#, "ttft_ms", Value::Null),
        (r#"{"queue_wait_ms":1,"prefill_time_ms":2,"stream":true}"#, "ttft_ms", json!(3.0)),
        (r#"{"ttft_ms":5,"queue_wait_ms":1}"#, "prefill_time_ms", json!(4.0)),
        (r#"{"total_latency_ms":9,"ttft_ms":5}"#, "decode_time_ms", json!(4.0)),
        (r#"{"total_latency_ms":9,"ttft_ms":5,"output_tokens":3}"#, "tpot_ms", json!(2.0)),
        (r#"{"total_latency_ms":9,"ttft_ms":5,"output_tokens":0}"#, "tpot_ms", Value::Null),
        (
            r#"{"completed_at":"2025-06-01T00:00:02Z","total_latency_ms":1500}"#,
            "timestamp",
            json!("2025-06-01T00:00:00.500+00:00"),
        ),
        (
            r#"{"first_token_at":"2025-06-01T00:00:02Z","ttft_ms":500}"#,
            "timestamp",
            json!("2025-06-01T00:00:01.500+00:00"),
        ),
        (r#"{"cached_tokens":0}"#, "cache_hit", json!(false)),
        (r#"{"cached_tokens":16}"#, "cache_hit", json!(true)),
        (r#"{"input_tokens":16}"#, "cache_hit", Value::Null),
    ]);
}

#[test]
fn a_logged_value_is_kept_though_others_contradict_it() {
    let record = r#"{"timestamp":"2025-06-01T00:00:00Z","completed_at":"2025-06-01T00:00:01Z","total_latency_ms":400,
        "ttft_ms":900,"queue_wait_ms":1,"prefill_time_ms":2,"decode_time_ms":3,"cached_tokens":0,"cache_hit":true}"#;
    let record = &record.replace('\n', "");
    assert_filled(&[
        (record, "total_latency_ms", json!(400.0)),
        (record, "ttft_ms", json!(900.0)),
        (record, "cache_hit", json!(true)),
        (record, "decode_time_ms", json!(3.0)),
    ]);
}

#[test]
fn failed_is_true_false_or_unknown() {
    let (yes, no, unknown) = (json!(true), json!(false), Value::Null);
    let cases = [
        (r#"{"status":"success"}"#, &no),
        (r#"{"status":"Completed"}"#, &no),
        (r#"{"status":"error"}"#, &yes),
        (r#"{"status":"TIMEOUT"}"#, &yes),
        (r#"{"status":"cancelled"}"#, &yes),
        (r#"{"status":"200"}"#, &no),
        (r#"{"status":503}"#, &yes),
        // the first that is present decides
        (r#"{"error_code":"500","status":"success"}"#, &no),
        (r#"{"status":"failed","error_code":null}"#, &yes),
        (r#"{"http_status":500,"error_code":0}"#, &no),
        (r#"{"error_code":null}"#, &no),
        (r#"{"error_code":0}"#, &no),
        (r#"{"error_code":"0"}"#, &no),
        (r#"{"error_code":""}"#, &no),
        (r#"{"error_code":-1,"error_msg":""}"#, &yes),
        (r#"{"error_code":"OOM"}"#, &yes),
        (r#"{"error_code":429}"#, &yes),
        // however it is written
        (r#"{"error_code":"\u0030"}"#, &no),
        (r#"{"status":"\u0065rror"}"#, &yes),
        (r#"{"error":"\n"}"#, &no),
        (r#"{"http_status":200}"#, &no),
        (r#"{"http_status":"404"}"#, &yes),
        (r#"{"http_status":499}"#, &yes),
        (r#"{"error":{"message":"out of memory"}}"#, &yes),
        (r#"{"error":"out of memory"}"#, &yes),
        (r#"{"error":null}"#, &no),
        (r#"{"finish_reason":"stop"}"#, &no),
        (r#"{"finish_reason":"abort"}"#, &yes),
        // cut short or filtered is hidden, not failed
        (r#"{"finish_reason":"length"}"#, &no),
        (r#"{"finish_reason":"content_filter"}"#, &no),
        (r#"{"request_id":"x"}"#, &unknown),
        (r#"{"request_id":"x","status":null}"#, &unknown),
        (r#"{"latency_ms":1}"#, &unknown),
    ];
    assert_filled(&cases.map(|(record, failed)| (record, "failed", failed.clone())));
}

#[test]
fn an_unknown_outcome_is_measured_like_a_success_and_counted() {
    let log = "{\"latency_ms\":1}\n{\"latency_ms\":2,\"status\":\"ok\"}\n{\"latency_ms\":90,\"status\":\"error\"}\n";
    let report = Workspace::with("log.ndjson", log).report(&["latency", "log.ndjson"]);
    let row = report.row();
    assert_eq!(
        [&row["requests"], &row["failed"], &row["measured"], &row["max_ms"]],
        [&json!(3), &json!(1), &json!(2), &json!(2.0)]
    );
    assert_eq!(report.note("outcome_unknown").1, Some(1));
}

#[test]
fn rows_of_llmperf_are_read_with_their_errors() {
    let row = |error: Value, ttft: f64, end: f64| {
        json!({
            "error_code": error,
            "error_msg": "",
            "inter_token_latency_s": 0.5,
            "ttft_s": ttft,
            "end_to_end_latency_s": end,
            "number_total_tokens": 561,
            "number_output_tokens": 11,
            "number_input_tokens": 550,
        })
    };
    let log = json!([row(json!(-1), 0.0, 0.0), row(Value::Null, 0.5, 1.5), row(Value::Null, 1.0, 3.0)]).to_string();
    let workspace = Workspace::with("individual_responses.json", log);
    let report = workspace.report(&["latency", "--metric", "total,ttft,tpot", "individual_responses.json"]);
    assert_eq!(report.column("failed"), [1, 1, 1]);
    assert_eq!(report.column("measured"), [2, 2, 2]);
    assert_eq!(report.column("p50_ms"), [2250.0, 750.0, 150.0]);
    assert_eq!(report.notes("outcome_unknown"), []);
}

/// All metrics of a log as `name: mean`.
fn means(report: &Report) -> Vec<(String, Value)> {
    report.rows().iter().map(|row| (row["metric"].as_str().unwrap().to_owned(), row["mean_ms"].clone())).collect()
}

fn metrics(values: [f64; 6]) -> Vec<(String, Value)> {
    ["total", "ttft", "tpot", "queue", "prefill", "decode"]
        .iter()
        .zip(values)
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect()
}

#[test]
fn the_engine_schema_of_the_products_users_is_read_right() {
    let record = |id: u32, factor: u32, error: Value| {
        let record = json!({
            "request_id": format!("req-{id}"),
            "timestamp": format!("2025-06-01T08:00:0{id}+08:00"),
            "model_name": "qwen",
            "model_version": "v2.4.0",
            "business_line": "search",
            "user_tag": "vip",
            "input_tokens": 1000 * factor,
            "output_tokens": 11,
            "queue_wait_ms": 200 * factor,
            "prefill_time_ms": 300 * factor,
            "decode_time_ms": 1000 * factor,
            "total_latency_ms": 1500 * factor,
            "gpu_id": id,
            "batch_size": 8,
            "cache_hit": true,
            "error_code": error,
        });
        record.to_string()
    };
    let log = [record(1, 1, Value::Null), record(2, 3, json!(0)), record(3, 9, json!("1"))].join("\n");
    let workspace = Workspace::with("engine.ndjson", log);
    let report = workspace.report(&["latency", "--metric", "all", "engine.ndjson"]);
    assert_eq!(means(&report), metrics([3000.0, 1000.0, 200.0, 400.0, 600.0, 2000.0]));
    assert!(report.rows().iter().all(|row| row["failed"] == 1 && row["measured"] == 2));
    let row = workspace.sql("SELECT * FROM logs ORDER BY request_id", &["engine.ndjson"]).rows()[0].clone();
    for (column, value) in [
        ("request_id", json!("req-1")),
        ("timestamp", json!("2025-06-01T00:00:01+00:00")),
        ("model_name", json!("qwen")),
        ("model_version", json!("v2.4.0")),
        ("business_line", json!("search")),
        ("user_tag", json!("vip")),
        ("gpu_id", json!("1")),
        ("batch_size", json!(8)),
        ("cache_hit", json!(true)),
        ("failed", json!(false)),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
}

#[test]
fn the_gateway_schema_of_the_products_users_is_read_right() {
    // as in a known sample, complete_at - first_token_at is the total, and the per-token time is decode / n
    let record = |id: u32, factor: u32, status: &str| {
        let record = json!({
            "request_id": format!("req-{id}"),
            "model": "qwen",
            "model_version": "v1",
            "prompt_tokens": 100 * factor,
            "completion_tokens": 11,
            "total_tokens": 100 * factor + 11,
            "latency_total_ms": 1500 * factor,
            "latency_ttft_ms": 500 * factor,
            "latency_prefill_ms": 300 * factor,
            "latency_decode_ms": 1000 * factor,
            "time_per_output_token_ms": f64::from(1000 * factor) / 11.0,
            "first_token_at": "2025-06-01T00:00:10Z",
            "complete_at": format!("2025-06-01T00:00:{:04.1}Z", 10.0 + 1.5 * f64::from(factor)),
            "queue_ms": 200 * factor,
            "status": status,
            "finish_reason": "stop",
        });
        record.to_string()
    };
    let log = [record(1, 1, "success"), record(2, 3, "success"), record(3, 9, "error")].join("\n");
    let workspace = Workspace::with("gateway.ndjson", log);
    let report = workspace.report(&["latency", "--metric", "all", "gateway.ndjson"]);
    assert_eq!(means(&report), metrics([3000.0, 1000.0, 200.0, 400.0, 600.0, 2000.0]));
    assert!(report.rows().iter().all(|row| row["failed"] == 1 && row["measured"] == 2));
    let row = workspace.sql("SELECT * FROM logs ORDER BY request_id", &["gateway.ndjson"]).rows()[1].clone();
    for (column, value) in [
        ("model_name", json!("qwen")),
        ("input_tokens", json!(300)),
        ("output_tokens", json!(11)),
        ("total_tokens", json!(311)),
        ("first_token_at", json!("2025-06-01T00:00:10+00:00")),
        ("completed_at", json!("2025-06-01T00:00:14.500+00:00")),
        // completed_at - total
        ("timestamp", json!("2025-06-01T00:00:10+00:00")),
        ("finish_reason", json!("stop")),
        ("failed", json!(false)),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
}

#[test]
fn a_map_fills_a_column_from_any_path_and_unit() {
    let records = [r#"{"timing":{"first":0.5,"a.b":2},"prompt_tokens":7,"n":9,"ttft_ms":1}"#];
    let maps =
        ["--map", "ttft_ms=timing.first:s", "--map", "queue_wait_ms=timing.\"a.b\":us", "--map", "input_tokens=n"];
    let report = rows(&records, &maps);
    let row = report.row();
    assert_eq!(
        [&row["ttft_ms"], &row["queue_wait_ms"], &row["input_tokens"]],
        [&json!(500.0), &json!(0.002), &json!(9)]
    );
}

#[test]
fn a_map_states_the_unit_of_an_epoch() {
    let report = rows(&[r#"{"when":1748736000000}"#], &["--map", "timestamp=when:ms"]);
    assert_eq!(report.row()["timestamp"], "2025-06-01T00:00:00+00:00");
}

#[test]
fn a_column_of_its_own_can_be_shown_and_grouped_by() {
    let records = [
        r#"{"labels":{"region":"eu","n":"3"},"ok":true,"w":1.5,"seen":"2025-06-01T00:00:00Z"}"#,
        r#"{"labels":{"region":"us","n":4.5}}"#,
        r#"{"labels":{"region":"eu"}}"#,
    ];
    let columns = [
        "--column",
        "region=labels.region",
        "--column",
        "n=labels.n:int",
        "--column",
        "ok=ok:bool",
        "--column",
        "w=w:float",
        "--column",
        "seen=seen:timestamp",
    ];
    let report = rows(&records, &columns);
    assert_eq!(report.column("region"), ["eu", "us", "eu"]);
    assert_eq!(report.column("n"), [json!(3), Value::Null, Value::Null]);
    assert_eq!(report.column("ok"), [json!(true), Value::Null, Value::Null]);
    assert_eq!(report.column("w"), [json!(1.5), Value::Null, Value::Null]);
    assert_eq!(report.column("seen"), [json!("2025-06-01T00:00:00+00:00"), Value::Null, Value::Null]);

    let workspace = Workspace::with("log.ndjson", records.join("\n"));
    let grouped = workspace.report(&["workload", "--by", "region", "--column", "region=labels.region", "log.ndjson"]);
    assert_eq!(
        (grouped.column("region"), grouped.column("requests")),
        (vec![json!("eu"), json!("us")], vec![json!(2), json!(1)])
    );
}

#[test]
fn money_is_decimal_and_exact() {
    let workspace = Workspace::with("log.ndjson", "{\"cost\":0.1}\n{\"cost\":\"0.2\"}\n{\"cost\":0.000000000001}\n");
    let sum = workspace.sql("SELECT sum(cost_logged) AS cost FROM logs", &["log.ndjson"]).row()["cost"].clone();
    assert_eq!(sum, "0.300000000001");
}

#[test]
fn numbers_below_zero_stand_for_what_is_not_known() {
    let line = r#"{"request_id":"x","prompt_tokens":-1,"completion_tokens":"-1","ttft_ms":-1000,"latency_ms":-5,"queue_ms":2}"#;
    assert_filled(&[
        (line, "input_tokens", Value::Null),
        (line, "output_tokens", Value::Null),
        (line, "ttft_ms", Value::Null),
        (line, "total_latency_ms", Value::Null),
        // a stage that would begin before the request is none either
        (r#"{"request_id":"y","ttft_ms":3000,"latency_ms":2000}"#, "decode_time_ms", Value::Null),
    ]);
}

#[test]
fn an_answer_that_broke_off_behind_its_200_has_failed() {
    let (yes, no) = (json!(true), json!(false));
    assert_filled(&[
        (r#"{"request_id":"x","status_code":200,"error":{"message":"cut"}}"#, "failed", yes.clone()),
        (r#"{"request_id":"x","status_code":200,"finish_reason":"error"}"#, "failed", yes.clone()),
        (r#"{"request_id":"x","status_code":200,"error":null}"#, "failed", no.clone()),
        (r#"{"request_id":"x","success":false}"#, "failed", yes),
        (r#"{"request_id":"x","success":true}"#, "failed", no),
    ]);
}

#[test]
fn text_inside_a_message_never_replaces_the_request_that_the_record_tells() {
    let inner = r#"{\"request_id\":\"evil\",\"prompt_tokens\":999,\"latency_ms\":1}"#;
    for key in ["message", "msg", "log", "line"] {
        let record = format!(
            r#"{{"request_id":"a","timestamp":"2026-01-02T03:00:00Z","level":"INFO","model":"m","prompt_tokens":10,"{key}":"{inner}"}}"#
        );
        let workspace = Workspace::with("log.ndjson", record);
        let row = workspace.sql("SELECT request_id, input_tokens FROM logs", &["log.ndjson"]).row().clone();
        assert_eq!(row, json!({"request_id": "a", "input_tokens": 10}), "{key}");
    }
    // a line that says nothing of its own
    let record = format!(r#"{{"timestamp":"2026-01-02T03:00:00Z","level":"INFO","message":"{inner}"}}"#);
    let workspace = Workspace::with("log.ndjson", record);
    assert_eq!(workspace.sql("SELECT request_id FROM logs", &["log.ndjson"]).row()["request_id"], "evil");
}

#[test]
fn input_that_leaves_cached_tokens_out_is_read_with_them_and_told() {
    let log = [
        r#"{"request_id":"a","prompt_tokens":20,"cached_tokens":900,"cache_write_tokens":80}"#,
        r#"{"request_id":"b","prompt_tokens":20,"cached_tokens":20}"#,
        r#"{"request_id":"c","prompt_tokens":20,"cached_tokens":null}"#,
        r#"{"request_id":"d","cached_tokens":5}"#,
        r#"{"request_id":"e","prompt_tokens":100,"cached_tokens":101,"completion_tokens":20,"total_tokens":120}"#,
    ];
    let workspace = Workspace::with("log.ndjson", log.join("\n"));
    let copy = "SELECT request_id, input_tokens AS prompt_tokens, cached_tokens, cache_write_tokens FROM logs";
    workspace.write(
        "log.csv",
        "request_id,prompt_tokens,cached_tokens,cache_write_tokens,completion_tokens,total_tokens\na,20,900,80,,\nb,20,20,,,\nc,20,,,,\nd,,5,,,\ne,100,101,,20,120\n",
    );
    let raw = "SELECT request_id, \"in\" AS prompt_tokens, cached_tokens, cache_write_tokens, output_tokens, total_tokens FROM logs";
    let columns = ["--column", "in=prompt_tokens:int", "--format", "parquet", "-o", "log.parquet", "log.ndjson"];
    workspace.run(&[&["sql", raw], &columns[..]].concat()).exits(0);
    for log in ["log.ndjson", "log.csv", "log.parquet"] {
        let report = workspace.sql(&format!("{copy} ORDER BY 1"), &[log]);
        assert_eq!(
            report.column("prompt_tokens"),
            [json!(1000), json!(20), json!(20), json!(null), json!(100)],
            "{log}"
        );
        assert_eq!(report.note("cached_above_input").1, Some(1), "{log}");
        // whatever else the query reads
        let alone = workspace.sql("SELECT input_tokens FROM logs ORDER BY request_id", &[log]);
        assert_eq!(alone.column("input_tokens")[0], 1000, "{log}");
        let filtered = workspace.sql("SELECT request_id FROM logs WHERE input_tokens > 500", &[log]);
        assert_eq!(filtered.column("request_id"), ["a"], "{log}");
    }
}

#[test]
fn a_record_that_ends_before_it_begins_tells_no_latency_and_is_counted() {
    let log =
        "{\"request_id\":\"a\",\"timestamp\":\"2026-01-02T03:00:09Z\",\"completed_at\":\"2026-01-02T03:00:05Z\"}\n";
    let workspace = Workspace::with("log.ndjson", log);
    workspace.write("log.csv", "request_id,timestamp,completed_at\na,2026-01-02T03:00:09Z,2026-01-02T03:00:05Z\n");
    let copy = "SELECT request_id, timestamp, completed_at FROM logs";
    workspace.run(&["sql", copy, "--format", "parquet", "-o", "log.parquet", "log.ndjson"]).exits(0);
    for log in ["log.ndjson", "log.csv", "log.parquet"] {
        let report = workspace.sql("SELECT total_latency_ms FROM logs", &[log]);
        assert_eq!(report.row()["total_latency_ms"], json!(null), "{log}");
        assert_eq!(report.note("unfit_value").1, Some(1), "{log}");
    }
}

#[test]
fn a_line_that_tells_how_long_something_took_is_no_request_unless_it_says_more_of_one() {
    let log = [
        r#"{"level":"INFO","msg":"model loaded","duration_ms":5000}"#,
        r#"{"level":"INFO","msg":"served","duration_ms":700,"model":"m"}"#,
        r#"{"level":"INFO","msg":"served","latency_ms":800}"#,
        r#"{"duration_ms":900}"#,
    ];
    let report = Workspace::with("log.ndjson", log.join("\n"))
        .sql("SELECT total_latency_ms FROM logs ORDER BY 1", &["log.ndjson"]);
    assert_eq!(report.column("total_latency_ms"), [700.0, 800.0, 900.0]);
    assert_eq!(report.counted("skipped"), 1);
}

#[test]
fn money_with_the_noise_of_floats_is_rounded_and_not_lost() {
    let log = "{\"model\":\"m\",\"cost\":0.30000000000000004}\n{\"model\":\"m\",\"cost\":1.3500000000000002e-05}\n";
    let report = Workspace::with("log.ndjson", log).sql("SELECT sum(cost_logged) AS sum FROM logs", &["log.ndjson"]);
    assert_eq!(report.row()["sum"], "0.3000135");
    assert_eq!(report.notes("unfit_value"), []);
}

#[test]
fn a_start_that_is_named_so_is_the_arrival_and_not_when_the_line_was_written() {
    let log = r#"{"model":"m","timestamp":"2026-01-02T03:00:05Z","start_time":"2026-01-02T03:00:00Z","end_time":"2026-01-02T03:00:05.5Z"}"#;
    let report = Workspace::with("log.ndjson", log).sql("SELECT total_latency_ms FROM logs", &["log.ndjson"]);
    assert_eq!(report.row()["total_latency_ms"], 5500.0);
}

#[test]
fn what_was_not_streamed_and_what_lies_within_one_second_of_a_coarse_clock_has_no_value() {
    let log = [
        r#"{"id":"a","stream":false,"ttft_ms":1500,"latency_ms":1500,"completion_tokens":200}"#,
        r#"{"id":"b","ttft_ms":1500,"latency_ms":1500,"completion_tokens":200}"#,
        r#"{"id":"c","start_time":1767322800,"end_time":1767322800,"completion_tokens":2}"#,
        r#"{"id":"d","stream":true,"ttft_ms":500,"latency_ms":1500,"completion_tokens":201}"#,
    ];
    let workspace = Workspace::with("log.ndjson", log.join("\n"));
    let report = workspace.sql("SELECT total_latency_ms, tpot_ms FROM logs ORDER BY request_id", &["log.ndjson"]);
    assert_eq!(report.column("tpot_ms"), [json!(null), json!(null), json!(null), json!(5.0)]);
    assert_eq!(report.column("total_latency_ms")[2], json!(null));
}
