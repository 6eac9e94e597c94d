//! The requests of the planted stories, as a trace finds them.

use crate::trace::life::*;

/// 2025-06-01T08:00:00.123+08:00.
const ORIGIN_NS: i64 = 1_748_736_000_123_000_000;

pub fn fact(name: &'static str, value: Value, unit: &'static str) -> Fact {
    Fact { name, value, unit }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn finding(code: &'static str, severity: &'static str, text: &str) -> Finding {
    Finding { code, severity, text: text.to_owned() }
}

fn who(input: i64, cached: i64, output: i64) -> Vec<Fact> {
    vec![
        fact("model_name", text("qwen2.5-72b"), ""),
        fact("model_version", text("v3"), ""),
        fact("tenant", text("acme"), ""),
        fact("business_line", text("search"), ""),
        fact("input_tokens", Value::Count(input), "tokens"),
        fact("cached_tokens", Value::Count(cached), "tokens"),
        fact("output_tokens", Value::Count(output), "tokens"),
        fact("gpu_id", text("gpu-3"), ""),
        fact("priority", Value::Count(5), ""),
    ]
}

fn record(role: &str, start_ms: f64, end_ms: f64, line: u32) -> Record {
    Record {
        role: Some(role.to_owned()),
        host: Some(format!("{role}-2")),
        start_ms: Some(start_ms),
        end_ms: Some(end_ms),
        place: format!("{role}.ndjson:{line}"),
        ..Record::default()
    }
}

/// A standing of the usual request of the engine.
fn standing(p50_ms: f64, p95_ms: f64, p99_ms: f64, below: f64) -> Option<Standing> {
    Some(Standing {
        model_name: Some("qwen2.5-72b".to_owned()),
        input_bucket: Some("2K-4K".to_owned()),
        count: 2_345,
        p50_ms,
        p95_ms,
        p99_ms,
        below,
    })
}

/// Stages of `role` one after the other, each with its record and length.
fn stages(life: &mut Life, stretches: &[(&'static str, Option<usize>, f64, f64)]) {
    let total = life.total_ms;
    life.stages.extend(stretches.iter().map(|&(name, record, start_ms, duration_ms)| Stage {
        name,
        role: record.and_then(|record| life.records[record].role.clone()),
        record,
        start_ms,
        end_ms: start_ms + duration_ms,
        duration_ms,
        share: total.map(|total| duration_ms / total),
        dominant: false,
        standing: match name {
            "queue" => standing(35.0, 210.0, 400.0, if duration_ms > 400.0 { 1.0 } else { 0.51 }),
            "prefill" => standing(180.0, 260.0, 310.0, 0.48),
            "decode" => standing(2_100.0, 4_400.0, 5_200.0, 0.62),
            _ => None,
        },
    }));
    let longest = life.stages.iter().map(|stage| stage.duration_ms).fold(0.0, f64::max);
    life.stages.iter_mut().for_each(|stage| stage.dominant = stage.duration_ms == longest);
}

fn life(id: &str, total_ms: f64, outcome: &'static str, facts: Vec<Fact>, records: Vec<Record>) -> Life {
    Life {
        id: id.to_owned(),
        asked: id.to_owned(),
        trace_id: Some(format!("trace-{}", &id[id.len().saturating_sub(2)..])),
        origin_ns: Some(ORIGIN_NS),
        length_ms: total_ms,
        total_ms: Some(total_ms),
        outcome,
        facts,
        records,
        ..Life::default()
    }
}

pub fn slow_queue() -> Life {
    let records = vec![
        record("gateway", 0.0, 5_140.0, 1_204),
        record("app", 8.0, 5_121.0, 880),
        record("engine", 21.5, 5_109.0, 1_198),
    ];
    let mut life = life("req-slowqueue-01", 5_140.0, "success", who(2_048, 1_024, 96), records);
    stages(
        &mut life,
        &[
            ("auth", Some(0), 0.0, 6.0),
            ("preprocess", Some(0), 6.0, 9.5),
            ("network", None, 15.5, 6.0),
            ("queue", Some(2), 21.5, 2_900.0),
            ("prefill", Some(2), 2_921.5, 177.5),
            ("decode", Some(2), 3_099.0, 2_010.0),
            ("network", None, 5_109.0, 12.0),
            ("postprocess", Some(0), 5_121.0, 19.0),
        ],
    );
    life.findings = vec![finding(
        "slow_stage",
        "warning",
        "engine queue took 2,900 ms, 56.4 % of the request: above P99 (400 ms) of 2,345 requests of qwen2.5-72b with 2K-4K input tokens",
    )];
    life
}

pub fn lost_engine() -> Life {
    let mut facts = who(3_100, 0, 0);
    facts.retain(|fact| !matches!(fact.name, "output_tokens" | "cached_tokens" | "gpu_id"));
    facts.push(fact("http_status", Value::Count(504), ""));
    facts.push(fact("error_code", text("upstream_timeout"), ""));
    facts.push(fact("error_stage", text("engine"), ""));
    let records = vec![record("gateway", 0.0, 30_021.0, 77), record("app", 4.0, 30_030.0, 70)];
    let mut life = life("req-lostengine-02", 30_030.0, "failed", facts, records);
    stages(
        &mut life,
        &[("auth", Some(0), 0.0, 4.0), ("preprocess", Some(0), 4.0, 17.0), ("unexplained", None, 21.0, 30_000.0)],
    );
    let lost = "engine has no record of this id: lost between gateway and engine";
    life.missing = vec![Missing { role: "engine".to_owned(), text: lost.to_owned() }];
    life.findings = vec![
        finding("missing_record", "error", lost),
        finding("failed", "error", "gateway answered 504 upstream_timeout after 30,021 ms"),
        finding("unexplained", "info", "30,000 ms (99.9 %) are explained by no record"),
    ];
    life
}

fn neighbour(id: &str, relation: &'static str, start_ms: f64, end_ms: f64, output: i64) -> Neighbour {
    Neighbour {
        id: id.to_owned(),
        relation,
        start_ms: Some(start_ms),
        end_ms: Some(end_ms),
        role: Some("engine".to_owned()),
        gpu_id: Some("gpu-3".to_owned()),
        batch_id: (relation == "batch").then(|| "batch-77".to_owned()),
        input_tokens: Some(1_024),
        output_tokens: Some(output),
        queue_wait_ms: Some(31.0),
        decode_time_ms: Some(end_ms - start_ms - 212.5),
        outcome: "success",
        place: "engine.ndjson:412".to_owned(),
    }
}

pub fn retried() -> Life {
    let mut facts = who(2_048, 0, 0);
    facts.retain(|fact| fact.name != "output_tokens");
    facts.push(fact("http_status", Value::Count(500), ""));
    facts.push(fact("error_code", text("cuda_oom"), ""));
    facts.push(fact("error_stage", text("prefill"), ""));
    let records = vec![record("gateway", 0.0, 412.0, 300), record("engine", 12.0, 401.0, 290)];
    let mut life = life("req-first-03", 412.0, "failed", facts, records);
    stages(
        &mut life,
        &[("auth", Some(0), 0.0, 12.0), ("queue", Some(1), 12.0, 33.0), ("prefill", Some(1), 45.0, 356.0)],
    );
    life.neighbours = vec![neighbour("req-retry-03", "retry", 640.0, 2_900.0, 310)];
    life.findings = vec![
        finding("failed", "error", "engine failed with cuda_oom in prefill after 389 ms"),
        finding("retry", "info", "retried as req-retry-03 after 228 ms: success in 2,260 ms"),
    ];
    life
}

pub fn reconnected() -> Life {
    let mut facts = who(1_500, 512, 80);
    facts.push(fact("http_status", Value::Count(499), ""));
    facts.push(fact("error_code", text("client_closed"), ""));
    let records = vec![record("gateway", 0.0, 2_055.0, 900), record("engine", 14.0, 2_048.0, 898)];
    let mut life = life("req-recon-04", 2_055.0, "failed", facts, records);
    stages(
        &mut life,
        &[
            ("auth", Some(0), 0.0, 14.0),
            ("queue", Some(1), 14.0, 30.0),
            ("prefill", Some(1), 44.0, 170.0),
            ("decode", Some(1), 214.0, 1_834.0),
        ],
    );
    life.neighbours = vec![neighbour("req-recon-04b", "reconnect", 2_300.0, 4_900.0, 120)];
    life.findings = vec![
        finding("failed", "error", "the client closed the connection (499) with 80 of 200 tokens written"),
        finding("reconnect", "info", "reconnected as req-recon-04b after 245 ms: same session, same trace"),
    ];
    life
}

pub fn starved() -> Life {
    let records = vec![record("gateway", 0.0, 2_655.0, 610), record("engine", 10.0, 2_650.0, 605)];
    let mut life = life("req-starved-05", 2_655.0, "success", who(900, 0, 12), records);
    stages(
        &mut life,
        &[
            ("auth", Some(0), 0.0, 10.0),
            ("queue", Some(1), 10.0, 35.0),
            ("prefill", Some(1), 45.0, 105.0),
            ("decode", Some(1), 150.0, 2_500.0),
        ],
    );
    life.facts.push(fact("batch_id", text("batch-77"), ""));
    life.neighbours = (1..=3).map(|n| neighbour(&format!("req-long-{n}"), "batch", 8.0, 44_600.0, 2_000)).collect();
    life.neighbours.extend((0..42).map(|n| neighbour(&format!("req-{n:05}"), "gpu", -300.0, 2_000.0, 150)));
    life.findings = vec![finding(
        "starved",
        "warning",
        "starved by long outputs in batch-77: 208 ms a token where P50 is 21, while 3 members write 2,000 tokens each",
    )];
    life
}

/// Steps of 22 ms, every one the same but the 47th.
pub fn steps(start_ms: f64) -> Vec<Step> {
    let mut at_ms = start_ms;
    let step = |index: i64| {
        let stall = index == 47;
        let step_ms = if stall { 334.0 } else { 22.0 };
        at_ms += if index == 0 { 0.0 } else { step_ms };
        Step {
            index,
            at_ms: Some(at_ms),
            step_ms: Some(if index == 0 { 180.0 } else { step_ms }),
            wait_ms: Some(if stall { 290.0 } else { 0.4 }),
            context_len: Some(2_048 + index),
            cache_hit: Some(!stall),
            recompute: Some(false),
            batch_size: Some(8),
            state: if stall { "cache_miss" } else { "normal" },
            stall,
        }
    };
    (0..200).map(step).collect()
}

pub fn stalled() -> Life {
    let records = vec![record("gateway", 0.0, 4_935.0, 2_001), record("engine", 12.0, 4_930.0, 1_990)];
    let mut life = life("req-stall-06", 4_935.0, "success", who(2_048, 1_536, 200), records);
    stages(
        &mut life,
        &[
            ("auth", Some(0), 0.0, 12.0),
            ("queue", Some(1), 12.0, 30.0),
            ("prefill", Some(1), 42.0, 180.0),
            ("decode", Some(1), 222.0, 4_690.0),
        ],
    );
    let stall = "token 47: +312 ms, KV miss, 3 neighbours stalled at the same time";
    life.events = vec![
        Event {
            at_ms: Some(1_233.0),
            name: "kv_eviction".to_owned(),
            text: "evicted 312 blocks of 4 sequences".to_owned(),
            role: Some("engine".to_owned()),
            host: Some("engine-2".to_owned()),
            gpu_id: Some("gpu-3".to_owned()),
            duration_ms: Some(8.5),
            place: "engine-events.ndjson:31".to_owned(),
        },
        Event {
            at_ms: Some(4_931.0),
            name: "line".to_owned(),
            text: "INFO finished req-stall-06 reason=stop".to_owned(),
            role: Some("engine".to_owned()),
            place: "engine.log:7719".to_owned(),
            ..Event::default()
        },
    ];
    life.tokens = Some(Tokens {
        unit: "token",
        steps: steps(222.0),
        itl: Some(Gaps { count: 199, mean_ms: 23.567, p50_ms: 22.0, p95_ms: 22.0, p99_ms: 22.0, max_ms: 334.0 }),
        stalls: vec![Stall {
            index: 47,
            at_ms: Some(1_568.0),
            step_ms: 334.0,
            over_ms: 312.0,
            cause: "cache_miss",
            neighbours: 3,
            text: stall.to_owned(),
        }],
    });
    life.neighbours = (1..=3).map(|n| neighbour(&format!("req-near-{n}"), "batch", 40.0, 5_100.0, 210)).collect();
    life.findings = vec![
        finding("stall", "warning", stall),
        finding("event", "info", "kv_eviction on gpu-3 11 ms before the stall: evicted 312 blocks of 4 sequences"),
    ];
    life
}

pub fn skewed() -> Life {
    let records = vec![record("gateway", 0.0, 1_900.0, 40), record("engine", 1_512.0, 3_392.0, 38)];
    let mut life = life("req-skew-07", 1_900.0, "success", who(700, 0, 70), records);
    life.length_ms = 3_392.0;
    stages(
        &mut life,
        &[
            ("auth", Some(0), 0.0, 12.0),
            ("queue", Some(1), 1_512.0, 30.0),
            ("prefill", Some(1), 1_542.0, 150.0),
            ("decode", Some(1), 1_692.0, 1_700.0),
        ],
    );
    let skew = "engine's clock is at least 1,492 ms ahead of gateway's: it ends after the gateway has answered";
    life.skews = vec![Skew {
        role: "engine".to_owned(),
        against: "gateway".to_owned(),
        ahead_ms: 1_492.0,
        text: skew.to_owned(),
    }];
    life.findings = vec![finding("clock_skew", "warning", skew)];
    life
}
