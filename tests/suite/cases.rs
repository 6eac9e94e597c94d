//! What users of such tools ran into, with the figures that they met: latency, caches, hidden failures and tables.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, ndjson};

/// A request that arrived at ten, with these fields beside.
fn request(id: impl ToString, fields: Value) -> Value {
    let mut record = json!({"request_id": id.to_string(), "timestamp": "2025-06-01T10:00:00Z", "model": "m"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

fn report(records: &[Value], arguments: &[&str]) -> Report {
    Workspace::with_records(records).report(&[arguments, &["log.ndjson"]].concat())
}

fn numbers(row: &Value, columns: &[&str]) -> Vec<f64> {
    columns.iter().map(|column| row[column].as_f64().unwrap_or_else(|| panic!("{column}: {row}"))).collect()
}

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

/// What SQL makes of a list of values.
fn of_values(expression: &str, values: &str) -> Value {
    let query = format!("SELECT {expression} AS value FROM (VALUES {values}) AS numbers (x)");
    Workspace::with_records(&[request("a", json!({}))]).sql(&query, &["log.ndjson"]).row()["value"].clone()
}

/// Rows of `errors` in a line each.
fn hidden(report: &Report) -> Vec<String> {
    let text = |row: &Value| format!("{} {} {} {}", row["kind"], row["code"], row["finish_reason"], row["errors"]);
    report.rows().iter().map(|row| text(row).replace('"', "")).collect()
}

/// P99 stood still at 10 s and 60 s, could not fall below 297 ms, and 1.2 s each were shown as 1.50, 1.90 and 1.99 s.
#[test]
fn a_percentile_is_of_the_values_and_no_edge_of_a_histogram() {
    let of = |slow: f64, number_of_slow: u32| {
        let total = |number: u32| if number < number_of_slow { slow } else { 1200.0 };
        let records: Vec<Value> = (0..100)
            .map(|number| request(number, json!({"total_latency_ms": total(number), "ttft_ms": 12, "status": "ok"})))
            .collect();
        let report = report(&records, &["latency", "--metric", "total,ttft", "--percentiles", "50,90,99"]);
        report.rows().iter().map(|row| numbers(row, &["p50_ms", "p90_ms", "p99_ms"])).collect::<Vec<_>>()
    };
    assert_eq!(of(1200.0, 0), [[1200.0, 1200.0, 1200.0], [12.0, 12.0, 12.0]]);
    assert_eq!(of(11_000.0, 2)[0], [1200.0, 1200.0, 11_000.0]);
    assert_eq!(of(403_000.0, 2)[0], [1200.0, 1200.0, 403_000.0]);
}

/// Where only counts of buckets are at hand, a P99 out of them would be made up.
#[test]
fn the_buckets_of_a_histogram_are_no_requests_and_give_no_percentile() {
    let name = "vllm:time_to_first_token_seconds_bucket";
    let rows =
        [json!({"metric": name, "le": "60.0", "value": 98}), json!({"metric": name, "le": "+Inf", "value": 100})];
    let workspace = Workspace::with("json.log", ndjson(&rows));
    workspace.write("text.log", format!("# TYPE x histogram\n{name}{{le=\"60.0\"}} 98\n{name}{{le=\"+Inf\"}} 100\n"));
    for log in ["json.log", "text.log"] {
        let run = workspace.run(&["latency", "--metric", "ttft", "--format", "json", log]).exits(5);
        let row = run.report_anyway().row().clone();
        assert_eq!((&row["measured"], &row["p99_ms"]), (&json!(0), &json!(null)), "{log}");
    }
}

/// The median of 1, 2, 3 and three NULLs was 0, and that of nothing was not NULL.
#[test]
fn the_middle_of_one_two_and_three_is_two_in_every_spelling() {
    let values = "(1), (2), (3), (NULL), (NULL), (NULL)";
    for middle in [
        "median(x)",
        "approx_median(x)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    ] {
        assert_eq!(of_values(middle, values), 2.0, "{middle}");
        assert_eq!(of_values(&format!("{middle} FILTER (WHERE x > 3)"), values), Value::Null, "{middle}");
    }
}

/// NaN and Infinity broke off the whole query.
#[test]
fn infinity_among_the_values_breaks_nothing() {
    assert_eq!(of_values("median(x)", "(CAST('Infinity' AS DOUBLE)), (CAST('NaN' AS DOUBLE)), (1.0), (3.0)"), 3.0);
    for middle in ["median(x)", "approx_median(x)"] {
        assert_eq!(
            of_values(middle, "(CAST('Infinity' AS DOUBLE)), (CAST('-Infinity' AS DOUBLE)), (CAST('NaN' AS DOUBLE))"),
            Value::Null,
            "{middle}"
        );
    }
    let line = |latency: &str| format!("{{\"request_id\":\"{latency}\",\"latency_ms\":{latency},\"status\":\"ok\"}}\n");
    let log = ["NaN", "Infinity", "-Infinity", "1e400", "7"].map(line).concat();
    let report = Workspace::with("log.ndjson", log).report(&["latency", "log.ndjson"]);
    assert_eq!([&report.row()["requests"], &report.row()["measured"]], [5, 1]);
    assert_eq!(numbers(report.row(), &["mean_ms", "p50_ms", "p99_ms", "max_ms"]), [7.0; 4]);
    assert_eq!(report.note("unfit_value").1, Some(4));
}

/// The same values in more files gave another percentile.
#[test]
fn a_percentile_does_not_depend_on_the_number_of_files() {
    let records: Vec<Value> =
        (0..101).map(|number| request(number, json!({"latency_ms": number * 7919 % 1000, "status": "ok"}))).collect();
    let one = report(&records, &["latency"]).row().clone();
    assert_eq!(numbers(&one, &["p50_ms", "p95_ms", "p99_ms", "max_ms"]), [492.0, 947.0, 978.0, 981.0]);
    let workspace = Workspace::new();
    let mut names = Vec::new();
    for first in 0..7 {
        let part: Vec<Value> = records.iter().skip(first).step_by(7).cloned().collect();
        names.push(format!("{first}.ndjson"));
        workspace.write(&names[first], ndjson(&part));
    }
    let arguments: Vec<&str> = ["latency"].into_iter().chain(names.iter().map(String::as_str)).collect();
    assert_eq!(*workspace.report(&arguments).row(), one);
}

/// The median of two prices lost the last digit, which neither of them has.
#[test]
fn a_median_of_money_may_have_one_digit_more_than_its_values() {
    let shown = |value: &Value| value.to_string().replace('"', "");
    let cents = "(CAST(0.01 AS DECIMAL(10, 2))), (CAST(0.02 AS DECIMAL(10, 2)))";
    for middle in ["median(x)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)"] {
        assert_eq!(shown(&of_values(middle, cents)), "0.015", "{middle}");
    }
    let records = [request("a", json!({"cost": "0.01"})), request("b", json!({"cost": "0.02"}))];
    let workspace = Workspace::with_records(&records);
    let report = workspace.sql("SELECT median(cost_logged) AS middle FROM logs", &["log.ndjson"]);
    assert_eq!(shown(&report.row()["middle"]), "0.015");
}

/// The mean TTFT fell from 248 s to 138 s as more requests ran at once, since more of them diluted one cold start.
#[test]
fn percentiles_and_the_queue_show_what_a_mean_with_an_outlier_hides() {
    let level = |concurrency: u64, count: u64, usual: u64, cold: u64| {
        let ttft = move |number: u64| if number == 0 { cold } else { usual };
        (0..count).map(move |number| {
            let fields = json!({"concurrency": concurrency, "ttft_ms": ttft(number),
                                "queue_wait_ms": ttft(number) - 1000, "prefill_time_ms": 1000, "status": "ok"});
            request(format!("{concurrency}-{number}"), fields)
        })
    };
    let records: Vec<Value> = level(1, 20, 2000, 4_922_000).chain(level(8, 100, 90_000, 4_890_000)).collect();
    let column = ["--column", "concurrency=concurrency:int", "--by", "concurrency", "--percentiles", "50,90"];
    let report = report(&records, &[&["latency", "--metric", "ttft,queue,prefill"], &column[..]].concat());
    let shown = |row: &Value| numbers(row, &["concurrency", "mean_ms", "p50_ms", "p90_ms"]);
    let rows: Vec<_> = report.rows().iter().map(shown).collect();
    let expected = [
        [1.0, 248_000.0, 2000.0, 2000.0],
        [1.0, 247_000.0, 1000.0, 1000.0],
        [1.0, 1000.0, 1000.0, 1000.0],
        [8.0, 138_000.0, 90_000.0, 90_000.0],
        [8.0, 137_000.0, 89_000.0, 89_000.0],
        [8.0, 1000.0, 1000.0, 1000.0],
    ];
    assert_eq!(rows, expected);
    let metrics = ["ttft", "queue", "prefill"];
    assert_eq!(report.column("metric"), [metrics, metrics].concat());
}

/// The P95 of tokens per second was that of the fastest requests.
#[test]
fn the_p95_of_the_time_per_token_is_of_the_slowest_requests() {
    // 90 requests of 100 tokens a second, and 10 of 5
    let total = |number: u32| if number < 90 { 200 } else { 2100 };
    let records: Vec<Value> = (0..100)
        .map(|number| {
            let fields =
                json!({"ttft_ms": 100, "output_tokens": 11, "total_latency_ms": total(number), "status": "ok"});
            request(number, fields)
        })
        .collect();
    let report = report(&records, &["latency", "--metric", "tpot", "--percentiles", "5,50,95"]);
    assert_eq!(numbers(report.row(), &["p5_ms", "p50_ms", "p95_ms", "max_ms"]), [10.0, 10.0, 200.0, 200.0]);
}

/// One tool had the time to the first token in its time per output token, another in its list of gaps: 136.36 ms each.
#[test]
fn the_time_per_token_leaves_the_first_token_out_whatever_other_tools_logged() {
    let fields = json!({"first_token_at": "2025-06-01T10:00:00.500Z", "completed_at": "2025-06-01T10:00:01.500Z",
                        "output_tokens": 11, "time_per_output_token_ms": 136.36363636363637,
                        "inter_token_latency_ms": 136.36363636363637, "status": "ok"});
    let report = report(&[request("a", fields)], &["latency", "--metric", "total,ttft,tpot"]);
    assert_eq!(report.column("metric"), ["total", "ttft", "tpot"]);
    assert_eq!(report.column("mean_ms"), [1500.0, 500.0, 100.0]);
}

/// Two tools gave 55 and 10.9 ms per token of the same log: one weighs requests, the other tokens.
#[test]
fn the_mean_time_per_token_weighs_every_request_alike() {
    let short = request("short", json!({"ttft_ms": 100, "output_tokens": 2, "total_latency_ms": 200, "status": "ok"}));
    let long = request("long", json!({"ttft_ms": 100, "output_tokens": 101, "total_latency_ms": 1100, "status": "ok"}));
    let workspace = Workspace::with_records(&[short, long]);
    let report = workspace.report(&["latency", "--metric", "tpot", "log.ndjson"]);
    assert_eq!((&report.row()["measured"], &report.row()["mean_ms"]), (&json!(2), &json!(55.0)));
    let by_token = "SELECT sum(total_latency_ms - ttft_ms) / sum(output_tokens - 1) AS gap FROM logs";
    assert!(close(&workspace.sql(by_token, &["log.ndjson"]).row()["gap"], 1100.0 / 101.0));
}

/// Answers of one token made the time per token of all of them NaN.
#[test]
fn an_answer_of_one_token_has_no_time_per_token_and_one_of_two_has() {
    let fields =
        |tokens: u64| json!({"ttft_ms": 100, "total_latency_ms": 150, "output_tokens": tokens, "status": "ok"});
    let records: Vec<Value> = (0..4).map(|tokens| request(tokens, fields(tokens))).collect();
    let each = report(&records, &["latency", "--metric", "tpot", "--by", "output_tokens"]);
    assert_eq!(each.column("measured"), [0, 0, 1, 1]);
    assert_eq!(each.column("mean_ms"), [json!(null), json!(null), json!(50.0), json!(25.0)]);
    let all = report(&records, &["latency", "--metric", "tpot"]);
    assert_eq!((&all.row()["measured"], &all.row()["mean_ms"]), (&json!(2), &json!(37.5)));
}

/// A first chunk that only names the role of the speaker was taken for the first token.
#[test]
fn a_chunk_without_content_is_not_the_first_token() {
    let fields = json!({"time_to_first_chunk_ms": 20, "time_to_first_token_ms": 700, "total_latency_ms": 1000,
                        "output_tokens": 4, "status": "ok"});
    let row = report(&[request("a", fields)], &["sql", "SELECT ttft_ms, tpot_ms FROM logs"]).row().clone();
    assert_eq!(row, json!({"ttft_ms": 700.0, "tpot_ms": 100.0}));
    let chunk = |time: &str, delta: Value, end: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_748_772_000, "model": "m",
               "timestamp": time, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    let chunks = [
        chunk("2025-06-01T10:00:00.020Z", json!({"role": "assistant", "content": ""}), json!(null)),
        chunk("2025-06-01T10:00:00.700Z", json!({"content": "Hi"}), json!(null)),
        chunk("2025-06-01T10:00:01Z", json!({}), json!("stop")),
    ];
    // nor do chunks alone tell when the request arrived
    let row = report(&chunks, &["sql", "SELECT ttft_ms, finish_reason FROM logs"]).row().clone();
    assert_eq!(row, json!({"ttft_ms": null, "finish_reason": "stop"}));
}

/// TTFT was the whole latency, as the time of the first token was set to the end where nothing was streamed.
#[test]
fn a_first_token_at_the_very_end_was_not_streamed_and_is_no_ttft() {
    let record = |id: u32, first: &str| {
        json!({"id": format!("chatcmpl-{id}"), "call_type": "acompletion", "response_cost": 0.001, "status": "success",
               "prompt_tokens": 10, "completion_tokens": 200, "total_tokens": 210, "model": "gpt-4o",
               "startTime": "2025-06-01T10:00:00Z", "completionStartTime": first, "endTime": "2025-06-01T10:00:01.5Z"})
    };
    let records =
        [record(1, "2025-06-01T10:00:01.5Z"), record(2, "2025-06-01T10:00:01.5Z"), record(3, "2025-06-01T10:00:00.3Z")];
    let report = report(&records, &["latency", "--metric", "ttft,total"]);
    assert_eq!(report.column("measured"), [1, 3]);
    assert_eq!(report.column("mean_ms"), [300.0, 1500.0]);
}

/// Calls of 23,478 ms in sum were shown as how long a run of 13,156 ms took, and a TTFT that nobody measured as 0 ms.
#[test]
fn calls_that_overlap_are_counted_at_once_and_never_added_up() {
    let calls = [("10:00:00", 9000), ("10:00:02", 8478), ("10:00:07.156", 6000)];
    let call = |(time, total): (&str, u32)| {
        let fields = json!({"timestamp": format!("2025-06-01T{time}Z"), "ttft_ms": null, "total_latency_ms": total,
                            "output_tokens": 20, "status": "ok"});
        request(total, fields)
    };
    let workspace = Workspace::with_records(&calls.map(call));
    let latency = workspace.report(&["latency", "--metric", "total,ttft", "log.ndjson"]);
    assert_eq!(latency.column("measured"), [3, 0]);
    assert_eq!(latency.column("mean_ms"), [json!(7826.0), json!(null)]);
    assert_eq!(latency.column("max_ms"), [json!(9000.0), json!(null)]);
    let capacity = workspace.report(&["capacity", "--percentiles", "50", "log.ndjson"]);
    let at_once = capacity.rows().iter().find(|row| row["measure"] == "at once").unwrap();
    assert_eq!((&at_once["p50"], &at_once["peak"]), (&json!(2.0), &json!(3)));
    assert_eq!(at_once["peak_at"], "2025-06-01T10:00:07.156+00:00");
    for report in [latency, capacity] {
        assert!(!report.0.to_string().contains("23478"), "{}", report.0);
    }
}

/// Seconds were compared with a target in milliseconds.
#[test]
fn the_unit_of_a_duration_is_declared_and_two_units_in_one_column_are_found() {
    let records = [
        request("a", json!({"ttft_s": 1.615576321})),
        request("b", json!({"ttft_ms": 1615.576321})),
        // who knows
        request("c", json!({"ttft": 1.615576321})),
    ];
    let ttft = report(&records, &["sql", "SELECT ttft_ms FROM logs ORDER BY request_id"]).column("ttft_ms");
    assert_eq!(ttft, [json!(1615.576321), json!(1615.576321), json!(null)]);
    let mapped = report(&records[2..], &["latency", "--metric", "ttft", "--map", "ttft_ms=ttft:s"]);
    assert_eq!(mapped.row()["mean_ms"], 1615.576321);
    let mixed: Vec<Value> = (0..100)
        .map(|number| {
            let milliseconds = f64::from(400 + number % 60_u32);
            request(number, json!({"ttft_ms": if number < 60 { milliseconds } else { milliseconds / 1000.0 }}))
        })
        .collect();
    let inspected = report(&mixed, &["inspect"]);
    let (text, count) = inspected.note("two_units");
    assert!(text.contains("ttft_ms") && text.contains("1,000 times"), "{text}");
    assert_eq!(count, Some(40));
}

/// One engine told a hit rate of 0 %, another 49.3 % of the same prompts: 240 tokens in common, blocks of 784.
#[test]
fn a_hit_ratio_of_zero_is_explained_by_prompts_below_a_block() {
    let prompt = |deployment: &str, cached: u64| {
        let fields = json!({"deployment": deployment, "input_tokens": 487, "cached_tokens": cached});
        (0..10).map(|number| request(format!("{deployment}{number}"), fields.clone())).collect::<Vec<_>>()
    };
    let records = [prompt("large", 0), prompt("small", 240)].concat();
    let report = report(&records, &["cache", "--by", "deployment", "--block-size", "784"]);
    assert_eq!(report.column("deployment"), ["large", "small"]);
    assert_eq!(report.column("token_hit_ratio")[0], 0.0);
    assert_eq!(format!("{:.3}", report.column("token_hit_ratio")[1].as_f64().unwrap()), "0.493");
    assert_eq!(report.column("request_hit_ratio"), [0.0, 1.0]);
    assert_eq!(report.column("misses_below_block"), [10, 0]);
}

/// A cache of answers hit 51 % and 60 % of the requests; 1.1 % and 2.2 % of them rightly.
#[test]
fn whether_a_hit_was_right_may_stand_in_a_column_of_the_log() {
    let query = "SELECT CAST(count(*) FILTER (WHERE response_cache_hit) AS DOUBLE) / count(*) AS raw,
                        CAST(count(*) FILTER (WHERE response_cache_hit AND valid) AS DOUBLE) / count(*) AS valid
                 FROM logs";
    for (hits, valid, expected) in [(510, 11, [0.51, 0.011]), (600, 22, [0.6, 0.022])] {
        let records: Vec<Value> = (0..1000)
            .map(|number| {
                request(
                    number,
                    json!({"input_tokens": 100, "response_cache_hit": number < hits, "valid": number < valid}),
                )
            })
            .collect();
        let report = report(&records, &["sql", query, "--column", "valid=valid:bool"]);
        assert_eq!(numbers(report.row(), &["raw", "valid"]), expected);
    }
}

/// What a cache saved was shown as 0 where nobody could know it.
#[test]
fn what_a_hit_saved_is_unknown_where_no_miss_was_measured() {
    let hit =
        |id: u32| json!({"model": format!("m{id}"), "input_tokens": 1000, "cached_tokens": 800, "prefill_time_ms": 20});
    let miss = json!({"model": "m2", "input_tokens": 1000, "cached_tokens": 0, "prefill_time_ms": 100});
    let records = [request("a", hit(1)), request("b", hit(2)), request("c", miss)];
    let report = report(&records, &["cache", "--by", "model"]);
    assert_eq!(report.column("model"), ["m1", "m2"]);
    assert_eq!(report.column("saved_prefill_ms"), [json!(null), json!(80.0)]);
    assert_eq!(report.column("unvalued_tokens"), [800, 0]);
}

/// An answer that was cut off by its limit passed for whole, since its text was valid JSON.
#[test]
fn an_answer_at_its_limit_is_truncated_even_where_its_text_is_valid_json() {
    let answer = |id: &str, reason: &str| {
        let fields = json!({"http_status": 200, "output_tokens": 12, "max_tokens": 12, "finish_reason": reason,
                            "response": "{\"answer\":[1,2]}"});
        request(id, fields)
    };
    let report = report(&[answer("cut", "length"), answer("whole", "stop")], &["errors"]);
    assert_eq!(hidden(&report), ["truncated length length 1"]);
}

/// Answers that a content filter had cut off were told as too long, and tried again with a higher limit.
#[test]
fn an_answer_is_incomplete_for_the_reason_that_its_response_gives() {
    let response = |reason: &str| {
        json!({"id": format!("resp_{reason}"), "object": "response", "created_at": 1_748_772_000, "model": "m",
               "status": "incomplete", "incomplete_details": {"reason": reason},
               "output": [{"id": "msg_1", "type": "message", "role": "assistant",
                           "content": [{"type": "output_text", "text": "x"}]}],
               "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}})
    };
    let report = report(&[response("content_filter"), response("max_output_tokens")], &["errors"]);
    assert_eq!(hidden(&report), ["filtered content_filter content_filter 1", "truncated max_output_tokens length 1"]);
}

/// A filter that says so in another spelling keeps its word beside the common one.
#[test]
fn the_reason_of_an_answer_is_shown_raw_and_in_one_spelling() {
    let words = ["LENGTH", "CONTENT_FILTER", "SAFETY", "MAX_TOKENS"];
    let fields = |reason: &str| json!({"http_status": 200, "output_tokens": 3, "finish_reason": reason});
    let records = words.map(|word| request(word, fields(word)));
    let expected = [
        "filtered CONTENT_FILTER content_filter 1",
        "filtered SAFETY content_filter 1",
        "truncated LENGTH length 1",
        "truncated MAX_TOKENS length 1",
    ];
    assert_eq!(hidden(&report(&records, &["errors"])), expected);
}

/// Runs without any output counted as successes, and nothing said so.
#[test]
fn a_success_without_output_is_told_and_an_unknown_output_is_not_zero() {
    let answer = |id: &str, tokens: Value| {
        request(id, json!({"http_status": 200, "finish_reason": "stop", "input_tokens": 5, "output_tokens": tokens}))
    };
    let workspace =
        Workspace::with_records(&[answer("empty", json!(0)), answer("some", json!(5)), answer("unknown", json!(null))]);
    assert_eq!(hidden(&workspace.report(&["errors", "log.ndjson"])), ["empty stop stop 1"]);
    let audit = workspace.report(&["audit", "log.ndjson"]);
    let row = audit.rows().iter().find(|row| row["check"] == "a success without output").unwrap();
    assert_eq!([&row["found"], &row["of"]], [1, 2]);
}

/// A name of seven characters that are fourteen columns wide moved all borders behind it.
#[test]
fn names_of_wide_and_of_half_wide_characters_stay_in_their_column() {
    let names = ["日本語のリスト", "ｶﾀｶﾅ", "list"];
    let records = names.map(|name| request(name, json!({"model": name, "latency_ms": 5, "status": "ok"})));
    let run = Workspace::with_records(&records).run(&["latency", "--by", "model", "log.ndjson"]).exits(0);
    for (name, blanks) in [("日本語のリスト", 1), ("ｶﾀｶﾅ", 11), ("list", 11)] {
        let line = format!("│ {name}{}│        1 │", " ".repeat(blanks));
        assert!(run.text().lines().any(|other| other.starts_with(&line)), "{line}\n{}", run.text());
    }
}

/// A gate that always ended with 0 was of no use, and one that ended with 1 was taken for a crash.
#[test]
fn a_breached_gate_has_an_exit_code_of_its_own_and_still_prints_the_report() {
    let record = request("a", json!({"ttft_ms": 200, "total_latency_ms": 100, "output_tokens": 1, "status": "ok"}));
    let workspace = Workspace::with_records(&[record]);
    let gate = ["audit", "--fail-on", "error", "--format", "json"];
    let breached = workspace.run(&[&gate[..], &["log.ndjson"]].concat()).exits(3).report_anyway();
    assert_eq!(breached.column("check"), ["TTFT above the total"]);
    assert_eq!(breached.column("severity"), ["error"]);
    // the same report without a gate is no failure
    assert_eq!(workspace.report(&["audit", "log.ndjson"]).rows(), breached.rows());
    workspace.run(&[&gate[..], &["nowhere.ndjson"]].concat()).exits(1);
    workspace.run(&["audit", "--fail-on", "sometimes", "log.ndjson"]).exits(2);
}

/// A report that reads the logs twice told and kept every rejected line twice.
#[test]
fn a_rejected_line_is_told_and_kept_once_however_often_the_logs_are_read() {
    let workspace = Workspace::with("log.ndjson", "{\"request_id\":\"a\",\"latency_ms\":5}\n[1]\n");
    for report in [&["latency"][..], &["slow"], &["audit"], &["compare", "--a", "x", "--b", "y"]] {
        let run = workspace.run(&[report, &["--rejects", "rejects.jsonl", "log.ndjson"]].concat()).exits(0);
        assert_eq!(workspace.read("rejects.jsonl").lines().count(), 1, "{report:?}");
        assert_eq!(run.text().matches("log.ndjson:2").count(), 1, "{report:?}: {}", run.text());
    }
}

/// Words of other producers for what others call length and content_filter.
#[test]
fn words_of_all_producers_are_hidden_failures() {
    let reasons = ["PROHIBITED_CONTENT", "SPII", "guardrail_intervened", "model_context_window_exceeded", "end_turn"];
    let records: Vec<Value> = reasons
        .iter()
        .map(|reason| {
            json!({"request_id": reason, "timestamp": "2025-06-01T10:00:00Z", "http_status": 200, "output_tokens": 3,
                   "finish_reason": reason})
        })
        .collect();
    let report = Workspace::with_records(&records).report(&["errors", "log.ndjson"]);
    let shown = |row: &Value| format!("{} {}", row["kind"], row["code"]).replace('"', "");
    let mut rows: Vec<String> = report.rows().iter().map(shown).collect();
    rows.sort();
    let expected = [
        "filtered PROHIBITED_CONTENT",
        "filtered SPII",
        "filtered guardrail_intervened",
        "truncated model_context_window_exceeded",
    ];
    assert_eq!(rows, expected);
}

/// The mean of equal ratios is that ratio, to the last digit.
#[test]
fn a_mean_of_equal_ratios_is_the_ratio() {
    let record = |id: u32| json!({"request_id": id.to_string(), "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": 1000, "cached_tokens": 800});
    let report = Workspace::with_records(&[record(1), record(2), record(3)]).report(&["cache", "log.ndjson"]);
    assert_eq!(report.row()["mean_hit_ratio"], 0.8);
}

/// A 200 whose stream broke off has no finish reason; where nearly all answers have one, that tells.
#[test]
fn an_answer_without_a_finish_reason_is_unfinished_where_nearly_all_have_one() {
    let answer = |id: u32, reason: Value, output: u32| {
        json!({"request_id": id.to_string(), "timestamp": "2025-06-01T10:00:00Z", "http_status": 200, "max_tokens": 1024,
               "output_tokens": output, "finish_reason": reason})
    };
    let mut records: Vec<Value> = (0..30).map(|id| answer(id, json!("stop"), 1024)).collect();
    records.push(answer(30, json!(null), 10));
    let report = Workspace::with_records(&records).report(&["errors", "log.ndjson"]);
    let row = report.row();
    assert_eq!((&row["kind"], &row["code"], &row["errors"]), (&json!("unfinished"), &json!("200"), &json!(1)));
    assert_eq!(row["share_of_requests"], json!(1.0 / 31.0));
    // in logs that rarely say why an answer ended it says nothing
    let rarely: Vec<Value> =
        (0..30).map(|id| answer(id, if id < 15 { json!("stop") } else { json!(null) }, 10)).collect();
    assert_eq!(Workspace::with_records(&rarely).report(&["errors", "log.ndjson"]).rows().len(), 0);
}

/// The time to the first token once stood among the gaps between tokens too, and doubled it.
#[test]
fn a_ttft_that_leaked_into_the_gaps_is_not_counted_twice() {
    let gaps = |leaked: bool| -> Vec<f64> { leaked.then_some(0.5).into_iter().chain([0.1; 10]).collect() };
    let run = json!({"model_id": "m", "label": null, "ttfts": [0.5, 0.5], "itls": [gaps(false), gaps(true)], "input_lens": [5, 5],
                     "output_lens": [11, 11], "start_times": [1.0, 2.0], "errors": ["", ""]});
    let workspace = Workspace::with("run.json", run.to_string());
    let report = workspace.report(&["sql", "SELECT total_latency_ms, tpot_ms FROM logs", "run.json"]);
    let expected = json!({"total_latency_ms": 1500.0, "tpot_ms": 100.0});
    assert_eq!(report.rows(), [expected.clone(), expected]);
}
