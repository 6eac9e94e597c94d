//! Who the request is and how it went, in one or two lines.

use jiff::tz::TimeZone;

use crate::trace::life::{Fact, Life};

use super::ink::Ink;
use super::{axis, fact};

/// What the headline says of every request.
const WHO: [&str; 7] =
    ["model_name", "model_version", "tenant", "business_line", "input_tokens", "cached_tokens", "output_tokens"];

/// What it says of one that did not go well.
const WHY: [&str; 4] = ["http_status", "status", "error_code", "error_stage"];

/// The id as it may be shown.
pub fn id(life: &Life) -> String {
    fact::word(Some(&life.id))
}

/// How it ended: `failed 504 upstream_timeout in engine`.
pub fn outcome(life: &Life) -> String {
    let mut words = vec![fact::word(Some(life.outcome))];
    if life.outcome != "success" {
        let known = |name| fact::named(life, name).map(|fact| fact::value(&fact.value, fact.unit, &TimeZone::UTC));
        words.extend(known("http_status").or_else(|| known("status")));
        words.extend(known("error_code"));
        words.extend(known("error_stage").map(|stage| format!("in {stage}")));
    }
    words.join(" ")
}

/// The sign before the outcome, and its colour.
pub fn mark(life: &Life) -> (Ink, char) {
    match life.outcome {
        "success" => (Ink::Good, '✓'),
        "failed" => (Ink::Error, '✗'),
        _ => (Ink::Warning, '?'),
    }
}

/// How long it took and when it began.
pub fn when(life: &Life, zone: &TimeZone) -> [String; 2] {
    let began = life.origin_ns.and_then(|origin| axis::moment(origin, zone));
    let total = life.total_ms.filter(|total| total.is_finite());
    [
        total.map_or_else(|| "total unknown".to_owned(), |total| fact::ms(Some(total))),
        began.unwrap_or_else(|| "start unknown".to_owned()),
    ]
}

/// Model and version, tenant and business line, tokens.
pub fn who(life: &Life, zone: &TimeZone) -> Vec<String> {
    let known = |name: &str| fact::named(life, name).map(|fact| fact::value(&fact.value, "", zone));
    let of = |name: &str, unknown: &str| known(name).unwrap_or_else(|| unknown.to_owned());
    let tokens = |name: &str| {
        let amount = fact::named(life, name).and_then(|fact| fact::of_value(&fact.value));
        amount.map(fact::amount)
    };
    let mut model = of("model_name", "model unknown");
    model.extend(known("model_version").map(|version| format!(" {version}")));
    let payer = match (known("tenant"), known("business_line")) {
        (None, Some(line)) => line,
        (tenant, line) => {
            let tenant = tenant.unwrap_or_else(|| "tenant unknown".to_owned());
            line.map_or(tenant.clone(), |line| format!("{tenant} / {line}"))
        }
    };
    let cached = fact::named(life, "cached_tokens").and_then(|fact| fact::of_value(&fact.value));
    let cached = cached.map(|cached| format!(" ({} cached)", fact::amount(cached))).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let input = format!("input {}{cached}", tokens("input_tokens").unwrap_or_else(unknown));
    let output = tokens("output_tokens").map_or_else(unknown, |output| format!("{output} tokens"));
    vec![model, payer, input, format!("output {output}")]
}

/// What is known and not in the headline.
pub fn rest(life: &Life) -> impl Iterator<Item = &Fact> {
    let said = |name| WHO.contains(&name) || (life.outcome != "success" && WHY.contains(&name));
    life.facts.iter().filter(move |fact| !said(fact.name))
}
