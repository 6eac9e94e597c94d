//! What a request costs: a sample priced by hand, and what users of such tools ran into, with the figures that they met.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, assert_sentence};

/// A report of one's own: each attempt with its charge.
const CHARGES: &str = r#"-- title: Charges
-- question: What does each attempt cost, and by which price?
-- example: run charges --queries queries --param prices=prices.toml log.ndjson
-- param: prices book | the price book
-- param: currency text | convert to this currency
-- column: request_id | the request
-- column: attempt_number | of the request
-- column: attempts | that the request took
-- column: state | priced, free, unknown or unpriced
-- column: reason | why it is not priced
-- column: rule | the price, and how it matched
-- column: currency | of the cost
-- column: *_tokens tokens | of each class
-- column: cost | of the attempt, to twelve decimals
-- column: low | at least
-- column: high | at most
WITH charged AS (
  SELECT request_id, attempt_number, attempts, timestamp, {{ charge_at("timestamp") }} AS charge FROM {{ attempts }}
)
SELECT request_id, attempt_number, attempts, charge['state'] AS state, charge['reason'] AS reason, charge['rule'] AS rule,
  charge['currency'] AS currency, charge['uncached_tokens'] AS uncached_tokens, charge['cached_tokens'] AS cached_tokens,
  charge['write_5m_tokens'] AS write_5m_tokens, charge['write_1h_tokens'] AS write_1h_tokens,
  charge['output_tokens'] AS output_tokens, charge['reasoning_tokens'] AS reasoning_tokens,
  CAST(CAST(charge['cost'] AS DECIMAL(38,12)) AS VARCHAR) AS cost,
  CAST(CAST(charge['low'] AS DECIMAL(38,12)) AS VARCHAR) AS low,
  CAST(CAST(charge['high'] AS DECIMAL(38,12)) AS VARCHAR) AS high
FROM charged
ORDER BY request_id, attempt_number, timestamp, rule
"#;

/// And what all of them cost together.
const SUMS: &str = r#"-- title: Sums
-- question: What do all requests cost?
-- example: run sums --queries queries --param prices=prices.toml log.ndjson
-- param: prices book | the price book
-- param: currency text | convert to this currency
-- column: requests requests | all
-- column: cost | of those whose cost is known
WITH charged AS (SELECT attempt_number, {{ charge_at("timestamp") }} AS charge FROM {{ attempts }})
SELECT count(*) FILTER (WHERE attempt_number = 1) AS requests, CAST(sum(charge['cost']) AS DECIMAL(38,12)) AS cost FROM charged
"#;

/// The prices of the tests, made up but for their sizes.
const BOOK: &str = r#"
name = "of the tests"
currency = "USD"

[[model]]
name = "gpt-4o"
provider = "openai"
aliases = ["gpt-4o-2024-08-06"]
patterns = ["azure/gpt-4o*"]
[[model.price]]
from = "2024-05-13"
input = "5.00"
output = "15.00"
[[model.price]]
from = "2024-10-02"
input = "2.50"
cached = "1.25"
output = "10.00"
tiers = { batch = { factor = "0.5" } }

[[model]]
name = "gpt-5-mini"
[[model.price]]
input = "0.25"
cached = "0.025"
output = "2.00"
tiers = { flex = { input = "0.125", cached = "0.0125", output = "1.00" }, priority = { factor = "1.8" } }

[[model]]
name = "sonnet"
patterns = ["claude-sonnet-*"]
[[model.price]]
input = "3.00"
cached = "0.30"
cache_write = "3.75"
cache_write_1h = "6.00"
output = "15.00"
tiers = { batch = { factor = "0.5" } }
long = [{ above = 200000, mode = "whole", input = "6.00", cached = "0.60", cache_write = "7.50", cache_write_1h = "12.00", output = "22.50" }]

[[model]]
name = "haiku"
[[model.price]]
input = "1.00"
output = "5.00"

[[model]]
name = "gemini-2.5-pro"
[[model.price]]
input = "1.25"
cached = "0.125"
output = "10.00"
long = [{ above = 200000, mode = "marginal", input = "2.50", cached = "0.25" }]

[[model]]
name = "thinker"
[[model.price]]
input = "0.55"
output = "2.19"
reasoning = "4.00"

[[model]]
name = "embedder"
[[model.price]]
input = "0.02"

[[model]]
name = "by-total"
[[model.price]]
total = "0.60"

[[model]]
name = "searcher"
[[model.price]]
input = "1.00"
output = "1.00"
request = "0.005"

[[model]]
name = "qwen"
[[model.price]]
input = "2.40"
output = "9.60"
currency = "CNY"

[[rate]]
from = "CNY"
to = "USD"
since = "2025-06-01"
rate = "0.1391"
[[rate]]
from = "CNY"
to = "USD"
since = "2025-07-01"
rate = "0.14"
"#;

/// A folder with records, a price book and the report of charges.
fn priced(records: &[Value], book: &str) -> Workspace {
    let workspace = Workspace::with_records(records);
    workspace.write("prices.toml", book);
    workspace.write("queries/charges.sql", CHARGES);
    workspace.write("queries/sums.sql", SUMS);
    workspace
}

/// What is charged for each attempt.
fn charged(workspace: &Workspace, arguments: &[&str]) -> Report {
    let command = ["run", "charges", "--queries", "queries", "--param", "prices=prices.toml"];
    workspace.report(&[&command[..], arguments, &["log.ndjson"]].concat())
}

/// The command that sums the costs.
const SUMMED: [&str; 7] = ["run", "sums", "--queries", "queries", "--param", "prices=prices.toml", "log.ndjson"];

/// An amount of money as a number.
fn amount(text: &Value) -> f64 {
    text.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no amount: {text}"))
}

/// What is charged for each record at the prices of the tests.
fn charges(records: &[Value]) -> Report {
    charged(&priced(records, BOOK), &[])
}

/// A successful request of June 2025 with these fields.
fn request(id: impl ToString, model: &str, fields: Value) -> Value {
    let mut record = json!({"request_id": id.to_string(), "timestamp": "2025-06-10T10:00:00Z", "model_name": model,
                            "status": "success"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

/// Input, cached and output tokens.
fn tokens(input: u64, cached: u64, output: u64) -> Value {
    json!({"input_tokens": input, "cached_tokens": cached, "output_tokens": output})
}

/// The fields with one more.
fn with(mut fields: Value, name: &str, value: Value) -> Value {
    fields[name] = value;
    fields
}

/// The fields with so many tokens written to a cache, and those of them that were written for an hour.
fn written(fields: Value, all: u64, for_an_hour: u64) -> Value {
    with(with(fields, "cache_write_tokens", json!(all)), "cache_write_1h_tokens", json!(for_an_hour))
}

/// The record so many seconds later.
fn at(second: u64, record: Value) -> Value {
    with(record, "timestamp", json!(format!("2025-06-10T10:{:02}:{:02}Z", second / 60, second % 60)))
}

/// An amount as its twelve decimals say it, in 10^-12.
fn units(amount: &Value) -> i128 {
    let text = amount.as_str().unwrap_or_else(|| panic!("no amount: {amount}"));
    text.replace('.', "").parse().unwrap_or_else(|_| panic!("no amount: {text}"))
}

/// The sum of all costs that are known, with twelve decimals.
fn sum(report: &Report) -> String {
    let sum: i128 = report.column("cost").iter().filter(|cost| !cost.is_null()).map(units).sum();
    format!("{}.{:012}", sum / 1_000_000_000_000, sum % 1_000_000_000_000)
}

/// The attempts, and the requests that took them.
fn attempts_and_requests(report: &Report) -> (usize, usize) {
    let first = report.rows().iter().filter(|row| row["attempt_number"] == 1);
    (report.rows().len(), first.count())
}

/// The classes of a row's tokens: uncached, cached, written for five minutes and for an hour, output.
fn classes(row: &Value) -> [&Value; 5] {
    ["uncached_tokens", "cached_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens"].map(|name| &row[name])
}

/// Twenty requests of all kinds. Prices are per 1,000,000 tokens, so that the sums are in 10^-6.
#[test]
fn twenty_requests_cost_what_they_cost_by_hand() {
    let sample = [
        // 86 x 2.50 + 1920 x 1.25 + 300 x 10 = 215 + 2400 + 3000
        ("gpt-4o", tokens(2006, 1920, 300), "0.005615000000"),
        // an older price, with none for cached tokens: 1000 x 5 + 100 x 15 = 5000 + 1500
        (
            "gpt-4o",
            with(tokens(1000, 400, 100), "timestamp", json!("2024-10-01T23:59:59.999999999Z")),
            "0.006500000000",
        ),
        // an alias, half price in a batch: (1000 x 2.50 + 100 x 10) / 2 = 3500 / 2
        ("gpt-4o-2024-08-06", with(tokens(1000, 0, 100), "service_tier", json!("batch")), "0.001750000000"),
        // a pattern: 7 x 2.50 + 3 x 10 = 17.5 + 30
        ("azure/gpt-4o-eu", tokens(7, 0, 3), "0.000047500000"),
        // 1000 x 0.25 + 1000 x 0.025 + 500 x 2 = 250 + 25 + 1000
        ("gpt-5-mini", tokens(2000, 1000, 500), "0.001275000000"),
        // prices of its own in the flex tier: 1000 x 0.125 + 1000 x 0.0125 + 500 x 1 = 125 + 12.5 + 500
        ("gpt-5-mini", with(tokens(2000, 1000, 500), "service_tier", json!("flex")), "0.000637500000"),
        // 1275 x 1.8
        ("gpt-5-mini", with(tokens(2000, 1000, 500), "service_tier", json!("priority")), "0.002295000000"),
        // 100 x 3 + 900 x 0.30 + 80 x 3.75 + 50 x 15 = 300 + 270 + 300 + 750
        ("claude-sonnet-4", with(tokens(1080, 900, 50), "cache_write_tokens", json!(80)), "0.001620000000"),
        // 80 x 3 + 400 x 3.75 + 600 x 6 + 10 x 15 = 240 + 1500 + 3600 + 150
        ("sonnet", written(tokens(1080, 0, 10), 1000, 600), "0.005490000000"),
        // one token above the threshold, all of it dearer: 200,001 x 6 + 1000 x 22.50 = 1,200,006 + 22,500
        ("sonnet", tokens(200_001, 0, 1000), "1.222506000000"),
        // on the threshold: 200,000 x 3 + 1000 x 15
        ("sonnet", tokens(200_000, 0, 1000), "0.615000000000"),
        // long, in a batch: (100,000 x 6 + 150,000 x 0.60 + 2000 x 22.50) / 2 = (600,000 + 90,000 + 45,000) / 2
        ("sonnet", with(tokens(250_000, 150_000, 2000), "service_tier", json!("batch")), "0.367500000000"),
        // 50,000 tokens above a marginal threshold, 30,000 uncached and the last 20,000 of the cached:
        // 30,000 x 2.50 + 200,000 x 0.125 + 20,000 x 0.25 + 100 x 10 = 75,000 + 25,000 + 5000 + 1000
        ("gemini-2.5-pro", tokens(250_000, 220_000, 100), "0.106000000000"),
        // 200,000 x 1.25 + 50,000 x 2.50
        ("gemini-2.5-pro", tokens(250_000, 0, 0), "0.375000000000"),
        // reasoning has a price of its own: 1000 x 0.55 + 300 x 2.19 + 200 x 4 = 550 + 657 + 800
        ("thinker", with(tokens(1000, 0, 500), "reasoning_tokens", json!(200)), "0.002007000000"),
        // a model without output: 12,345 x 0.02
        ("embedder", json!({"input_tokens": 12_345}), "0.000246900000"),
        // billed by the total, which is more than the parts: 1234 x 0.60
        ("by-total", with(tokens(1000, 0, 200), "total_tokens", json!(1234)), "0.000740400000"),
        // 1000 x 1 + 1000 x 1, and 5000 for the request
        ("searcher", tokens(1000, 0, 1000), "0.007000000000"),
        // in CNY: 1000 x 2.40 + 500 x 9.60
        ("qwen", tokens(1000, 0, 500), "0.007200000000"),
        // answered by the gateway's own cache
        ("gpt-4o", with(tokens(9000, 0, 500), "response_cache_hit", json!(true)), "0.000000000000"),
    ];
    let id = |number: usize| format!("{number:02}");
    let records: Vec<Value> = sample
        .iter()
        .enumerate()
        .map(|(number, (model, fields, _))| request(id(number), model, fields.clone()))
        .collect();
    let report = charges(&records);
    assert_eq!(report.rows().len(), sample.len());
    for (number, (row, (_, _, cost))) in report.rows().iter().zip(&sample).enumerate() {
        let state = if number == 19 { "free" } else { "priced" };
        let shown = ["request_id", "state", "cost"].map(|name| row[name].as_str().unwrap_or_default());
        assert_eq!(shown, [id(number).as_str(), state, cost], "{row}");
        let currency = if number == 18 { "CNY" } else { "USD" };
        assert!(row["currency"] == currency || state == "free", "{row}");
        // what is known is its own bound
        assert_eq!([&row["low"], &row["high"]], [cost, cost], "{row}");
    }
    // one thread or eight, the bytes are the same
    let workspace = priced(&records, BOOK);
    assert_eq!(charged(&workspace, &["--threads", "1"]), charged(&workspace, &["--threads", "8"]));
}

// ---- cached tokens

/// 17,903 input tokens of which 17,817 were cached were shown as 35,720, and 1,999 with 1,792 as 3,791.
#[test]
fn cached_tokens_are_part_of_the_input_and_counted_once() {
    let message = |id: &str, uncached: u64, cached: u64| {
        json!({"id": id, "type": "message", "role": "assistant", "model": "sonnet", "created_at": "2025-06-10T10:00:00Z",
               "usage": {"input_tokens": uncached, "cache_read_input_tokens": cached, "output_tokens": 0}})
    };
    let completion = |id: &str, input: u64, cached: u64| {
        json!({"id": id, "object": "chat.completion", "model": "gpt-4o", "created": 1_749_549_600,
               "usage": {"prompt_tokens": input, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": cached}}})
    };
    // both conventions of what the input counts
    let report = charges(&[
        completion("a", 17_903, 17_817),
        message("b", 86, 17_817),
        completion("c", 1999, 1792),
        message("d", 207, 1792),
    ]);
    let expected = [[86, 17_817, 0, 0, 0], [86, 17_817, 0, 0, 0], [207, 1792, 0, 0, 0], [207, 1792, 0, 0, 0]];
    assert_eq!(report.rows().iter().map(classes).collect::<Vec<_>>(), expected);
}

/// A source that leaves cached tokens out of the input, read by its plain names.
#[test]
fn more_cached_tokens_than_input_are_beside_it_and_none_is_lost() {
    let report = charges(&[request("a", "gpt-4o", tokens(86, 17_817, 0))]);
    assert_eq!(classes(report.row()), [86, 17_817, 0, 0, 0]);
    // 86 x 2.50 + 17,817 x 1.25 = 215 + 22,271.25
    assert_eq!(report.row()["cost"], "0.022486250000");
}

/// 2,006 prompt tokens, 1,920 cached, 300 of output: cached tokens were priced twice.
#[test]
fn each_class_of_tokens_has_its_own_price() {
    // (2006 - 1920) x 2.50 + 1920 x 1.25 + 300 x 10 = 5615
    let report = charges(&[request("a", "gpt-4o", tokens(2006, 1920, 300))]);
    assert_eq!(report.row()["cost"], "0.005615000000");
}

/// What was written to a cache was charged at the price of writes and at that of input.
#[test]
fn cache_writes_are_charged_once_at_the_price_of_writes() {
    let record = json!({"id": "a", "type": "message", "model": "sonnet", "created_at": "2025-06-10T10:00:00Z",
                        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 1000, "output_tokens": 10}});
    let report = charges(&[record]);
    // 100 x 3 + 1000 x 3.75 + 10 x 15 = 300 + 3750 + 150
    assert_eq!(report.row()["cost"], "0.004200000000");
    assert_eq!(classes(report.row()), [100, 0, 1000, 0, 10]);
}

/// 1-hour writes were priced as those of 5 minutes, 305.30 instead of 355.66.
#[test]
fn writes_for_an_hour_have_another_price_than_those_for_five_minutes() {
    let record = json!({"id": "a", "type": "message", "model": "sonnet", "created_at": "2025-06-10T10:00:00Z", "usage": {
        "input_tokens": 10, "output_tokens": 100, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000}}});
    let report = charges(&[record]);
    assert_eq!(classes(report.row()), [10, 2000, 1000, 2000, 100]);
    // 10 x 3 + 2000 x 0.30 + 1000 x 3.75 + 2000 x 6 + 100 x 15 = 30 + 600 + 3750 + 12,000 + 1500
    assert_eq!(report.row()["cost"], "0.017880000000");
}

/// The price of a million taken for that of a thousand: 2,634 cached tokens cost 7.902.
const ABSURD: &str = r#"
[[model]]
name = "m"
[[model.price]]
input = "3.00"
cached = "3000"
output = "15.00"
"#;

#[test]
fn an_absurd_price_is_found_before_it_is_used() {
    let workspace = priced(&[request("a", "m", tokens(2739, 2634, 0))], ABSURD);
    // 105 x 3 + 2634 x 3000 = 315 + 7,902,000
    assert_eq!(charged(&workspace, &[]).row()["cost"], "7.902315000000");
    let check = workspace.run(&["prices", "check", "prices.toml", "--format", "json"]).exits(3).report_anyway();
    let error = check.rows().iter().find(|row| row["severity"] == "error").unwrap();
    assert_eq!(error["model"], "m");
    assert!(error["what"].as_str().unwrap().contains("cached"), "{error}");
    // who does not check is told by every report
    let notes = charged(&workspace, &[]).0["notes"].to_string();
    assert!(notes.contains("prices check"), "{notes}");
}

#[test]
fn a_sound_book_passes_the_check() {
    let workspace = priced(&[], BOOK);
    workspace.run(&["prices", "check", "prices.toml"]).exits(0);
}

/// An answer out of the gateway's cache was charged like any other.
#[test]
fn an_answer_from_the_response_cache_costs_nothing_and_is_counted_as_free() {
    let of = |id: &str, hit: bool| request(id, "gpt-4o", with(tokens(1000, 0, 100), "response_cache_hit", json!(hit)));
    let report = charges(&[of("hit", true), of("miss", false)]);
    assert_eq!(report.column("state"), ["free", "priced"]);
    // 1000 x 2.50 + 100 x 10
    assert_eq!(report.column("cost"), ["0.000000000000", "0.003500000000"]);
    assert!(report.rows()[0]["reason"].is_string(), "{}", report.rows()[0]);
}

// ---- reasoning, tiers, the price book, rounding

/// 2,008 + 266 = 2,274 tokens with 261 of reasoning inside the completion, added once more.
#[test]
fn reasoning_inside_the_output_is_not_added_to_it() {
    let record = json!({"id": "a", "object": "chat.completion", "model": "gpt-5-mini", "created": 1_749_549_600, "usage": {
        "prompt_tokens": 2008, "completion_tokens": 266, "total_tokens": 2274,
        "completion_tokens_details": {"reasoning_tokens": 261}}});
    let report = charges(&[record]);
    assert_eq!((&report.row()["output_tokens"], &report.row()["reasoning_tokens"]), (&json!(266), &json!(0)));
    // 2008 x 0.25 + 266 x 2 = 502 + 532
    assert_eq!(report.row()["cost"], "0.001034000000");
}

/// Gemini counts its thoughts beside the candidates.
#[test]
fn thoughts_outside_the_candidates_are_output_too() {
    let record = json!({"responseId": "a", "modelVersion": "gemini-2.5-pro", "createTime": "2025-06-10T10:00:00Z",
                        "candidates": [{"finishReason": "STOP"}],
                        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 80,
                                          "cachedContentTokenCount": 60, "totalTokenCount": 200}});
    let report = charges(&[record]);
    assert_eq!(classes(report.row()), [40, 60, 0, 0, 100]);
    // 40 x 1.25 + 60 x 0.125 + 100 x 10 = 50 + 7.5 + 1000
    assert_eq!(report.row()["cost"], "0.001057500000");
}

/// A model whose long prompts are dearer, by a mode.
fn long(mode: &str) -> String {
    format!(
        r#"
[[model]]
name = "m"
[[model.price]]
input = "2.50"
cached = "0.25"
output = "15.00"
tiers = {{ batch = {{ factor = "0.5" }} }}
long = [{{ above = 272000, mode = "{mode}", input = "5.00", cached = "0.50", output = "22.50" }}]
"#
    )
}

/// 270,540 tokens and 7,936 that were cached are 278,476, above 272K.
#[test]
fn the_threshold_of_long_prompts_counts_cached_tokens_and_the_mode_says_what_is_dearer() {
    let cost = |mode: &str, input: u64| {
        let records = [request("a", "m", tokens(input, 7936, 1000))];
        charged(&priced(&records, &long(mode)), &[]).row()["cost"].clone()
    };
    // 270,540 x 5 + 7936 x 0.50 + 1000 x 22.50 = 1,352,700 + 3968 + 22,500
    assert_eq!(cost("whole", 278_476), "1.379168000000");
    // 6476 above: 264,064 x 2.50 + 6476 x 5 + 7936 x 0.25 + 1000 x 15 = 660,160 + 32,380 + 1984 + 15,000
    assert_eq!(cost("marginal", 278_476), "0.709524000000");
    // on the threshold none is: 264,064 x 2.50 + 7936 x 0.25 + 1000 x 15 = 660,160 + 1984 + 15,000
    assert_eq!(cost("whole", 272_000), "0.677144000000");
    assert_eq!(cost("marginal", 272_000), "0.677144000000");
}

/// A log that counts what was written to the cache beside the input has as long prompts as any other.
#[test]
fn the_threshold_counts_all_of_the_prompt_whatever_the_input_leaves_out() {
    let long = with(tokens(120_000, 20_000, 0), "cache_write_tokens", json!(150_000));
    let report = charges(&[request("a", "sonnet", long)]);
    assert_eq!(classes(report.row()), [100_000, 20_000, 150_000, 0, 0]);
    // 270,000 are above 200,000: 100,000 x 6 + 20,000 x 0.60 + 150,000 x 7.50 = 600,000 + 12,000 + 1,125,000
    assert_eq!(report.row()["cost"], "1.737000000000");
}

#[test]
fn a_long_prompt_without_a_mode_is_a_mistake_in_the_book() {
    let book = long("whole").replace("mode = \"whole\", ", "");
    let workspace = priced(&[request("a", "m", tokens(1, 0, 1))], &book);
    let command = ["run", "charges", "--queries", "queries", "--param", "prices=prices.toml", "log.ndjson"];
    let refusal = workspace.run(&command).refusal(2);
    assert_sentence(&refusal);
    assert!(refusal.contains("mode") && refusal.contains("prices.toml:9"), "{refusal}");
}

/// Prices of long prompts were in the book, and nobody applied them.
#[test]
fn long_prompts_are_dearer_in_each_tier() {
    let records = [
        request("plain", "m", tokens(300_000, 0, 100)),
        request("batch", "m", with(tokens(300_000, 0, 100), "service_tier", json!("batch"))),
    ];
    let report = charged(&priced(&records, &long("whole")), &[]);
    // 300,000 x 5 + 100 x 22.50 = 1,502,250, and half of it
    assert_eq!(report.column("cost"), ["0.751125000000", "1.502250000000"]);
}

/// 2,000 tokens in, 1,000 of them cached, and 500 out: 0.1275 cents, 0.06375 in the flex tier, 0.19125 together.
#[test]
fn a_turn_of_gpt_5_mini_costs_half_in_the_flex_tier() {
    let flex = with(tokens(2000, 1000, 500), "service_tier", json!("flex"));
    let report = charges(&[request("a", "gpt-5-mini", tokens(2000, 1000, 500)), request("b", "gpt-5-mini", flex)]);
    assert_eq!(report.column("cost"), ["0.001275000000", "0.000637500000"]);
    assert_eq!(sum(&report), "0.001912500000");
}

/// A batch is half the price, for its own requests only.
#[test]
fn the_tier_of_each_request_decides_its_price() {
    let of = |id: &str, tier: Value| request(id, "gpt-4o", with(tokens(1000, 0, 100), "service_tier", tier));
    let records = [
        of("a", json!("batch")),
        of("b", json!(null)),
        of("c", json!("default")),
        of("d", json!("auto")),
        of("e", json!("standard")),
        of("f", json!("on_demand")),
        // the book does not know it
        of("g", json!("scale")),
    ];
    let report = charges(&records);
    // 1000 x 2.50 + 100 x 10 = 3500
    let full = json!("0.003500000000");
    let half = json!("0.001750000000");
    let costs = report.column("cost");
    assert_eq!(costs[0], half);
    assert!(costs[1..6].iter().all(|cost| *cost == full), "{costs:?}");
    let unknown = &report.rows()[6];
    assert_eq!((&unknown["state"], &unknown["cost"]), (&json!("unpriced"), &json!(null)));
    assert_eq!(unknown["reason"], "no price for tier scale");
}

/// The same month was 2,472.81 and, after a refresh of prices, 1,923.92.
#[test]
fn a_new_price_leaves_the_months_before_it_as_they_were() {
    let records = [
        request("june", "m", with(tokens(1000, 0, 0), "timestamp", json!("2025-06-30T23:59:59.999999999Z"))),
        request("july", "m", with(tokens(1000, 0, 0), "timestamp", json!("2025-07-01T00:00:00Z"))),
    ];
    let before = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"2.00\"\noutput = \"8.00\"\n";
    let after = format!("{before}[[model.price]]\nfrom = \"2025-07-01\"\ninput = \"1.50\"\noutput = \"6.00\"\n");
    assert_eq!(charged(&priced(&records, before), &[]).column("cost"), ["0.002000000000", "0.002000000000"]);
    let report = charged(&priced(&records, &after), &[]);
    assert_eq!(report.column("request_id"), ["july", "june"]);
    assert_eq!(report.column("cost"), ["0.001500000000", "0.002000000000"]);
}

#[test]
fn a_book_that_differs_from_its_lock_is_refused_and_the_book_of_a_report_is_named() {
    let workspace = priced(&[request("a", "gpt-4o", tokens(1000, 0, 0))], BOOK);
    workspace.run(&["prices", "lock", "prices.toml"]).exits(0);
    let report = charged(&workspace, &[]);
    let named = &report.0["parameters"]["prices"];
    assert!(named.as_str().unwrap().starts_with("of the tests ("), "{named}");
    // another book has another name, whatever has changed
    workspace.write("prices.toml", BOOK.replace("\"2.50\"", "\"2.40\""));
    let command = ["run", "charges", "--queries", "queries", "--param", "prices=prices.toml", "log.ndjson"];
    let refusal = workspace.run(&command).refusal(2);
    assert_sentence(&refusal);
    assert!(refusal.contains("lock"), "{refusal}");
    workspace.run(&["prices", "lock", "prices.toml"]).exits(0);
    assert_ne!(&charged(&workspace, &[]).0["parameters"]["prices"], named);
}

/// 429.1M tokens of unknown models were shown as $0.
#[test]
fn tokens_of_a_model_without_a_price_are_unpriced_and_not_free() {
    let records = [
        request("a", "unheard-of", tokens(400_000_000, 0, 29_100_000)),
        request("b", "gpt-4o", tokens(1000, 0, 0)),
        // known, but not as long ago
        request("c", "gpt-4o", with(tokens(5, 0, 5), "timestamp", json!("2024-05-01T00:00:00Z"))),
        // known from another provider
        request("d", "gpt-4o", with(tokens(5, 0, 5), "provider", json!("azure"))),
    ];
    let report = charges(&records);
    assert_eq!(report.column("state"), ["unpriced", "priced", "unpriced", "unpriced"]);
    let row = &report.rows()[0];
    assert_eq!(
        (&row["cost"], &row["uncached_tokens"], &row["output_tokens"]),
        (&json!(null), &json!(400_000_000), &json!(29_100_000))
    );
    for row in report.rows().iter().filter(|row| row["state"] == "unpriced") {
        assert!(row["reason"].as_str().unwrap().starts_with("no price"), "{row}");
    }
    // what the cheapest and the dearest model of the book would take bounds it
    assert!(units(&row["low"]) > 0 && units(&row["low"]) < units(&row["high"]), "{row}");
}

/// A price of the prompt alone does not make answers free, nor does a tier that forgot them.
#[test]
fn an_answer_without_a_price_of_answers_is_unpriced() {
    let book = r#"
[[model]]
name = "m"
[[model.price]]
input = "1.00"
[[model]]
name = "n"
[[model.price]]
input = "1.00"
output = "2.00"
tiers = { batch = { input = "0.50" } }
"#;
    let records = [
        request("a", "m", tokens(1000, 0, 0)),
        request("b", "m", tokens(1000, 0, 10)),
        request("c", "n", with(tokens(1000, 0, 10), "service_tier", json!("batch"))),
    ];
    let report = charged(&priced(&records, book), &[]);
    assert_eq!(report.column("state"), ["priced", "unpriced", "unpriced"]);
    assert_eq!(report.column("cost"), [json!("0.001000000000"), json!(null), json!(null)]);
}

/// DeepSeek changed its prices at 16:00 UTC.
#[test]
fn a_price_holds_from_a_moment_or_from_midnight_in_the_zone_of_the_book() {
    let book = r#"
tz = "Europe/Berlin"
[[model]]
name = "m"
[[model.price]]
input = "1.00"
output = "1.00"
[[model.price]]
from = "2025-06-10"
input = "2.00"
output = "2.00"
[[model.price]]
from = "2025-06-10T16:00:00Z"
input = "3.00"
output = "3.00"
"#;
    let times = [
        "2025-06-09T21:59:59.999999999Z",
        "2025-06-09T22:00:00Z",
        "2025-06-10T15:59:59.999999999Z",
        "2025-06-10T18:00:00+02:00",
    ];
    let of =
        |(number, time): (usize, &&str)| request(number, "m", with(tokens(1_000_000, 0, 0), "timestamp", json!(time)));
    let records: Vec<Value> = times.iter().enumerate().map(of).collect();
    let report = charged(&priced(&records, book), &[]);
    assert_eq!(report.column("cost"), ["1.000000000000", "2.000000000000", "2.000000000000", "3.000000000000"]);
}

/// Dated and prefixed names were in no table.
#[test]
fn other_names_of_a_model_find_its_price_and_the_row_says_which_rule_matched() {
    let of = |name: &str| {
        let report = charges(&[request("a", name, with(tokens(1, 0, 1), "provider", json!("openai")))]);
        report.row()["rule"].clone()
    };
    assert_eq!(of("gpt-4o"), "gpt-4o from 2024-10-02");
    assert_eq!(of("GPT-4o"), "gpt-4o from 2024-10-02");
    assert_eq!(of("gpt-4o-2024-08-06"), "gpt-4o from 2024-10-02 (alias gpt-4o-2024-08-06)");
    assert_eq!(of("azure/gpt-4o-eu"), "gpt-4o from 2024-10-02 (pattern azure/gpt-4o*)");
    assert_eq!(of("gpt-4o-mini"), json!(null));
}

#[test]
fn a_name_is_believed_before_an_alias_and_the_longest_pattern_before_others() {
    let model = |name: &str, more: &str| {
        format!("[[model]]\nname = \"{name}\"\n{more}\n[[model.price]]\ninput = \"1\"\noutput = \"1\"\n")
    };
    let book = [
        model("wide", "patterns = [\"*\"]"),
        model("family", "patterns = [\"claude-*\"]"),
        model("version", "patterns = [\"*claude-sonnet*\"]"),
        model("other", "aliases = [\"claude-sonnet-4\", \"exact\"]"),
        model("exact", ""),
    ];
    let names = ["exact", "claude-sonnet-4", "claude-sonnet-4-1", "claude-haiku", "llama"];
    let records: Vec<Value> =
        names.iter().enumerate().map(|(number, name)| request(number, name, tokens(1, 0, 1))).collect();
    let report = charged(&priced(&records, &book.concat()), &[]);
    let expected = [
        "exact",
        "other (alias claude-sonnet-4)",
        "version (pattern *claude-sonnet*)",
        "family (pattern claude-*)",
        "wide (pattern *)",
    ];
    assert_eq!(report.column("rule"), expected);
}

/// Costs below a cent were rounded to 0, one by one, and then added up.
#[test]
fn tiny_costs_are_not_rounded_before_they_are_added() {
    // one token of 0.02 each: 0.00000002, and 400 of them 0.000008
    let records: Vec<Value> = (0..400).map(|number| request(number, "embedder", json!({"input_tokens": 1}))).collect();
    let report = charges(&records);
    assert_eq!(report.rows()[0]["cost"], "0.000000020000");
    assert_eq!(sum(&report), "0.000008000000");
}

/// 0.1 and 0.2 were 0.30000000000000004, and 2 cents 0.01999999999999999872.
#[test]
fn amounts_are_decimal_and_not_near_to_it() {
    let book = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = 0.1\noutput = 0.2\n";
    let records = [request("a", "m", tokens(100_000, 0, 50_000)), request("b", "m", tokens(1_000_000, 0, 1_000_000))];
    // 100,000 x 0.1 + 50,000 x 0.2 = 20,000
    assert_eq!(charged(&priced(&records, book), &[]).column("cost"), ["0.020000000000", "0.300000000000"]);
}

/// One rate for all days valued the past anew, and sums of different currencies meant nothing.
#[test]
fn currencies_are_converted_at_the_rate_of_the_day_and_never_added_unconverted() {
    let on = |id: &str, day: &str| {
        request(id, "qwen", with(tokens(1_000_000, 0, 0), "timestamp", json!(format!("{day}T12:00:00Z"))))
    };
    let records = [
        on("a", "2025-06-15"),
        on("b", "2025-07-15"),
        // before any rate
        on("c", "2025-05-15"),
        request("d", "gpt-4o", tokens(1_000_000, 0, 0)),
    ];
    let workspace = priced(&records, BOOK);
    let own = charged(&workspace, &[]);
    assert_eq!(own.column("currency"), ["CNY", "CNY", "CNY", "USD"]);
    assert_eq!(own.column("cost"), ["2.400000000000", "2.400000000000", "2.400000000000", "2.500000000000"]);
    let dollars = charged(&workspace, &["--param", "currency=USD"]);
    // 2.40 x 0.1391 and 2.40 x 0.14
    assert_eq!(
        dollars.column("cost"),
        [json!("0.333840000000"), json!("0.336000000000"), json!(null), json!("2.500000000000")]
    );
    assert_eq!(dollars.column("state"), ["priced", "priced", "unpriced", "priced"]);
}

// ---- duplicates, retries, fallbacks

/// 368 rows of 171 messages were 1,071,492 tokens; they are 465,781.
#[test]
fn rows_of_one_message_are_one_request_with_its_last_usage() {
    let row = |number: usize, written: u64, output: u64| {
        json!({"id": format!("msg_{number:03}"), "type": "message", "role": "assistant", "model": "sonnet",
               "created_at": format!("2025-06-10T10:{:02}:{:02}Z", number / 60, number % 60),
               "usage": {"input_tokens": 36, "cache_creation_input_tokens": written, "cache_read_input_tokens": 1000,
                         "output_tokens": output}})
    };
    let mut rows = Vec::new();
    for number in 0..171 {
        // the last rows: 26 messages of 6000 tokens, 61 of 2137 and 84 of 2136 are 465,781
        let total = [6000, 2137, 2136][usize::from(number >= 26) + usize::from(number >= 87)];
        let written = total - 36 - 1000 - 100;
        if number < 26 {
            rows.push(row(number, written, 100 - 82));
        }
        // and those before them as the answer grew: 113 rows had 82 tokens less and 84 had 81
        rows.push(row(number, written, if (26..113).contains(&number) { 100 - 82 } else { 100 - 81 }));
        rows.push(row(number, written, 100));
    }
    let usage = |row: &Value| {
        let counts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        counts.iter().map(|count| row["usage"][count].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((rows.len(), rows.iter().map(usage).sum::<u64>()), (368, 1_071_492));
    let report = charges(&rows);
    assert_eq!(attempts_and_requests(&report), (171, 171));
    let tokens = report.rows().iter().flat_map(|row| classes(row).map(|count| count.as_u64().unwrap()));
    assert_eq!(tokens.sum::<u64>(), 465_781);
}

/// Each GET that polled a response was billed 0.0023 again.
#[test]
fn a_response_that_is_read_again_is_billed_once() {
    // 520 x 2.50 + 100 x 10 = 1300 + 1000
    let response = json!({"id": "resp_1", "object": "response", "created_at": 1_749_549_600, "model": "gpt-4o",
                          "status": "completed", "usage": {"input_tokens": 520, "output_tokens": 100, "total_tokens": 620}});
    let report = charges(&[response.clone(), response.clone(), response]);
    assert_eq!(report.row()["cost"], "0.002300000000");
    assert_eq!(report.counted("duplicates"), 2);
}

/// All rows without an id were one request with the id "".
#[test]
fn requests_without_an_id_are_not_one_request() {
    let records = ["", "", "-", "null"].map(|id| request(id, "gpt-4o", tokens(1000, 0, 0)));
    let report = charges(&records);
    assert_eq!(attempts_and_requests(&report), (4, 4));
    assert_eq!(sum(&report), "0.010000000000");
}

/// The retry overwrote what the first attempt had cost.
#[test]
fn a_retried_request_costs_what_its_attempts_cost_and_is_counted_once() {
    let failed = with(tokens(1000, 0, 20), "status", json!("error"));
    let records = [at(0, request("a", "gpt-4o", failed)), at(9, request("a", "gpt-4o", tokens(1000, 0, 100)))];
    let report = charges(&records);
    assert_eq!(attempts_and_requests(&report), (2, 1));
    assert_eq!(report.column("attempts"), [2, 2]);
    // 1000 x 2.50 + 20 x 10 and 1000 x 2.50 + 100 x 10
    assert_eq!(report.column("cost"), ["0.002700000000", "0.003500000000"]);
}

/// Three retries of a client that tries three times itself were recorded as one call.
#[test]
fn nine_upstream_calls_of_one_request_are_nine_attempts() {
    let records: Vec<Value> = (0..9)
        .map(|call| {
            let status = if call < 8 { "error" } else { "success" };
            at(
                60 * (call / 3) + 10 * (call % 3),
                request("a", "haiku", with(tokens(1000, 0, 0), "status", json!(status))),
            )
        })
        .collect();
    let report = charges(&records);
    assert_eq!(attempts_and_requests(&report), (9, 1));
    assert_eq!(report.column("attempt_number"), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(sum(&report), "0.009000000000");
}

/// 96.91 were billed and 51.70 metered, as only answers with 2xx were counted; others bill no 503.
#[test]
fn failures_with_usage_are_billed_unless_a_rule_says_otherwise() {
    let book = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"10.00\"\noutput = \"30.00\"\n";
    let of = |id: &str, status: u64, input: u64, output: u64| {
        request(id, "m", with(with(tokens(input, 0, output), "http_status", json!(status)), "status", json!(null)))
    };
    let records = [
        // 2,170,000 x 10 + 1,000,000 x 30 = 51.70
        of("a", 200, 1_000_000, 600_000),
        of("b", 200, 1_170_000, 400_000),
        // 3,021,000 x 10 + 500,000 x 30 = 45.21
        of("c", 500, 1_021_000, 0),
        of("d", 504, 1_500_000, 300_000),
        of("e", 499, 500_000, 200_000),
        // 1.00 more, which this provider does not bill
        of("f", 503, 100_000, 0),
    ];
    let workspace = priced(&records, book);
    assert_eq!(sum(&charged(&workspace, &[])), "97.910000000000");
    let rule = "[prices]\nnot_billed = [{ name = \"refused by the provider\", when = \"http_status = 503\" }]\n";
    workspace.write("infer-stats.toml", rule);
    let report = charged(&workspace, &[]);
    assert_eq!(sum(&report), "96.910000000000");
    let refused = &report.rows()[5];
    assert_eq!((&refused["state"], &refused["cost"]), (&json!("free"), &json!("0.000000000000")));
    assert_eq!(refused["reason"], "not billed: refused by the provider");
    assert_eq!(units(&report.rows()[0]["cost"]) + units(&report.rows()[1]["cost"]), 51_700_000_000_000);
}

/// A chain of fallbacks was 0.8586 at the price of its last model; it is 0.5580.
#[test]
fn each_attempt_of_a_fallback_is_priced_at_its_own_model() {
    let blocked = with(tokens(50_000, 0, 0), "finish_reason", json!("content_filter"));
    let records = [
        // blocked before a word was said
        at(0, request("a", "sonnet", blocked)),
        // 140,300 x 1 + 2000 x 5 = 150,300
        at(10, request("a", "haiku", with(tokens(140_300, 0, 2000), "status", json!("timeout")))),
        // 125,000 x 3 + 2180 x 15 = 407,700
        at(20, request("a", "sonnet", tokens(125_000, 0, 2180))),
    ];
    let workspace = priced(&records, BOOK);
    workspace.write(
        "infer-stats.toml",
        "[prices]\nnot_billed = [{ name = \"blocked\", when = \"finish_reason = 'content_filter' AND output_tokens = 0\" }]\n",
    );
    let report = charged(&workspace, &[]);
    assert_eq!(attempts_and_requests(&report), (3, 1));
    assert_eq!(report.column("state"), ["free", "priced", "priced"]);
    assert_eq!(report.column("cost"), ["0.000000000000", "0.150300000000", "0.407700000000"]);
    assert_eq!(sum(&report), "0.558000000000");
}

// ---- missing usage

/// An explicit 0 was read as if nothing had been said.
#[test]
fn nothing_said_is_unknown_and_zero_is_zero() {
    let of = |id: &str, input: Value, output: Value| {
        request(id, "gpt-4o", json!({"input_tokens": input, "output_tokens": output}))
    };
    let records = [
        of("a", json!(1000), json!(0)),
        of("b", json!(1000), json!(null)),
        of("c", json!(0), json!(0)),
        of("d", json!(null), json!(null)),
        of("e", json!(null), json!(100)),
    ];
    let report = charges(&records);
    assert_eq!(report.column("state"), ["priced", "unknown", "priced", "unknown", "unknown"]);
    let unknown = json!(null);
    let expected = [json!("0.002500000000"), unknown.clone(), json!("0.000000000000"), unknown.clone(), unknown];
    assert_eq!(report.column("cost"), expected);
}

/// A stream that ended without usage was shown as one of 0 tokens.
#[test]
fn a_stream_without_usage_is_unknown_with_the_bounds_that_there_are() {
    let records = [
        request("a", "gpt-4o", json!({"stream": true})),
        request("b", "gpt-4o", json!({"stream": true, "input_tokens": 1000})),
        request("c", "gpt-4o", json!({"stream": true, "input_tokens": 1000, "max_tokens": 500})),
    ];
    let report = charges(&records);
    assert_eq!(report.column("state"), ["unknown", "unknown", "unknown"]);
    assert_eq!(report.column("cost"), [json!(null), json!(null), json!(null)]);
    assert_eq!(classes(&report.rows()[0]), [&json!(null); 5]);
    // 1000 x 2.50 at least, and with 500 x 10 at most
    let bounds = |row: &Value| [row["low"].clone(), row["high"].clone()];
    assert_eq!(bounds(&report.rows()[1]), [json!("0.002500000000"), json!(null)]);
    assert_eq!(bounds(&report.rows()[2]), [json!("0.002500000000"), json!("0.007500000000")]);
}

/// A stream begins with a count of 1, which stands for the answer until it has ended.
#[test]
fn the_placeholder_of_a_stream_that_was_cut_is_no_output() {
    let usage = json!({"input_tokens": 1000, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "sonnet", "content": [],
                         "stop_reason": null, "usage": usage});
    let start = json!({"type": "message_start", "message": message});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 200}});
    let cut = charges(&[start.clone(), delta.clone()]);
    assert_eq!([&cut.row()["state"], &cut.row()["cost"]], [&json!("unknown"), &json!(null)]);
    // 1000 x 3 are owed in any case
    assert_eq!(cut.row()["low"], "0.003000000000");
    let whole = charges(&[start, delta, end]);
    // 1000 x 3 + 200 x 15
    assert_eq!(whole.row()["cost"], "0.006000000000");
}

/// Each attempt that was logged stood for ten, and counts and money were those of the log.
#[test]
fn of_sampled_logs_money_is_that_of_all_requests_and_refused_where_the_rate_is_unknown() {
    let sampled = |weight: Value| {
        let of = |id: &str, tokens: Value| request(id, "haiku", with(tokens, "sample_weight", weight.clone()));
        priced(&[of("a", tokens(1000, 0, 0)), of("b", tokens(1_000_000, 0, 7))], BOOK)
    };
    let summed = |weight: Value| {
        let report = sampled(weight).report(&SUMMED);
        (report.row()["requests"].clone(), amount(&report.row()["cost"]))
    };
    // 1000 x 1 + 1,000,000 x 1 + 7 x 5 = 1,001,035
    assert_eq!(summed(json!(1)), (json!(2), 1.001035));
    assert_eq!(summed(json!(10)), (json!(20), 10.01035));
    let refusal = sampled(json!(null)).run(&SUMMED).refusal(2);
    assert_sentence(&refusal);
    assert!(refusal.contains("sample_weight"), "{refusal}");
}

/// What cannot be computed was shown as if it had been.
#[test]
fn a_cost_that_is_not_known_is_shown_as_such_and_never_as_zero() {
    let records = [request("a", "gpt-4o", json!({})), request("b", "unheard-of", tokens(1000, 0, 1000))];
    let workspace = priced(&records, BOOK);
    let report = workspace.report(&SUMMED);
    assert_eq!([&report.row()["requests"], &report.row()["cost"]], [&json!(2), &json!(null)]);
    let table = workspace.run(&SUMMED).exits(0);
    let row = table.text().lines().find(|line| line.contains(" 2 │")).unwrap();
    assert!(row.contains(" - │") && !row.contains('0'), "{row}");
}

/// A count that no call can have is no usage.
#[test]
fn counts_that_cannot_be_are_unknown() {
    let of = |id: &str, input: Value| request(id, "gpt-4o", json!({"input_tokens": input, "output_tokens": 1}));
    let records = [
        of("a", json!(1_000_000_000)),
        of("b", json!(1_000_000_001)),
        of("c", json!(9_000_000_000_000_000_000_u64)),
        of("d", json!(-1)),
    ];
    let report = charges(&records);
    // 1,000,000,000 x 2.50 + 1 x 10
    assert_eq!(report.column("state"), ["priced", "unknown", "unknown", "unknown"]);
    assert_eq!(report.rows()[0]["cost"], "2500.000010000000");
}

/// $0.0000171 were shown where the flex tier took $0.0000139.
#[test]
fn a_tier_with_prices_of_its_own_is_not_the_base_price() {
    let book = r#"
[[model]]
name = "m"
[[model.price]]
input = "0.05"
output = "0.40"
tiers = { flex = { input = "0.05", output = "0.32" } }
"#;
    let flex = with(tokens(22, 0, 40), "service_tier", json!("flex"));
    let records = [request("a", "m", tokens(22, 0, 40)), request("b", "m", flex)];
    // 22 x 0.05 + 40 x 0.40 = 17.1, and 22 x 0.05 + 40 x 0.32 = 13.9
    let report = charged(&priced(&records, book), &[]);
    assert_eq!(report.column("cost"), ["0.000017100000", "0.000013900000"]);
    assert_eq!(report.column("rule"), ["m", "m, tier flex"]);
}
