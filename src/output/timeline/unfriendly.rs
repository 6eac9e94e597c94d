//! Requests of which little is known, or whose logs mean harm.

use crate::trace::life::*;

use super::stories;

/// A record that knows nothing but its id.
pub fn bare() -> Life {
    Life {
        id: "req-bare-08".to_owned(),
        asked: "req-ba".to_owned(),
        outcome: "unknown",
        records: vec![Record { place: "app.ndjson:3".to_owned(), ..Record::default() }],
        ..Life::default()
    }
}

/// Everything that a log may say is meant to break the screen.
pub fn hostile() -> Life {
    let evil = "\x1b[2J\u{202e}evil|\r\n`<b>`\u{2066}日本語";
    let mut life = stories::stalled();
    life.id = evil.repeat(20);
    life.asked = evil.to_owned();
    life.facts.iter_mut().for_each(|fact| fact.value = Value::Text(evil.to_owned()));
    life.facts.push(stories::fact("error_code", Value::Text("x".repeat(300)), ""));
    life.outcome = "failed";
    life.records.iter_mut().for_each(|record| record.role = Some(evil.repeat(3)));
    life.stages.iter_mut().for_each(|stage| stage.role = Some(evil.repeat(3)));
    life.events.iter_mut().for_each(|event| (event.name, event.text) = (evil.repeat(9), evil.repeat(9)));
    life.neighbours.iter_mut().for_each(|near| near.id = evil.repeat(20));
    life.findings.iter_mut().for_each(|finding| finding.text = evil.repeat(40));
    life
}

/// Text as a log may hold it.
fn text(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 18] = [
        "req",
        "-",
        " ",
        "日本語",
        "\x1b[31m",
        "\u{202e}",
        "\n",
        "|",
        "`",
        "0",
        "e\u{301}",
        "👩\u{200d}👩\u{200d}👧",
        "☀\u{fe0f}",
        "\u{9b}",
        "\t",
        "\u{feff}",
        "한",
        "evicted",
    ];
    let length = if random.u8(..40) == 0 { 300 } else { random.usize(0..12) };
    (0..length).map(|_| PIECES[random.usize(..PIECES.len())]).collect()
}

fn ms(random: &mut fastrand::Rng) -> f64 {
    match random.u8(..12) {
        0 => 0.0,
        1 => -random.f64() * 1e4,
        2 => 1e300,
        3 => 1e-9,
        4 => 1e12 * random.f64(),
        _ => random.f64() * 5e3,
    }
}

fn maybe<T>(random: &mut fastrand::Rng, value: impl Fn(&mut fastrand::Rng) -> T) -> Option<T> {
    random.bool().then(|| value(random))
}

fn several<T>(random: &mut fastrand::Rng, value: impl Fn(&mut fastrand::Rng) -> T) -> Vec<T> {
    let count = if random.u8(..30) == 0 { 60 } else { random.usize(0..5) };
    (0..count).map(|_| value(random)).collect()
}

/// A life of which anything may be unknown, hostile or contradict itself.
pub fn any(random: &mut fastrand::Rng) -> Life {
    const NAMES: [&str; 9] =
        ["auth", "preprocess", "network", "queue", "prefill", "decode", "postprocess", "unexplained", "request"];
    const FACTS: [&str; 9] = [
        "model_name",
        "tenant",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "http_status",
        "error_code",
        "gpu_id",
        "currency",
    ];
    let standing = |random: &mut fastrand::Rng| Standing {
        model_name: maybe(random, text),
        input_bucket: maybe(random, text),
        count: random.u64(..),
        p50_ms: ms(random),
        p95_ms: ms(random),
        p99_ms: ms(random),
        below: random.f64(),
    };
    let value = |random: &mut fastrand::Rng| match random.u8(..6) {
        0 => Value::Text(text(random)),
        1 => Value::Count(random.i64(..)),
        2 => Value::Number(ms(random)),
        3 => Value::Flag(random.bool()),
        4 => Value::Time(random.i64(..)),
        _ => Value::Money("-1234567.125".to_owned()),
    };
    let step = |random: &mut fastrand::Rng| Step {
        index: random.i64(..),
        at_ms: maybe(random, ms),
        step_ms: maybe(random, ms),
        wait_ms: maybe(random, ms),
        context_len: maybe(random, |random| random.i64(..)),
        state: ["normal", "cache_miss", "recompute"][random.usize(..3)],
        stall: random.bool(),
        ..Step::default()
    };
    let stall = |random: &mut fastrand::Rng| Stall { at_ms: maybe(random, ms), text: text(random), ..Stall::default() };
    Life {
        id: text(random),
        asked: text(random),
        trace_id: maybe(random, text),
        origin_ns: maybe(random, |random| random.i64(..)),
        length_ms: ms(random),
        total_ms: maybe(random, ms),
        outcome: ["success", "failed", "unknown"][random.usize(..3)],
        facts: several(random, |random| Fact {
            name: FACTS[random.usize(..9)],
            value: value(random),
            unit: ["", "ms", "tokens"][random.usize(..3)],
        }),
        records: several(random, |random| Record {
            role: maybe(random, text),
            host: maybe(random, text),
            attempt: maybe(random, |random| random.i64(..)),
            start_ms: maybe(random, ms),
            end_ms: maybe(random, ms),
            place: text(random),
            values: Vec::new(),
        }),
        stages: several(random, |random| Stage {
            name: NAMES[random.usize(..9)],
            role: maybe(random, text),
            record: maybe(random, |random| random.usize(..9)),
            start_ms: ms(random),
            end_ms: ms(random),
            duration_ms: ms(random),
            share: maybe(random, |random| random.f64() * 3.0),
            dominant: random.bool(),
            standing: maybe(random, standing),
        }),
        events: several(random, |random| Event {
            at_ms: maybe(random, ms),
            name: text(random),
            text: text(random),
            role: maybe(random, text),
            host: maybe(random, text),
            gpu_id: maybe(random, text),
            duration_ms: maybe(random, ms),
            place: text(random),
        }),
        tokens: maybe(random, |random| Tokens {
            unit: ["token", "chunk"][random.usize(..2)],
            steps: several(random, step),
            itl: maybe(random, |random| Gaps { p50_ms: ms(random), max_ms: ms(random), ..Gaps::default() }),
            stalls: several(random, stall),
        }),
        missing: several(random, |random| Missing { role: text(random), text: text(random) }),
        skews: several(random, |random| Skew { text: text(random), ..Skew::default() }),
        neighbours: several(random, |random| Neighbour {
            id: text(random),
            relation: ["batch", "reconnected", "gpu"][random.usize(..3)],
            start_ms: maybe(random, ms),
            gpu_id: maybe(random, text),
            output_tokens: maybe(random, |random| random.i64(..)),
            outcome: "success",
            place: text(random),
            ..Neighbour::default()
        }),
        findings: several(random, |random| Finding { code: "stall", severity: "info", text: text(random) }),
    }
}
