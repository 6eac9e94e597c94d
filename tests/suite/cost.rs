//! `cost`, `allocate` and `tags`: money by who caused it, to the last digit.

use serde_json::{Value, json};

use crate::command::{Report, Workspace};

/// A token of input costs a cent, one of output two.
const CENTS: &str = r#"
[[model]]
name = "m"
[[model.price]]
input = "10000"
output = "20000"
"#;

/// From June on `m` is cheaper; `n` is dearer, always.
const CHEAPER: &str = r#"
[[model]]
name = "m"
[[model.price]]
input = "10000"
output = "1"
[[model.price]]
from = "2025-06-01"
input = "8000"
output = "1"
[[model]]
name = "n"
[[model.price]]
input = "20000"
output = "1"
"#;

const NOON: &str = "2025-06-10T12:00:00Z";
const JUNE: [&str; 2] = ["--month", "2025-06"];

fn report(records: &[Value], prices: &str, settings: &str, arguments: &[&str]) -> Report {
    let workspace = Workspace::with_records(records);
    workspace.write("prices.toml", prices);
    workspace.write("infer-stats.toml", settings);
    workspace.report(&[arguments, &["--prices", "prices.toml", "log.ndjson"]].concat())
}

fn cost(records: &[Value], prices: &str, arguments: &[&str]) -> Report {
    report(records, prices, "", &[&["cost"][..], arguments].concat())
}

fn request(id: &str, time: &str, line: &str, input: u64) -> Value {
    json!({"request_id": id, "timestamp": time, "business_line": line, "model": "m", "input_tokens": input, "output_tokens": 0,
           "status": "success"})
}

/// The record with other values of some of its fields.
fn with(mut record: Value, changes: Value) -> Value {
    record.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    record
}

/// Some columns of all rows, each row as one text.
fn rows(report: &Report, columns: &[&str]) -> Vec<String> {
    let shown = |row: &Value| {
        let cells = columns.iter().map(|name| row.get(*name).unwrap_or_else(|| panic!("no column {name}: {row}")));
        cells.map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect::<Vec<_>>().join(" ")
    };
    report.rows().iter().map(shown).collect()
}

/// A money text in units of 10^-12.
fn units(money: &Value) -> i128 {
    let text = money.as_str().unwrap_or_else(|| panic!("no money: {money}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<12}").parse().unwrap()
}

fn proofs(report: &Report) -> Vec<&str> {
    report.notes("proof").into_iter().map(|(text, _)| text).collect()
}

#[test]
fn a_hundred_dollars_over_three_equal_lines_are_a_hundred_dollars() {
    // each 33.333333333333, together 99.999999999999
    let third = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"33.333333333333\"\noutput = \"1\"\n";
    let records = ["c", "a", "b"].map(|line| request(line, NOON, line, 1_000_000));
    let report = cost(&records, third, &["--places", "2"]);
    assert_eq!(
        rows(&report, &["business_line", "cost", "share"]),
        ["a 33.34 0.3334", "b 33.33 0.3333", "c 33.33 0.3333"]
    );
    assert_eq!(report.0["totals"]["cost"], "100.00");
    assert_eq!(proofs(&report), ["proof: the rows add up to 100.00 USD, all attempts to 100.00 USD: rest 0"]);
}

#[test]
fn tiny_costs_are_rounded_after_they_are_added_and_not_before() {
    // 0.0000004 each
    let tiny = "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"0.0004\"\noutput = \"1\"\n";
    let records: Vec<Value> = (0..1000).map(|n| request(&format!("r{n}"), NOON, "a", 1000)).collect();
    assert_eq!(rows(&cost(&records, tiny, &["--places", "4"]), &["requests", "cost"]), ["1000 0.0004"]);
    let logged = with(request("x", NOON, "a", 10), json!({"cost": "0.01999999999999999872", "currency": "USD"}));
    let report = cost(&[logged], CENTS, &["--method", "logged", "--places", "2"]);
    assert_eq!(rows(&report, &["cost", "currency"]), ["0.02 USD"]);
}

#[test]
fn what_is_not_known_is_no_zero_and_has_bounds() {
    let mut nobody = request("nobody", NOON, "", 200);
    nobody["business_line"] = Value::Null;
    let records = [
        request("priced", NOON, "a", 100),
        json!({"request_id": "silent", "timestamp": NOON, "business_line": "a", "model": "m", "status": "success"}),
        with(request("cached", NOON, "a", 50), json!({"response_cache_hit": true})),
        with(request("mystery", NOON, "b", 429_000_000), json!({"model": "mystery", "output_tokens": 100_000})),
        nobody,
    ];
    let report = cost(&records, CENTS, &[]);
    let columns = [
        "business_line",
        "requests",
        "cost",
        "free",
        "unknown",
        "unpriced",
        "unpriced_tokens",
        "cost_low",
        "cost_high",
    ];
    // the only price of the book is the cheapest and the dearest: 4,290,000 + 2,000
    let expected = [
        "a 3 1.00 1 1 0 0 1.00 null",
        "b 1 null 0 0 1 429100000 4292000.00 4292000.00",
        "null 1 2.00 0 0 0 0 2.00 2.00",
    ];
    assert_eq!(rows(&report, &columns), expected);
    // the silent request is in no average
    assert_eq!(rows(&report, &["cost_per_1k_requests", "cost_per_1m_tokens"])[0], "500.00 6666.666666666667");
    assert_eq!(
        report.note("unpriced"),
        ("no price: mystery (429,100,000 tokens): these attempts are in no cost", Some(1))
    );
    let bounds = "attempts whose cost is not known; with them it is at least 4,292,003.00 USD";
    assert_eq!(report.note("bounds"), (bounds, Some(2)));
}

#[test]
fn unpriced_models_are_named_by_their_tokens_and_the_rest_counted() {
    let records: Vec<Value> = (1..=7)
        .map(|n| with(request(&format!("{n}"), NOON, "a", n * 1000), json!({"model": format!("x{n}")})))
        .collect();
    let report = cost(&records, CENTS, &[]);
    let text = "no price: x7 (7,000 tokens), x6 (6,000 tokens), x5 (5,000 tokens), x4 (4,000 tokens), x3 (3,000 tokens) and 2 more: \
                these attempts are in no cost";
    assert_eq!(report.note("unpriced"), (text, Some(7)));
    assert_eq!(rows(&report, &["cost", "share"]), ["null null"]);
}

#[test]
fn days_and_months_begin_at_local_midnight() {
    let one = |time: &str, zone: &str, every: &str| {
        rows(&cost(&[request("x", time, "a", 10)], CENTS, &["--every", every, "--tz", zone]), &["period"]).remove(0)
    };
    assert_eq!(one("2025-01-25T04:08:00Z", "America/Los_Angeles", "day"), "2025-01-24T00:00:00-08:00");
    assert_eq!(one("2024-02-01T01:00:00Z", "America/New_York", "day"), "2024-01-31T00:00:00-05:00");
    assert_eq!(one("2024-02-01T01:00:00Z", "America/New_York", "month"), "2024-01-01T00:00:00-05:00");
    let records = [
        request("may", "2025-05-31T14:59:59.999Z", "a", 1),
        request("first", "2025-05-31T15:00:00.000Z", "a", 10),
        request("last", "2025-06-30T14:59:59.999Z", "a", 100),
        request("july", "2025-06-30T15:00:00.000Z", "a", 1000),
    ];
    let june = cost(&records, CENTS, &["--month", "2025-06", "--tz", "Asia/Tokyo"]);
    assert_eq!(rows(&june, &["requests", "cost"]), ["2 1.10"]);
    let months = cost(&records, CENTS, &["--every", "month", "--tz", "Asia/Tokyo"]);
    let expected =
        ["2025-05-01T00:00:00+09:00 0.01", "2025-06-01T00:00:00+09:00 1.10", "2025-07-01T00:00:00+09:00 10.00"];
    assert_eq!(rows(&months, &["period", "cost"]), expected);
}

#[test]
fn days_add_up_to_their_month_in_any_zone() {
    // (zone, month, first record, days, requests of the month, cost, day of the clock change and its requests): one every 20 minutes
    let cases = [
        (
            "Europe/Berlin",
            "2026-03",
            "2026-02-28T00:00:00Z",
            31,
            2229,
            "26391.36",
            Some(("2026-03-29T00:00:00+01:00", 69)),
        ),
        (
            "Europe/Berlin",
            "2026-10",
            "2026-09-30T00:00:00Z",
            31,
            2235,
            "26462.40",
            Some(("2026-10-25T00:00:00+02:00", 75)),
        ),
        ("Asia/Kolkata", "2025-06", "2025-05-31T00:00:00Z", 30, 2160, "24548.40", None),
        ("Pacific/Apia", "2025-06", "2025-05-30T00:00:00Z", 30, 2160, "25606.80", None),
    ];
    for (zone, month, first, days, requests, sum, change) in cases {
        let first: jiff::Timestamp = first.parse().unwrap();
        let time = |n: u64| (first + jiff::SignedDuration::from_mins(20 * n as i64)).to_string();
        let records: Vec<Value> = (0..33 * 72)
            .map(|n| request(&format!("r{n}"), &time(n), if n % 2 == 0 { "a" } else { "b" }, n + 1))
            .collect();
        let in_month = ["--month", month, "--tz", zone];
        let whole = cost(&records, CENTS, &in_month);
        assert_eq!(
            (&whole.0["totals"]["requests"], &whole.0["totals"]["cost"]),
            (&json!(requests), &json!(sum)),
            "{zone}"
        );
        let by_day = cost(&records, CENTS, &[&in_month[..], &["--every", "day", "--by", ""]].concat());
        assert_eq!(by_day.rows().len(), days, "{zone}");
        let added: i128 = by_day.column("cost").iter().map(units).sum();
        assert_eq!(added, units(&json!(sum)), "{zone}");
        let uneven: Vec<String> =
            rows(&by_day, &["period", "requests"]).into_iter().filter(|row| !row.ends_with(" 72")).collect();
        let expected: Vec<String> = change.iter().map(|(day, requests)| format!("{day} {requests}")).collect();
        assert_eq!(uneven, expected, "{zone}");
    }
}

#[test]
fn a_change_is_volume_mix_and_price() {
    let records = [
        request("before", "2025-05-20T00:00:00Z", "a", 1000),
        request("more", "2025-06-20T00:00:00Z", "a", 1500),
        with(request("dearer", "2025-06-21T00:00:00Z", "a", 500), json!({"model": "n"})),
        request("gone", "2025-05-21T00:00:00Z", "gone", 300),
        request("new", "2025-06-21T00:00:00Z", "new", 200),
    ];
    let columns = ["business_line", "cost", "previous_cost", "change", "volume", "mix", "price"];
    // a: twice the tokens are 10 more; 1500 tokens of m at 0.008 and not 0.01 are 3 less; the rest is n being dearer
    let expected = [
        "a 22.00 10.00 12.00 10.00 5.00 -3.00",
        "gone 0.00 3.00 -3.00 -3.00 0.00 0.00",
        "new 1.60 0.00 1.60 2.00 0.00 -0.40",
    ];
    let report = cost(&records, CHEAPER, &[&["--change"][..], &JUNE].concat());
    assert_eq!(rows(&report, &columns), expected);
    let totals =
        ["cost", "previous_cost", "change", "volume", "mix", "price"].map(|name| report.0["totals"][name].clone());
    assert_eq!(totals, ["23.60", "13.00", "10.60", "9.00", "5.00", "-3.40"]);
    // each month with the one before it; nothing is known of one before May
    let report = cost(&records, CHEAPER, &["--change", "--every", "month"]);
    let rows = rows(&report, &columns);
    assert_eq!([&rows[0], &rows[1]], ["a 10.00 null null null null null", expected[0]]);
}

#[test]
fn the_same_attempts_are_priced_again_at_the_prices_of_another_day() {
    let records = [
        request("m", "2025-06-20T00:00:00Z", "a", 1500),
        with(request("n", "2025-06-21T00:00:00Z", "a", 500), json!({"model": "n"})),
        with(request("mystery", "2025-06-21T00:00:00Z", "b", 1), json!({"model": "mystery"})),
    ];
    let report = cost(&records, CHEAPER, &["--as-of", "2025-05-31"]);
    let columns = ["business_line", "cost", "cost_as_of", "difference", "priced_once"];
    assert_eq!(rows(&report, &columns), ["a 22.00 25.00 3.00 0", "b null null null 0"]);
}

#[test]
fn subtotals_are_what_their_rows_add_up_to() {
    let records = [
        request("1", NOON, "a", 100),
        with(request("2", NOON, "a", 50), json!({"model": "n"})),
        request("3", NOON, "b", 7),
    ];
    let report = cost(&records, CHEAPER, &["--by", "business-line,model", "--subtotals"]);
    let expected = ["a m row 0.80", "a n row 1.00", "a null subtotal 1.80", "b m row 0.056", "b null subtotal 0.056"];
    assert_eq!(rows(&report, &["business_line", "model", "level", "cost"]), expected);
    assert_eq!(report.0["totals"]["cost"], "1.856");
}

#[test]
fn every_attempt_is_priced_at_its_own_model_and_the_request_counted_once() {
    let attempt = |time: &str, model: &str, status: &str| {
        with(request("x", time, "a", 100), json!({"model": model, "status": status, "prompt_hash": "h"}))
    };
    let records = [attempt(NOON, "n", "error"), attempt("2025-06-10T12:00:20Z", "m", "success")];
    let report = cost(&records, CHEAPER, &[]);
    // 100 at 0.02 and 100 at 0.008; the last attempt did not fail
    assert_eq!(rows(&report, &["requests", "attempts", "failed", "cost"]), ["1 2 0 2.80"]);
}

/// One GPU for June, half of it used: two thirds of that by `a`.
const POOL: &str = r#"
[[pool]]
name = "east"
gpus = 1
[pool.bills]
"2025-06" = "120.00"
"#;

fn on_gpu(id: &str, line: &str, decode_ms: f64, batch_size: u64, pool: &str) -> Value {
    let gpu = json!({"gpu_pool": pool, "prefill_time_ms": 0.0, "decode_time_ms": decode_ms, "batch_size": batch_size});
    with(request(id, NOON, line, 10), gpu)
}

#[test]
fn the_bill_of_a_pool_is_all_there_however_its_idle_time_is_shown() {
    // June has 2,592,000 seconds
    let records = [
        on_gpu("1", "a", 864_000_000.0, 1, "east"),
        on_gpu("2", "b", 864_000_000.0, 2, "east"),
        on_gpu("3", "b", 5000.0, 1, "elsewhere"),
    ];
    let allocate = |idle: &str| {
        let arguments = ["allocate", "--method", "gpu-time", "--idle", idle, "--month", "2025-06"];
        report(&records, &[CENTS, POOL].concat(), "", &arguments)
    };
    let apart = allocate("rows");
    let expected = ["a requests 0 40.00", "b requests 1 20.00", "idle: east idle null 60.00"];
    assert_eq!(rows(&apart, &["business_line", "item", "without_cost", "cost"]), expected);
    let spread = allocate("spread");
    assert_eq!(
        rows(&spread, &["business_line", "direct_cost", "idle_cost", "cost"]),
        ["a 40.00 40.00 80.00", "b 20.00 20.00 40.00"]
    );
    for report in [apart, spread] {
        assert_eq!(report.0["totals"]["cost"], "120.00");
        assert_eq!(
            proofs(&report),
            ["proof: the rows add up to 120.00 USD, pools and shared costs to 120.00 USD: rest 0"]
        );
        assert_eq!(
            report.note("no pool"),
            ("not in the price book: pool elsewhere; its attempts are in no cost", Some(1))
        );
    }
}

#[test]
fn a_shared_cost_is_spread_to_the_cent() {
    let shared =
        "[[allocation.shared]]\nname = \"platform\"\namount = \"100.00\"\ncurrency = \"USD\"\nmethod = \"even\"\n";
    let records = ["c", "a", "b"].map(|line| request(line, NOON, line, 100));
    let report = report(&records, CENTS, shared, &[&["allocate", "--share", "spread"][..], &JUNE].concat());
    let expected = ["a 1.00 33.34 34.34", "b 1.00 33.33 34.33", "c 1.00 33.33 34.33"];
    assert_eq!(rows(&report, &["business_line", "direct_cost", "shared_cost", "cost"]), expected);
}

/// The first is owed in every month; the last was in another.
const SHARED: &str = r#"
[[allocation.shared]]
name = "team"
amount = "100.00"
currency = "USD"
method = "proportional"

[[allocation.shared]]
name = "desk"
month = "2025-06"
amount = "10.00"
currency = "USD"
method = "fixed"
percent = { a = "50", c = "30" }

[[allocation.shared]]
name = "credit"
month = "2025-06"
amount = "-30.00"
currency = "USD"
method = "proportional"

[[allocation.shared]]
name = "last month"
month = "2025-05"
amount = "7.00"
currency = "USD"
method = "even"
"#;

#[test]
fn sharing_never_changes_the_total() {
    let records = [request("1", NOON, "a", 200), request("2", NOON, "b", 100)];
    let allocate =
        |share: &str| report(&records, CENTS, SHARED, &[&["allocate", "--share", share][..], &JUNE].concat());
    let apart = allocate("rows");
    let expected = ["a 2.00", "b 1.00", "shared: credit -30.00", "shared: desk 10.00", "shared: team 100.00"];
    assert_eq!(rows(&apart, &["business_line", "cost"]), expected);
    let spread = allocate("spread");
    // of 100 and -30 two thirds and one third, to the cent: 66.67 - 20.00 + 5.00 and 33.33 - 10.00
    let expected = ["a 51.67 53.67", "b 23.33 24.33", "c 3.00 3.00", "unallocated: desk null 2.00"];
    assert_eq!(rows(&spread, &["business_line", "shared_cost", "cost"]), expected);
    assert_eq!([&apart.0["totals"]["cost"], &spread.0["totals"]["cost"]], ["83.00", "83.00"]);
}

#[test]
fn a_cost_that_nobody_can_take_stays_unallocated() {
    let record = with(request("1", NOON, "a", 100), json!({"model": "mystery"}));
    let report = report(&[record], CENTS, SHARED, &[&["allocate", "--share", "spread"][..], &JUNE].concat());
    let expected = [
        "a requests null 5.00",
        "c requests null 3.00",
        "unallocated: credit unallocated null -30.00",
        "unallocated: desk unallocated null 2.00",
        "unallocated: team unallocated null 100.00",
    ];
    assert_eq!(rows(&report, &["business_line", "item", "direct_cost", "cost"]), expected);
}

#[test]
fn requests_with_several_tags_count_once_in_the_total() {
    let records = [
        with(request("1", NOON, "x", 380_150), json!({"tags": ["a", "b"]})),
        with(request("2", NOON, "x", 183_318), json!({"tags": "a"})),
        with(request("3", NOON, "x", 100), json!({})),
    ];
    let tags = |policy: &str| report(&records, CENTS, "", &["tags", "--policy", policy]);
    let cases = [
        ("primary", vec!["a tag 2 5634.68", "null no tag 1 1.00"]),
        ("split", vec!["a tag 2 3733.93", "b tag 0 1900.75", "null no tag 1 1.00"]),
        // the tags alone add up to 9,436.18
        ("overlap", vec!["a tag 2 5634.68", "b tag 1 3801.50", "null no tag 1 1.00", "null overlap -1 -3801.50"]),
    ];
    for (policy, expected) in cases {
        let report = tags(policy);
        assert_eq!(rows(&report, &["tag", "item", "requests", "cost"]), expected, "{policy}");
        assert_eq!(
            (&report.0["totals"]["requests"], &report.0["totals"]["cost"]),
            (&json!(3), &json!("5635.68")),
            "{policy}"
        );
    }
}
