//! `quota`: what lines have used of their caps, when caps will be used up, and rates against limits.

use serde_json::{Value, json};

use crate::command::{Report, Run, Workspace};

/// A cent a token, and one model in another currency.
const PRICES: &str = r#"
name = "test"
currency = "USD"
[[model]]
name = "m"
[[model.price]]
input = "10000"
output = "10000"
[[model]]
name = "euro"
[[model.price]]
input = "10000"
output = "10000"
currency = "EUR"
"#;

fn workspace(quotas: &str, records: &[Value]) -> Workspace {
    let workspace = Workspace::with_records(records);
    workspace.write("prices.toml", PRICES);
    workspace.write("infer-stats.toml", format!("[prices]\nbook = \"prices.toml\"\n{quotas}"));
    workspace
}

/// The report as of a moment.
fn quota(workspace: &Workspace, now: &str, flags: &[&str]) -> Run {
    workspace.run(&[&["quota", "--now", now, "--format", "json"], flags, &["log.ndjson"]].concat())
}

fn cap(line: &str, caps: &str) -> String {
    format!("[[quota]]\nbusiness_line = \"{line}\"\n{caps}\n")
}

fn request(line: &str, time: &str, tokens: u64) -> Value {
    json!({"request_id": format!("{line} {time} {tokens}"), "timestamp": time, "business_line": line, "model": "m",
           "input_tokens": tokens, "output_tokens": 0, "status": "success"})
}

fn at_noon(line: &str, month: u32, day: u32, tokens: u64) -> Value {
    request(line, &format!("2025-{month:02}-{day:02}T12:00:00Z"), tokens)
}

/// From 1 May to 15 June 2025, one request at noon: 100 tokens on Mondays, 200 on Tuesdays, up to 700 on Sundays.
fn weeks(line: &str) -> Vec<Value> {
    // 1 May is a Thursday
    let tokens = |days: u32| u64::from((3 + days) % 7 + 1) * 100;
    let may = (1..=31).map(|day| at_noon(line, 5, day, tokens(day - 1)));
    may.chain((1..=15).map(|day| at_noon(line, 6, day, tokens(30 + day)))).collect()
}

fn shown(report: &Report, columns: &[&str]) -> Vec<String> {
    let row =
        |row: &Value| columns.iter().map(|name| row[name].to_string().replace('"', "")).collect::<Vec<_>>().join(" ");
    report.rows().iter().map(row).collect()
}

#[test]
fn use_is_projected_by_weekdays_to_the_end_of_the_month() {
    let workspace = workspace(&cap("a", "tokens = 10_000\ncost = \"200.00\""), &weeks("a"));
    let report = quota(&workspace, "2025-06-15T13:00:00Z", &[]).report();
    // 1 June is a Sunday: 700; two weeks of 2800: 6300, of which 5600 on the 14 complete days
    assert_eq!(
        shown(&report, &["kind", "status", "used", "share", "burn_rate", "rate_days", "reached"]),
        ["tokens warn 6300.00 0.63 400.00 14 50", "cost ok 63.00 0.315 4.00 14 0"]
    );
    // 16 to 29 June are two weeks more, 30 June is a Monday: 6300 + 5600 + 100
    assert_eq!(shown(&report, &["projected", "low", "high"]), ["12000.00 12000.00 12000.00", "120.00 120.00 120.00"]);
    // July: four weeks, a Tuesday, a Wednesday and a Thursday: 12100, and a fifth more
    assert_eq!(shown(&report, &["next_month"]), ["14520.00", "145.20"]);
    let tokens = &report.rows()[0];
    // 5000 with the request of Friday the 13th; 8400 on Saturday the 21st, 9100 on the 22nd, 10100 on the 26th
    assert_eq!(tokens["at_50"], "2025-06-13T12:00:00+00:00");
    assert_eq!(tokens["at_80"], "2025-06-21T00:00:00+00:00");
    assert_eq!(tokens["at_90"], "2025-06-22T00:00:00+00:00");
    assert_eq!(
        (&tokens["at_100"], &tokens["exhausted_on"]),
        (&json!("2025-06-26T00:00:00+00:00"), &json!("2025-06-26"))
    );
    assert_eq!(report.rows()[1]["exhausted_on"], json!(null));
}

#[test]
fn the_burn_rate_is_of_days_with_use_whatever_the_window() {
    // 62.27 in five days, 10 to 14 June; over 7 days that would be 266.87 a month, over 90 days 20.76
    let records: Vec<Value> = [(10, 1000), (11, 1227), (12, 1500), (13, 1500), (14, 1000)]
        .map(|(day, tokens)| at_noon("a", 6, day, tokens))
        .into();
    let workspace = workspace(&cap("a", "cost = \"1000\""), &records);
    for since in ["7d", "30d", "90d"] {
        let report = quota(&workspace, "2025-06-15T13:00:00Z", &["--since", since]).report();
        assert_eq!(
            shown(&report, &["used", "burn_rate", "rate_days", "status", "projected"]),
            ["62.27 12.454 5 no history null"]
        );
        let reason = report.row()["reason"].as_str().unwrap();
        assert!(reason.starts_with("complete days with a record: 5 of the 7"), "{reason}");
    }
}

#[test]
fn neither_the_day_that_is_not_over_nor_one_that_has_not_arrived_is_in_the_rate() {
    // Monday to Wednesday; of Thursday nothing has come yet, or a little of it
    let mut records: Vec<Value> =
        [(9, 100), (10, 300), (11, 200)].map(|(day, tokens)| at_noon("a", 6, day, tokens)).into();
    let rate = |records: &[Value]| {
        let report = quota(&workspace(&cap("a", "tokens = 1000"), records), "2025-06-13T13:00:00Z", &[]).report();
        shown(&report, &["used", "burn_rate", "rate_days"])
    };
    assert_eq!(rate(&records), ["600.00 200.00 3"]);
    records.push(at_noon("a", 6, 13, 50));
    assert_eq!(rate(&records), ["650.00 200.00 3"]);
}

#[test]
fn the_band_is_made_of_quartiles_and_a_weekday_never_seen_gives_no_number() {
    // the Mondays of June, up to the 23rd; the 30th is today
    let mut records: Vec<Value> =
        [(2, 100), (9, 200), (16, 400), (23, 1000)].map(|(day, tokens)| at_noon("a", 6, day, tokens)).into();
    records.extend((24..=28).map(|day| at_noon("a", 6, day, 1)));
    records.push(at_noon("b", 6, 29, 1));
    let report = |records: &[Value], flags: &[&str]| {
        quota(&workspace(&cap("a", "tokens = 10_000"), records), "2025-06-30T08:00:00Z", flags).report()
    };
    let of_a = |report: &Report| shown(report, &["status", "projected", "low", "high", "next_month"])[0].clone();
    // of Sunday the 29th nothing is there
    let unseen = report(&records, &[]);
    assert_eq!(of_a(&unseen), "no history null null null null");
    let reason = unseen.rows()[0]["reason"].as_str().unwrap();
    assert!(reason.contains("no complete Sunday in the history"), "{reason}");
    // but another line has a record of that day
    let quiet = report(&records, &["--quiet-days", "zero"]);
    // 1705 so far; the median of four Mondays is 300, their quartiles are 175 and 550; July has 4 Mondays, 4 Sundays and 23 other days
    assert_eq!(of_a(&quiet), "ok 2005.00 1880.00 2255.00 1467.60");
    records.push(at_noon("a", 6, 29, 1));
    // Sundays are 1 each: 1706 so far; 1200 and 27 for July
    assert_eq!(of_a(&report(&records, &[])), "ok 2006.00 1881.00 2256.00 1472.40");
}

#[test]
fn every_line_has_a_status_and_a_cap_that_is_exceeded_fails() {
    let mut records = [weeks("fine"), weeks("more"), weeks("over")].concat();
    records.extend(weeks("late").into_iter().filter(|record| record["timestamp"].as_str().unwrap() < "2025-06-13"));
    records.extend([at_noon("new", 6, 14, 5), at_noon("free", 6, 14, 5)]);
    let caps = [("fine", 20_000), ("late", 20_000), ("more", 11_000), ("new", 100), ("none", 100), ("over", 6_299)];
    let quotas: String = caps.map(|(line, tokens)| cap(line, &format!("tokens = {tokens}"))).concat();
    let workspace = workspace(&quotas, &records);
    let report = quota(&workspace, "2025-06-15T13:00:00Z", &[]).exits(3).report_anyway();
    assert_eq!(
        shown(&report, &["business_line", "kind", "severity", "status", "used", "projected"]),
        [
            "fine tokens info ok 6300.00 12000.00",
            "free tokens info no cap 5.00 null",
            "free cost info no cap 0.05 null",
            // Thursday the 12th is the last day that is there
            "late tokens warning stale 4500.00 null",
            "more tokens warning warn 6300.00 12000.00",
            "new tokens info no history 5.00 null",
            "none tokens info no history 0.00 null",
            "over tokens error over 6300.00 12000.00",
        ]
    );
    assert_eq!(report.rows()[6]["reason"], "no record of this line: nothing was used");
    quota(&workspace, "2025-06-15T13:00:00Z", &["--fail-on", "never"]).exits(0);
    let longer =
        quota(&workspace, "2025-06-15T13:00:00Z", &["--stale", "7d", "--warn", "100"]).exits(3).report_anyway();
    // as usual on the 13th, 14th and today
    assert_eq!(shown(&longer, &["status", "projected"])[3], "ok 12000.00");
}

#[test]
fn tokens_count_in_the_minute_in_which_a_request_begins_or_ends_or_between() {
    let timed = |time: &str, milliseconds: u64, tokens: u64| {
        let mut record = request("a", time, tokens);
        record["total_latency_ms"] = json!(milliseconds);
        record
    };
    let records = [
        timed("2025-06-10T10:00:30Z", 60_000, 600),
        timed("2025-06-10T10:01:10Z", 1_000, 100),
        timed("2025-06-10T09:59:59Z", 2_000, 50),
    ];
    let limits = "tokens_per_minute = 500\ntokens_per_hour = 1000\nrequests_per_minute = 1";
    let workspace = workspace(&cap("a", limits), &records);
    let rates = |attribute: &str| {
        let report =
            quota(&workspace, "2025-06-10T11:00:00Z", &["--attribute", attribute, "--fail-on", "never"]).report();
        report
            .rows()
            .iter()
            .map(|row| {
                let at = row["peak_at"].as_str().unwrap()[11..16].to_owned();
                format!(
                    "{} {} {at} {} {}",
                    row["kind"].as_str().unwrap(),
                    row["used"].as_str().unwrap(),
                    row["times_over"],
                    row["status"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };
    let requests = "requests per minute 1.00 09:59 0 warn";
    assert_eq!(
        rates("start"),
        ["tokens per minute 600.00 10:00 1 over", "tokens per hour 700.00 10:00 0 ok", requests]
    );
    // 600 + 100 at 10:01; the 50 at 10:00
    assert_eq!(rates("end"), ["tokens per minute 700.00 10:01 1 over", "tokens per hour 750.00 10:00 0 ok", requests]);
    // 300 + 100 at 10:01, 25 + 300 at 10:00
    assert_eq!(
        rates("spread"),
        ["tokens per minute 400.00 10:01 0 warn", "tokens per hour 725.00 10:00 0 ok", requests]
    );
}

#[test]
fn the_month_begins_at_local_midnight_and_the_crossing_is_the_request_that_did_it() {
    let records = [
        request("a", "2025-05-31T14:59:59.999Z", 900),
        request("a", "2025-05-31T15:00:00Z", 40),
        request("a", "2025-06-02T03:04:05Z", 30),
        request("a", "2025-06-02T03:04:40.250Z", 20),
        request("a", "2025-06-02T03:04:41Z", 5),
    ];
    let workspace = workspace(&cap("a", "tokens = 100"), &records);
    let now = "2025-06-02T04:00:00Z";
    let report = quota(&workspace, now, &["--tz", "Asia/Tokyo"]).report();
    assert_eq!(
        shown(&report, &["used", "at_50", "at_80", "at_90"]),
        ["95.00 2025-06-02T12:04:05+09:00 2025-06-02T12:04:40.250+09:00 2025-06-02T12:04:40.250+09:00"]
    );
    let minutes = quota(&workspace, now, &["--tz", "Asia/Tokyo", "--crossings", "minute"]).report();
    assert_eq!(shown(&minutes, &["at_50", "at_90"]), ["2025-06-02T12:04:00+09:00 2025-06-02T12:04:00+09:00"]);
    // in UTC all but the first two are of June; a range that ends before now is looked at from its end
    assert_eq!(shown(&quota(&workspace, now, &[]).report(), &["used"]), ["55.00"]);
    let may = quota(&workspace, now, &["--month", "2025-05", "--stale", "48h"]).exits(3).report_anyway();
    assert_eq!(shown(&may, &["used", "status"]), ["940.00 over"]);
}

#[test]
fn what_is_unknown_is_not_in_used_and_currencies_are_not_added() {
    let with = |mut record: Value, fields: Value| {
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        record
    };
    let records = [
        at_noon("a", 6, 10, 100),
        with(at_noon("a", 6, 11, 101), json!({"output_tokens": null, "max_tokens": 300})),
        with(at_noon("a", 6, 11, 102), json!({"model": "euro"})),
        with(at_noon("a", 6, 12, 103), json!({"response_cache_hit": true})),
    ];
    let workspace = workspace(&cap("a", "tokens = 1000\ncost = \"5.00\"\ncurrency = \"USD\""), &records);
    let report = quota(&workspace, "2025-06-12T13:00:00Z", &[]).report();
    // tokens 100 + 101 + 102; the second request costs 1.01 for its input and up to 3.00 for its output
    assert_eq!(
        shown(&report, &["kind", "currency", "status", "used", "unknown", "used_high"]),
        ["tokens none no history 303.00 1 null", "cost USD no history 1.00 1 5.01", "cost EUR no cap 1.02 0 1.02"]
    );
    let reason = report.rows()[1]["reason"].as_str().unwrap();
    assert!(reason.ends_with("with them it may be above the cap"), "{reason}");
    assert_eq!(report.note("free").1, Some(1));
}
