//! Which request an id means, however it is written, and what only looks like it.

use serde_json::{Value, json};

use super::{LOGS, lives, one, only, stories, trace};
use crate::command::{Report, Run, Workspace, assert_sentence, ndjson};

/// A request with this id, and a number to know it by.
fn request(id: &str, tokens: usize) -> Value {
    json!({"request_id": id, "timestamp": "2025-06-01T09:00:00Z", "model": "m", "input_tokens": tokens,
           "latency_ms": 5, "status": "success"})
}

/// The numbers of the requests that are found, with everything around them and alone.
#[track_caller]
fn found(workspace: &Workspace, asked: &[&str]) -> Vec<Value> {
    let ask = |flags: &[&str]| -> Vec<Value> {
        let report = workspace.report(&[&["trace"], asked, flags, &["log.ndjson"]].concat());
        let records = lives(&report).iter().flat_map(|life| life["records"].as_array().unwrap().clone());
        records.map(|record| record["values"]["input_tokens"].clone()).collect()
    };
    let whole = ask(&[]);
    assert_eq!(ask(&["--alone"]), whole, "{asked:?} alone");
    whole
}

/// Everything that a run says.
fn said(run: &Run) -> String {
    format!("{}{}", run.text(), run.stderr)
}

#[track_caller]
fn assert_unknown(workspace: &Workspace, id: &str, logs: &[&str]) -> String {
    for flags in [&["--alone"][..], &["--format", "json"]] {
        let run = workspace.run(&[&["trace", id], flags, logs].concat()).exits(5);
        if flags[0] == "--format" {
            assert_eq!(lives(&run.report_anyway()), &[] as &[Value], "{id}");
        }
    }
    said(&workspace.run(&[&["trace", id], logs].concat()).exits(5))
}

#[test]
fn an_unknown_id_is_said_to_be_and_near_ones_are_suggested() {
    let workspace = stories();
    for (asked, near) in [
        ("req-slowqueu-01", "req-slowqueue-01"),
        ("req-slowqueue-10", "req-slowqueue-01"),
        ("REQ-SLOWQUEUE-01", "req-slowqueue-01"),
        ("req-stal-06", "req-stall-06"),
    ] {
        let told = assert_unknown(&workspace, asked, &LOGS);
        assert!(told.contains(asked) && told.contains(near), "{asked}: {told}");
    }
    let far = assert_unknown(&workspace, "zzzzzzzzzzzzzzzzzzzz", &LOGS);
    assert!(!far.contains("req-"), "{far}");
}

#[test]
fn of_several_ids_those_that_are_there_are_shown_and_the_others_named() {
    let workspace = stories();
    let asked = ["trace", "req-stall-06,req-nowhere-98,req-skew-07", "--format", "json"];
    let run = workspace.run(&[&asked[..], &LOGS].concat()).exits(5);
    let report = run.report_anyway();
    let ids: Vec<&Value> = lives(&report).iter().map(|life| &life["id"]).collect();
    assert_eq!(ids, ["req-stall-06", "req-skew-07"]);
    assert!(said(&run).contains("req-nowhere-98"), "{run:?}");
}

#[test]
fn a_prefix_that_one_id_has_is_enough() {
    let workspace = stories();
    let life = only(&trace(&workspace, &["req-slowq"]));
    assert_eq!((&life["id"], &life["asked"]), (&json!("req-slowqueue-01"), &json!("req-slowq")));
    // all its records, also the one that the engine wrote with its own prefix
    assert_eq!(life["records"].as_array().unwrap().len(), 3);
}

#[test]
fn a_prefix_of_several_ids_is_refused_with_those() {
    let workspace = stories();
    let message = workspace.run(&[&["trace", "req-recon"], &LOGS[..]].concat()).refusal(2);
    assert_sentence(&message);
    assert!(message.contains("req-recon-04 ") || message.contains("req-recon-04,"), "{message}");
    assert!(message.contains("req-recon-04b"), "{message}");
    // many candidates are counted and not listed
    let message = workspace.run(&[&["trace", "req-"], &LOGS[..]].concat()).refusal(2);
    assert!(message.len() < 600, "{message}");
    // a whole id is no prefix
    assert_eq!(only(&trace(&workspace, &["req-recon-04"]))["id"], "req-recon-04");
}

#[test]
fn a_trace_id_and_a_batch_id_mean_their_requests() {
    let workspace = stories();
    let ids = |asked: &str| {
        let report = trace(&workspace, &[asked]);
        assert!(lives(&report).iter().all(|life| life["asked"] == asked), "{asked}");
        lives(&report).iter().map(|life| life["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // in the order of their start
    assert_eq!(ids("5f0c1d9e7a3b0003"), ["req-first-03", "req-retry-03"]);
    assert_eq!(ids("batch-77"), ["req-long-05a", "req-long-05b", "req-long-05c", "req-starved-05"]);
    assert_eq!(ids("batch-71"), ["req-slowqueue-01"]);
}

#[test]
fn several_ids_come_in_the_order_asked_each_once() {
    let workspace = stories();
    let ids = |report: Report| lives(&report).iter().map(|life| life["id"].clone()).collect::<Vec<_>>();
    let expected = ["req-stall-06", "req-first-03", "req-skew-07"];
    assert_eq!(ids(trace(&workspace, &["req-stall-06,req-first-03,req-skew-07"])), expected);
    assert_eq!(ids(trace(&workspace, &["req-stall-06, req-first-03,,req-stall-06,req-skew-07"])), expected);
    workspace.write("ids.txt", "req-stall-06\r\n\n  req-first-03  \nreq-skew-07\nreq-stall-06");
    assert_eq!(ids(trace(&workspace, &["--ids-from", "ids.txt"])), expected);
    let piped = ["trace", "--ids-from", "-", "--format", "json"];
    let run = workspace.command(&[&piped[..], &LOGS].concat()).input("req-stall-06\nreq-first-03\nreq-skew-07\n").run();
    assert_eq!(ids(run.report()), expected);
    let missing = workspace.run(&[&["trace", "--ids-from", "none.txt"], &LOGS[..]].concat()).refusal(2);
    assert!(missing.contains("none.txt"), "{missing}");
    workspace.write("empty.txt", "\n\n");
    workspace.run(&[&["trace", "--ids-from", "empty.txt"], &LOGS[..]].concat()).refusal(2);
}

#[test]
fn what_producers_put_before_an_id_does_not_matter() {
    let workspace = stories();
    for asked in ["req-slowqueue-01", "chatcmpl-req-slowqueue-01"] {
        let life = only(&trace(&workspace, &[asked]));
        assert_eq!(life["records"].as_array().unwrap().len(), 3, "{asked}");
        assert_eq!(life["missing"], json!([]), "{asked}");
    }
    // asked with a prefix that no record has
    assert_eq!(only(&trace(&workspace, &["chatcmpl-req-skew-07"]))["records"].as_array().unwrap().len(), 3);
}

#[test]
fn an_id_within_another_or_in_another_case_is_another() {
    let ids = ["req-1", "req-10", "xreq-1", "req-1-a", "REQ-1", "req-1 "];
    let records: Vec<Value> = ids.iter().enumerate().map(|(number, id)| request(id, number)).collect();
    let workspace = Workspace::with_records(&records);
    assert_eq!(found(&workspace, &["req-1"]), [0]);
    assert_eq!(found(&workspace, &["req-10"]), [1]);
    assert_eq!(found(&workspace, &["REQ-1"]), [4]);
    assert_eq!(found(&workspace, &["xreq"]), [2]);
    assert_unknown(&workspace, "eq-1", &["log.ndjson"]);
    assert_unknown(&workspace, "Req-1", &["log.ndjson"]);
}

#[test]
fn an_id_in_another_field_is_no_record_of_it() {
    let mut retry = request("req-b", 1);
    retry["previous_request_id"] = json!("req-a");
    let mut other = request("req-c", 2);
    other["user"] = json!("req-a");
    other["tags"] = json!(["req-a"]);
    other["meta"] = json!({"request_id": "req-a"});
    let workspace = Workspace::with_records(&[request("req-a", 0), retry.clone(), other.clone()]);
    assert_eq!(found(&workspace, &["req-a"]), [0]);
    // not even where nothing else has it
    let workspace = Workspace::with_records(&[retry, other]);
    assert_unknown(&workspace, "req-a", &["log.ndjson"]);
}

#[test]
fn of_equal_keys_the_last_is_the_id() {
    let workspace = Workspace::with("log.ndjson", r#"{"request_id":"req-a","input_tokens":1,"request_id":"req-b"}"#);
    assert_eq!(found(&workspace, &["req-b"]), [1]);
    assert_unknown(&workspace, "req-a", &["log.ndjson"]);
}

#[test]
fn an_id_in_the_text_of_a_prompt_finds_nothing_and_no_text_is_ever_printed() {
    let secret = "the recipe of the golden soup";
    let mut asks = request("req-asks", 1);
    asks["prompt"] = json!(format!("{secret}, \"request_id\":\"req-inside\""));
    asks["messages"] = json!([{"role": "user", "content": format!("{secret} req-inside")}]);
    asks["output"] = json!(format!("no, {secret} is req-inside"));
    asks["choices"] = json!([{"message": {"content": secret}, "finish_reason": "stop"}]);
    let event = json!({"request_id": "req-asks", "timestamp": "2025-06-01T09:00:00Z", "event": "received",
                       "message": format!("Received request req-asks: prompt: '{secret}', params: None")});
    let workspace = Workspace::with("log.ndjson", ndjson(&[asks, event]));
    let front = [
        "INFO 06-01 09:00:00 [logger.py:39] Received request",
        "INFO 06-01 09:00:01 [logger.py:76] Generated response",
    ];
    let text = [
        format!("{} chatcmpl-req-asks: prompt: '{secret} req-inside', params: SamplingParams(n=1)", front[0]),
        format!("{} chatcmpl-req-asks: output: '{secret}', output_token_ids: [1], finish_reason: stop", front[1]),
    ];
    workspace.write("engine.log", text.join("\n"));
    let logs = ["log.ndjson", "engine.log"];
    let unknown = assert_unknown(&workspace, "req-inside", &logs);
    assert!(!unknown.contains("soup"), "{unknown}");
    for format in ["table", "json", "jsonl", "csv", "perfetto", "otlp", "html"] {
        let run = workspace.run(&[&["trace", "req-asks", "--format", format], &logs[..]].concat()).exits(0);
        assert!(!said(&run).contains("soup"), "{format}: {run:?}");
        assert!(!said(&run).contains("req-inside"), "{format}: {run:?}");
    }
    // the lines themselves are there
    let life = only(&workspace.report(&[&["trace", "req-asks"], &logs[..]].concat()));
    assert_eq!(life["events"].as_array().unwrap().len(), 3, "{}", life["events"]);
}

#[test]
fn secrets_in_the_text_of_events_are_masked() {
    let event = json!({"request_id": "req-a", "timestamp": "2025-06-01T09:00:00Z", "event": "auth",
                       "message": "key sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL of jane.doe@example.com"});
    let workspace = Workspace::with_records(&[request("req-a", 1), event]);
    for format in ["table", "json", "perfetto", "otlp", "html"] {
        let run = workspace.run(&["trace", "req-a", "--format", format, "log.ndjson"]).exits(0);
        assert!(!run.text().contains("0123456789ABCDEFGHIJKL"), "{format}: {run:?}");
        assert!(!run.text().contains("jane.doe@example.com"), "{format}: {run:?}");
    }
}

#[test]
fn ids_are_found_however_json_writes_them() {
    let ids = ["req-1", "a/b", "a\"b", "a\\b", "请求-1", "🚀-1", "tab\tin", "é"];
    let escaped = |id: &str| -> String {
        let units = id.encode_utf16();
        units.map(|unit| format!("\\u{unit:04X}")).collect()
    };
    for id in ids {
        let quoted = json!(id).to_string();
        let mut forms = vec![quoted.clone(), quoted.replace('/', "\\/"), format!("\"{}\"", escaped(id))];
        forms.push(forms[2].to_lowercase());
        // some of it escaped, as serializers that only leave plain letters do
        let first = id.chars().next().unwrap();
        let rest = &quoted[json!(first.to_string()).to_string().len() - 1..];
        forms.push(format!("\"{}{rest}", escaped(&first.to_string())));
        let line = |form: &String, number: usize| format!("{{\"request_id\":{form},\"input_tokens\":{number}}}\n");
        for (number, form) in forms.iter().enumerate() {
            // one of another id before and behind
            let log =
                [line(&"\"other\"".to_owned(), 90), line(form, number), line(&"\"else\"".to_owned(), 91)].concat();
            let workspace = Workspace::with("log.ndjson", log);
            assert_eq!(found(&workspace, &[id]), [number], "{id} as {form}");
        }
        let all: String = forms.iter().enumerate().map(|(number, form)| line(form, number)).collect();
        let workspace = Workspace::with("log.ndjson", all);
        assert_eq!(found(&workspace, &[id]).len(), forms.len(), "{id}");
    }
}

#[test]
fn keys_and_numbers_may_be_written_in_any_way_too() {
    for line in [
        r#"{"request\u005fid":"req-a","input_tokens":1}"#,
        r#"{ "request_id" : "req-a" , "input_tokens" : 1 }"#,
        r#"{"input_tokens":1,"rid":"req-a"}"#,
        r#"{"input_tokens":1,"requestId":"req-a"}"#,
    ] {
        assert_eq!(found(&Workspace::with("log.ndjson", line), &["req-a"]), [1], "{line}");
    }
    let numbers = "{\"request_id\":12345,\"input_tokens\":1}\n{\"request_id\":123456,\"input_tokens\":2}\n";
    assert_eq!(found(&Workspace::with("log.ndjson", numbers), &["12345"]), [1]);
}

#[test]
fn an_id_with_a_comma_can_be_asked_for_by_a_file() {
    let workspace = Workspace::with_records(&[request("a,b", 1), request("a", 2), request("b", 3)]);
    workspace.write("ids.txt", "a,b\n");
    assert_eq!(found(&workspace, &["--ids-from", "ids.txt"]), [1]);
}

#[test]
fn a_line_is_about_an_id_that_stands_in_it_as_a_word() {
    let lines = [
        "2025-06-01 09:00:00,100 INFO req-1 began",
        "2025-06-01 09:00:00,200 INFO req-10 began",
        "2025-06-01 09:00:00,300 INFO id=req-1, slow",
        "2025-06-01 09:00:00,400 INFO [req-1] slow",
        "2025-06-01 09:00:00,500 INFO (chatcmpl-req-1) slow",
        "2025-06-01 09:00:00,600 INFO xreq-1 slow",
        "2025-06-01 09:00:00,700 INFO req-1.",
        "2025-06-01 09:00:00,800 INFO req-1-a slow",
    ];
    let workspace = Workspace::with_records(&[request("req-1", 1)]);
    workspace.write("engine.log", lines.join("\n"));
    let life = only(&workspace.report(&["trace", "req-1", "log.ndjson", "engine.log"]));
    let places: Vec<Value> = life["events"].as_array().unwrap().iter().map(|event| event["place"].clone()).collect();
    let expected: Vec<String> = [1, 3, 4, 5, 7].map(|line| format!("engine.log:{line}")).to_vec();
    assert_eq!(places, expected);
    // a request of which only text speaks
    let text = only(&workspace.report(&["trace", "req-10", "log.ndjson", "engine.log"]));
    assert_eq!((&text["records"], &text["outcome"]), (&json!([]), &json!("unknown")));
}

#[test]
fn a_text_log_is_no_table_because_its_first_line_has_a_comma() {
    let workspace = Workspace::with_records(&[request("req-1", 1)]);
    workspace
        .write("engine.log", "engine 0.9.2 starting, pool h100\n2025-06-01 09:00:00,100 INFO req-1 \"began\"\nready\n");
    let report = workspace.report(&["trace", "req-1", "log.ndjson", "engine.log"]);
    assert_eq!(report.records().rejected, 0, "{}", report.0["notes"]);
    assert_eq!(only(&report)["events"][0]["place"], "engine.log:2");
}

#[test]
fn one_record_of_many_is_found_wherever_it_stands() {
    let filler: Vec<Value> = (0..30_000).map(|number| request(&format!("req-{number:06}"), number)).collect();
    for place in [0, 1, 14_999, 29_999] {
        let mut records = filler.clone();
        records[place] = request("needle", 77);
        let text = ndjson(&records);
        // with and without a last newline
        let workspace = Workspace::with("log.ndjson", text.trim_end());
        assert_eq!(found(&workspace, &["needle"]), [77]);
        let run = workspace.report(&["trace", "needle", "--alone", "log.ndjson"]);
        assert_eq!(only(&run)["records"][0]["place"], format!("log.ndjson:{}", place + 1));
    }
}

#[test]
fn a_broken_record_beside_it_does_not_hide_a_request() {
    let line = request("req-a", 1).to_string();
    for broken in ["{\"request_id\":\"req-a\",", "{\"request_id\":\"req-a\"\n\"x\":1}", "req-a {"] {
        let workspace = Workspace::with("log.ndjson", format!("{broken}\n{line}\n"));
        assert_eq!(found(&workspace, &["req-a"]), [1], "{broken}");
        let workspace = Workspace::with("log.ndjson", format!("{line}\n{broken}"));
        assert_eq!(found(&workspace, &["req-a"]), [1], "{broken}");
    }
}

#[test]
fn a_line_of_text_is_told_whatever_json_it_ends_in() {
    let workspace = Workspace::with_records(&[request("req-a", 1)]);
    let record = request("req-b", 2).to_string();
    let lines = [
        "2025-06-01 09:00:00,103 ERROR req-a died: {\"code\": \"oom\"}".to_owned(),
        format!("2025-06-01 09:00:00,104 INFO access {record}"),
    ];
    workspace.write("engine.log", lines.join("\n"));
    let life = only(&workspace.report(&["trace", "req-a", "log.ndjson", "engine.log"]));
    assert_eq!(life["events"][0]["place"], "engine.log:1");
    assert_eq!(one(&life, "findings", json!({"code": "event"}))["severity"], "warning");
    // the record that a line carries is no line besides
    let carried = only(&workspace.report(&["trace", "req-b", "log.ndjson", "engine.log"]));
    assert_eq!((carried["records"].as_array().unwrap().len(), &carried["events"]), (1, &json!([])));
}
