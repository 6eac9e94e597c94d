//! What comes out and where: formats, files, exit codes, notes, and an early end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::command::{BINARY, PATIENCE, Workspace, assert_sentence};
use crate::reading::good;
use crate::traffic;

fn workspace() -> Workspace {
    Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(60)))
}

const BY_MODEL: [&str; 4] = ["latency", "--by", "model", "log.ndjson"];

fn in_format(workspace: &Workspace, question: &[&str], format: &str) -> String {
    workspace.run(&[question, &["--format", format]].concat()).exits(0).text().to_owned()
}

#[test]
fn json_is_one_object_with_the_keys_of_the_contract_in_order() {
    let workspace = workspace();
    let report = workspace.report(&BY_MODEL);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&report.0), "report title parameters source columns rows totals notes");
    assert_eq!(
        keys(&report.0["source"]),
        "files bytes damaged_files records rejected skipped duplicates filtered used undated first last"
    );
    for column in report.0["columns"].as_array().unwrap() {
        assert_eq!(keys(column), "name unit definition");
        assert_ne!(column["definition"], "", "{column}");
    }
    for note in report.0["notes"].as_array().unwrap() {
        assert_eq!(keys(note), "code text count");
    }
    assert_eq!(report.0["report"], "latency");
    let parameters = report.0["parameters"].to_string();
    for word in ["threads", "memory", "log.ndjson", workspace.folder().to_str().unwrap()] {
        assert!(!parameters.contains(word), "{word}: {parameters}");
    }
}

#[test]
fn totals_are_never_among_the_rows() {
    let report = workspace().report(&BY_MODEL);
    assert_eq!(report.rows().len(), 3);
    let sum: u64 = report.column("requests").iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((sum, &report.0["totals"]["requests"]), (60, &json!(60)));
    assert_eq!(report.0["totals"]["p95_ms"], Value::Null);
}

#[test]
fn jsonl_is_the_rows_alone() {
    let workspace = workspace();
    let text = in_format(&workspace, &BY_MODEL, "jsonl");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows, workspace.report(&BY_MODEL).rows());
}

#[test]
fn csv_holds_the_same_rows() {
    let workspace = workspace();
    let text = in_format(&workspace, &BY_MODEL, "csv");
    let report = workspace.report(&BY_MODEL);
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap().split(',').collect::<Vec<_>>(), report.column_names());
    for row in report.rows() {
        let cells = row.as_object().unwrap().values().map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            number => number.to_string(),
        });
        assert_eq!(lines.next().unwrap(), cells.collect::<Vec<_>>().join(","));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn csv_guards_texts_that_a_spreadsheet_would_run_and_leaves_numbers_alone() {
    let workspace =
        Workspace::with("log.ndjson", r#"{"request_id":"=cmd|' /C calc'!A0","tenant":"a,\"b\"","temperature":-5}"#);
    let text = in_format(&workspace, &["sql", "SELECT request_id, tenant, temperature FROM logs", "log.ndjson"], "csv");
    assert_eq!(text, "request_id,tenant,temperature\n'=cmd|' /C calc'!A0,\"a,\"\"b\"\"\",-5.0\n");
}

#[test]
fn markdown_is_a_table_for_a_job_summary() {
    let text = in_format(&workspace(), &BY_MODEL, "markdown");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows[0].contains("model") && rows[0].contains("p95_ms"), "{text}");
    assert!(rows[1].chars().all(|c| "|-: ".contains(c)), "{text}");
    assert!(rows[2].contains("large") && rows[4].contains("中文"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours: {text}");
}

#[test]
fn parquet_can_be_read_back() {
    let workspace = workspace();
    workspace.run(&[&BY_MODEL[..], &["--format", "parquet", "-o", "report.parquet"]].concat()).exits(0);
    let columns = ["--column", "p95=p95_ms:float", "--column", "line=model", "--column", "requests=requests:int"];
    let query = "SELECT line, requests, p95 FROM logs ORDER BY line";
    let back = workspace.report(&[&["sql", query, "report.parquet"], &columns[..]].concat());
    let report = workspace.report(&BY_MODEL);
    assert_eq!(back.column("line"), report.column("model"));
    assert_eq!(back.column("requests"), report.column("requests"));
    assert_eq!(back.column("p95"), report.column("p95_ms"));
}

#[test]
fn parquet_on_standard_output_is_the_file() {
    let run = workspace().run(&[&BY_MODEL[..], &["--format", "parquet"]].concat()).exits(0);
    assert!(run.stdout.starts_with(b"PAR1") && run.stdout.ends_with(b"PAR1"));
}

/// Columns of a terminal; of the characters in these tests only Chinese ones are wide.
fn width(line: &str) -> usize {
    line.chars().map(|c| if ('\u{2e80}'..'\u{a000}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn a_table_stays_straight_and_off_a_terminal_never_cuts_a_value() {
    let long = "很".repeat(40) + &"x".repeat(300);
    let workspace = Workspace::with(
        "log.ndjson",
        format!("{{\"model\":\"中文\",\"latency_ms\":1234.5}}\n{{\"model\":\"{long}\"}}\n"),
    );
    let table = in_format(&workspace, &BY_MODEL, "table");
    assert!(table.contains(&long) && table.contains("1,234.5"), "{table}");
    let lines = table.lines();
    let widths: Vec<usize> = lines.filter(|line| line.contains(['│', '┌', '└', '├'])).map(width).collect();
    assert!(widths.len() > 6 && widths.iter().all(|other| *other == widths[0]), "{widths:?}\n{table}");
    assert!(!table.contains('\u{1b}'), "no colours: {table}");
}

#[test]
fn a_table_shows_what_is_not_known_as_such() {
    let workspace = Workspace::with("log.ndjson", "{\"latency_ms\":0,\"model\":\"m\"}\n{\"status\":\"ok\"}\n");
    let table = in_format(&workspace, &BY_MODEL, "table");
    let row = |word: &str| table.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {table}"));
    assert!(row("unknown").contains(" - "), "{table}");
    assert!(!row("│ m ").contains(" - "), "a measured 0 is a number: {table}");
}

#[test]
fn data_goes_to_standard_output_and_everything_else_to_standard_error() {
    let workspace = Workspace::with("log.ndjson", format!("{}\n[1]\n", good("a")));
    for format in ["csv", "jsonl", "json"] {
        let run = workspace.run(&["latency", "--by", "model", "--format", format, "log.ndjson"]).exits(0);
        assert!(run.stderr.contains("2 records: 1 used, 1 rejected"), "{run:?}");
        let lines = run.text().lines().count();
        match format {
            "csv" => assert_eq!(lines, 2, "{run:?}"),
            "jsonl" => assert_eq!(lines, 1, "{run:?}"),
            _ => {}
        }
        if format != "json" {
            assert!(run.stderr.contains("log.ndjson:2: not a JSON object"), "{run:?}");
        }
    }
}

#[test]
fn a_quiet_run_says_nothing_beside_the_answer() {
    let workspace = Workspace::with("log.ndjson", format!("{}\n[1]\n", good("a")));
    for format in ["csv", "json", "table"] {
        assert_eq!(workspace.run(&["latency", "--quiet", "--format", format, "log.ndjson"]).exits(0).stderr, "");
    }
}

#[test]
fn a_file_holds_what_standard_output_would() {
    let workspace = workspace();
    for format in ["json", "csv", "jsonl", "markdown", "table"] {
        workspace.write("answer", "of another time");
        let run = workspace.run(&[&BY_MODEL[..], &["--format", format, "-o", "answer"]].concat()).exits(0);
        assert_eq!(run.text(), "", "{format}");
        assert_eq!(workspace.read("answer"), in_format(&workspace, &BY_MODEL, format), "{format}");
    }
    assert_eq!(workspace.entries(), ["answer", "log.ndjson"]);
}

#[test]
fn an_output_that_cannot_be_written_fails_before_the_work() {
    let workspace = workspace();
    // the logs do not exist either: that is not found out
    for path in ["nowhere/answer.json", "."] {
        let message = workspace.run(&["latency", "-o", path, "nowhere.ndjson"]).refusal(1);
        assert_sentence(&message);
        assert!(message.contains(path) && !message.contains("nowhere.ndjson"), "{message}");
    }
}

#[test]
fn a_run_that_fails_leaves_the_old_file_alone() {
    let workspace = workspace();
    workspace.write("answer.json", "of another time");
    let message = workspace.run(&["sql", "SELECT nonsense FROM logs", "-o", "answer.json", "log.ndjson"]);
    assert!(!message.status.success(), "{message:?}");
    assert_eq!(workspace.read("answer.json"), "of another time");
    assert_eq!(workspace.entries(), ["answer.json", "log.ndjson"]);
}

#[test]
fn rejects_are_kept_in_a_file_in_the_order_of_the_log() {
    let workspace =
        Workspace::with("log.ndjson", format!("{}\n\"first\"\n{}\n[2]\n3\n{{\"cut\":\n", good("a"), good("b")));
    let run = workspace.run(&["latency", "--rejects", "rejects.jsonl", "--format", "json", "log.ndjson"]).exits(0);
    let (text, count) = {
        let report = run.report_anyway();
        let (text, count) = report.note("rejected");
        (text.to_owned(), count)
    };
    assert_eq!(
        text,
        "rejected records: log.ndjson:2: not a JSON object; log.ndjson:4: not a JSON object; \
         log.ndjson:5: not a JSON object; and others"
    );
    assert_eq!(count, Some(4));
    let rejects: Vec<Value> =
        workspace.read("rejects.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary: Vec<_> =
        rejects.iter().map(|reject| (reject["line"].as_u64().unwrap(), reject["text"].as_str().unwrap())).collect();
    assert_eq!(summary, [(2, "\"first\""), (4, "[2]"), (5, "3"), (6, "{\"cut\":")]);
    assert!(rejects.iter().all(|reject| reject["file"] == "log.ndjson"));
    assert_eq!(rejects[3]["reason"], "cut off before its JSON ends");
}

#[test]
fn a_file_for_rejects_that_cannot_be_written_is_an_error() {
    let message = workspace().run(&["latency", "--rejects", "nowhere/rejects.jsonl", "log.ndjson"]).exits(1).stderr;
    assert!(message.contains("infer-stats: ") && message.contains("nowhere/rejects.jsonl"), "{message}");
}

#[test]
fn the_exit_code_tells_how_it_went() {
    let workspace = Workspace::with("good.ndjson", good("a") + "\n");
    workspace.write("dirty.ndjson", format!("{}\n[1]\n", good("a")));
    workspace.write("bad.ndjson", "{\n{\n");
    for (arguments, code) in [
        (&["latency", "good.ndjson"][..], 0),
        (&["latency", "--strict", "good.ndjson"], 0),
        (&["latency", "dirty.ndjson"], 0),
        (&["latency", "nowhere.ndjson"], 1),
        (&["latency", "--by", "modle", "good.ndjson"], 2),
        (&["latency", "--unheard-of", "good.ndjson"], 2),
        (&["latency", "--format", "yaml", "good.ndjson"], 2),
        (&["latency", "--strict", "dirty.ndjson"], 4),
        (&["workload", "--where", "model_name = 'none'", "good.ndjson"], 5),
        (&["latency", "bad.ndjson"], 5),
        // where several hold, 4 comes before 5
        (&["latency", "--strict", "bad.ndjson"], 4),
        (&["--version"], 0),
        (&["--help"], 0),
        (&[], 2),
    ] {
        let run = workspace.run(arguments).exits(code);
        assert_eq!(run.stdout.is_empty(), matches!(code, 1 | 2), "4 and 5 still print the report: {run:?}");
    }
}

#[test]
fn what_a_user_gets_wrong_is_told_in_a_sentence() {
    let workspace = workspace();
    for (arguments, part) in [
        (&["--by", "modle"][..], "did you mean `model`?"),
        (&["--by", "input_bukcet"], "did you mean `input-bucket`?"),
        (&["--by", "model,model"], "twice"),
        (&["--percentiles", "50,101"], "from 0 to 100"),
        (&["--percentiles", "fifty"], "from 0 to 100"),
        (&["--since", "yesterdy"], "--since"),
        (&["--since", "2025-06-02", "--until", "2025-06-01"], "not before"),
        (&["--month", "2025-13"], "2025-13"),
        (&["--tz", "Asia/Shangai"], "Asia/Shanghai"),
        (&["--memory", "lots"], "300MiB"),
        (&["--input-buckets", "8,4"], "each larger than the one before"),
        (&["--map", "tttf_ms=ttft:s"], "did you mean `ttft_ms`?"),
        (&["--map", "ttft_ms=ttft:lightyears"], "lightyears"),
        (&["--column", "model_name=x"], "--map"),
        (&["--where", ""], "--where"),
        (&["--where", "modle_name = 'x'"], "model_name"),
        (&["--where", "input_tokens >"], "--where"),
        (&["--where", "input_tokens"], "--where"),
        (&["--where", "count(*) > 1"], "infer-stats sql"),
        (&["--where", "input_tokens > (SELECT max(input_tokens) FROM logs)"], "--where"),
        (&["--sort", "nonsense"], "nonsense"),
    ] {
        let message = workspace.run(&[&["latency", "log.ndjson"], arguments].concat()).refusal(2);
        assert_sentence(&message);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

/// Starts a run whose input and output stay in the hands of the test.
pub fn start(workspace: &Workspace, arguments: &[&str]) -> Child {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_clear().envs(workspace.environment()).current_dir(workspace.folder());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_reader_that_leaves_early_is_a_quiet_end() {
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(3000)));
    for format in ["jsonl", "csv", "table", "json"] {
        let mut child = start(&workspace, &["sql", "SELECT * FROM logs", "--format", format, "--quiet", "log.ndjson"]);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{format}");
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
            (Some(0), ""),
            "{format}"
        );
    }
}

#[test]
fn a_list_or_a_help_text_may_be_left_early_too() {
    let workspace = Workspace::new();
    for arguments in [&["queries"][..], &["man", "latency"], &["completions", "bash"], &["latency", "--help"]] {
        let mut child = start(&workspace, arguments);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

/// Sends Ctrl-C to a run that waits for more of its input, after `input`.
#[track_caller]
fn interrupt(input: &str) {
    let workspace = Workspace::new();
    let mut child = start(&workspace, &["latency", "--by", "request_id", "--format", "json", "-o", "answer.json", "-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let began = Instant::now();
    while workspace.is_clean() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    // its folder for spilled data is there; soon after that it listens to signals
    std::thread::sleep(Duration::from_secs(2));
    let sent = Instant::now();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(workspace.entries(), Vec::<String>::new(), "a half file is left");
    assert!(workspace.is_clean(), "spilled data is left");
    drop(stdin);
}

#[test]
fn an_interrupt_ends_a_run_at_once_and_leaves_no_file() {
    interrupt(&traffic::ndjson(&traffic::requests(2000)));
}

#[test]
fn an_interrupt_ends_a_run_that_has_read_nothing_yet() {
    interrupt("");
}

#[test]
fn a_report_never_replaces_a_log_it_answers_from_nor_the_rejects_the_report() {
    let log = traffic::ndjson(&traffic::requests(20));
    let workspace = Workspace::with("log.ndjson", &log);
    for arguments in [&["-o", "log.ndjson"][..], &["--rejects", "./log.ndjson"], &["-o", "x", "--rejects", "x"]] {
        assert_sentence(&workspace.run(&[&["workload", "log.ndjson"], arguments].concat()).refusal(2));
        assert_eq!(workspace.read("log.ndjson"), log, "{arguments:?}");
    }
}

#[test]
fn an_answer_stands_although_standard_error_cannot_be_written() {
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(20)));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(BINARY);
    command.args(["workload", "log.ndjson"]).env_clear().envs(workspace.environment()).current_dir(workspace.folder());
    let output = command.stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!output.stdout.is_empty());
}

#[test]
fn every_report_is_written_as_json_and_in_other_formats() {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "600", "-o", "logs"]).exits(0);
    let log = "logs/engine.ndjson";
    workspace.run(&["baseline", "save", "--format", "json", "-o", "good.json", log]).exits(0);
    workspace.write(
        "prices.toml",
        "[[model]]\nname = \"any\"\npatterns = [\"*\"]\n[[model.price]]\ninput = 1\noutput = 2\n",
    );
    workspace.write("infer-stats.toml", "[prices]\nbook = \"prices.toml\"\n");
    workspace.write("bill.csv", "day,model,cost,currency\n2025-06-01,any,1.00,USD\n");
    workspace.run(&["cost", "close", "--format", "json", "-o", "closed.json", log]).exits(0);
    workspace.write("tokens.ndjson", include_str!("../../testdata/tokens.ndjson"));
    let listing = workspace.run(&["queries"]).exits(0);
    let names: Vec<&str> = listing.text().lines().filter_map(|line| line.split("  ").next()).collect();
    assert!(names.len() > 20, "{names:?}");
    for (name, other) in names.into_iter().zip(["table", "markdown", "csv", "jsonl", "parquet"].into_iter().cycle()) {
        let needed: &[&str] = match name {
            "compare" | "shadow" => &["--a", "v2.3.0", "--b", "v2.4.0"],
            "baseline check" => &["--against", "good.json"],
            "reconcile" => &["--bill", "bill.csv", "--fail-on", "never"],
            "cost correct" => &["--closed", "closed.json"],
            _ => &[],
        };
        // a log without steps of tokens has nothing to say about them
        let log = if name.starts_with("tokens") { "tokens.ndjson" } else { log };
        for format in ["json", other] {
            let command: Vec<&str> = name.split(' ').collect();
            // what stores a month does not replace a file
            let _ = std::fs::remove_file(workspace.path("answer"));
            let run = workspace.run(&[&command[..], needed, &["--format", format, "-o", "answer", log]].concat());
            run.exits(0);
            assert!(workspace.path("answer").exists(), "{name} {format}");
        }
    }
}
