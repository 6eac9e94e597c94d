//! The numbers: as often and as long as the front page says.

use std::sync::LazyLock;

use super::*;
use crate::generate::attempt::QUEUE_WAIT_US;
use crate::generate::failure::{Fault, LONG_INPUT, Refusal};
use crate::generate::population::{BUSINESS_LINES, BusinessLine, MODELS, VERSIONS};
use crate::generate::quantiles::Quantiles;
use crate::generate::rhythm::Load;

const FRONT_PAGE: &str = include_str!("../../generate.rs");

/// The lines of a generated month.
struct Month {
    engine: Vec<Value>,
    gateway: Vec<Value>,
    app: Vec<Value>,
}

/// Every test here asks about the same lines.
static MONTH: LazyLock<Month> = LazyLock::new(|| {
    let logs = logs(20_000, LogFormat::Ndjson);
    Month { engine: logs.lines("engine"), gateway: logs.lines("gateway"), app: logs.lines("app") }
});

/// Fails unless `seen` of `all` is `share`, within four standard deviations of its sampling error.
#[track_caller]
fn assert_share(seen: usize, all: usize, share: f64) {
    let spread = (share * (1.0 - share) / all as f64).sqrt();
    let found = seen as f64 / all as f64;
    assert!((found - share).abs() < 4.0 * spread, "{found} where {share} is the truth");
}

fn share_up_to(table: impl Fn(&BusinessLine) -> &Quantiles, tokens: f64) -> f64 {
    BUSINESS_LINES.iter().map(|line| f64::from(line.weight) / 100.0 * table(line).share_up_to(tokens)).sum()
}

#[test]
fn token_lengths_have_the_percentiles_of_the_front_page() {
    let first: Vec<&Value> = MONTH.engine.iter().filter(|line| line["attempt"] == 1).collect();
    for (share, tokens) in [(0.5, 982.5), (0.95, 11_851.5), (0.99, 32_408.5)] {
        assert!((share_up_to(|line| &line.input_tokens, tokens) - share).abs() < 5e-4);
        let seen = first.iter().filter(|line| line["input_tokens"].as_f64().unwrap() <= tokens).count();
        assert_share(seen, first.len(), share);
    }
    let answered: Vec<&Value> = first.iter().copied().filter(|line| line["error_code"] == 0).collect();
    for (share, tokens) in [(0.5, 99.6), (0.95, 862.1), (0.99, 2_268.1)] {
        assert!((share_up_to(|line| &line.output_tokens, tokens) - share).abs() < 5e-4);
        let seen = answered.iter().filter(|line| line["output_tokens"].as_f64().unwrap() <= tokens.round()).count();
        assert_share(seen, answered.len(), share_up_to(|line| &line.output_tokens, tokens.round() + 0.5));
    }
}

#[test]
fn failures_come_as_often_as_their_shares_and_the_rhythm_say() {
    let rhythm = Rhythm::new(START, DAYS).unwrap();
    let long = 1.0 - share_up_to(|line| &line.input_tokens, f64::from(LONG_INPUT as u32) - 0.5);
    // the share of first calls that end so, over the hours' loads and the long and short inputs
    let mean = |share: &dyn Fn(Load, u64) -> u32| -> f64 {
        let loads = [Load::Calm, Load::Busy, Load::Peak].map(|load| {
            let (short_inputs, long_inputs) = (share(load, 0), share(load, LONG_INPUT));
            rhythm.share_under(load) * (f64::from(short_inputs) * (1.0 - long) + f64::from(long_inputs) * long)
        });
        loads.iter().sum::<f64>() / 10_000.0
    };
    let first: Vec<&Value> =
        MONTH.gateway.iter().filter(|line| line["attempt"] == 1 && line["previous_request_id"].is_null()).collect();
    let seen = |status: u16| first.iter().filter(|line| line["http_status"] == status).count();
    let mut failed = 0.0;
    for refusal in [Refusal::InvalidRequest, Refusal::InvalidKey, Refusal::RateLimited] {
        let share = mean(&|load, _| weight_of(&Refusal::shares(load), refusal));
        assert_share(seen(refusal.http_status()), first.len(), share);
        failed += share;
    }
    let passed = 1.0 - failed;
    for fault in [Fault::QueueTimeout, Fault::PrefillOutOfMemory, Fault::BrokenAnswer] {
        let share = passed * mean(&|load, input| weight_of(&Fault::shares(load, input), fault));
        assert_share(seen(fault.http_status()), first.len(), share);
        failed += share;
    }
    assert!((0.025..0.035).contains(&failed), "{failed} of the requests fail");
}

fn weight_of<T: PartialEq>(shares: &[(Option<T>, u32)], wanted: T) -> u32 {
    shares.iter().filter(|(kind, _)| kind.as_ref() == Some(&wanted)).map(|(_, share)| share).sum()
}

#[test]
fn second_calls_follow_within_the_hour() {
    let engine = &MONTH.engine;
    let faults = engine.iter().filter(|line| line["attempt"] == 1 && line["error_code"] != 0).count();
    let retried: Vec<&Value> = engine.iter().filter(|line| line["attempt"] == 2).collect();
    // reconnects that fail are not tried again: about one fault in a thousand
    assert_share(retried.len(), faults, 0.4);
    let time = |line: &Value| text(line, "timestamp").parse::<Timestamp>().unwrap();
    for second in retried {
        let same_id = engine.iter().filter(|line| line["request_id"] == second["request_id"]);
        let first = same_id.min_by_key(|line| line["attempt"].as_u64()).unwrap();
        let between = time(second).duration_since(time(first)).as_secs();
        assert!((0..3_600).contains(&between), "{between} s");
        assert_ne!(first["error_code"], 0);
    }
}

#[test]
fn nights_are_quieter_than_days() {
    let mut hours = [0; 24];
    for line in &MONTH.app {
        hours[text(line, "timestamp")[11..13].parse::<usize>().unwrap()] += 1;
    }
    assert!(hours[3] * 8 < hours[15], "{hours:?}");
}

#[test]
fn the_front_page_tells_the_tables_that_are_drawn_from() {
    for line in &BUSINESS_LINES {
        let [_, _, i50, _, _, i95, i99, _, most_input] = line.input_tokens.0;
        let [_, _, o50, _, _, o95, o99, _, most_output] = line.output_tokens.0;
        let shares = format!("| {} | {} | {} | {} |", line.name, line.weight, line.streamed, line.cached);
        let tokens = format!(" {i50} | {i95} | {i99} | {most_input} | {o50} | {o95} | {o99} | {most_output} |");
        assert!(FRONT_PAGE.contains(&(shares + &tokens)), "{}", line.name);
    }
    for model in &MODELS {
        let row = format!(
            "| {} | {} | {} ms + {} µs a token | {} ms | {}-{}, {} |",
            model.name,
            model.weight,
            model.prefill_base_us / 1_000,
            model.prefill_ns_per_token / 1_000,
            model.decode_us_per_token / 1_000,
            model.gpus.start,
            model.gpus.end - 1,
            model.gpu_pool
        );
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
    for version in &VERSIONS {
        let [a, b, c, d] = version.weights;
        let row = format!("| {} | {} % | {a} | {b} | {c} | {d} |", version.name, version.decode_percent);
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
    for (load, table) in ["calm", "busy", "peak"].into_iter().zip(&QUEUE_WAIT_US) {
        let [p50, p95, p99] = [2, 5, 6].map(|share| table.0[share] / 1_000);
        let row = format!("| {load} | {p50} ms | {p95} ms | {p99} ms |");
        assert!(FRONT_PAGE.contains(&row), "{row}");
    }
}
