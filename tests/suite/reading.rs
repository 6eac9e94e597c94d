//! Odd and broken records: each has its result, and one bad record costs that record only.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::command::{Records, Report, Workspace};

/// A record that nothing is wrong with.
pub fn good(id: &str) -> String {
    let rest = r#""input_tokens":100,"output_tokens":10,"total_latency_ms":50,"status":"success""#;
    format!(r#"{{"request_id":"{id}","timestamp":"2025-06-01T00:00:00Z",{rest}}}"#)
}

/// The columns that the tests look at, of every record in the order of the log.
const ROWS: &str = "SELECT request_id, input_tokens, total_latency_ms, failed, tags FROM logs ORDER BY source_offset";

fn read(log: impl AsRef<[u8]>) -> Report {
    Workspace::with("log.ndjson", log).sql(ROWS, &["log.ndjson"])
}

fn ids(report: &Report) -> Vec<Value> {
    report.column("request_id")
}

const fn counts(records: u64, rejected: u64) -> Records {
    Records { records, rejected, used: records - rejected }
}

/// The same with so many records that are no requests.
fn skipping(counts: Records, skipped: u64) -> Records {
    Records { used: counts.used - skipped, ..counts }
}

/// A log with `bad` as the second of three records costs that record, which is rejected as `why`.
#[track_caller]
fn assert_rejected(bad: &[u8], why: &str) {
    let log = [good("first").as_bytes(), b"\n", bad, b"\n", good("last").as_bytes(), b"\n"].concat();
    let report = read(log);
    assert_eq!(ids(&report), ["first", "last"]);
    assert_eq!(report.records(), counts(3, 1));
    assert_eq!(report.note("rejected"), (format!("rejected records: log.ndjson:2: {why}").as_str(), Some(1)));
}

/// A log with `odd` as the second of three records is read whole; this is the row of the second.
#[track_caller]
fn odd_row(odd: &str) -> (Value, Report) {
    let report = read([&good("first"), odd, &good("last"), ""].join("\n"));
    assert_eq!(report.records(), counts(3, 0), "{}", report.0);
    assert_eq!((&ids(&report)[0], &ids(&report)[2]), (&json!("first"), &json!("last")));
    (report.rows()[1].clone(), report)
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_record() {
    let report = read(format!("\u{feff}{}\n{}\n", good("a"), good("b")));
    assert_eq!(ids(&report), ["a", "b"]);
    assert_eq!(report.records(), counts(2, 0));
}

#[test]
fn a_byte_order_mark_is_accepted_at_the_start_of_a_file_only() {
    assert_rejected(format!("\u{feff}{}", good("b")).as_bytes(), "not a JSON object");
}

#[test]
fn lines_may_end_with_carriage_returns() {
    let report = read(format!("\u{feff}{}\r\n{}\r\n", good("a"), r#"{"request_id":"b"}"#));
    assert_eq!(ids(&report), ["a", "b"]);
    assert_eq!(report.records(), counts(2, 0));
}

#[test]
fn blank_lines_are_no_records() {
    let report = read(format!("\n\n{}\n\n  \n\t\n\r\n{}\n\n", good("a"), good("b")));
    assert_eq!(ids(&report), ["a", "b"]);
    assert_eq!(report.records(), counts(2, 0));
}

#[test]
fn a_last_line_without_a_newline_is_a_record() {
    assert_eq!(read([good("a"), good("b")].join("\n")).records(), counts(2, 0));
}

#[test]
fn a_truncated_last_line_is_one_rejected_record() {
    let whole = [good("a"), good("b"), good("c")].join("\n");
    let report = read(&whole[..whole.len() - 40]);
    assert_eq!(ids(&report), ["a", "b"]);
    assert_eq!(report.records(), counts(3, 1));
    let (text, _) = report.note("rejected");
    assert_eq!(text, "rejected records: log.ndjson:3: cut off before its JSON ends");
}

#[test]
fn lines_of_plain_text_between_records_cost_themselves_only() {
    let log =
        ["INFO server started on [::]:8000 {", &good("a"), "Traceback (most recent call last):", &good("b"), "bye"];
    let report = read(log.join("\n"));
    assert_eq!(ids(&report), ["a", "b"]);
    assert_eq!(report.records(), skipping(counts(5, 0), 3));
    assert_eq!(report.note("skipped"), ("records are no requests: text", Some(3)));
}

#[test]
fn a_line_that_is_json_but_no_object_is_rejected() {
    for line in ["[1,2]", "\"text\"", "42", "null", "true", "\0\0\0\0", "e\": 3}", "half\"}", "3, \"b\" : 4"] {
        assert_rejected(line.as_bytes(), "not a JSON object");
    }
}

#[test]
fn malformed_json_is_rejected() {
    for line in [
        r#"{"request_id":"x",}"#,
        r#"{"request_id" "x"}"#,
        r#"{"request_id":'x'}"#,
        r#"{request_id:"x"}"#,
        r#"{"request_id":"x"} trailing"#,
        r#"{"request_id":"x"}}"#,
        r#"{"input_tokens":01}"#,
        r#"{"input_tokens":1.}"#,
        r#"{"input_tokens":+1}"#,
        r#"{"stream":tru}"#,
        r#"{"tags":"\q"}"#,
        "{\"tags\":\"a\tb\"}",
        r#"{"tags":[1,2}}"#,
    ] {
        let log = format!("{}\n{line}\n{}\n", good("first"), good("last"));
        let report = read(log);
        assert_eq!(ids(&report), ["first", "last"], "{line}");
        assert_eq!(report.records(), counts(3, 1), "{line}");
    }
}

#[test]
fn a_raw_newline_in_a_string_costs_that_record_only() {
    let report = read(format!("{}\n{}\n{}\n", good("a"), "{\"request_id\":\"b\",\"tags\":\"one\ntwo\"}", good("c")));
    assert_eq!(ids(&report), ["a", "c"]);
    assert_eq!(report.records().used, 2);
    assert_eq!(report.records(), counts(4, 2));
}

#[test]
fn bad_utf8_is_rejected_wherever_it_stands() {
    assert_rejected(b"{\"request_id\":\"x\xff\"}", "not valid UTF-8");
    assert_rejected(b"{\"request_id\":\"x\",\"unread\":\"\xc3\x28\"}", "not valid UTF-8");
    assert_rejected(b"{\"request_id\":\"x\",\"k\xe2\x82\":1}", "not valid UTF-8");
}

/// A record of so many levels, itself included.
fn nested(depth: usize) -> String {
    format!(r#"{{"request_id":"x","deep":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
}

#[test]
fn records_nested_deeper_than_64_levels_are_rejected() {
    assert_eq!(odd_row(&nested(64)).0["request_id"], "x");
    assert_rejected(nested(65).as_bytes(), "nested deeper than 64 levels");
    assert_rejected(nested(100_000).as_bytes(), "nested deeper than 64 levels");
}

#[test]
fn of_duplicate_keys_the_last_wins_and_they_are_counted() {
    let (row, report) =
        odd_row(r#"{"request_id":"x","input_tokens":1,"request_id":"y","input_tokens":2,"input_tokens":3}"#);
    assert_eq!((&row["request_id"], &row["input_tokens"]), (&json!("y"), &json!(3)));
    assert_eq!(report.note("duplicate_keys").1, Some(3));
}

#[test]
fn the_order_of_keys_may_change_from_record_to_record() {
    let keys = [r#""request_id":"x""#, r#""input_tokens":7"#, r#""total_latency_ms":1.5"#, r#""error_code":0"#];
    let mut log = String::new();
    for first in 0..4 {
        for second in 1..4 {
            let mut order = keys;
            order.rotate_left(first);
            order.swap(second, 0);
            writeln!(log, "{{{}}}", order.join(",")).unwrap();
        }
    }
    let report = read(log);
    assert_eq!(report.records(), counts(12, 0));
    let row = json!({"request_id": "x", "input_tokens": 7, "total_latency_ms": 1.5, "failed": false, "tags": null});
    assert!(report.rows().iter().all(|other| *other == row), "{}", report.0);
}

#[test]
fn a_column_may_change_its_type_from_record_to_record() {
    let report = read(
        ["1", "\"1\"", "1.5", "1.0", "\"21073.0\"", "true", "[1]", "{}", "\"\"", "null"]
            .map(|value| format!("{{\"request_id\":{value},\"input_tokens\":{value}}}\n"))
            .concat(),
    );
    assert_eq!(report.records(), counts(10, 0));
    let none = Value::Null;
    assert_eq!(
        report.column("input_tokens"),
        [
            json!(1),
            json!(1),
            none.clone(),
            json!(1),
            json!(21073),
            none.clone(),
            none.clone(),
            none.clone(),
            none.clone(),
            none
        ]
    );
    // ids are text exactly as written
    assert_eq!(report.column("request_id")[..4], ["1", "1", "1.5", "1.0"]);
    let unfit: Vec<_> = report.notes("unfit_value");
    assert!(
        unfit.contains(&("values of input_tokens that are no whole number count as missing", Some(1))),
        "{unfit:?}"
    );
    assert!(
        unfit.contains(&("values of input_tokens that are of another type count as missing", Some(3))),
        "{unfit:?}"
    );
}

#[test]
fn numbers_may_have_an_exponent_or_a_zero_fraction() {
    let (row, _) = odd_row(r#"{"input_tokens":2.1073e4,"total_latency_ms":1E3}"#);
    assert_eq!((&row["input_tokens"], &row["total_latency_ms"]), (&json!(21073), &json!(1000.0)));
}

#[test]
fn tokens_stand_at_the_top_or_under_usage() {
    let (row, _) = odd_row(
        r#"{"id":"x","choices":[{"usage":{"prompt_tokens":1}}],"usage":{"prompt_tokens":12,"total_tokens":20}}"#,
    );
    assert_eq!((&row["request_id"], &row["input_tokens"]), (&json!("x"), &json!(12)));
}

#[test]
fn nan_and_infinity_are_missing_and_counted() {
    for word in ["NaN", "Infinity", "-Infinity", "\"NaN\"", "\"inf\""] {
        let (row, report) = odd_row(&format!("{{\"request_id\":\"x\",\"total_latency_ms\":{word},\"status\":\"ok\"}}"));
        assert_eq!(row["total_latency_ms"], Value::Null, "{word}");
        assert_eq!(row["failed"], false, "{word}");
        let expected = ("values of total_latency_ms that are NaN or Infinity count as missing", Some(1));
        assert_eq!(report.note("unfit_value"), expected, "{word}");
    }
}

#[test]
fn integers_beyond_doubles_are_exact_and_beyond_i64_missing() {
    let (row, _) = odd_row(r#"{"request_id":9007199254740993,"input_tokens":9007199254740993}"#);
    assert_eq!(row["input_tokens"], json!(9_007_199_254_740_993_i64));
    assert_eq!(row["request_id"], "9007199254740993");

    let (row, _) = odd_row(r#"{"input_tokens":9223372036854775807}"#);
    assert_eq!(row["input_tokens"], json!(i64::MAX));

    let (row, report) = odd_row(r#"{"request_id":123456789012345678901234567890,"input_tokens":9223372036854775808}"#);
    assert_eq!(row["input_tokens"], Value::Null);
    assert_eq!(row["request_id"], "123456789012345678901234567890");
    let expected = ("values of input_tokens that are out of range count as missing", Some(1));
    assert_eq!(report.note("unfit_value"), expected);
}

#[test]
fn empty_words_are_missing_ids() {
    for word in ["\"\"", "\"-\"", "\"null\"", "\"None\"", "null"] {
        assert_eq!(
            odd_row(&format!("{{\"request_id\":{word},\"input_tokens\":1}}")).0["request_id"],
            Value::Null,
            "{word}"
        );
    }
}

#[test]
fn escapes_in_keys_and_texts_are_resolved() {
    let (row, _) = odd_row(r#"{"request\u005fid":"\u8def\/\"\n\ud83d\ude00","input_tokens":1}"#);
    assert_eq!(row["request_id"], "路/\"\n😀");
}

#[test]
fn an_object_without_any_field_of_a_request_is_none() {
    for line in [" { } ", r#"{"version":3}"#, r#"{"level":"INFO","ts":"2025-06-01T00:00:00Z","msg":"ready"}"#] {
        let report = read(format!("{}\n{line}\n{}\n", good("a"), good("b")));
        assert_eq!(ids(&report), ["a", "b"], "{line}");
        assert_eq!(report.records(), skipping(counts(3, 0), 1), "{line}");
    }
}

#[test]
fn a_record_of_over_a_mebibyte_is_read_whole() {
    let text = "x".repeat(3 << 20);
    let (row, _) =
        odd_row(&format!("{{\"request_id\":\"x\",\"prompt\":\"{text}\",\"tags\":\"{text}\",\"input_tokens\":7}}"));
    assert_eq!((&row["request_id"], &row["input_tokens"]), (&json!("x"), &json!(7)));
    assert_eq!(row["tags"].as_str().map(str::len), Some(3 << 20));
}

#[test]
fn a_record_of_over_64_mebibytes_is_rejected() {
    let text = "x".repeat(64 << 20);
    let workspace = Workspace::with(
        "log.ndjson",
        format!("{}\n{{\"request_id\":\"x\",\"prompt\":\"{text}\"}}\n{}\n", good("first"), good("last")),
    );
    let report = workspace.sql("SELECT request_id FROM logs ORDER BY 1", &["log.ndjson"]);
    assert_eq!(ids(&report), ["first", "last"]);
    assert_eq!(report.records(), counts(3, 1));
    assert_eq!(report.note("rejected").0, "rejected records: log.ndjson:2: longer than 64 MiB");
}

#[test]
fn a_log_of_nothing_but_rejects_is_accounted_for() {
    let workspace = Workspace::with("log.ndjson", "{\"a\":\n{\"b\":\n{\"c\"\n{]\n");
    let run = workspace.run(&["latency", "--format", "json", "log.ndjson"]).exits(5);
    assert_eq!(run.report_anyway().records(), counts(4, 4));
}

#[test]
fn an_empty_file_holds_no_record() {
    for content in ["", "\n", "\u{feff}", "[]"] {
        let workspace = Workspace::with("log.json", content);
        let report = workspace.run(&["latency", "--format", "json", "log.json"]).exits(5).report_anyway();
        assert_eq!(report.records(), counts(0, 0), "{content:?}");
        assert_eq!(report.counted("files"), 1, "{content:?}");
    }
}

/// One of everything above.
fn troubled_log() -> Vec<u8> {
    let mut log = format!("\u{feff}{}\r\n\n", good("a")).into_bytes();
    for line in [
        b"plain text".as_slice(),
        br#"{"request_id":"b","input_tokens":"7","usage":{"prompt_tokens":9},"total_latency_ms":NaN}"#,
        br#"{"total_latency_ms":12.5,"request_id":"c","request_id":"d","error_code":-1}"#,
        b"{\"request_id\":\"\xff\"}",
        br#"{"request_id":"e","input_tokens":99999999999999999999,"total_latency_ms":"3"}"#,
        nested(65).as_bytes(),
        br#"{"request_id":"g","total_latency_ms":4}}"#,
        br#"[{"request_id":"h"}]"#,
        br#"{"request_id":"i","queue_wait_ms":1,"prefill_time_ms":2,"decode_time_ms":3}"#,
        br#"{"request_id":"j","timestamp":"#,
    ] {
        log.extend_from_slice(line);
        log.push(b'\n');
    }
    log
}

#[test]
fn what_is_rejected_does_not_depend_on_what_is_read() {
    let workspace = Workspace::with("log.ndjson", troubled_log());
    let expected = skipping(counts(11, 5), 1);
    for query in ["SELECT count(*) FROM logs", "SELECT sum(input_tokens) FROM logs", "SELECT * FROM logs"] {
        let report = workspace.sql(query, &["log.ndjson"]);
        assert_eq!(report.records(), expected, "{query}");
        assert_eq!(report.counted("undated"), 4, "{query}");
        assert_eq!(report.note("duplicate_keys").1, Some(1), "{query}");
        assert_eq!(report.note("rejected").1, Some(5), "{query}");
    }
    for arguments in [["latency", "--metric", "all"], ["latency", "--by", "request_id"], ["workload", "--by", "model"]]
    {
        let report = workspace.report(&[&arguments[..], &["log.ndjson"]].concat());
        assert_eq!(report.records(), expected, "{arguments:?}");
        assert_eq!(report.counted("undated"), 4, "{arguments:?}");
    }
}

#[test]
fn a_value_does_not_depend_on_what_else_is_read() {
    let workspace = Workspace::with("log.ndjson", troubled_log());
    let all = workspace.sql("SELECT * FROM logs ORDER BY source_offset", &["log.ndjson"]);
    for column in ["request_id", "timestamp", "input_tokens", "total_latency_ms", "ttft_ms", "failed"] {
        let alone = workspace.sql(&format!("SELECT {column} FROM logs"), &["--threads", "1", "log.ndjson"]);
        assert_eq!(alone.column(column), all.column(column), "{column}");
    }
}

#[test]
fn records_are_the_same_whatever_the_number_of_threads() {
    // long enough for byte ranges that start in the middle of records
    let mut log = Vec::new();
    for index in 0..3000 {
        log.extend(format!("{}\n", good(&format!("id-{index}"))).into_bytes());
        if index % 100 == 0 {
            log.extend(troubled_log());
        }
    }
    let workspace = Workspace::with("log.ndjson", log);
    let ask = |threads| {
        let query = "SELECT count(*) AS n, count(DISTINCT request_id) AS ids, sum(input_tokens) AS tokens FROM logs";
        workspace.sql(query, &["--threads", threads, "log.ndjson"])
    };
    let one = ask("1");
    // the byte order marks of the 30 pasted logs are not at the start of the file
    assert_eq!(one.records(), skipping(counts(3000 + 30 * 11, 30 * 6), 30));
    assert_eq!(one, ask("8"));
}

#[test]
fn escaped_text_of_one_record_leaves_nothing_in_the_next() {
    let workspace = Workspace::with(
        "log.ndjson",
        "{\"request_id\":\"a\\nb\",\"model\":\"m\\\"1\"}\n{\"request_id\":\"c\\td\",\"model\":\"m\\\\2\"}\n",
    );
    let rows = workspace.sql("SELECT request_id, model_name FROM logs ORDER BY request_id", &["log.ndjson"]);
    let text = |row: usize, column: &str| rows.0["rows"][row][column].as_str().unwrap().to_owned();
    assert_eq!((text(0, "request_id"), text(0, "model_name")), ("a\nb".to_owned(), "m\"1".to_owned()));
    assert_eq!((text(1, "request_id"), text(1, "model_name")), ("c\td".to_owned(), "m\\2".to_owned()));
}
