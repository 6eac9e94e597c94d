//! `reconcile`: a provider's invoice against the logs, cause by cause, to the last digit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::command::{Report, Run, Workspace, ndjson};

/// What a million tokens cost.
const PRICES: &str = r#"
[[model]]
name = "m"
aliases = ["m-2025-01-01"]
[[model.price]]
input = "2.50"
cached = "1.25"
output = "10.00"
[[model]]
name = "small"
[[model.price]]
input = "0.15"
cached = "0.075"
output = "0.60"
"#;

/// The gateway's log, and what the clients wrote where the gateway did not answer.
const FALLBACK: &str = r#"
[[source]]
name = "gateway"
paths = ["log.ndjson"]
role = "gateway"
priority = 10
[[source]]
name = "local fallback"
paths = ["fallback.ndjson"]
role = "app"
"#;

fn workspace(records: &[Value], bill: &str, prices: &str) -> Workspace {
    let workspace = Workspace::with_records(records);
    workspace.write("bill.csv", bill);
    workspace.write("prices.toml", prices);
    workspace
}

fn run(workspace: &Workspace, arguments: &[&str]) -> Run {
    let usual = ["reconcile", "--bill", "bill.csv", "--prices", "prices.toml", "--format", "json"];
    let names_logs = arguments.iter().any(|argument| argument.ends_with(".ndjson"));
    let logs: &[&str] = if names_logs { &[] } else { &["log.ndjson"] };
    workspace.run(&[&usual[..], arguments, logs].concat())
}

/// The causes that have an amount, or are not known, in their order.
fn bridge(report: &Report) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows = report.rows().iter().filter(|row| row["amount"] != "0.00");
    rows.map(|row| format!("{} {}", text(&row["cause"]), text(&row["amount"]))).collect()
}

#[track_caller]
fn row<'a>(report: &'a Report, cause: &str) -> &'a Value {
    report.rows().iter().find(|row| row["cause"] == cause).unwrap_or_else(|| panic!("no {cause}: {}", report.0))
}

/// A money text in units of 10^-12.
fn units(money: &Value) -> i128 {
    let text = money.as_str().unwrap_or_else(|| panic!("no money: {money}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<12}").parse().unwrap()
}

/// All rows but the last add up to it.
#[track_caller]
fn assert_adds_up(report: &Report) {
    let (bill, causes) = report.rows().split_last().unwrap();
    let sum: i128 = causes.iter().filter(|row| !row["amount"].is_null()).map(|row| units(&row["amount"])).sum();
    assert_eq!((bill["cause"].as_str(), sum), (Some("bill"), units(&bill["amount"])), "{}", report.0);
}

fn request(id: &str, input: u64, output: u64) -> Value {
    json!({"request_id": id, "timestamp": "2025-06-01T10:00:00Z", "model": "m", "input_tokens": input, "output_tokens": output})
}

/// The record with other values of some of its fields.
fn with(mut record: Value, changes: Value) -> Value {
    record.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    record
}

/// Tokens that a provider billed, by whatever its invoice tells apart and the class.
type Billed = BTreeMap<(String, &'static str, &'static str), u64>;

/// What a token costs in 10^-12: 2.50 a million are 2,500,000.
fn price(model: &str, class: &str) -> u64 {
    match (model, class) {
        ("m", "input") => 2_500_000,
        ("m", "cached") => 1_250_000,
        ("m", _) => 10_000_000,
        (_, "input") => 150_000,
        (_, "cached") => 75_000,
        _ => 600_000,
    }
}

/// An invoice of these tokens at the prices of the book; `first` is its first column.
fn invoice(first: &str, billed: &Billed) -> String {
    let mut text = format!("{first},model,class,tokens,cost,currency\n");
    for ((key, model, class), tokens) in billed {
        let cost = tokens * price(model, class);
        let (whole, fraction) = (cost / 1_000_000_000_000, cost % 1_000_000_000_000);
        text += &format!("{key},{model},{class},{tokens},{whole}.{fraction:012},USD\n");
    }
    text
}

/// 306 requests of 1,000 tokens in and 100 out over five days. The gateway logged 300 of them, 330,000 tokens. Of these 33
/// are logged with the prompt after 300 of its tokens were cut off (9,900), and 3 are the third attempt of their request,
/// the first two overwritten (6 x 1,100). 6 clients went away and stand only in the fallback log (6 x 1,100). The provider
/// counts 23,100 tokens more than the log, 7 %. By the day and model, or by the request.
fn seven_percent_more(by_request: bool) -> (Vec<Value>, Vec<Value>, Billed) {
    let (mut gateway, mut fallback, mut billed) = (Vec::new(), Vec::new(), Billed::new());
    for number in 0..306_u64 {
        let (day, model) = (1 + number % 5, if number % 2 == 1 { "m" } else { "small" });
        let cached = if number % 3 == 0 { 200 } else { 0 };
        let id = format!("req-{number:03}");
        let mut record = json!({"request_id": id, "timestamp": format!("2025-06-0{day}T{:02}:00:00Z", number % 24),
            "model": model, "input_tokens": 1000, "cached_tokens": cached, "output_tokens": 100, "status": "success"});
        let (mut input, mut attempts) = (1000, 1);
        if number % 9 == 0 && number < 297 {
            record["original_input_tokens"] = json!(1300);
            input = 1300;
        }
        if matches!(number, 1 | 2 | 4) {
            record["attempt"] = json!(3);
            attempts = 3;
        }
        let key = if by_request { id } else { format!("2025-06-0{day}") };
        for (class, tokens) in [("input", input - cached), ("cached", cached), ("output", 100)] {
            *billed.entry((key.clone(), model, class)).or_default() += tokens * attempts;
        }
        match number {
            300.. => fallback.push(record),
            // the fallback log has some that the gateway has as well
            0..20 => {
                fallback.push(record.clone());
                gateway.push(record);
            }
            _ => gateway.push(record),
        }
    }
    billed.retain(|_, tokens| *tokens > 0);
    (gateway, fallback, billed)
}

#[test]
fn an_invoice_with_7_percent_more_tokens_is_explained_with_a_residual_of_0() {
    for (by_request, first) in [(false, "day"), (true, "request_id")] {
        let (gateway, fallback, billed) = seven_percent_more(by_request);
        let workspace = workspace(&gateway, &invoice(first, &billed), PRICES);
        workspace.write("fallback.ndjson", ndjson(&fallback));
        workspace.write("infer-stats.toml", FALLBACK);
        let report = run(&workspace, &["log.ndjson", "fallback.ndjson"]).report();
        // m: 0.0035 a request, 0.00325 with 200 cached; small: 0.00021 and 0.000195
        let expected = [
            // 100 and 50 of m, 100 and 50 of small
            "logs 0.54325",
            // 301, 303 (cached) and 305 are of m, 300 (cached), 302 and 304 of small
            "dropped clients 0.010865",
            // twice 1 (m), 2 and 4 (small)
            "retries overwritten in the log 0.00784",
            // 300 tokens, 16 times of m and 17 times of small
            "truncation 0.012765",
            "bill 0.57472",
        ];
        assert_eq!(bridge(&report), expected, "{first}");
        let tokens = |cause: &str| row(&report, cause)["tokens"].as_i64().unwrap();
        assert_eq!((tokens("logs"), tokens("bill"), tokens("residual")), (330_000, 353_100, 0));
        assert_eq!(tokens("dropped clients") + tokens("retries overwritten in the log") + tokens("truncation"), 23_100);
        let residual = row(&report, "residual");
        assert_eq!((&residual["amount"], &residual["severity"]), (&json!("0.00"), &json!("info")));
        assert_adds_up(&report);
    }
}

#[test]
fn what_the_provider_did_not_bill_is_no_cause() {
    let records = [
        with(request("a", 1000, 100), json!({"original_input_tokens": 1500})),
        with(request("b", 1000, 100), json!({"attempt": 2})),
    ];
    let bill =
        "day,model,class,tokens,cost,currency\n2025-06-01,m,input,2000,0.005,USD\n2025-06-01,m,output,200,0.002,USD\n";
    let workspace = workspace(&records, bill, PRICES);
    let report = run(&workspace, &[]).report();
    assert_eq!(bridge(&report), ["logs 0.007", "bill 0.007"]);
    for cause in ["truncation", "retries overwritten in the log"] {
        assert_eq!(row(&report, cause)["requests"], 1);
        assert!(row(&report, cause)["basis"].as_str().unwrap().starts_with("not billed"), "{}", report.0);
    }
    // 500 tokens that are claimed against the bill
    let report = run(&workspace, &["--truncation", "yes"]).exits(3).report_anyway();
    assert_eq!(bridge(&report), ["logs 0.007", "truncation 0.00125", "residual -0.00125", "bill 0.007"]);
}

#[test]
fn a_cut_prompt_that_was_tried_three_times_was_sent_three_times_as_a_whole() {
    let records = [with(request("a", 1000, 100), json!({"original_input_tokens": 1500, "attempt": 3}))];
    let bill = "day,model,class,tokens,cost,currency\n2025-06-01,m,input,4500,0.01125,USD\n2025-06-01,m,output,300,0.003,USD\n";
    let report = run(&workspace(&records, bill, PRICES), &[]).report();
    // twice 0.0035, and three times 500 tokens
    let expected = ["logs 0.0035", "retries overwritten in the log 0.007", "truncation 0.00375", "bill 0.01425"];
    assert_eq!(bridge(&report), expected);
}

#[test]
fn a_request_of_the_flex_tier_is_found_by_its_price() {
    // 11 x 0.10 + 40 x 0.40 are 17.1 a million, and 11 x 0.10 + 40 x 0.32 are 13.9
    let prices = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"0.10\"\noutput = \"0.40\"\n\
        tiers = { flex = { input = \"0.10\", output = \"0.32\" } }\n";
    let by_cost = "timestamp,request_id,model,cost,currency\n2025-06-01T10:00:00Z,a,m,0.0000139,USD\n";
    let by_tier = "day,model,class,tier,tokens,cost,currency\n\
        2025-06-01,m,input,flex,11,0.0000011,USD\n2025-06-01,m,output,flex,40,0.0000128,USD\n";
    let report = run(&workspace(&[request("a", 11, 40)], by_cost, prices), &[]).report();
    // a bill without tokens tells nothing of classes and prices
    let expected = ["logs 0.0000171", "cache class null", "tier -0.0000032", "price version null", "bill 0.0000139"];
    assert_eq!(bridge(&report), expected);
    let report = run(&workspace(&[request("a", 11, 40)], by_tier, prices), &[]).report();
    assert_eq!(bridge(&report), ["logs 0.0000171", "tier -0.0000032", "bill 0.0000139"]);
}

#[test]
fn a_gap_that_one_line_has_is_shown_with_its_coverage_and_gated() {
    let prices = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"1.00\"\noutput = \"1.00\"\n";
    // 14.6 % less than the bill as a whole, and 0.12 % less of what `enhance` used
    let of = |line: &str, output: u64| {
        let record = |number| with(request(&format!("{line}-{number}"), 0, output), json!({"business_line": line}));
        (0..10).map(record).collect::<Vec<_>>()
    };
    let records = [of("enhance", 898_920), of("verify", 7_641_080)].concat();
    let bill = "day,model,line,class,tokens,cost,currency\n\
        2025-06-01,m,enhance,output,9000000,9.00,USD\n2025-06-01,m,verify,output,91000000,91.00,USD\n";
    let workspace = workspace(&records, bill, prices);
    let report = run(&workspace, &["--by", "line"]).exits(3).report_anyway();
    assert_eq!(report.column("line"), ["verify", "enhance"]);
    assert_eq!(report.column("residual"), ["14.5892", "0.0108"]);
    assert_eq!((&report.rows()[1]["coverage"], &report.rows()[1]["token_coverage"]), (&json!(0.9988), &json!(0.9988)));
    let report = run(&workspace, &[]).exits(3).report_anyway();
    assert_eq!(bridge(&report), ["logs 85.40", "residual 14.60", "bill 100.00"]);
    assert_eq!(row(&report, "residual")["severity"], "error");
    assert_eq!(
        report.note("coverage").0,
        "the logs hold 85.4 % of what the bill asks for usage, and 85.4 % of its tokens"
    );
    assert_eq!(report.note("proof").0, "proof: logs 85.4 + causes 0 + residual 14.6 = bill 100 USD");
    for tolerated in [["--tolerance", "14.6"], ["--tolerance-share", "0.15"]] {
        run(&workspace, &tolerated).exits(0);
    }
}

#[test]
fn cached_tokens_and_prices_are_told_apart() {
    let records = [
        with(request("a", 1000, 100), json!({"cached_tokens": 500})),
        with(request("b", 2000, 200), json!({"cached_tokens": 500})),
    ];
    let bridge_of = |lines: &str| {
        let bill = format!("day,model,class,tokens,cost,currency\n{lines}");
        bridge(&run(&workspace(&records, &bill, PRICES), &[]).report())
    };
    // 400 tokens are not cached by the bill: 400 x 1.25 a million; 300 tokens of output at 11.00 instead of 10.00
    let lines =
        "2025-06-01,m,input,2400,0.006,USD\n2025-06-01,m,cached,600,0.00075,USD\n2025-06-01,m,output,300,0.0033,USD\n";
    assert_eq!(bridge_of(lines), ["logs 0.00925", "cache class 0.0005", "price version 0.0003", "bill 0.01005"]);
    // a bill without cached tokens may count them as input, at the price of input or at their own
    let dear = "2025-06-01,m,input,3000,0.0075,USD\n2025-06-01,m,output,300,0.003,USD\n";
    assert_eq!(bridge_of(dear), ["logs 0.00925", "cache class 0.00125", "bill 0.0105"]);
    let cheap = "2025-06-01,m,input,3000,0.00625,USD\n2025-06-01,m,output,300,0.003,USD\n";
    assert_eq!(bridge_of(cheap), ["logs 0.00925", "bill 0.00925"]);
}

#[test]
fn what_one_side_alone_has_and_what_is_no_usage_have_rows_of_their_own() {
    let records = [
        request("a", 1000, 100),
        with(request("b", 1000, 100), json!({"model": "new"})),
        with(request("c", 1000, 100), json!({"model": "small"})),
        json!({"request_id": "d", "timestamp": "2025-06-01T10:00:00Z", "model": "m"}),
    ];
    let bill = "day,model,class,tokens,cost,currency,category\n\
        2025-06-01,m-2025-01-01,input,1000,0.0025,USD,Usage\n2025-06-01,m-2025-01-01,output,100,0.001,USD,Usage\n\
        2025-06-01,new,input,1000,0.004,USD,Usage\n2025-06-01,new,output,100,0.002,USD,Usage\n\
        2025-06-01,alien,input,50,0.01,USD,Usage\n2025-06-01,,,,-0.005,USD,Credit\n2025-06-01,,,,0.0021,USD,Tax\n";
    let workspace = workspace(&records, bill, PRICES);
    let report = run(&workspace, &[]).report();
    let expected = [
        "logs 0.00371",
        "only in the logs -0.00021",
        "only in the bill 0.01",
        "unknown usage null",
        "unpriced 0.006",
        "credits -0.005",
        "taxes 0.0021",
        "bill 0.0166",
    ];
    assert_eq!(bridge(&report), expected);
    assert_eq!(
        (&row(&report, "unknown usage")["requests"], &row(&report, "unpriced")["tokens"]),
        (&json!(1), &json!(1100))
    );
    assert_adds_up(&report);
    run(&workspace, &["--fail-on", "warning"]).exits(3);
}

#[test]
fn days_in_another_zone_are_found_and_set_right() {
    // a request in each hour of four days
    let record = |number: u64| {
        let time = format!("2025-06-0{}T{:02}:30:00Z", 1 + number / 24, number % 24);
        with(request(&format!("hour-{number}"), 100 + number, 0), json!({"timestamp": time}))
    };
    let records: Vec<Value> = (0..96).map(record).collect();
    let mut billed = Billed::new();
    for number in 0..96 {
        *billed.entry((format!("2025-06-0{}", 1 + number / 24), "m", "input")).or_default() += 100 + number;
    }
    let workspace = workspace(&records, &invoice("day", &billed), PRICES);
    // what comes after 16:00 of the last day is in none of the days of Shanghai: 800 + 88 + ... + 95 = 1,532 tokens
    let report = run(&workspace, &["--tz", "Asia/Shanghai"]).exits(3).report_anyway();
    assert_eq!(bridge(&report), ["logs 0.03157", "residual 0.00383", "bill 0.0354"]);
    assert!(report.note("shift").0.contains("shifted by 8 hours"), "{:?}", report.note("shift"));
    let report = run(&workspace, &["--tz", "Asia/Shanghai", "--shift", "8"]).report();
    assert_eq!(bridge(&report), ["logs 0.03157", "window and zone 0.00383", "bill 0.0354"]);
    assert_eq!(bridge(&run(&workspace, &[]).report()), ["logs 0.0354", "bill 0.0354"]);
}

#[test]
fn requests_that_the_bill_names_are_matched_and_listed_where_one_side_lacks_them() {
    let records = [
        request("a", 1000, 100),
        request("b", 1000, 100),
        with(request("late", 1000, 100), json!({"timestamp": "2025-05-31T23:59:59Z"})),
        json!({"request_id": "gone", "timestamp": "2025-06-01T10:00:00Z", "model": "m", "http_status": 499}),
    ];
    let lines = |id: &str| {
        format!("2025-06-01T10:00:00Z,{id},m,input,1000,0.0025,USD\n2025-06-01T10:00:00Z,{id},m,output,100,0.001,USD\n")
    };
    let bill: String = ["a", "late", "gone", "ghost"].map(lines).concat();
    let workspace =
        workspace(&records, &format!("timestamp,request_id,model,class,tokens,cost,currency\n{bill}"), PRICES);
    let report = run(&workspace, &[]).report();
    let expected = [
        "logs 0.007",
        "window and zone 0.0035",
        "only in the logs -0.0035",
        "only in the bill 0.0035",
        "dropped clients without usage 0.0035",
        "bill 0.014",
    ];
    assert_eq!(bridge(&report), expected);
    let report = run(&workspace, &["--missing"]).report();
    assert_eq!(report.column("side"), ["only in the bill", "only in the logs"]);
    assert_eq!(report.column("request_id"), ["ghost", "b"]);
    assert_eq!(report.column("amount"), ["0.0035", "0.0035"]);
}

#[test]
fn a_bill_of_costs_alone_leaves_what_it_cannot_tell_in_the_residual() {
    let bill = "day,model,cost,currency\n2025-06-01,m,0.004,USD\n";
    let report = run(&workspace(&[request("a", 1000, 100)], bill, PRICES), &[]).exits(3).report_anyway();
    let expected =
        ["logs 0.0035", "cache class null", "tier null", "price version null", "residual 0.0005", "bill 0.004"];
    assert_eq!(bridge(&report), expected);
    assert_eq!(row(&report, "residual")["tokens"], json!(null));
}

#[test]
fn focus_rows_of_the_logs_reconcile_with_the_logs() {
    let (gateway, _, _) = seven_percent_more(false);
    let workspace = workspace(&gateway, "", PRICES);
    for format in ["csv", "parquet"] {
        let file = format!("focus.{format}");
        let export = ["focus", "--prices", "prices.toml", "--format", format, "-o", &file, "log.ndjson"];
        workspace.run(&export).exits(0);
        let report = workspace.report(&["reconcile", "--bill", &file, "--prices", "prices.toml", "log.ndjson"]);
        // nobody billed what was cut off or tried before
        assert_eq!(bridge(&report), ["logs 0.54325", "bill 0.54325"]);
    }
}
