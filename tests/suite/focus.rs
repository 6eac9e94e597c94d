//! `focus`, `cost close`, `cost correct`, `explain cost`: what a cost is made of, for other tools and for later.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, ndjson};

const PRICES: &str = r#"
name = "list"
currency = "USD"

[[model]]
name = "gpt-4o"
aliases = ["gpt-4o-2024-08-06"]
[[model.price]]
from = "2024-10-02"
input = "2.50"
cached = "1.25"
output = "10.00"
tiers = { batch = { factor = "0.5" } }

[[model]]
name = "claude-sonnet"
[[model.price]]
input = "3.00"
cached = "0.30"
cache_write = "3.75"
cache_write_1h = "6.00"
output = "15.00"

[[model]]
name = "qwen-max"
[[model.price]]
input = "2.40"
output = "9.60"
request = "0.005"
currency = "CNY"
"#;

/// What the workspace's logs say, with the prices above.
fn report(workspace: &Workspace, arguments: &[&str]) -> Report {
    workspace.report(&[arguments, &["--prices", "prices.toml", "log.ndjson"]].concat())
}

fn workspace(records: &[Value]) -> Workspace {
    let workspace = Workspace::with_records(records);
    workspace.write("prices.toml", PRICES);
    workspace
}

fn call(id: &str, time: &str, model: &str, line: &str, fields: Value) -> Value {
    let mut record = json!({"request_id": id, "timestamp": time, "model": model, "business_line": line});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

/// a: 600 x 2.50 + 400 x 1.25 + 100 x 10.00 = 3,000 millionths of a dollar.
/// b: 3,000 x 3.00 + 6,000 x 0.30 + 600 x 3.75 + 400 x 6.00 + 200 x 15.00 = 18,450.
/// c: (2,000 x 2.50 + 50 x 10.00) / 2 = 2,750.
/// d: 10 x 2.40 + 7 x 9.60 = 91.2 millionths of a yuan, and 0.005.
/// e is free. f: 1,000 x 2.50 = 2,500 at least, with 300 x 10.00 = 5,500 at most. g has no price.
fn calls() -> Vec<Value> {
    let openai = |mut fields: Value| {
        fields["provider"] = json!("openai");
        fields
    };
    vec![
        call(
            "a",
            "2025-06-01T10:00:00Z",
            "gpt-4o",
            "finance_ai",
            openai(json!({"input_tokens": 1000, "cached_tokens": 400, "output_tokens": 100})),
        ),
        call(
            "b",
            "2025-06-01T11:00:00Z",
            "claude-sonnet",
            "finance_ai",
            json!({"provider": "anthropic", "input_tokens": 10000, "cached_tokens": 6000, "cache_write_tokens": 1000, "cache_write_1h_tokens": 400, "output_tokens": 200}),
        ),
        call(
            "c",
            "2025-06-02T10:00:00Z",
            "gpt-4o-2024-08-06",
            "finance_ai",
            openai(json!({"input_tokens": 2000, "output_tokens": 50, "service_tier": "batch"})),
        ),
        call("d", "2025-06-02T10:00:00Z", "qwen-max", "search", json!({"input_tokens": 10, "output_tokens": 7})),
        call(
            "e",
            "2025-06-02T12:00:00Z",
            "gpt-4o",
            "search",
            openai(json!({"input_tokens": 500, "output_tokens": 20, "response_cache_hit": true})),
        ),
        call("f", "2025-06-03T10:00:00Z", "gpt-4o", "search", openai(json!({"input_tokens": 1000, "max_tokens": 300}))),
        call("g", "2025-06-03T10:00:00Z", "mystery", "search", json!({"input_tokens": 100, "output_tokens": 10})),
    ]
}

/// Money as whole numbers of 10^-18.
fn money(value: &Value) -> i128 {
    let text = value.as_str().unwrap_or_else(|| panic!("no money: {value}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<18}").parse().unwrap()
}

fn instant(value: &Value) -> jiff::Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn focus_has_a_row_for_each_class_of_tokens() {
    let report = report(&workspace(&calls()), &["focus", "--account", "acct-7", "--provider", "here"]);
    let row = |row: &Value| {
        let cells = [
            "SubAccountId",
            "ResourceId",
            "SkuMeter",
            "ConsumedQuantity",
            "PricingQuantity",
            "ListUnitPrice",
            "BilledCost",
            "BillingCurrency",
        ];
        cells.map(|cell| row[cell].as_str().unwrap_or("null").to_owned()).join(" | ")
    };
    let rows: Vec<String> = report.rows().iter().map(row).collect();
    let expected = [
        "finance_ai | claude-sonnet | input tokens | 3000.00 | 0.003 | 3.00 | 0.009 | USD",
        "finance_ai | claude-sonnet | cached input tokens | 6000.00 | 0.006 | 0.30 | 0.0018 | USD",
        "finance_ai | claude-sonnet | cache write tokens, 5 minutes and 1 hour | 1000.00 | 0.001 | 4.65 | 0.00465 | USD",
        "finance_ai | claude-sonnet | output tokens | 200.00 | 0.0002 | 15.00 | 0.003 | USD",
        "finance_ai | gpt-4o | input tokens | 600.00 | 0.0006 | 2.50 | 0.0015 | USD",
        "finance_ai | gpt-4o | cached input tokens | 400.00 | 0.0004 | 1.25 | 0.0005 | USD",
        "finance_ai | gpt-4o | output tokens | 100.00 | 0.0001 | 10.00 | 0.001 | USD",
        "finance_ai | gpt-4o-2024-08-06 | input tokens | 2000.00 | 0.002 | 1.25 | 0.0025 | USD",
        "finance_ai | gpt-4o-2024-08-06 | output tokens | 50.00 | 0.00005 | 5.00 | 0.00025 | USD",
        "search | qwen-max | input tokens | 10.00 | 0.00001 | 2.40 | 0.000024 | CNY",
        "search | qwen-max | output tokens | 7.00 | 0.000007 | 9.60 | 0.0000672 | CNY",
        "search | qwen-max | requests | 1.00 | 1.00 | 0.005 | 0.005 | CNY",
        "search | gpt-4o | input tokens | 500.00 | 0.0005 | 0.00 | 0.00 | USD",
        "search | gpt-4o | output tokens | 20.00 | 0.00002 | 0.00 | 0.00 | USD",
    ];
    assert_eq!(rows, expected);
    let batch = &report.rows()[8];
    assert_eq!(batch["SkuPriceId"], "gpt-4o, tier batch, output tokens");
    assert_eq!(batch["x_PriceRule"], "gpt-4o from 2024-10-02 (alias gpt-4o-2024-08-06), tier batch");
    assert_eq!(
        (&batch["Tags"], &batch["ProviderName"]),
        (&json!(r#"{"business_line":"finance_ai"}"#), &json!("openai"))
    );
    assert_eq!((&report.rows()[9]["ProviderName"], &batch["BillingAccountId"]), (&json!("here"), &json!("acct-7")));
    for name in report.column_names() {
        assert!(name.starts_with(|first: char| first.is_ascii_uppercase()) || name.starts_with("x_"), "{name}");
    }
}

#[test]
fn focus_rows_add_up_to_the_cost_and_each_is_quantity_times_price() {
    let workspace = workspace(&calls());
    let rows = report(&workspace, &["focus"]);
    let mut sums = std::collections::BTreeMap::<(String, String), i128>::new();
    for row in rows.rows() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        *sums.entry((text("SubAccountId"), text("BillingCurrency"))).or_default() += money(&row["BilledCost"]);
        // a quantity has six decimals at most
        let product = money(&row["PricingQuantity"]) / 1_000_000_000_000 * money(&row["ListUnitPrice"]) / 1_000_000;
        assert_eq!(product, money(&row["ListCost"]), "{row}");
    }
    let cost = report(&workspace, &["cost"]);
    for row in cost.rows().iter().filter(|row| !row["cost"].is_null()) {
        let key = (row["business_line"].as_str().unwrap().to_owned(), row["currency"].as_str().unwrap().to_owned());
        assert_eq!(sums[&key], money(&row["cost"]), "{row}");
    }
    assert_eq!(sums[&("finance_ai".to_owned(), "USD".to_owned())], 24_200_000_000_000_000);
    // different currencies are never added
    assert!(rows.0["totals"].is_null(), "{}", rows.0["totals"]);
    assert_eq!(rows.notes("proof").len(), 2);
}

#[test]
fn what_has_no_cost_is_in_no_focus_row_and_is_told_with_its_bounds() {
    let report = report(&workspace(&calls()), &["focus", "--account", "acct-7"]);
    let (unknown, count) = report.note("unknown_left_out");
    assert_eq!(count, Some(1));
    assert!(unknown.ends_with("output tokens are missing; 0.0025 to 0.0055 USD"), "{unknown}");
    let (unpriced, count) = report.note("unpriced_left_out");
    assert_eq!(count, Some(1));
    // the cheapest and the dearest price of the book for 100 and 10 tokens
    assert!(unpriced.contains("no price for this model"), "{unpriced}");
    // the provider of d is not known
    assert_eq!(report.note("focus_open").1, Some(3));
}

#[test]
fn focus_days_and_months_are_those_of_the_zone() {
    let tokens = || json!({"input_tokens": 1000, "output_tokens": 0});
    let records = [
        // 00:30 and 23:59 of a day of 23 hours
        call("a", "2025-03-29T23:30:00Z", "gpt-4o", "x", tokens()),
        call("b", "2025-03-30T21:59:59Z", "gpt-4o", "x", tokens()),
        // the last minute of a day of 25 hours
        call("c", "2025-10-26T22:59:59Z", "gpt-4o", "x", tokens()),
    ];
    let report = report(&workspace(&records), &["focus", "--tz", "Europe/Berlin"]);
    let [march, october] = report.rows() else { panic!("{:?}", report.rows()) };
    let span = |row: &Value, start: &str, end: &str| {
        let at = |name: &str| instant(&row[name]).to_string();
        [at(start), at(end)]
    };
    assert_eq!(span(march, "ChargePeriodStart", "ChargePeriodEnd"), ["2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z"]);
    assert_eq!(span(march, "BillingPeriodStart", "BillingPeriodEnd"), ["2025-02-28T23:00:00Z", "2025-03-31T22:00:00Z"]);
    assert_eq!(span(october, "ChargePeriodStart", "ChargePeriodEnd"), ["2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z"]);
    assert_eq!((&march["ConsumedQuantity"], &march["x_Attempts"]), (&json!("2000.00"), &json!(2)));
}

/// The month of a and g, stored; then a request that came late.
fn closed() -> Workspace {
    let calls = calls();
    let kept = [calls[0].clone(), calls[6].clone()];
    let workspace = workspace(&kept);
    let month = workspace
        .run(&["cost", "close", "--month", "2025-06", "--prices", "prices.toml", "--format", "json", "log.ndjson"])
        .exits(0);
    workspace.write("closed.json", month.text());
    let late = call(
        "late",
        "2025-06-05T10:00:00Z",
        "gpt-4o",
        "finance_ai",
        json!({"input_tokens": 1000, "output_tokens": 10}),
    );
    workspace.write("log.ndjson", ndjson(&[kept[0].clone(), kept[1].clone(), late]));
    workspace
}

#[test]
fn a_closed_month_holds_tokens_costs_and_what_had_no_price() {
    let workspace = workspace(&calls());
    let report = report(&workspace, &["cost", "close", "--month", "2025-06"]);
    let unpriced = report.rows().iter().find(|row| row["state"] == "unpriced").unwrap();
    assert_eq!(
        (&unpriced["cost"], &unpriced["attempts"], &unpriced["output_tokens"]),
        (&json!(null), &json!(1), &json!(10))
    );
    let sonnet = report.rows().iter().find(|row| row["model"] == "claude-sonnet").unwrap();
    assert_eq!(
        (&sonnet["month"], &sonnet["zone"], &sonnet["cost"]),
        (&json!("2025-06"), &json!("UTC"), &json!("0.01845"))
    );
    assert_eq!([&sonnet["write_5m_tokens"], &sonnet["write_1h_tokens"]], [600, 400]);
    assert!(sonnet["book"].as_str().unwrap().starts_with("list ("), "{sonnet}");
}

#[test]
fn late_records_are_corrections_by_usage() {
    let workspace = closed();
    let report = report(&workspace, &["cost", "correct", "--closed", "closed.json"]);
    let row = report.row();
    // 1,000 x 2.50 + 10 x 10.00
    assert_eq!(
        (&row["reason"], &row["correction"], &row["usage_effect"]),
        (&json!("usage"), &json!("0.0026"), &json!("0.0026"))
    );
    assert_eq!(
        (&row["closed_cost"], &row["cost"], &row["price_effect"]),
        (&json!("0.003"), &json!("0.0056"), &json!("0.00"))
    );
    assert_eq!([&row["closed_tokens"], &row["tokens"], &row["closed_attempts"], &row["attempts"]], [1100, 2110, 1, 2]);
    assert_eq!(report.note("proof").0, "proof: 2025-06, 0.003 stored + 0.0026 corrected = 0.0056 USD now");
}

#[test]
fn new_prices_are_corrections_by_price_and_add_up_too() {
    let workspace = closed();
    let mystery = "[[model]]\nname = \"mystery\"\n[[model.price]]\ninput = \"1.00\"\noutput = \"2.00\"\n";
    workspace.write("prices.toml", PRICES.replace("output = \"10.00\"", "output = \"12.00\"") + mystery);
    let report = report(&workspace, &["cost", "correct", "--closed", "closed.json"]);
    let [gpt, priced, unpriced] = report.rows() else { panic!("{:?}", report.rows()) };
    // usage as it was priced then; the dearer output is 110 x 2.00
    assert_eq!(
        (&gpt["reason"], &gpt["usage_effect"], &gpt["price_effect"]),
        (&json!("usage and price"), &json!("0.0026"), &json!("0.00022"))
    );
    assert_eq!((&gpt["cost"], &gpt["correction"]), (&json!("0.00582"), &json!("0.00282")));
    // 100 x 1.00 + 10 x 2.00
    assert_eq!(
        (&priced["reason"], &priced["correction"], &priced["price"]),
        (&json!("priced since"), &json!("0.00012"), &json!("mystery"))
    );
    assert_eq!(
        (&unpriced["reason"], &unpriced["correction"], &unpriced["closed_attempts"]),
        (&json!("counts"), &json!("0.00"), &json!(1))
    );
    assert_eq!(report.notes("other_book").len(), 1);
}

#[test]
fn a_change_of_a_closed_month_can_fail_a_pipeline() {
    let workspace = closed();
    let gate = |more: &[&str]| {
        let flags = [
            "cost",
            "correct",
            "--closed",
            "closed.json",
            "--fail-on",
            "warning",
            "--prices",
            "prices.toml",
            "log.ndjson",
        ];
        workspace.run(&[&flags, more].concat())
    };
    gate(&[]).exits(3);
    // what is not compared does not pass either
    gate(&["--tz", "Asia/Shanghai"]).exits(3);
    workspace.write("log.ndjson", ndjson(&[calls()[0].clone(), calls()[6].clone()]));
    gate(&[]).exits(0);
}

#[test]
fn corrections_are_focus_rows_of_the_same_columns() {
    let workspace = closed();
    let report =
        report(&workspace, &["cost", "correct", "--closed", "closed.json", "--focus", "--now", "2025-07-10T00:00:00Z"]);
    let row = report.row();
    assert_eq!(
        (&row["ChargeClass"], &row["BilledCost"], &row["SubAccountId"]),
        (&json!("Correction"), &json!("0.0026"), &json!("finance_ai"))
    );
    assert_eq!(instant(&row["ChargePeriodStart"]).to_string(), "2025-06-01T00:00:00Z");
    assert_eq!(instant(&row["BillingPeriodStart"]).to_string(), "2025-07-01T00:00:00Z");
    let focus = self::report(&workspace, &["focus"]);
    assert_eq!(report.column_names(), focus.column_names());
}

#[test]
fn what_a_cost_is_made_of_adds_up_to_it_and_its_requests_can_be_found() {
    let workspace = workspace(&calls());
    let report = report(&workspace, &["explain", "cost", "--line", "finance_ai", "--largest", "2"]);
    let part = |name: &str| -> Vec<Value> { report.rows().iter().filter(|row| row["part"] == name).cloned().collect() };
    let [figure] = &part("figure")[..] else { panic!("{:?}", report.rows()) };
    assert_eq!(
        (&figure["value"], &figure["currency"], &figure["attempts"]),
        (&json!("0.0242"), &json!("USD"), &json!(3))
    );
    let used = part("used");
    assert_eq!(used.iter().map(|row| money(&row["value"])).sum::<i128>(), money(&figure["value"]));
    let batch = used.iter().find(|row| row["class"] == "output" && row["tokens"] == 50).unwrap();
    assert_eq!(batch["item"], "gpt-4o from 2024-10-02 (alias gpt-4o-2024-08-06), tier batch");
    assert_eq!((&batch["per_million"], &batch["value"]), (&json!("5.00"), &json!("0.00025")));
    let found = |rows: Vec<Value>| -> Vec<String> {
        rows.iter()
            .map(|row| format!("{} {}", row["request_id"].as_str().unwrap(), row["place"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(found(part("largest")), ["b log.ndjson:2", "a log.ndjson:1"]);
    assert_eq!(
        (found(part("first")), found(part("last"))),
        (vec!["a log.ndjson:1".to_owned()], vec!["c log.ndjson:3".to_owned()])
    );
}

#[test]
fn what_is_left_out_of_a_figure_is_told_by_reason() {
    let workspace = workspace(&calls());
    let left_out = |column: &str| -> Vec<String> {
        let report = report(&workspace, &["explain", "cost", "--line", "search", "--column", column]);
        let rows = report.rows().iter().filter(|row| row["part"] == "left out");
        rows.map(|row| format!("{} {}", row["attempts"], row["item"].as_str().unwrap())).collect()
    };
    assert_eq!(left_out("cost"), ["1 unknown: output tokens are missing", "1 unpriced: no price for this model"]);
    assert_eq!(left_out("output_tokens"), ["1 output tokens are missing"]);
    assert_eq!(left_out("requests"), Vec::<String>::new());
    assert_eq!(left_out("gpu_seconds"), ["4 prefill time, decode time or batch size is missing"]);
    let cost = report(&workspace, &["explain", "cost", "--line", "search", "--column", "cost"]);
    let unknown = cost.rows().iter().find(|row| row["item"] == "unknown: output tokens are missing").unwrap();
    assert_eq!((&unknown["low"], &unknown["high"]), (&json!("0.0025"), &json!("0.0055")));
}

#[test]
fn a_retry_is_a_call_of_its_own_and_no_request() {
    let tokens = || json!({"input_tokens": 1000, "output_tokens": 0});
    let records = [
        call("a", "2025-06-01T10:00:00Z", "gpt-4o", "x", tokens()),
        call("a", "2025-06-01T10:00:30Z", "gpt-4o", "x", tokens()),
        call("b", "2025-06-01T10:00:00Z", "gpt-4o", "y", tokens()),
    ];
    let workspace = workspace(&records);
    let figure = |column: &str| {
        let report = report(&workspace, &["explain", "cost", "--line", "x", "--column", column]);
        report.rows().iter().find(|row| row["part"] == "figure").unwrap()["value"].clone()
    };
    assert_eq!((figure("requests"), figure("attempts"), figure("cost")), (json!(1), json!(2), json!("0.005")));
    let focus = report(&workspace, &["focus"]);
    assert_eq!(focus.column("BilledCost"), ["0.005", "0.0025"]);
}
