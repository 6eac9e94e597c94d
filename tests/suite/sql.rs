//! SQL over the logs, and queries by name.

use serde_json::{Value, json};

use crate::command::{Workspace, assert_sentence};
use crate::reading::good;
use crate::traffic;

fn workspace() -> Workspace {
    Workspace::with("log.ndjson", traffic::ndjson(&traffic::requests(80)))
}

/// The value of one expression over a list of values.
#[track_caller]
fn of_values(expression: &str, values: &str) -> Value {
    let workspace = Workspace::with("log.ndjson", good("a"));
    let query = format!(
        "SELECT {expression} AS v
         FROM (VALUES {values}) AS t(x), (SELECT max(output_tokens) AS n FROM logs) WHERE n > 0"
    );
    workspace.sql(&query, &["log.ndjson"]).row()["v"].clone()
}

#[test]
fn sql_asks_the_table_logs() {
    let workspace = workspace();
    let query = "SELECT model_name, count(*) AS n, sum(output_tokens) AS tokens FROM logs GROUP BY 1 ORDER BY 1";
    let report = workspace.sql(query, &["log.ndjson"]);
    let requests = traffic::requests(80);
    for row in report.rows() {
        let of_model = requests.iter().filter(|request| row["model_name"] == request.model);
        assert_eq!(row["n"], of_model.clone().count());
        assert_eq!(row["tokens"], of_model.map(|request| request.output).sum::<u64>());
    }
    assert_eq!((report.rows().len(), report.records().used), (3, 80));
}

#[test]
fn a_query_of_its_own_conditions_accounts_for_the_same_records_in_every_format() {
    let workspace = workspace();
    workspace.run(&["generate", "--rows", "500", "-o", "n"]).exits(0);
    workspace.run(&["generate", "--rows", "500", "--format", "parquet", "-o", "p"]).exits(0);
    let query = "SELECT count(*) AS n FROM logs WHERE input_tokens > 1000000000";
    for log in ["n/engine.ndjson", "p/engine.parquet"] {
        let report = workspace.sql(query, &[log]);
        let records = report.records();
        assert_eq!(report.row()["n"], 0, "{log}");
        assert!(records.used > 400 && records.used == records.records, "{log}: {records:?}");
    }
}

#[test]
fn the_view_inference_logs_has_its_time_as_ts() {
    let query =
        "SELECT min(ts) AS first, max(ts) AS last FROM inference_logs WHERE ts < TIMESTAMP '2025-06-01T00:30:00Z'";
    let report = workspace().sql(query, &["log.ndjson"]);
    assert_eq!(report.row()["first"], "2025-06-01T00:00:00.250+00:00");
    assert_eq!(report.row()["last"], "2025-06-01T00:29:00.250+00:00");
}

#[test]
fn sql_people_already_have_runs_as_it_is() {
    let query = "
        SELECT date_trunc('hour', ts) AS hour, model_name,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY total_latency_ms) AS p95,
               sum(CASE WHEN error_code IS NOT NULL THEN 1 ELSE 0 END) AS errors
        FROM inference_logs
        WHERE input_tokens BETWEEN 100 AND 100000
        GROUP BY 1, 2
        HAVING count(*) > 1
        ORDER BY 1, p95 DESC
        LIMIT 3;
        -- as in a notebook";
    assert_eq!(workspace().sql(query, &["log.ndjson"]).rows().len(), 3);
}

#[test]
fn sql_that_asks_no_log_is_answered_too() {
    let run = workspace().run(&["sql", "SELECT 1 + 1 AS two", "--format", "csv", "log.ndjson"]).exits(0);
    assert_eq!(run.text(), "two\n2\n");
}

#[test]
fn percentiles_of_sql_agree_with_sorting_the_values() {
    let requests = traffic::requests(80);
    let mut values: Vec<f64> = requests.iter().map(traffic::Request::total_ms).collect();
    values.sort_by(f64::total_cmp);
    let query = "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY total_latency_ms) AS ordered,
                        percentile_cont(total_latency_ms, 0.95) AS plain, median(total_latency_ms) AS median FROM logs";
    let report = workspace().sql(query, &["log.ndjson"]);
    for (name, fraction) in [("ordered", 0.95), ("plain", 0.95), ("median", 0.5)] {
        traffic::assert_close(&report.row()[name], traffic::continuous(&values, fraction), name);
    }
}

#[test]
fn a_median_skips_nulls_and_of_nothing_is_null() {
    assert_eq!(of_values("median(x)", "(1), (2), (3), (NULL), (NULL), (NULL)"), 2.0);
    assert_eq!(of_values("median(x) FILTER (WHERE x > 9)", "(1), (2)"), Value::Null);
    assert_eq!(
        of_values("percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE x > 9)", "(1), (2)"),
        Value::Null
    );
}

#[test]
fn a_median_of_whole_numbers_lies_between_them() {
    assert_eq!(of_values("median(x)", "(0), (1), (2), (3), (4), (5), (6), (7), (8), (9)"), 4.5);
}

#[test]
fn a_percentile_is_not_rounded_to_a_millionth_of_a_step() {
    assert_eq!(of_values("percentile_cont(2.5e-7) WITHIN GROUP (ORDER BY x)", "(0.0), (1.0), (2.0)"), 5e-7);
}

#[test]
fn a_percentile_of_huge_values_does_not_overflow() {
    assert_eq!(of_values("median(x)", "(-1.7976931348623157e308), (1.7976931348623157e308)"), 0.0);
    assert_eq!(of_values("median(x)", "(1.7976931348623157e308), (1.7976931348623157e308)"), f64::MAX);
}

#[test]
fn percentiles_skip_what_is_no_number() {
    assert_eq!(of_values("median(x)", "(CAST('NaN' AS DOUBLE)), (1.0), (3.0)"), 2.0);
    assert_eq!(of_values("median(x)", "(CAST('NaN' AS DOUBLE))"), Value::Null);
}

#[test]
fn percentiles_of_many_groups_are_right() {
    let log: String =
        (0..3000).map(|index| format!("{{\"request_id\":\"r{}\",\"latency_ms\":{index}}}\n", index % 1000)).collect();
    let query = "SELECT count(*) AS n, sum(m) AS sum FROM (
                     SELECT median(total_latency_ms) AS m FROM logs GROUP BY request_id)";
    let report = Workspace::with("log.ndjson", log).sql(query, &["log.ndjson"]);
    // of i, i + 1000 and i + 2000 the median is i + 1000
    assert_eq!(*report.row(), json!({"n": 1000, "sum": 1_499_500.0}));
}

#[test]
fn an_answer_that_is_no_finite_number_is_null() {
    let workspace = Workspace::with("log.ndjson", good("a"));
    let report = workspace.sql("SELECT 0.0 / 0.0 AS nan, 1e308 * 10 AS infinite FROM logs", &["log.ndjson"]);
    assert_eq!(*report.row(), json!({"nan": null, "infinite": null}));
}

#[test]
fn sql_can_only_read() {
    let workspace = workspace();
    let before = workspace.entries();
    for statement in [
        "INSERT INTO logs SELECT * FROM logs",
        "UPDATE logs SET model_name = 'x'",
        "DELETE FROM logs",
        "DROP TABLE logs",
        "CREATE TABLE t AS SELECT * FROM logs",
        "CREATE VIEW v AS SELECT * FROM logs",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'log.ndjson'",
        "COPY logs TO 'copy.parquet'",
        "COPY (SELECT 1) TO 'copy.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT 1; DROP TABLE logs",
    ] {
        let message = workspace.run(&["sql", statement, "log.ndjson"]).refusal(2);
        assert_sentence(&message);
    }
    assert_eq!(workspace.entries(), before);
}

#[test]
fn sql_reads_the_named_logs_and_no_other_file() {
    let workspace = workspace();
    workspace.write("secret.csv", "a,b\n1,2\n");
    for table in ["'secret.csv'", "\"secret.csv\"", "secret", "information_schema.df_settings"] {
        let message = workspace.run(&["sql", &format!("SELECT * FROM {table}"), "log.ndjson"]).refusal(2);
        assert_sentence(&message);
    }
}

#[test]
fn a_mistake_in_sql_is_told_in_a_sentence_with_the_nearest_name() {
    let workspace = workspace();
    for (query, part) in [
        ("SELECT modle_name FROM logs", "model_name"),
        ("SELECT * FROM log", "logs"),
        ("SELECT percentil_cont(0.5, total_latency_ms) FROM logs", "percentile_cont"),
        ("SELECT count(* FROM logs", "FROM"),
        ("SELEC 1", "SELEC"),
        ("", "SELECT"),
        ("SELECT model_name, count(*) FROM logs", "GROUP BY"),
    ] {
        let message = workspace.run(&["sql", query, "log.ndjson"]).refusal(2);
        assert_sentence(&message);
        assert!(message.contains(part), "{query}: {message}");
    }
}

#[test]
fn queries_are_listed_with_the_question_that_they_answer() {
    let run = Workspace::new().run(&["queries"]).exits(0);
    for (name, part) in [("latency", "How long do requests take"), ("workload", "What does the traffic look like")] {
        assert!(run.text().lines().any(|line| line.starts_with(name) && line.contains(part)), "{run:?}");
    }
}

#[test]
fn a_query_is_shown_by_its_name() {
    let workspace = Workspace::new();
    let run = workspace.run(&["queries", "workload"]).exits(0);
    assert!(run.text().starts_with("-- title: Workload\n") && run.text().contains("SELECT"), "{run:?}");
    let message = workspace.run(&["queries", "wrkload"]).refusal(2);
    assert!(message.contains("did you mean `workload`?"), "{message}");
}

#[test]
fn run_answers_as_the_command_of_that_name_does() {
    let workspace = workspace();
    let command = ["latency", "--by", "model", "--metric", "ttft,total", "--percentiles", "90", "log.ndjson"];
    let parameters = ["--param", "by=model", "--param", "metrics=ttft,total", "--param", "percentiles=90"];
    let run = [&["run", "latency", "log.ndjson"], &parameters[..]].concat();
    assert_eq!(workspace.report(&run), workspace.report(&command));
}

/// A query of a user's own, with a parameter of every simple type.
const SLOW: &str = "\
-- title: Slow requests
-- question: Which requests took longer than a limit?
-- param: limit_ms number 5000 | what is slow
-- param: model text | only of this model
-- column: ms ms | how long it took
SELECT request_id, total_latency_ms AS ms
FROM logs
WHERE total_latency_ms > $limit_ms AND ($model IS NULL OR model_name = $model)
ORDER BY ms DESC, request_id
{{ limit }}
";

#[test]
fn a_folder_may_hold_queries_of_ones_own() {
    let workspace = workspace();
    workspace.write("mine/slow.sql", SLOW);
    let slow = |limit: f64, model: Option<&str>| {
        let requests = traffic::requests(80);
        let slow = requests
            .iter()
            .filter(|request| request.total_ms() > limit && model.is_none_or(|model| request.model == model));
        slow.count()
    };
    let rows = |parameters: &[&str]| {
        workspace.report(&[&["run", "slow", "--queries", "mine", "log.ndjson"], parameters].concat()).rows().len()
    };
    assert_eq!(rows(&[]), slow(5000.0, None));
    assert_eq!(rows(&["--param", "limit_ms=9000.5"]), slow(9000.5, None));
    assert_eq!(rows(&["--param", "limit_ms=9000.5", "--param", "model=中文"]), slow(9000.5, Some("中文")));
    assert_eq!(rows(&["--top", "2"]), 2);
    // a value is a value and never SQL
    let run = workspace.run(&[
        "run",
        "slow",
        "--queries",
        "mine",
        "--param",
        "model=' OR true --",
        "--format",
        "json",
        "log.ndjson",
    ]);
    assert_eq!(run.report().rows().len(), 0);

    let list = workspace.run(&["queries", "--queries", "mine"]).exits(0);
    assert!(list.text().contains("slow") && list.text().contains("Which requests took longer"), "{list:?}");
    let report = workspace.report(&["run", "slow", "--queries", "mine", "log.ndjson"]);
    assert_eq!((&report.0["report"], &report.0["title"]), (&json!("slow"), &json!("Slow requests")));
    assert_eq!(report.0["columns"][1], json!({"name": "ms", "unit": "ms", "definition": "how long it took"}));
    assert_eq!(report.0["parameters"]["limit_ms"], 5000.0);
}

#[test]
fn a_wrong_name_or_value_of_a_parameter_is_told_in_a_sentence() {
    let workspace = workspace();
    workspace.write("mine/slow.sql", SLOW);
    for (arguments, part) in [
        (&["slwow"][..], "did you mean `slow`?"),
        (&["slow", "--param", "limit=1"], "limit_ms"),
        (&["slow", "--param", "limit_ms=much"], "`limit_ms` is much, and not a number"),
        (&["slow", "--param", "limit_ms"], "name=value"),
        (&["slow", "--param", "model=a", "--param", "model=b"], "twice"),
        (&["latency", "--param", "by=modle"], "did you mean `model`?"),
    ] {
        let message = workspace.run(&[&["run"], arguments, &["--queries", "mine", "log.ndjson"]].concat()).refusal(2);
        assert_sentence(&message);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn the_statement_is_shown_as_run_on_standard_error() {
    let run = workspace().run(&["workload", "--by", "model", "--show-sql", "--format", "json", "log.ndjson"]).exits(0);
    assert!(
        run.stderr.contains("FROM logs") && run.stderr.contains("\"model_name\"") && !run.stderr.contains("{%"),
        "{run:?}"
    );
    run.report();
}

#[test]
fn a_condition_may_ask_for_the_present_moment() {
    let workspace = Workspace::with("log.ndjson", "{\"timestamp\":\"2025-06-01T00:00:00Z\"}\n");
    let report = workspace.report(&["workload", "--where", "timestamp < now() - interval '1 day'", "log.ndjson"]);
    assert_eq!(report.row()["requests"], serde_json::json!(1));
}

#[test]
fn conditions_that_cannot_be_computed_are_mistakes_in_one_sentence() {
    let workspace = Workspace::with("log.ndjson", "{\"model\":\"m\",\"input_tokens\":1}\n");
    for condition in ["1/0 = 1", "model_name = 1", "count(*) > 1", "timestamp > '2025'"] {
        let message = workspace.run(&["workload", "--where", condition, "log.ndjson"]).refusal(2);
        assert_sentence(&message);
    }
}

#[test]
fn a_sum_of_tokens_beyond_64_bits_is_unknown_and_never_negative() {
    let record = "{\"input_tokens\":9223372036854775807,\"output_tokens\":9223372036854775807}\n";
    let workspace = Workspace::with("log.ndjson", record.repeat(2) + "{\"input_tokens\":1,\"output_tokens\":2}\n");
    let report = workspace.report(&["workload", "--by", "total-bucket", "log.ndjson"]);
    assert_eq!(report.rows()[0]["input_tokens"], serde_json::json!(1));
    assert_eq!(
        (&report.rows()[1]["total_bucket"], &report.rows()[1]["input_tokens"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}
