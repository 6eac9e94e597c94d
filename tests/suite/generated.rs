//! Logs that the program makes up: the same for the same seed, and read back as what they are.

use serde_json::json;

use crate::command::{Workspace, assert_sentence};
use crate::outputs::start;

fn generate(workspace: &Workspace, folder: &str, arguments: &[&str]) {
    let run = workspace.run(&[&["generate", "--rows", "200", "-o", folder], arguments].concat()).exits(0);
    assert_eq!(run.text(), "", "{run:?}");
}

#[test]
fn the_same_seed_gives_the_same_logs_and_another_gives_others() {
    let workspace = Workspace::new();
    for (folder, seed) in [("one", "7"), ("same", "7"), ("other", "8")] {
        generate(&workspace, folder, &["--seed", seed]);
    }
    for name in ["app.ndjson", "engine.ndjson", "gateway.ndjson"] {
        let read = |folder| workspace.read(&format!("{folder}/{name}"));
        assert!(read("one") == read("same"), "{name}");
        assert!(read("one") != read("other"), "{name}");
    }
}

#[test]
fn made_up_logs_are_read_without_any_flag() {
    let workspace = Workspace::new();
    generate(&workspace, "demo", &[]);
    let report = workspace.report(&["latency", "--by", "input-bucket", "demo/engine.ndjson"]);
    assert_eq!((report.records().rejected, report.counted("undated")), (0, 0));
    assert_eq!((report.notes("unfit_value"), report.notes("outcome_unknown")), (vec![], vec![]));
    assert!(report.rows().len() >= 4, "{}", report.0);
    let app = workspace.sql("SELECT count(DISTINCT request_id) AS requests FROM logs", &["demo/app.ndjson"]);
    assert_eq!(app.row()["requests"], 200);
    let shared = "SELECT count(DISTINCT request_id) AS n FROM logs";
    assert_eq!(workspace.sql(shared, &["demo"]).row()["n"], json!(200), "the three files share their request ids");
}

#[test]
fn both_formats_hold_the_same_logs() {
    let workspace = Workspace::new();
    generate(&workspace, "text", &[]);
    generate(&workspace, "parquet", &["--format", "parquet"]);
    for name in ["engine", "gateway", "app"] {
        let files = [format!("text/{name}.ndjson"), format!("parquet/{name}.parquet")];
        let columns = "request_id, timestamp, model_name, tenant, input_tokens, output_tokens, queue_wait_ms, \
                       ttft_ms, tpot_ms, total_latency_ms, gpu_id, cache_hit, failed, status, finish_reason";
        let query = format!("SELECT {columns} FROM logs ORDER BY request_id, timestamp, total_latency_ms");
        let [text, parquet] = files.map(|file| workspace.sql(&query, &[&file]));
        assert!(text.rows().len() >= 150, "{name}");
        for (text, parquet) in text.rows().iter().zip(parquet.rows()) {
            assert_eq!(text, parquet, "{name}");
        }
        assert_eq!(text.rows().len(), parquet.rows().len(), "{name}");
    }
}

#[test]
fn logs_that_are_there_are_not_overwritten_unasked() {
    let workspace = Workspace::new();
    generate(&workspace, "demo", &[]);
    let before = workspace.read("demo/engine.ndjson");
    let message = workspace.run(&["generate", "--rows", "200", "--seed", "9", "-o", "demo"]).refusal(1);
    assert_sentence(&message);
    assert!(message.contains("--force") && workspace.read("demo/engine.ndjson") == before, "{message}");
    generate(&workspace, "demo", &["--seed", "9", "--force"]);
    assert!(workspace.read("demo/engine.ndjson") != before);
}

#[test]
fn an_interrupted_run_leaves_no_half_written_log() {
    let workspace = Workspace::new();
    let folder = workspace.path("made");
    let mut child = start(&workspace, &["generate", "--rows", "50000000", "-o", "made"]);
    let started = || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    while !started() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // soon after that it listens to signals
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
