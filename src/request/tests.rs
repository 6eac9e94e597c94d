//! Whole command lines against what they mean.

use std::fs;

use clap::Parser;
use tempfile::TempDir;

use super::*;

const KNOWN: &[&str] = &["timestamp", "ttft_ms", "input_tokens"];

/// A folder with a config in it, and nothing in the environment.
fn place(config: &str) -> (TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("infer-stats.toml"), config).unwrap();
    let place = Place {
        folder: folder.path().to_owned(),
        now: "2025-06-10T12:00:00Z".parse().unwrap(),
        logs: None,
        config: None,
        config_home: None,
    };
    (folder, place)
}

fn resolve(typed: &[&str], config: &str) -> Result<Task, Mistake> {
    let cli = Cli::try_parse_from(["infer-stats"].iter().chain(typed)).unwrap();
    let (_folder, place) = place(config);
    Task::resolve(cli, &place, KNOWN)
}

fn request(typed: &[&str], config: &str) -> Request {
    match resolve(typed, config).unwrap() {
        Task::Report(request) => *request,
        other => panic!("{other:?}"),
    }
}

fn sentence(typed: &[&str]) -> String {
    resolve(typed, "").unwrap_err().to_string()
}

#[test]
fn latency_alone_asks_for_one_row_of_the_total_over_the_configured_logs() {
    let request = request(&["latency"], "logs = [\"a.ndjson\"]");
    let Ask::Latency(latency) = request.ask else {
        panic!("{:?}", request.ask);
    };
    assert!(latency.by.is_empty() && !latency.stages && !latency.include_failed);
    assert_eq!(latency.metrics, [Metric::Total]);
    let names: Vec<String> = latency.percentiles.into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["p50", "p95", "p99"]);
    assert_eq!(latency.method, Method::Continuous);
    assert_eq!(latency.min_count, 0);
    assert_eq!(request.output.format, Format::Table);
    assert_eq!(request.time, TimeRange::default());
    assert_eq!(request.zone, Zone::utc());
    assert_eq!(request.logs.patterns.len(), 1);
    assert!(request.notes.is_empty());
}

#[test]
fn lists_are_separated_by_commas_and_may_be_repeated() {
    let typed =
        ["latency", "--by", "model,hour", "--by", "gpu", "--metric", "ttft,tpot", "--percentiles", "50,99.9", "a"];
    let Ask::Latency(latency) = request(&typed, "").ask else {
        panic!("not latency");
    };
    let by: Vec<String> = latency.by.into_iter().map(|it| it.name).collect();
    assert_eq!(by, ["model", "hour", "gpu"]);
    assert_eq!(latency.metrics, [Metric::Ttft, Metric::Tpot]);
    assert_eq!(latency.percentiles[1].fraction, 0.999);
}

#[test]
fn a_flag_wins_over_the_config() {
    let config = "tz = \"Asia/Tokyo\"\nsource_tz = \"Asia/Tokyo\"\nweek_start = \"sunday\"\nmemory = \"1GiB\"\n\
                  threads = 2\nqueries = [\"q\"]\n[buckets]\ninput = [1]\noutput = [2]";
    let configured = request(&["workload", "a"], config);
    assert_eq!(configured.zone.name, "Asia/Tokyo");
    assert_eq!(configured.source_zone.unwrap().name, "Asia/Tokyo");
    assert_eq!(configured.week_start, WeekStart::Sunday);
    assert_eq!((configured.limits.memory, configured.limits.threads), (Some(1 << 30), 2));
    assert_eq!((configured.buckets.input, configured.buckets.output), (vec![1], vec![2]));

    let typed = [
        "workload",
        "--tz",
        "Asia/Kolkata",
        "--source-tz",
        "+02:00",
        "--week-start",
        "monday",
        "--memory",
        "2GiB",
        "--threads",
        "3",
        "--queries",
        "mine",
        "--input-buckets",
        "5,6",
        "a",
    ];
    let flagged = request(&typed, config);
    assert_eq!(flagged.zone.name, "Asia/Kolkata");
    assert_eq!(flagged.source_zone.unwrap().name, "+02:00");
    assert_eq!(flagged.week_start, WeekStart::Monday);
    assert_eq!((flagged.limits.memory, flagged.limits.threads), (Some(2 << 30), 3));
    assert_eq!((flagged.buckets.input, flagged.buckets.output), (vec![5, 6], vec![2]));
    assert_eq!(flagged.queries[0], PathBuf::from("mine"));
    assert!(flagged.queries[1].ends_with("q") && flagged.queries[1].is_absolute());
}

#[test]
fn spans_count_back_from_now_and_now_from_the_zone() {
    let typed = ["workload", "--now", "2025-03-02", "--tz", "Asia/Tokyo", "--since", "1d", "a"];
    let since = request(&typed, "").time.since.unwrap();
    assert_eq!(since.to_string(), "2025-02-28T15:00:00Z");
    let since = request(&["workload", "--since", "24h", "a"], "").time.since.unwrap();
    assert_eq!(since.to_string(), "2025-06-09T12:00:00Z");
}

#[test]
fn values_that_begin_with_a_hyphen_are_values() {
    let typed = ["workload", "--tz", "-03:30", "--where", "-input_tokens < 0", "-"];
    let request = request(&typed, "");
    assert_eq!(request.zone.name, "-03:30");
    assert_eq!(request.predicate.as_deref(), Some("-input_tokens < 0"));
    assert!(request.logs.patterns[0].is_stdin());
}

#[test]
fn sql_and_run_take_their_own_argument_before_the_logs() {
    let sql = request(&["sql", "SELECT 1", "a", "b"], "");
    assert_eq!(sql.ask, Ask::Sql { query: "SELECT 1".into() });
    assert_eq!(sql.logs.patterns.len(), 2);
    let run = request(&["run", "slow", "--param", "limit_ms=5", "a"], "");
    let Ask::Run { name, parameters } = run.ask else {
        panic!("{:?}", run.ask);
    };
    assert_eq!((name.as_str(), parameters[0].value.as_str()), ("slow", "5"));
    assert_eq!(run.logs.patterns.len(), 1);
}

#[test]
fn the_other_commands_need_no_logs() {
    assert!(matches!(resolve(&["queries"], ""), Ok(Task::Queries(_))));
    assert!(matches!(resolve(&["man"], ""), Ok(Task::Man(None))));
    let shell = resolve(&["completions", "zsh"], "");
    assert!(matches!(shell, Ok(Task::Completions(Shell::Zsh))));
    let Ok(Task::Generate(generation)) = resolve(&["generate", "-o", "demo"], "") else {
        panic!("not a generation");
    };
    assert_eq!(generation.start.to_string(), "2025-06-01T00:00:00Z");
    assert_eq!((generation.rows, generation.seed, generation.days), (10_000, 1, 7));
}

#[test]
fn mistakes_of_all_kinds_are_found_before_a_log_is_read() {
    for (typed, part) in [
        (vec!["latency"], "no logs named"),
        (vec!["latency", "--tz", "Mars/Olympus", "a"], "unknown time zone `Mars/Olympus`"),
        (vec!["latency", "--since", "soon", "a"], "`soon` is no time for --since"),
        (vec!["latency", "--now", "soon", "a"], "`soon` is no time for --now"),
        (vec!["latency", "--month", "2025-06", "--since", "1d", "a"], "drop --month"),
        (vec!["latency", "--map", "ttft=x", "a"], "did you mean `ttft_ms`?"),
        (vec!["latency", "--column", "x", "a"], "--column x: write name=path"),
        (vec!["latency", "--input-buckets", "2,1", "a"], "--input-buckets 2,1"),
        (vec!["latency", "--memory", "0MiB", "a"], "no usable amount"),
        (vec!["latency", "--where", " ", "a"], "--where is empty"),
        (vec!["latency", "--percentiles", "101", "a"], "--percentiles 101"),
        (vec!["latency", "--by", "model,,hour", "a"], "--by has an empty entry"),
        (vec!["sql", " ", "a"], "the SQL is empty"),
        (vec!["run", "x", "--param", "y", "a"], "--param y"),
        (vec!["generate", "-o", "d", "--start", "x"], "no time for --start"),
    ] {
        let sentence = sentence(&typed);
        assert!(sentence.contains(part), "{typed:?}: {sentence}");
    }
}

#[test]
fn words_and_numbers_outside_their_list_or_range_are_refused_by_the_parser() {
    for typed in [
        vec!["latency", "--format", "tabel"],
        vec!["latency", "--metric", "ttfd"],
        vec!["latency", "--method", "linear"],
        vec!["latency", "--color", "sometimes"],
        vec!["latency", "--week-start", "friday"],
        vec!["latency", "--threads", "0"],
        vec!["latency", "--threads", "1025"],
        vec!["latency", "--top", "0"],
        vec!["generate"],
        vec!["generate", "-o", "d", "--rows", "0"],
        vec!["generate", "-o", "d", "--days", "0"],
        vec!["completions", "tcsh"],
        vec!["sql"],
        vec![],
    ] {
        let error = Cli::try_parse_from(["infer-stats"].iter().chain(&typed)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{typed:?}");
    }
}
