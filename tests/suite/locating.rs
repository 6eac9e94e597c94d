//! Which files are read: names, folders, globs and partitions, and what is left out of them.

use serde_json::json;

use crate::command::{Workspace, assert_sentence};
use crate::compress::gzip;
use crate::containers::parquet;
use crate::reading::good;

const BY_FILE: &str = "SELECT source_file, count(*) AS n FROM logs GROUP BY 1 ORDER BY 1";

fn lines(ids: &[&str]) -> String {
    ids.iter().map(|id| good(id) + "\n").collect()
}

/// A folder `logs` with records in three formats, two depths and two partitions, and things that are no logs.
fn folder() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("logs/a.ndjson", lines(&["a1", "a2"]));
    workspace.write("logs/deep/er/b.json", format!("[{},{}]", good("b1"), good("b2")));
    workspace.write("logs/region=eu/date=2025-06-01/c.csv", "request_id,input_tokens\nc1,10\nc2,20\nc3,30");
    workspace.write("logs/region=us/date=2025-06-01/d.ndjson.gz", gzip(lines(&["d1"]).as_bytes()));
    workspace.write("logs/region=us/date=2025-06-02/e.parquet", parquet());
    workspace.write("logs/picture.png", b"\x89PNG\r\n\x1a\n");
    workspace.write("logs/README", "How these logs came about.\n");
    workspace.write("logs/.hidden.ndjson", lines(&["hidden"]));
    workspace.write("logs/_temporary/f.ndjson", lines(&["unfinished"]));
    workspace
}

#[test]
fn a_folder_is_read_with_everything_below_it_in_mixed_formats() {
    let report = folder().sql(BY_FILE, &["logs"]);
    assert_eq!(
        report.rows(),
        [
            json!({"source_file": "logs/a.ndjson", "n": 2}),
            json!({"source_file": "logs/deep/er/b.json", "n": 2}),
            json!({"source_file": "logs/region=eu/date=2025-06-01/c.csv", "n": 3}),
            json!({"source_file": "logs/region=us/date=2025-06-01/d.ndjson.gz", "n": 1}),
            json!({"source_file": "logs/region=us/date=2025-06-02/e.parquet", "n": 3}),
        ]
    );
    assert_eq!((report.counted("files"), report.records().used), (5, 11));
}

#[test]
fn files_of_other_kinds_in_a_folder_are_skipped_and_named() {
    let (text, count) = {
        let report = folder().sql(BY_FILE, &["logs"]);
        let (text, count) = report.note("skipped_file");
        (text.to_owned(), count)
    };
    for name in
        ["logs/picture.png (a PNG image)", "logs/README", "logs/.hidden.ndjson (hidden)", "logs/_temporary (hidden)"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(count, Some(4));
}

#[test]
fn key_value_folders_are_columns() {
    let workspace = folder();
    let report = workspace.report(&["workload", "--by", "region,date", "logs"]);
    let groups: Vec<_> = report.rows().iter().map(|row| (&row["region"], &row["date"], &row["requests"])).collect();
    let (eu, us, first, second) = (json!("eu"), json!("us"), json!("2025-06-01"), json!("2025-06-02"));
    let (null, three, one, four) = (json!(null), json!(3), json!(1), json!(4));
    assert_eq!(groups, [(&eu, &first, &three), (&us, &first, &one), (&us, &second, &three), (&null, &null, &four)]);

    let query = "SELECT count(*) AS n FROM logs WHERE region = 'us' AND \"date\" >= '2025-06-02'";
    assert_eq!(workspace.sql(query, &["logs"]).row()["n"], 3);
    let filtered = workspace.report(&["workload", "--where", "region = 'eu'", "logs"]);
    assert_eq!((&filtered.row()["requests"], &filtered.row()["input_tokens"]), (&json!(3), &json!(60)));
    assert_eq!((filtered.records().records, filtered.records().used, filtered.counted("filtered")), (11, 3, 8));
}

#[test]
fn a_glob_reads_what_it_matches() {
    let workspace = folder();
    let files = |pattern: &str| {
        let report = workspace.sql(BY_FILE, &[pattern]);
        report.column("source_file").iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(files("logs/*.ndjson"), ["logs/a.ndjson"]);
    assert_eq!(files("logs/**/*.json"), ["logs/deep/er/b.json"]);
    assert_eq!(files("logs/region=*/*/*.[cg]*").len(), 2);
    assert_eq!(files("logs/**/*.?s*").len(), 2);
}

#[test]
fn several_names_are_read_together_and_each_file_once() {
    let workspace = folder();
    let report = workspace
        .sql(BY_FILE, &["logs/a.ndjson", "logs/deep", "logs/*.ndjson", "./logs/a.ndjson", "logs/deep/er/b.json"]);
    assert_eq!((report.counted("files"), report.records().used), (2, 4));
}

#[test]
fn a_file_whose_name_looks_like_a_glob_is_that_file() {
    let workspace = Workspace::with("log[1].ndjson", lines(&["a"]));
    assert_eq!(workspace.sql(BY_FILE, &["log[1].ndjson"]).records().used, 1);
}

#[test]
fn a_name_that_leads_nowhere_is_named_with_the_nearest_folder() {
    let workspace = folder();
    for (name, part) in [
        ("logs/b.ndjson", "logs/b.ndjson: no such file or folder; the nearest folder that exists is logs"),
        ("logs/*.jsonl", "logs/*.jsonl: nothing matches; the nearest folder that exists is logs"),
        ("logs/picture.png", "logs/picture.png: not a log: this is a PNG image"),
        ("logs/_temporary/nothing/", "the nearest folder that exists is logs/_temporary"),
    ] {
        let message = workspace.run(&["latency", name]).refusal(1);
        assert_sentence(&message);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_folder_without_logs_says_what_is_in_there() {
    let workspace = Workspace::with("logs/picture.png", b"\x89PNG\r\n\x1a\n");
    let message = workspace.run(&["latency", "logs"]).refusal(1);
    assert_sentence(&message);
    assert!(message.contains("logs: no log file in there; skipped: logs/picture.png (a PNG image)"), "{message}");
}

#[test]
fn bytes_are_those_on_disk() {
    let workspace = folder();
    let on_disk = |name: &str| std::fs::metadata(workspace.path(name)).unwrap().len();
    let names =
        ["logs/a.ndjson", "logs/region=us/date=2025-06-01/d.ndjson.gz", "logs/region=us/date=2025-06-02/e.parquet"];
    let report = workspace.sql("SELECT count(*) AS n FROM logs", &names);
    assert_eq!(report.counted("bytes"), names.into_iter().map(on_disk).sum::<u64>());
    assert_eq!(report.row()["n"], 6);
}
