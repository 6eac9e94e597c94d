//! A report that does not fit its memory is spilled, and gives the same bytes; what cannot be spilled is an error.

use crate::command::{Workspace, assert_sentence};

/// As many groups as rows, so that the groups are what needs memory.
fn many_requests(count: u32) -> Workspace {
    let record = |index: u32| {
        // in no order, so that spilled runs overlap
        let id = index.wrapping_mul(2_654_435_761);
        format!(
            "{{\"request_id\":\"request-{id:010}\",\"input_tokens\":{},\"latency_ms\":{}.5}}\n",
            index % 5000,
            index % 977
        )
    };
    Workspace::with("log.ndjson", (0..count).map(record).collect::<String>())
}

#[test]
fn a_report_over_60_000_requests_is_the_same_when_it_must_spill() {
    let workspace = many_requests(60_000);
    let ask = |limits: &[&str]| {
        let question = ["latency", "--by", "request_id", "--format", "csv", "--quiet", "log.ndjson"];
        workspace.run(&[&question, limits].concat()).exits(0).stdout
    };
    let unlimited = ask(&["--threads", "2"]);
    assert_eq!(unlimited.iter().filter(|byte| **byte == b'\n').count(), 60_001);
    for threads in ["1", "2"] {
        assert!(
            ask(&["--threads", threads, "--memory", "16MiB"]) == unlimited,
            "{threads} threads give another answer"
        );
    }
}

#[test]
fn sql_that_must_spill_gives_the_same_answer() {
    let workspace = many_requests(30_000);
    let query = "SELECT count(*) AS n, sum(p) AS sum FROM (
                     SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY total_latency_ms) AS p
                     FROM logs GROUP BY request_id)";
    let ask = |memory| workspace.sql(query, &["--threads", "2", "--memory", memory, "log.ndjson"]).row().clone();
    assert_eq!(ask("1GiB"), ask("10MiB"));
}

#[test]
fn what_cannot_fit_is_an_error_that_says_what_to_do() {
    let workspace = many_requests(20_000);
    let message = workspace.run(&["latency", "--by", "request_id", "--memory", "64KiB", "log.ndjson"]).refusal(1);
    assert_sentence(&message);
    assert!(message.contains("--memory") && message.contains("64"), "{message}");
}
