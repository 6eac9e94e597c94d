//! The same requests give the same answer in every format and compression, and at any number of threads.

use serde_json::Value;

use crate::command::{Report, Workspace};
use crate::compress::CODECS;
use crate::traffic::{self, COLUMNS};

const REQUESTS: u64 = 300;

const LATENCY: [&str; 5] = ["latency", "--by", "input-bucket,model", "--metric", "all"];
const WORKLOAD: [&str; 3] = ["workload", "--by", "output-bucket,hour"];

/// The same requests in each format, plain and in each compression.
fn everything() -> (Workspace, Vec<String>) {
    let requests = traffic::requests(REQUESTS);
    let workspace = Workspace::with("log.ndjson", traffic::ndjson(&requests));
    // a column of its own holds what is logged, without what would be derived
    let logged = COLUMNS.join(", ").replace("total_latency_ms", "logged_ms AS total_latency_ms");
    let query = format!("SELECT {logged} FROM logs");
    let column = ["--column", "logged_ms=total_latency_ms:float"];
    let output = ["--format", "parquet", "-o", "log.parquet", "log.ndjson"];
    workspace.run(&[&["sql", &query], &column[..], &output].concat()).exits(0);
    workspace.write("array.json", traffic::array(&requests));
    workspace.write("pretty.json", traffic::pretty(&requests));
    workspace.write("log.csv", traffic::csv(&requests));
    let plain = workspace.entries();
    let mut names = plain.clone();
    for name in plain {
        let content = std::fs::read(workspace.path(&name)).unwrap();
        for (ending, compress) in CODECS {
            let name = format!("{name}{ending}");
            workspace.write(&name, compress(&content));
            names.push(name);
        }
    }
    (workspace, names)
}

/// What must not depend on the file: the whole report but for its bytes.
fn essence(mut report: Report) -> Value {
    report.0["source"]["bytes"].take();
    report.0
}

/// Compares part by part, so that a difference can be found in what a failure prints.
#[track_caller]
fn assert_same(found: &Value, expected: &Value, name: &str) {
    for part in ["source", "notes", "totals"] {
        assert_eq!(found[part], expected[part], "{part} of {name}");
    }
    for (found, expected) in found["rows"].as_array().unwrap().iter().zip(expected["rows"].as_array().unwrap()) {
        assert_eq!(found, expected, "a row of {name}");
    }
    assert_eq!(found, expected, "{name}");
}

#[test]
fn every_format_and_compression_gives_the_same_answer() {
    let (workspace, names) = everything();
    let ask = |question: &[&str], name: &str| essence(workspace.report(&[question, &[name]].concat()));
    let (latency, workload) = (ask(&LATENCY, "log.ndjson"), ask(&WORKLOAD, "log.ndjson"));
    assert_eq!(latency["source"]["used"], REQUESTS);
    assert!(latency["rows"].as_array().unwrap().len() > 100, "{}", latency["rows"]);
    assert_eq!(names.len(), 25);
    for name in &names {
        assert_same(&ask(&LATENCY, name), &latency, name);
    }
    for name in ["array.json.gz", "pretty.json.xz", "log.csv.zst", "log.parquet", "log.ndjson.bz2"] {
        assert_same(&ask(&WORKLOAD, name), &workload, name);
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let (workspace, names) = everything();
    let twenty_five_times = REQUESTS * names.len() as u64;
    let by_id = ["latency", "--by", "request_id", "--metric", "total,ttft"];
    let stages = ["latency", "--by", "model", "--stages"];
    for question in [&LATENCY[..], &WORKLOAD, &by_id, &stages] {
        for format in ["json", "csv", "table"] {
            let ask = |threads| {
                let run =
                    workspace.run(&[question, &["--format", format, "--threads", threads, "."]].concat()).exits(0);
                (run.text().to_owned(), run.stderr)
            };
            let one = ask("1");
            assert_eq!(one, ask("8"), "{question:?} {format}");
            if format == "json" {
                let report: Value = serde_json::from_str(&one.0).unwrap();
                assert_eq!(report["source"]["used"], twenty_five_times);
            }
        }
    }
}
