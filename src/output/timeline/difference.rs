//! What sets two requests apart, stage by stage and fact by fact.

use jiff::tz::TimeZone;

use crate::output::legible;
use crate::trace::life::{Fact, Life, Stage, Value};

use super::fact;
use super::grid::Grid;
use super::grid::Kind::{Id, Number, Sentence};
use super::layout::role;
use super::section::Section;

/// The rest of a long list differs by less.
const MOST_STAGES: usize = 12;

/// The differences of two lives.
pub fn section(first: &Life, second: &Life, zone: &TimeZone) -> Section {
    let mut rows = Vec::new();
    if first.outcome != second.outcome {
        rows.push(words("outcome", &fact::word(Some(first.outcome)), &fact::word(Some(second.outcome))));
    }
    rows.extend(measured("total", first.total_ms, second.total_ms, "ms"));
    rows.extend(stages(first, second));
    rows.extend(tokens(first, second));
    rows.extend(facts(first, second, zone));
    if rows.is_empty() {
        return Section { title: "Differences", sentences: vec!["none".to_owned()], ..Section::default() };
    }
    let columns = [("what", Sentence, 4), ("first", Id, 1), ("second", Id, 2), ("difference", Number, 3)];
    let grid = Grid::of(&columns).filled(rows.into_iter(), usize::MAX);
    Section { title: "Differences", grid, ..Section::default() }
}

/// The stages that either has, those that differ most first.
fn stages(first: &Life, second: &Life) -> Vec<Vec<String>> {
    let key = |stage: &Stage| (role(stage), stage.name);
    let mut keys = Vec::new();
    for stage in first.stages.iter().chain(&second.stages) {
        if !keys.contains(&key(stage)) {
            keys.push(key(stage));
        }
    }
    let took = |life: &Life, of: &(String, &str)| {
        life.stages
            .iter()
            .filter(|stage| key(stage) == *of)
            .map(|stage| stage.duration_ms)
            .reduce(|sum, took| sum + took)
    };
    let mut pairs: Vec<_> = keys.iter().map(|key| (key, took(first, key), took(second, key))).collect();
    let apart = |one: Option<f64>, other: Option<f64>| (one.unwrap_or(0.0) - other.unwrap_or(0.0)).abs();
    pairs.sort_by(|one, other| apart(other.1, other.2).total_cmp(&apart(one.1, one.2)));
    let rows = pairs.into_iter().filter_map(|((role, name), one, other)| {
        measured(&format!("{role} {}", legible::text(name)), one, other, "ms")
    });
    rows.take(MOST_STAGES).collect()
}

fn tokens(first: &Life, second: &Life) -> Vec<Vec<String>> {
    let gap = |life: &Life, pick: fn(&crate::trace::life::Gaps) -> f64| {
        life.tokens.as_ref().and_then(|tokens| tokens.itl.as_ref()).map(pick)
    };
    let stalls = |life: &Life| life.tokens.as_ref().map(|tokens| tokens.stalls.len() as f64);
    let rows = [
        measured("ITL P50", gap(first, |itl| itl.p50_ms), gap(second, |itl| itl.p50_ms), "ms"),
        measured("ITL P99", gap(first, |itl| itl.p99_ms), gap(second, |itl| itl.p99_ms), "ms"),
        measured("ITL max", gap(first, |itl| itl.max_ms), gap(second, |itl| itl.max_ms), "ms"),
        measured("stalls", stalls(first), stalls(second), ""),
    ];
    rows.into_iter().flatten().collect()
}

fn facts(first: &Life, second: &Life, zone: &TimeZone) -> Vec<Vec<String>> {
    let only_second = second.facts.iter().filter(|fact| self::fact::named(first, fact.name).is_none());
    let known = first.facts.iter().chain(only_second);
    let rows = known.filter_map(|known| {
        let [one, other] = [first, second].map(|life| fact::named(life, known.name));
        let [one_value, other_value] = [one, other].map(|fact| fact.map(|fact| &fact.value));
        if one_value == other_value {
            return None;
        }
        let amount = |fact: Option<&Fact>| fact.and_then(|fact| fact::of_value(&fact.value));
        let shown = |fact: Option<&Fact>| {
            fact.map_or_else(|| "unknown".to_owned(), |fact| fact::value(&fact.value, fact.unit, zone))
        };
        let mut row = words(known.name, &shown(one), &shown(other));
        row[3] = match (one_value, other_value) {
            (Some(Value::Time(one)), Some(Value::Time(other))) => apart(0.0, (*other as f64 - *one as f64) / 1e6, "ms"),
            // A number without a unit is a label.
            _ if known.unit.is_empty() => String::new(),
            _ => amount(one).zip(amount(other)).map(|(one, other)| apart(one, other, known.unit)).unwrap_or_default(),
        };
        Some(row)
    });
    rows.collect()
}

fn words(what: &str, first: &str, second: &str) -> Vec<String> {
    vec![legible::text(what), first.to_owned(), second.to_owned(), String::new()]
}

/// A row of two amounts, if they differ.
fn measured(what: &str, first: Option<f64>, second: Option<f64>, unit: &str) -> Option<Vec<String>> {
    if first == second {
        return None;
    }
    let shown = |value: Option<f64>| {
        value.map_or_else(
            || "unknown".to_owned(),
            |value| format!("{} {unit}", fact::amount(value)).trim_end().to_owned(),
        )
    };
    let apart = first.zip(second).map(|(first, second)| apart(first, second, unit)).unwrap_or_default();
    Some(vec![what.to_owned(), shown(first), shown(second), apart])
}

/// `+2,876 ms (×83.6)`.
fn apart(first: f64, second: f64, unit: &str) -> String {
    let sign = if second > first { "+" } else { "" };
    let difference = format!("{sign}{} {unit}", fact::amount(second - first));
    let times = (first > 0.0 && second > 0.0).then(|| format!(" (×{})", factor(second / first)));
    format!("{}{}", difference.trim_end(), times.unwrap_or_default())
}

/// Two or three digits: how many times, not how exactly.
fn factor(times: f64) -> String {
    match times {
        100.0.. => fact::amount(times.round()),
        10.0.. => format!("{times:.1}"),
        1.0.. => format!("{times:.2}"),
        _ => fact::amount(times),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_how_much_and_how_many_times() {
        assert_eq!(apart(35.0, 2900.0, "ms"), "+2,865 ms (×82.9)");
        assert_eq!(apart(200.0, 80.0, "tokens"), "-120 tokens (×0.4)");
        assert_eq!(apart(0.0, 2.0, ""), "+2");
        assert_eq!(measured("queue", None, Some(2.0), "ms").unwrap(), ["queue", "unknown", "2 ms", ""]);
        assert_eq!(measured("queue", Some(2.0), Some(2.0), "ms"), None);
    }
}
