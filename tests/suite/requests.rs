//! Requests put together from what gateway, engine and app logged of them, with everything in the logs that must not
//! change which requests they are.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, ndjson};

const CONFIG: &str = r#"
[[source]]
name = "gateway"
role = "gateway"
paths = ["gateway*.ndjson"]
[[source]]
name = "engine"
role = "engine"
paths = ["engine*.ndjson"]
[[source]]
name = "app"
role = "app"
paths = ["app*.ndjson"]
"#;

const LOGS: [&str; 3] = ["gateway.ndjson", "engine.ndjson", "app.ndjson"];

/// What a request is, but for the times of the engine.
const REQUESTS: &str = "SELECT request_id, attempts, role, timestamp, business_line, tenant, http_status, failed, \
                        input_tokens, output_tokens, total_latency_ms, queue_wait_ms, cached_tokens, finish_reason \
                        FROM requests ORDER BY request_id, timestamp";

/// A workspace with the logs of some hundred requests.
fn generated() -> Workspace {
    let workspace = Workspace::with("infer-stats.toml", CONFIG);
    workspace.run(&["generate", "--rows", "400", "--seed", "5", "-o", "."]).exits(0);
    workspace
}

fn lines(workspace: &Workspace, name: &str) -> Vec<Value> {
    workspace.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write(workspace: &Workspace, name: &str, lines: &[Value]) {
    workspace.write(name, ndjson(lines));
}

fn requests(workspace: &Workspace, logs: &[&str]) -> Report {
    workspace.sql(REQUESTS, logs)
}

#[test]
fn what_three_servers_log_is_one_row_a_request() {
    let workspace = generated();
    let report = requests(&workspace, &LOGS);
    let mut ids: Vec<String> = lines(&workspace, "gateway.ndjson")
        .iter()
        .map(|line| line["request_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(report.column("request_id"), ids);
    assert_eq!(report.counted("used"), report.counted("records"));
    // stages from the engine, status from the gateway, the business line from the app
    let whole = report.rows().iter().find(|row| row["role"] == "gateway+engine+app").unwrap();
    let of = |name: &str| {
        let lines = lines(&workspace, name);
        lines.into_iter().find(|line| line["request_id"] == whole["request_id"]).unwrap()
    };
    let (gateway, engine, app) = (of("gateway.ndjson"), of("engine.ndjson"), of("app.ndjson"));
    assert_eq!(whole["queue_wait_ms"], engine["queue_wait_ms"]);
    assert_eq!(whole["http_status"], gateway["http_status"]);
    assert_eq!(whole["total_latency_ms"], gateway["latency_ms"]);
    assert_eq!(whole["business_line"], app["business_line"]);
}

#[test]
fn a_request_of_several_attempts_lasts_from_the_first_arrival_to_the_last_end() {
    let workspace = generated();
    let report = requests(&workspace, &LOGS);
    let retried = report.rows().iter().find(|row| row["attempts"] == 2).expect("a retry among 400 requests");
    let gateway = lines(&workspace, "gateway.ndjson");
    let calls: Vec<&Value> = gateway.iter().filter(|line| line["request_id"] == retried["request_id"]).collect();
    let time = |line: &Value| line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let first = time(calls[0]);
    let last = time(calls[1]);
    let expected =
        (last.as_nanosecond() - first.as_nanosecond()) as f64 / 1e6 + calls[1]["latency_ms"].as_f64().unwrap();
    assert!((retried["total_latency_ms"].as_f64().unwrap() - expected).abs() < 1e-3, "{retried} {expected}");
    assert_eq!(retried["http_status"], calls[1]["http_status"]);
}

#[test]
fn replays_states_of_streams_and_another_zone_leave_the_requests_as_they_are() {
    let workspace = generated();
    let clean = requests(&workspace, &LOGS);
    let engine = lines(&workspace, "engine.ndjson");
    // some lines were shipped twice
    let replayed: Vec<Value> = engine.iter().step_by(7).cloned().collect();
    write(&workspace, "engine-replay.ndjson", &replayed);
    // a stream logs its state as it goes on
    let mut streamed = Vec::new();
    for line in &engine {
        let tokens = line["output_tokens"].as_i64().unwrap();
        if line["stream"] == true && tokens > 3 && line["error_code"] == 0 {
            let mut state = line.clone();
            state["output_tokens"] = json!(tokens / 2);
            state["finish_reason"] = Value::Null;
            streamed.push(state);
        }
        streamed.push(line.clone());
    }
    write(&workspace, "engine.ndjson", &streamed);
    let logs = [&LOGS[..], &["engine-replay.ndjson"]].concat();
    let planted = requests(&workspace, &logs);
    assert_eq!(planted.rows(), clean.rows());
    assert_eq!(planted.counted("duplicates"), replayed.len() as u64);
    planted.records();

    // the engine writes local time without saying so
    for name in ["engine.ndjson", "engine-replay.ndjson"] {
        let mut shifted = lines(&workspace, name);
        for line in &mut shifted {
            let time = line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            let local = time.checked_add(jiff::SignedDuration::from_hours(8)).unwrap();
            line["timestamp"] = json!(local.to_string().trim_end_matches('Z'));
        }
        write(&workspace, name, &shifted);
    }
    let skewed = requests(&workspace, &logs);
    assert_eq!(skewed.rows(), clean.rows());
    let (text, _) = skewed.note("clock_skew");
    assert!(text.contains("+08:00") && text.contains("source_tz"), "{text}");
    let arrivals = "SELECT timestamp FROM requests WHERE role = 'engine' ORDER BY 1";
    let fixed = workspace.report(&[&["sql", arrivals, "--requests", "--fix-skew"], &logs[..]].concat());
    assert_eq!(fixed.notes("clock_skew"), []);
    assert!(fixed.note("clock_corrected").0.contains("set right"), "{}", fixed.0["notes"]);
}

#[test]
fn another_request_with_the_same_id_is_not_merged_but_told() {
    let workspace = generated();
    let clean = requests(&workspace, &LOGS);
    let mut gateway = lines(&workspace, "gateway.ndjson");
    let mut other = gateway[3].clone();
    other["tenant"] = json!("somebody-else");
    let mut later = gateway[5].clone();
    later["timestamp"] = json!("2025-06-20T00:00:00Z");
    gateway.extend([other, later]);
    write(&workspace, "gateway.ndjson", &gateway);
    let report = requests(&workspace, &LOGS);
    assert_eq!(report.rows().len(), clean.rows().len() + 2);
    assert_eq!(report.note("collision").1, Some(2));
}

#[test]
fn ids_match_without_what_their_producers_put_around_them() {
    let workspace = Workspace::with("infer-stats.toml", CONFIG);
    workspace.write("gateway.ndjson", r#"{"request_id":"77f0","timestamp":"2026-01-02T03:00:00Z","http_status":200}"#);
    let engine =
        r#"{"id":"chatcmpl-77f0","created":1767322800,"object":"chat.completion","usage":{"prompt_tokens":5}}"#;
    workspace.write("engine.ndjson", engine);
    let report = requests(&workspace, &LOGS[..2]);
    assert_eq!((report.row()["http_status"].clone(), report.row()["input_tokens"].clone()), (json!(200), json!(5)));
}

#[test]
fn logs_without_a_role_that_share_an_id_are_told_and_not_merged() {
    let workspace = Workspace::with("a.ndjson", r#"{"request_id":"x","input_tokens":1}"#);
    workspace.write("b.ndjson", r#"{"request_id":"x","output_tokens":2}"#);
    let report = requests(&workspace, &["a.ndjson", "b.ndjson"]);
    assert_eq!(report.rows().len(), 2);
    assert_eq!(report.note("no_role").1, Some(1));
}

#[test]
fn a_report_can_ask_about_requests_and_reads_around_its_time_range() {
    let workspace = generated();
    let count = |arguments: &[&str]| {
        let report = workspace.report(&[&["workload"], arguments, &LOGS[..]].concat());
        report.records();
        report.row()["requests"].as_u64().unwrap()
    };
    let all = requests(&workspace, &LOGS).rows().len() as u64;
    assert_eq!(count(&["--requests"]), all);
    assert!(count(&[]) > 2 * all);
    let before = count(&["--requests", "--until", "2025-06-04"]);
    let after = count(&["--requests", "--since", "2025-06-04"]);
    assert_eq!(before + after, all);
    assert_eq!(count(&["--requests", "--threads", "1"]), count(&["--requests", "--threads", "8"]));
}

#[test]
fn requests_without_a_common_id_are_matched_by_time_model_and_tokens_where_that_is_asked() {
    let workspace = Workspace::with("infer-stats.toml", CONFIG);
    let (mut gateway, mut engine) = (Vec::new(), Vec::new());
    for number in 0..30 {
        let at = |part: &str| format!("2026-01-02T03:{:02}:{part}Z", number % 30);
        let tokens = (100 + number % 7, 5 + number % 3);
        gateway.push(json!({"request_id": format!("g{number}"), "timestamp": at("10"), "model": "m",
            "input_tokens": tokens.0, "output_tokens": tokens.1, "tenant": "t"}));
        // the engine knows every third by the gateway's id, others by its own, and of some it writes none
        let mut line = json!({"request_id": format!("g{number}"), "timestamp": at("11"), "model": "m",
            "input_tokens": tokens.0, "output_tokens": tokens.1, "queue_wait_ms": number});
        match number % 3 {
            0 => {}
            1 => line["request_id"] = json!(format!("cmpl-e{number}")),
            _ => line["request_id"] = json!(null),
        }
        engine.push(line);
    }
    // one that the gateway never saw
    engine.push(json!({"request_id": "lost", "timestamp": "2026-01-02T05:00:00Z", "model": "m", "input_tokens": 100,
        "output_tokens": 5, "queue_wait_ms": 99}));
    write(&workspace, "gateway.ndjson", &gateway);
    write(&workspace, "engine.ndjson", &engine);
    let query = "SELECT request_id, role, tenant, queue_wait_ms FROM requests ORDER BY timestamp";
    let ask = |how: &str| workspace.report(&["sql", query, "--match", how, "gateway.ndjson", "engine.ndjson"]);
    assert_eq!(ask("id").rows().len(), 51);
    let report = ask("asof");
    let expected = |number: usize| {
        json!({"request_id": format!("g{number}"), "role": "gateway+engine", "tenant": "t",
               "queue_wait_ms": number as f64})
    };
    let mut rows: Vec<Value> = (0..30).map(expected).collect();
    rows.push(json!({"request_id": "lost", "role": "engine", "tenant": null, "queue_wait_ms": 99.0}));
    assert_eq!(report.rows(), rows);
    let (text, count) = report.note("matched_asof");
    assert_eq!(count, Some(20));
    assert_eq!(
        text,
        "20 of the engine's 21 requests without an id that the gateway has are matched with the gateway's by time, \
         model, input tokens, output tokens; of 10 matches made so of requests that both know by id, 10 are right \
         (100.0 %)"
    );
    let alone = workspace.run(&["latency", "--match", "asof", "gateway.ndjson"]).refusal(2);
    assert!(alone.contains("--requests"), "{alone}");
}

#[test]
fn a_condition_may_ask_what_only_whole_requests_have() {
    let workspace = generated();
    let query = ["sql", "SELECT min(attempts) AS fewest, count(*) AS n FROM requests", "--requests"];
    let report = workspace.report(&[&query[..], &["--where", "attempts > 1"], &LOGS[..]].concat());
    let all = workspace.sql("SELECT count(*) AS n FROM requests WHERE attempts > 1", &LOGS);
    assert_eq!((&report.row()["fewest"], &report.row()["n"]), (&json!(2), &all.row()["n"]));
}

#[test]
fn a_line_that_only_says_that_a_request_began_is_no_attempt() {
    let config = "[[source]]\nname = \"e\"\nrole = \"engine\"\npaths = [\"*.ndjson\"]\n";
    let workspace = Workspace::with("infer-stats.toml", config);
    let lines = [
        json!({"request_id": "a", "timestamp": "2026-01-02T03:00:01Z", "model": "m"}),
        json!({"request_id": "a", "timestamp": "2026-01-02T03:00:03Z", "model": "m", "latency_ms": 2000}),
    ];
    write(&workspace, "pair.ndjson", &lines);
    let report = workspace.sql("SELECT attempts, total_latency_ms FROM requests", &["pair.ndjson"]);
    assert_eq!(report.rows(), [json!({"attempts": 1, "total_latency_ms": 2000.0})]);
}
