//! Where settings come from: flag, environment, the nearest config, the user's own.

use serde_json::{Value, json};

use crate::command::{Workspace, assert_sentence};
use crate::reading::good;

const IDS: &str = "SELECT request_id, source_file FROM logs ORDER BY 1";

/// A project with a config at its root, its logs below, and a folder to work in.
fn project(config: &str) -> Workspace {
    let workspace = Workspace::with("infer-stats.toml", config);
    workspace.write("logs/engine/a.ndjson", good("engine") + "\n");
    workspace
        .write("logs/gateway/b.ndjson", "{\"request_id\":\"gateway\",\"ts\":\"2025-06-01T08:00:00\",\"wait\":2}\n");
    workspace.write("deep/er/c.ndjson", good("other") + "\n");
    workspace
}

fn ids(workspace: &Workspace, folder: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Vec<Value> {
    let command = workspace.command(&[&["sql", IDS, "--format", "json"], arguments].concat()).inside(folder);
    let command = variables.iter().fold(command, |command, (name, value)| command.variable(name, value));
    command.run().report().column("request_id")
}

#[test]
fn without_logs_the_three_ways_to_name_them_are_told() {
    let workspace = Workspace::with("log.ndjson", good("a"));
    for arguments in [&["latency", "--by", "input-bucket"][..], &["workload"], &["sql", "SELECT 1"]] {
        let message = workspace.run(arguments).refusal(2);
        assert_sentence(&message);
        for way in ["arguments", "INFER_STATS_LOGS", "infer-stats.toml"] {
            assert!(message.contains(way), "{way}: {message}");
        }
    }
}

#[test]
fn the_nearest_config_above_names_the_logs() {
    let workspace = project("logs = [\"logs/engine/*.ndjson\"]\n");
    assert_eq!(ids(&workspace, ".", &[], &[]), ["engine"]);
    assert_eq!(ids(&workspace, "deep/er", &[], &[]), ["engine"]);
    workspace.write("deep/infer-stats.toml", "logs = [\"er\"]\n");
    assert_eq!(ids(&workspace, "deep/er", &[], &[]), ["other"]);
}

#[test]
fn the_paths_of_a_config_are_relative_to_its_own_folder() {
    let workspace = project("logs = [\"logs\"]\n");
    let report = workspace.command(&["sql", IDS, "--format", "json"]).inside("deep/er").run().report();
    assert_eq!(report.column("source_file"), ["logs/engine/a.ndjson", "logs/gateway/b.ndjson"]);
}

#[test]
fn logs_on_the_command_line_come_before_the_environment_and_that_before_the_config() {
    let workspace = project("logs = [\"logs/engine\"]\n");
    let environment = ("INFER_STATS_LOGS", "logs/gateway:deep/er/c.ndjson");
    assert_eq!(ids(&workspace, ".", &[environment], &[]), ["gateway", "other"]);
    assert_eq!(ids(&workspace, ".", &[environment], &["deep"]), ["other"]);
    // set to nothing is not set
    assert_eq!(ids(&workspace, ".", &[("INFER_STATS_LOGS", "")], &[]), ["engine"]);
}

#[test]
fn a_config_may_be_named_by_flag_or_environment() {
    let workspace = project("logs = [\"logs/engine\"]\n");
    workspace.write("deep/mine.toml", "logs = [\"er\"]\n");
    workspace.write("logs/theirs.toml", "logs = [\"gateway\"]\n");
    let environment = ("INFER_STATS_CONFIG", "deep/mine.toml");
    assert_eq!(ids(&workspace, ".", &[environment], &[]), ["other"]);
    assert_eq!(ids(&workspace, ".", &[environment], &["--config", "logs/theirs.toml"]), ["gateway"]);
    let message = workspace.run(&["latency", "--config", "nowhere.toml"]).refusal(2);
    assert_sentence(&message);
    assert!(message.contains("nowhere.toml"), "{message}");
}

#[test]
fn the_users_own_config_comes_last() {
    let workspace = Workspace::new();
    workspace.write("logs/a.ndjson", good("own") + "\n");
    let own = workspace.home().join("infer-stats");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("config.toml"), format!("logs = [{:?}]\n", workspace.path("logs"))).unwrap();
    assert_eq!(ids(&workspace, ".", &[], &[]), ["own"]);
    workspace.write("other.ndjson", good("project") + "\n");
    workspace.write("infer-stats.toml", "logs = [\"other.ndjson\"]\n");
    assert_eq!(ids(&workspace, ".", &[], &[]), ["project"]);
}

#[test]
fn settings_of_a_config_hold_unless_a_flag_says_otherwise() {
    let workspace = project(
        "logs = [\"logs/engine\"]\ntz = \"Asia/Shanghai\"\nweek_start = \"sunday\"\nthreads = 1\nmemory = \"1GiB\"\n\
         [buckets]\ninput = [50, 200]\n",
    );
    let report = workspace.report(&["workload", "--by", "input-bucket,week"]);
    assert_eq!(report.row()["input_bucket"], "50-200");
    assert_eq!(report.row()["week"], "2025-06-01T00:00:00+08:00");
    assert_eq!(report.0["parameters"]["tz"], "Asia/Shanghai");
    let flags = ["--tz", "UTC", "--input-buckets", "80", "--week-start", "monday"];
    let report = workspace.report(&[&["workload", "--by", "input-bucket,week"], &flags[..]].concat());
    assert_eq!(
        (&report.row()["input_bucket"], &report.row()["week"]),
        (&json!("80+"), &json!("2025-05-26T00:00:00+00:00"))
    );
}

const SOURCES: &str = "
[[source]]
name = \"engine\"
role = \"engine\"
paths = [\"logs/engine/**/*.ndjson\"]

[[source]]
name = \"gateway\"
role = \"gateway\"
paths = [\"logs/gateway\"]
source_tz = \"Asia/Shanghai\"
[source.map]
queue_wait_ms = \"wait:s\"
";

#[test]
fn a_source_reads_its_logs_with_its_own_settings() {
    let workspace = project(SOURCES);
    let query = "SELECT request_id, role, queue_wait_ms, timestamp FROM logs ORDER BY 1";
    let report = workspace.report(&["sql", query]);
    let instant = "2025-06-01T00:00:00+00:00";
    assert_eq!(
        report.rows(),
        [
            json!({"request_id": "engine", "role": "engine", "queue_wait_ms": null, "timestamp": instant}),
            json!({"request_id": "gateway", "role": "gateway", "queue_wait_ms": 2000.0, "timestamp": instant}),
        ]
    );
}

#[test]
fn named_logs_take_the_settings_of_their_source_and_a_note_says_so() {
    let workspace = project(SOURCES);
    let query = "SELECT role, queue_wait_ms FROM logs";
    let run = workspace.command(&["sql", query, "--format", "json", "b.ndjson"]).inside("logs/gateway").run().report();
    assert_eq!(*run.row(), json!({"role": "gateway", "queue_wait_ms": 2000.0}));
    let (text, _) = run.note("source_applied");
    assert!(text.contains("b.ndjson") && text.contains("`gateway`"), "{text}");

    // a folder that reaches over several sources too
    let both = workspace.report(&["sql", "SELECT role FROM logs ORDER BY 1", "logs"]);
    assert_eq!(both.column("role"), ["engine", "gateway"]);
    let noted = both.notes("source_applied");
    assert!(noted.iter().any(|(text, _)| text.contains("`engine`")), "{}", both.0["notes"]);
    assert!(noted.iter().any(|(text, _)| text.contains("`gateway`")), "{}", both.0["notes"]);
}

#[test]
fn a_map_on_the_command_line_comes_before_that_of_a_source() {
    let workspace = project(SOURCES);
    let report =
        workspace.report(&["sql", "SELECT queue_wait_ms FROM logs", "--map", "queue_wait_ms=wait:ms", "logs/gateway"]);
    assert_eq!(report.row()["queue_wait_ms"], 2.0);
}

#[test]
fn a_config_may_name_folders_of_queries() {
    let workspace = project("logs = [\"logs/engine\"]\nqueries = [\"mine\"]\n");
    workspace.write("mine/count.sql", "-- title: Count\n-- question: How many?\nSELECT count(*) AS n FROM logs\n");
    let run = workspace.command(&["run", "count", "--format", "json"]).inside("deep").run();
    assert_eq!(run.report().row()["n"], 1);
}

#[test]
fn a_mistake_in_a_config_is_told_with_its_line() {
    for (config, parts) in [
        ("logs = [\"logs\"]\ntimezone = \"UTC\"\n", ["infer-stats.toml:2", "unknown key `timezone`"]),
        ("logs = [\"logs\"]\n\nweek_strat = \"sunday\"\n", ["infer-stats.toml:3", "did you mean `week_start`?"]),
        ("logs = [\"logs\"]\n[buckets]\ninputs = [1]\n", ["infer-stats.toml:3", "did you mean `input`?"]),
        ("[[source]]\nname = \"a\"\npath = [\"logs\"]\n", ["infer-stats.toml:3", "did you mean `paths`?"]),
        ("logs = [\"logs\"]\ntz = \"Asia/Shangai\"\n", ["infer-stats.toml:2", "Asia/Shanghai"]),
        ("logs = \"logs\"\n", ["infer-stats.toml:1", "`logs` must be a list"]),
        ("logs = [\"logs\"\ntz = 1\n", ["infer-stats.toml:", ""]),
        (
            "[[source]]\nname = \"a\"\npaths = [\"logs\"]\n[source.map]\ntttf_ms = \"x\"\n",
            ["infer-stats.toml:5", "did you mean `ttft_ms`?"],
        ),
    ] {
        let workspace = project(config);
        let message = workspace.run(&["latency"]).refusal(2);
        assert_sentence(message.lines().next().unwrap());
        assert!(parts.iter().all(|part| message.contains(part)), "{config}: {message}");
    }
}
