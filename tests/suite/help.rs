//! What the program says about itself and about mistakes, word for word.
//!
//! A changed text shows as a changed file in `snapshots`, one a case.

use insta::{Settings, assert_snapshot};

use crate::command::{Run, Workspace};
use crate::reading::good;

/// The command line, the exit code, and both streams of a run.
fn transcript(run: &Run) -> String {
    let code = run.status.code().map_or("none".to_owned(), |code| code.to_string());
    let mut text = format!("$ infer-stats {}\nexit code: {code}\n", run.typed);
    for (name, stream) in [("stdout", run.text()), ("stderr", &run.stderr)] {
        if !stream.is_empty() {
            text += &format!("--- {name}\n{}\n", stream.trim_end());
        }
    }
    text
}

fn snapshot(name: &str, run: &Run) {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!(name, transcript(run)));
}

#[test]
fn every_command_explains_itself() {
    let workspace = Workspace::new();
    snapshot("help", &workspace.run(&["--help"]));
    for command in ["latency", "workload", "sql", "queries", "run", "generate", "completions", "man"] {
        snapshot(&format!("help_{command}"), &workspace.run(&[command, "--help"]));
    }
}

#[test]
fn there_is_a_manual_page_and_a_completion_script_for_every_command() {
    let workspace = Workspace::new();
    let page = workspace.run(&["man"]).exits(0);
    assert!(page.text().contains(".TH infer-stats 1"), "{page:?}");
    for command in ["latency", "workload", "sql", "queries", "run", "generate"] {
        let page = workspace.run(&["man", command]).exits(0);
        assert!(page.text().contains(&format!(".TH infer-stats-{command} 1")), "{page:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = workspace.run(&["completions", shell]).exits(0);
        assert!(script.text().contains("input-buckets") && script.text().contains("workload"), "{shell}");
    }
}

#[test]
fn mistakes_are_told_with_a_way_out() {
    let workspace = Workspace::with("log.ndjson", good("a") + "\n");
    workspace.write("picture.png", b"\x89PNG\r\n\x1a\n");
    workspace.write("broken.toml", "logs = [\"log.ndjson\"]\ntime_zone = \"UTC\"\n");
    for (name, arguments) in [
        ("no_logs", &["latency"][..]),
        ("no_such_file", &["latency", "nowhere.ndjson"]),
        ("nothing_matches", &["latency", "*.jsonl"]),
        ("not_a_log", &["latency", "picture.png"]),
        ("unknown_command", &["latncy"]),
        ("unknown_flag", &["latency", "--percentile", "50", "log.ndjson"]),
        ("unknown_format", &["latency", "--format", "yaml", "log.ndjson"]),
        ("unknown_metric", &["latency", "--metric", "tttf", "log.ndjson"]),
        ("unknown_dimension", &["latency", "--by", "input-buckt", "log.ndjson"]),
        ("unknown_zone", &["latency", "--tz", "Asia/Shangai", "log.ndjson"]),
        ("unknown_config_key", &["latency", "--config", "broken.toml"]),
        ("unknown_query", &["run", "latncy", "log.ndjson"]),
        ("wrong_map", &["latency", "--map", "tttf_ms=ttft:s", "log.ndjson"]),
        ("wrong_percentile", &["latency", "--percentiles", "101", "log.ndjson"]),
        ("wrong_range", &["latency", "--since", "2025-06-02", "--until", "2025-06-01", "log.ndjson"]),
        ("wrong_memory", &["latency", "--memory", "2", "log.ndjson"]),
        ("unknown_column_in_sql", &["sql", "SELECT modle_name FROM logs", "log.ndjson"]),
        ("sql_that_writes", &["sql", "DROP TABLE logs", "log.ndjson"]),
    ] {
        snapshot(&format!("mistake_{name}"), &workspace.run(arguments));
    }
}

#[test]
fn a_report_for_people_looks_like_this() {
    let workspace =
        Workspace::with("log.ndjson", format!("{}\n[1]\n{}\n", good("a"), good("b").replace("100", "3000")));
    snapshot("table_latency", &workspace.run(&["latency", "--by", "input-bucket", "log.ndjson"]));
    snapshot("table_strict", &workspace.run(&["workload", "--strict", "log.ndjson"]));
    snapshot("table_nothing_found", &workspace.run(&["latency", "--since", "2030-01-01", "log.ndjson"]));
}
