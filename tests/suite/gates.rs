//! `check`, `report` and `--explode`, and the pipelines of the README that run them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::command::{BINARY, Run, Workspace, assert_sentence, ndjson};

const PRICES: &str =
    "[[model]]\nname = \"m\"\nsource = \"made up\"\n[[model.price]]\ninput = 1\ncached = 0.5\noutput = 2\n";

/// A request of 1,000,000 input and 500,000 output tokens: 2 USD.
fn request(id: &str, line: &str, latency: u64) -> Value {
    json!({"request_id": id, "timestamp": "2025-06-10T10:00:00Z", "model": "m", "business_line": line, "input_tokens": 1_000_000,
           "output_tokens": 500_000, "total_latency_ms": latency, "status": "success"})
}

fn workspace(policy: &str) -> Workspace {
    let records = [request("a", "finance", 100), request("b", "finance", 300), request("c", "search", 200)];
    let workspace = Workspace::new();
    workspace.write("logs/june.ndjson", ndjson(&records));
    workspace.write("prices.toml", PRICES);
    workspace.write("infer-stats.toml", "[prices]\nbook = \"prices.toml\"\n");
    workspace.write("policy.toml", policy);
    workspace
}

fn check(policy: &str, arguments: &[&str]) -> Run {
    workspace(policy).run(&[&["check", "policy.toml", "logs"], arguments].concat())
}

const BUDGET: &str = "[[rule]]\nname = \"budget\"\nreport = \"cost\"\ncolumn = \"cost\"\n";

#[test]
fn a_budget_that_is_kept_passes_and_one_that_is_not_breaks_the_run() {
    let kept = check(&format!("{BUDGET}max = 4"), &["--format", "json"]).report();
    assert_eq!((&kept.row()["verdict"], &kept.row()["value"]), (&json!("ok"), &json!("4.000000000000")));
    let broken = check(&format!("{BUDGET}max = 3.99"), &["--format", "json"]).exits(3).report_anyway();
    let row = broken.row();
    assert_eq!(
        (&row["severity"], &row["verdict"], &row["limit"]),
        (&json!("error"), &json!("broken"), &json!("at most 3.99"))
    );
    assert!(row["rows"].as_str().unwrap().starts_with("finance"), "{row}");
}

#[test]
fn a_rule_is_about_the_rows_that_it_names() {
    let of = |line: &str| format!("{BUDGET}max = 3\nrows = {{ business_line = \"{line}\" }}");
    check(&of("search"), &[]).exits(0);
    check(&of("finance"), &[]).exits(3);
    let nobody = check(&of("nobody"), &["--format", "json"]).report();
    assert_eq!((&nobody.row()["verdict"], &nobody.row()["severity"]), (&json!("no data"), &json!("warning")));
}

#[test]
fn a_total_is_judged_as_one() {
    // 4 and 2
    check(&format!("{BUDGET}max = 5"), &[]).exits(0);
    check(&format!("{BUDGET}total = true\nmax = 5"), &[]).exits(3);
    check(&format!("{BUDGET}total = true\nmax = 6"), &[]).exits(0);
}

#[test]
fn a_value_that_is_not_known_is_never_a_good_one() {
    let rule = "[[rule]]\nname = \"hits\"\nreport = \"cache\"\ncolumn = \"token_hit_ratio\"\nmin = 0.1\n";
    let row = check(rule, &["--format", "json"]).report().row().clone();
    assert_eq!((&row["verdict"], &row["severity"]), (&json!("unknown"), &json!("warning")));
    check(&format!("{rule}unknown = \"fail\"\n"), &[]).exits(3);
}

#[test]
fn few_requests_are_not_judged() {
    let rule = "[[rule]]\nname = \"slow\"\nreport = \"latency\"\ncolumn = \"max_ms\"\nmax = 250\n";
    check(rule, &[]).exits(3);
    let row = check(&format!("{rule}min_count = 4"), &["--format", "json"]).report().row().clone();
    assert_eq!((&row["verdict"], &row["severity"]), (&json!("too few"), &json!("warning")));
}

#[test]
fn findings_are_a_breach_from_the_severity_on_that_the_rule_names() {
    // three requests are too few to be judged: the finding is info
    let rule = |fail_on: &str| format!("[[rule]]\nname = \"slo\"\nreport = \"slo\"\nfail_on = \"{fail_on}\"\n");
    check(&rule("info"), &[]).exits(3);
    check(&rule("error"), &[]).exits(0);
}

#[test]
fn a_rule_that_cannot_be_asked_names_itself_and_what_is_wrong() {
    for (rule, part) in [
        ("[[rule]]\nname = \"x\"\nreport = \"latncy\"\ncolumn = \"p99_ms\"\nmax = 1", "latency"),
        ("[[rule]]\nname = \"x\"\nreport = \"latency\"\ncolumn = \"p98_ms\"\nmax = 1", "p99_ms"),
        ("[[rule]]\nname = \"x\"\nreport = \"latency\"\nfail_on = \"error\"", "column with max or min"),
        (
            "[[rule]]\nname = \"x\"\nreport = \"latency\"\nparameters = { byy = \"model\" }\ncolumn = \"p99_ms\"\nmax = 1",
            "did you mean `by`",
        ),
    ] {
        let refusal = check(rule, &[]).refusal(2);
        assert!(refusal.contains("rule `x`") && refusal.contains(part), "{refusal}");
        assert_sentence(&refusal);
    }
}

#[test]
fn verdicts_are_test_cases_and_annotations() {
    let policy = format!(
        "{BUDGET}max = 3\n[[rule]]\nname = \"a <b> & \\\"c\\\"\"\nreport = \"latency\"\ncolumn = \"max_ms\"\nmax = 1000\n"
    );
    let junit = check(&policy, &["--format", "junit"]).exits(3);
    let xml = junit.text();
    assert!(xml.contains("<testsuites tests=\"2\" failures=\"1\">"), "{xml}");
    assert!(xml.contains("name=\"a &lt;b&gt; &amp; &quot;c&quot;\""), "{xml}");
    let github = check(&policy, &["--format", "github"]).exits(3);
    let first = github.text().lines().next().unwrap();
    assert!(first.starts_with("::error title=budget::"), "{first}");
    let refusal = workspace("").run(&["latency", "logs", "--format", "junit"]).refusal(2);
    assert!(refusal.contains("reports whose rows are findings"), "{refusal}");
}

#[test]
fn the_pack_holds_all_reports_of_the_month_and_says_what_it_cannot_tell() {
    let workspace = workspace("");
    let run = workspace.run(&["report", "--month", "2025-06", "logs"]).exits(0);
    let text = run.text();
    assert!(text.starts_with("# LLM usage, 2025-06-01 to 2025-06-30 (UTC)"), "{text}");
    for title in ["## Cost", "## Quota", "## Latency", "## Errors", "## Cache", "## Audit"] {
        assert!(text.contains(title), "{title} is not in\n{text}");
    }
    fs::remove_file(workspace.path("infer-stats.toml")).unwrap();
    let without = workspace.run(&["report", "--month", "2025-06", "logs"]).exits(0);
    assert!(without.text().contains("Not available: no price book"), "{}", without.text());
    workspace.run(&["report", "--month", "2025-05", "logs"]).exits(5);
}

#[test]
fn statements_hold_the_rows_of_one_line_each() {
    let workspace = workspace("");
    let command = ["cost", "--by", "business-line,model", "--explode", "lines", "--format", "json", "logs"];
    workspace.run(&command).exits(0);
    let statement =
        |name: &str| -> Value { serde_json::from_str(&workspace.read(&format!("lines/{name}.json"))).unwrap() };
    let costs = |name: &str| {
        statement(name)["rows"].as_array().unwrap().iter().map(|row| row["cost"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((costs("finance"), costs("search")), (vec![json!("4.00")], vec![json!("2.00")]));
}

#[test]
fn a_book_that_differs_from_its_lock_is_refused() {
    let workspace = workspace("");
    workspace.run(&["prices", "lock"]).exits(0);
    workspace.run(&["cost", "logs"]).exits(0);
    workspace.write("prices.toml", PRICES.replace("input = 1", "input = 3"));
    let refusal = workspace.run(&["cost", "logs"]).refusal(2);
    assert!(refusal.contains("prices.lock") && refusal.contains("prices lock"), "{refusal}");
    workspace.run(&["prices", "check"]).exits(3);
    workspace.run(&["prices", "lock"]).exits(0);
    workspace.run(&["cost", "logs"]).exits(0);
}

#[test]
fn the_example_of_a_price_book_can_be_used_as_it_is() {
    let workspace = workspace("");
    let example = workspace.run(&["prices", "example"]).exits(0);
    workspace.write("example.toml", &example.stdout);
    workspace.run(&["prices", "check", "example.toml"]).exits(0);
    let listed = workspace.run(&["prices", "list", "example.toml", "--format", "json"]).report();
    assert!(listed.rows().len() > 10 && listed.rows().iter().all(|row| !row["source"].is_null()));
}

#[test]
fn money_in_a_table_adds_up_to_its_total_in_cents() {
    let third = |id: &str, line: &str| {
        json!({"request_id": id, "timestamp": "2025-06-10T10:00:00Z", "model": "m", "business_line": line,
               "input_tokens": 33_333_333, "output_tokens": 0})
    };
    let workspace = workspace("");
    workspace.write("thirds.ndjson", ndjson(&[third("a", "x"), third("b", "y"), third("c", "z")]));
    // 33.333333 each, 99.999999 in all
    let run = workspace.run(&["cost", "--format", "markdown", "--quiet", "thirds.ndjson"]).exits(0);
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut lines = run.text().lines().filter(|line| line.starts_with('|'));
    let header = cells(lines.next().unwrap());
    let cost = header.iter().position(|name| name == "cost").unwrap();
    let shown: Vec<String> = lines.skip(1).map(|line| cells(line)[cost].clone()).collect();
    assert_eq!(shown, ["33.34", "33.33", "33.33", "100.00"]);
}

#[test]
fn the_same_month_gives_the_same_bytes_at_any_number_of_threads() {
    let workspace = Workspace::new();
    workspace.run(&["generate", "--rows", "3000", "-o", "logs"]).exits(0);
    workspace.write(
        "prices.toml",
        "[[model]]\nname = \"any\"\npatterns = [\"*\"]\n[[model.price]]\ninput = 1.1\ncached = 0.3\noutput = 2.7\n",
    );
    let run = |threads: &str| {
        let command =
            ["cost", "--by", "business-line,model", "--every", "day", "--prices", "prices.toml", "--format", "json"];
        workspace.run(&[&command[..], &["--threads", threads, "logs"]].concat()).exits(0).stdout
    };
    let one = run("1");
    assert!(one.len() > 5000);
    assert!(one == run("8"));
}

/// The commands of the README's pipelines that run the product, as the CI of a user would run them.
#[test]
fn the_pipelines_of_the_readme_run() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let workspace = workspace(&format!("{BUDGET}max = 100"));
        let commands: Vec<&str> = block
            .lines()
            .filter_map(|line| {
                line.trim().trim_start_matches("- ").trim_start_matches("run: ").strip_prefix("infer-stats")
            })
            .collect();
        assert!(commands.len() > 1, "{block}");
        for command in commands {
            let output = Command::new("sh")
                .args(["-ec", &format!("{BINARY}{command}")])
                .current_dir(workspace.folder())
                .env("MONTH", "2025-06")
                .env("GITHUB_STEP_SUMMARY", workspace.path("summary.md"))
                .output()
                .unwrap();
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(workspace.read("pack.md").contains("## Cost"));
        if block.contains("GITHUB_STEP_SUMMARY") {
            assert!(workspace.read("summary.md").contains("## Cost"));
            assert!(workspace.path("closed-2025-06.json").exists());
        } else {
            assert!(workspace.read("verdicts.xml").contains("failures=\"0\""));
        }
    }
}
