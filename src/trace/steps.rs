//! The tokens of a request one by one: when each came, what it waited for, and where the answer stalled.

use std::collections::BTreeMap;

use super::entry::Entry;
use super::life::{Event, Gaps, Stall, Step, Tokens};

/// Steps around a step that it is compared with, half of them before it.
const WINDOW: usize = 31;

/// A stall is longer than the median of the steps around it by so many of their median deviations...
const DEVIATIONS: f64 = 6.0;

/// ... scaled to be a standard deviation where the steps are normally distributed ...
const SCALE: f64 = 1.4826;

/// ... by no less than the median itself, and by no less than this.
const LEAST_MS: f64 = 10.0;

/// Stalls of others count as simultaneous where they are so far apart at most.
const TOGETHER_MS: f64 = 50.0;

/// The steps of a request; None where none are logged.
pub fn tokens(entries: &[&Entry], origin: Option<i64>) -> Option<Tokens> {
    let entries = of_one_log(entries)?;
    let unit = if entries.iter().any(|entry| entry.text("unit") == Some("chunk")) { "chunk" } else { "token" };
    let mut steps: Vec<Step> = Vec::with_capacity(entries.len());
    let mut before: Option<i64> = None;
    for (number, entry) in entries.iter().enumerate() {
        let at = entry.time("timestamp");
        let gap = || Some((at? - before?) as f64 / 1e6);
        let wait_ms = entry.number("wait_ms");
        let told = || entry.number("step_ms");
        let step_ms = entry.number("gap_ms").or_else(gap).filter(|gap| *gap >= 0.0).or_else(told);
        let (cache_hit, recompute) = (entry.flag("cache_hit"), entry.flag("recompute"));
        steps.push(Step {
            index: entry.count("token_index").unwrap_or(number as i64),
            at_ms: at.zip(origin).map(|(at, origin)| (at - origin) as f64 / 1e6),
            step_ms,
            wait_ms,
            context_len: entry.count("context_len"),
            cache_hit,
            recompute,
            batch_size: entry.count("batch_size"),
            state: match (recompute, cache_hit) {
                (Some(true), _) => "recompute",
                (_, Some(false)) => "cache_miss",
                _ => "normal",
            },
            stall: false,
        });
        before = at.or(before);
    }
    let over = excesses(&steps);
    steps.iter_mut().zip(&over).for_each(|(step, over)| step.stall = over.is_some());
    let itl = gaps(&steps);
    let stalls = steps.iter().zip(over).filter_map(|(step, over)| {
        Some(Stall { index: step.index, at_ms: step.at_ms, step_ms: step.step_ms?, over_ms: over?, ..Stall::default() })
    });
    let stalls = stalls.collect();
    Some(Tokens { unit, steps, itl, stalls })
}

/// Steps in order of their index, each once; where several roles logged them, those of the one that logged the most.
fn of_one_log<'a>(entries: &[&'a Entry]) -> Option<Vec<&'a Entry>> {
    let mut by_role: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
    entries.iter().for_each(|entry| by_role.entry(entry.role()).or_default().push(entry));
    let mut steps = by_role.into_values().rev().max_by_key(Vec::len)?;
    steps.sort_by_key(|entry| (entry.count("token_index"), entry.time("timestamp")));
    steps.dedup_by_key(|entry| entry.count("token_index"));
    Some(steps)
}

/// By how much each step is above the median of those around it, where that is a stall.
fn excesses(steps: &[Step]) -> Vec<Option<f64>> {
    // the time to the first token is no gap between tokens
    let gaps: Vec<Option<f64>> =
        steps.iter().enumerate().map(|(number, step)| step.step_ms.filter(|_| number > 0)).collect();
    let excess = |number: usize| {
        let gap = gaps[number]?;
        let from = number.saturating_sub(WINDOW / 2).min(gaps.len().saturating_sub(WINDOW));
        let mut around: Vec<f64> = gaps[from..gaps.len().min(from + WINDOW)].iter().flatten().copied().collect();
        let middle = median(&mut around)?;
        let mut deviations: Vec<f64> = around.iter().map(|other| (other - middle).abs()).collect();
        let deviation = median(&mut deviations)? * SCALE;
        let over = gap - middle;
        (over > (DEVIATIONS * deviation).max(middle).max(LEAST_MS)).then_some(over)
    };
    (0..gaps.len()).map(excess).collect()
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    quantile(values, 0.5)
}

/// The value at rank p (n - 1) of sorted values, linearly between two.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let rank = p * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
    Some(low + (high - low) * rank.fract())
}

fn gaps(steps: &[Step]) -> Option<Gaps> {
    let mut gaps: Vec<f64> = steps.iter().skip(1).filter_map(|step| step.step_ms).collect();
    let sum: f64 = gaps.iter().sum();
    gaps.sort_unstable_by(f64::total_cmp);
    Some(Gaps {
        count: gaps.len() as u64,
        mean_ms: sum / gaps.len() as f64,
        p50_ms: quantile(&gaps, 0.5)?,
        p95_ms: quantile(&gaps, 0.95)?,
        p99_ms: quantile(&gaps, 0.99)?,
        max_ms: quantile(&gaps, 1.0)?,
    })
}

/// Whether an event of this name is one that steps wait for: most are only at the same time.
fn keeps_waiting(name: &str) -> bool {
    const WORDS: [&str; 14] = [
        "evict", "preempt", "swap", "reload", "load", "recomput", "migrat", "compil", "capture", "garbage", "gc",
        "memory", "kernel", "pause",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// Says what each stall came from, and how many of its neighbours stalled at the same time.
pub fn explain(tokens: &mut Tokens, events: &[Event], neighbours: &[Tokens]) {
    let by_index: BTreeMap<i64, &Step> = tokens.steps.iter().map(|step| (step.index, step)).collect();
    for stall in &mut tokens.stalls {
        let Some(step) = by_index.get(&stall.index) else { continue };
        let while_stalled = |at: f64, margin: f64| {
            stall.at_ms.is_some_and(|end| at <= end + margin && at >= end - stall.step_ms - margin)
        };
        let is_then = |event: &&Event| event.at_ms.is_some_and(|at| while_stalled(at, TOGETHER_MS));
        let event = events.iter().filter(|event| keeps_waiting(&event.name)).find(is_then);
        let (cause, word) = match () {
            () if step.recompute == Some(true) => ("recompute", "recomputed".to_owned()),
            () if step.cache_hit == Some(false) => ("cache_miss", "KV miss".to_owned()),
            () if step.wait_ms.is_some_and(|wait| wait >= stall.over_ms / 2.0) => ("wait", "waited".to_owned()),
            () => match event {
                Some(event) => ("event", event.name.clone()),
                None => ("unknown", "cause unknown".to_owned()),
            },
        };
        let stalled = |other: &&Tokens| {
            other.stalls.iter().any(|other| other.at_ms.is_some_and(|at| while_stalled(at, TOGETHER_MS)))
        };
        stall.cause = cause;
        stall.neighbours = neighbours.iter().filter(stalled).count() as u64;
        let together = match stall.neighbours {
            0 => String::new(),
            1 => ", 1 neighbour stalled at the same time".to_owned(),
            several => format!(", {several} neighbours stalled at the same time"),
        };
        stall.text = format!("{} {}: +{:.0} ms, {word}{together}", tokens.unit, stall.index, stall.over_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(gaps: impl IntoIterator<Item = f64>) -> Vec<Step> {
        let step = |(index, gap): (usize, f64)| Step { index: index as i64, step_ms: Some(gap), ..Step::default() };
        gaps.into_iter().enumerate().map(step).collect()
    }

    #[test]
    fn one_long_step_among_even_ones_is_a_stall_and_the_first_token_is_none() {
        let gaps = (0..60).map(|index| match index {
            0 => 900.0,
            47 => 334.0,
            _ => 22.0,
        });
        let over = excesses(&steps(gaps));
        let stalls: Vec<(usize, f64)> =
            over.into_iter().enumerate().filter_map(|(at, over)| Some((at, over?))).collect();
        assert_eq!(stalls, [(47, 312.0)]);
    }

    #[test]
    fn steps_that_grow_slowly_or_scatter_are_no_stalls() {
        let growing = steps((0..200).map(|index| 20.0 + f64::from(index) / 10.0));
        assert!(excesses(&growing).iter().all(Option::is_none));
        let scattered = steps((0..200).map(|index| if index % 3 == 0 { 35.0 } else { 20.0 }));
        assert!(excesses(&scattered).iter().all(Option::is_none));
        assert!(excesses(&steps([5.0])).iter().all(Option::is_none));
    }

    #[test]
    fn gaps_leave_the_time_to_the_first_token_out() {
        let gaps = gaps(&steps([500.0, 10.0, 20.0, 30.0])).unwrap();
        assert_eq!((gaps.count, gaps.mean_ms, gaps.p50_ms, gaps.max_ms), (3, 20.0, 20.0, 30.0));
        assert!((gaps.p99_ms - 29.8).abs() < 1e-9);
        assert_eq!(super::gaps(&steps([500.0])), None);
    }
}
