//! What stands below the timeline: each section is sentences, a table or both, the same on a screen and in Markdown.

use jiff::tz::TimeZone;

use crate::output::legible;
use crate::trace::life::{Life, Tokens};

use super::axis::{self, Axis};
use super::grid::Grid;
use super::grid::Kind::{Id, Number, Sentence};
use super::layout::role;
use super::{fact, headline, skyline};

const MOST_RECORDS: usize = 12;
const MOST_OTHERS: usize = 8;
const MOST_STALLS: usize = 5;
const SPARK_CELLS: usize = 60;
const STEP_CELLS: usize = 8;

/// A title, and what is known under it.
#[derive(Default)]
pub struct Section {
    pub title: &'static str,
    pub sentences: Vec<String>,
    pub grid: Grid,
}

/// The sections that have something to say.
pub fn all(life: &Life, steps: bool, zone: &TimeZone) -> Vec<Section> {
    let sections = [
        facts(life, zone),
        standings(life),
        records(life),
        events(life, zone),
        tokens(life),
        neighbours(life),
        told("Missing", life.missing.iter().map(|missing| &missing.text)),
        told("Clocks", life.skews.iter().map(|skew| &skew.text)),
        if steps { each_step(life) } else { Section::default() },
    ];
    let speaks = |section: &Section| !section.sentences.is_empty() || !section.grid.rows.is_empty();
    sections.into_iter().filter(speaks).collect()
}

fn told<'a>(title: &'static str, sentences: impl Iterator<Item = &'a String>) -> Section {
    Section { title, sentences: sentences.map(|text| legible::text(text)).collect(), ..Section::default() }
}

fn facts(life: &Life, zone: &TimeZone) -> Section {
    let mut facts = Vec::new();
    if !life.asked.is_empty() && life.asked != life.id {
        facts.push(format!("asked for {}", legible::text(&life.asked)));
    }
    facts.extend(life.trace_id.as_ref().map(|trace| format!("trace_id {}", fact::word(Some(trace)))));
    let rest = headline::rest(life).filter(|fact| fact.name != "trace_id");
    facts.extend(
        rest.map(|known| format!("{} {}", legible::text(known.name), fact::value(&known.value, known.unit, zone))),
    );
    let sentences = if facts.is_empty() { Vec::new() } else { vec![facts.join(" · ")] };
    Section { title: "Facts", sentences, ..Section::default() }
}

/// Every stage against those like it; the timeline has room for the ones that stand out.
fn standings(life: &Life) -> Section {
    let columns = [
        ("role", Id, 8),
        ("stage", Sentence, 9),
        ("took ms", Number, 9),
        ("P50 ms", Number, 7),
        ("P95 ms", Number, 6),
        ("P99 ms", Number, 7),
        ("faster", Number, 5),
        ("requests", Number, 4),
        ("model", Id, 2),
        ("input", Sentence, 3),
    ];
    let placed = life.stages.iter().filter_map(|stage| Some((stage, stage.standing.as_ref()?)));
    let rows = placed.map(|(stage, standing)| {
        vec![
            role(stage),
            legible::text(stage.name),
            fact::number(Some(stage.duration_ms)),
            fact::number(Some(standing.p50_ms)),
            fact::number(Some(standing.p95_ms)),
            fact::number(Some(standing.p99_ms)),
            fact::share(Some(standing.below)),
            legible::grouped(&standing.count.to_string()),
            fact::word(standing.model_name.as_deref()),
            fact::word(standing.input_bucket.as_deref()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    Section {
        title: "Compared with requests like it",
        grid: Grid::of(&columns).filled(rows.into_iter(), MOST_RECORDS).known(),
        ..Section::default()
    }
}

fn records(life: &Life) -> Section {
    let columns = [
        ("role", Id, 8),
        ("attempt", Number, 3),
        ("host", Id, 2),
        ("start ms", Number, 5),
        ("end ms", Number, 4),
        ("place", Id, 7),
    ];
    let rows = life.records.iter().map(|record| {
        vec![
            fact::word(record.role.as_deref()),
            record.attempt.map_or_else(|| "-".to_owned(), |attempt| attempt.to_string()),
            fact::word(record.host.as_deref()),
            fact::number(record.start_ms),
            fact::number(record.end_ms),
            fact::word(Some(&record.place)),
        ]
    });
    Section { title: "Records", grid: Grid::of(&columns).filled(rows, MOST_RECORDS).known(), ..Section::default() }
}

fn events(life: &Life, zone: &TimeZone) -> Section {
    let columns = [
        ("at ms", Number, 9),
        ("time", Sentence, 3),
        ("event", Id, 7),
        ("took ms", Number, 4),
        ("role", Id, 2),
        ("host", Id, 1),
        ("gpu", Id, 5),
        ("text", Sentence, 8),
        ("place", Id, 3),
    ];
    let rows = life.events.iter().map(|event| {
        let time = life.origin_ns.zip(event.at_ms).and_then(|(origin, at_ms)| axis::clock(origin, at_ms, zone));
        vec![
            fact::number(event.at_ms),
            time.unwrap_or_else(|| "unknown".to_owned()),
            fact::word(Some(&event.name)),
            fact::number(event.duration_ms),
            fact::word(event.role.as_deref()),
            fact::word(event.host.as_deref()),
            fact::word(event.gpu_id.as_deref()),
            legible::text(&event.text),
            fact::word(Some(&event.place)),
        ]
    });
    Section { title: "Events", grid: Grid::of(&columns).filled(rows, MOST_OTHERS).known(), ..Section::default() }
}

fn tokens(life: &Life) -> Section {
    let Some(tokens) = &life.tokens else { return Section::default() };
    let mut sentences = vec![gaps(tokens)];
    let untimed = tokens.steps.iter().all(|step| step.at_ms.is_none());
    if untimed && tokens.steps.len() > 2 {
        sentences.push(format!("step by step, no time known: {}", skyline::over_index(&tokens.steps, SPARK_CELLS)));
    }
    sentences.extend(tokens.stalls.iter().take(MOST_STALLS).map(|stall| legible::text(&stall.text)));
    sentences.extend(hidden(tokens.stalls.len().saturating_sub(MOST_STALLS), "stalls"));
    Section { title: "Tokens", sentences, ..Section::default() }
}

/// How many of what, and how far apart.
pub fn gaps(tokens: &Tokens) -> String {
    let plural = |count: usize, one: &str, many: &str| {
        format!("{} {}", legible::grouped(&count.to_string()), if count == 1 { one } else { many })
    };
    let unit = fact::word(Some(tokens.unit));
    let itl = tokens.itl.as_ref().map_or_else(
        || "ITL unknown".to_owned(),
        |itl| {
            let [p50, p95, p99] = [itl.p50_ms, itl.p95_ms, itl.p99_ms].map(|gap| fact::number(Some(gap)));
            format!("ITL P50 {p50}, P95 {p95}, P99 {p99}, max {}", fact::ms(Some(itl.max_ms)))
        },
    );
    let of_state = |state| tokens.steps.iter().filter(|step| step.state == state).count();
    let mut parts = vec![plural(tokens.steps.len(), &unit, &format!("{unit}s")), itl];
    parts.push(plural(tokens.stalls.len(), "stall", "stalls"));
    let (misses, recomputes) = (of_state("cache_miss"), of_state("recompute"));
    parts.extend((misses > 0).then(|| plural(misses, "cache miss", "cache misses")));
    parts.extend((recomputes > 0).then(|| plural(recomputes, "recompute", "recomputes")));
    parts.join(" · ")
}

fn hidden(count: usize, what: &str) -> Option<String> {
    let count = (count > 0).then(|| legible::grouped(&count.to_string()))?;
    Some(format!("… and {count} more {what} (--format json has all)"))
}

fn neighbours(life: &Life) -> Section {
    let columns = [
        ("relation", Sentence, 9),
        ("id", Id, 10),
        ("outcome", Sentence, 8),
        ("start ms", Number, 4),
        ("end ms", Number, 3),
        ("input", Number, 5),
        ("output", Number, 7),
        ("queue ms", Number, 5),
        ("decode ms", Number, 6),
        ("gpu", Id, 2),
        ("batch", Id, 1),
        ("role", Id, 1),
        ("place", Id, 0),
    ];
    let rows = life.neighbours.iter().map(|near| {
        vec![
            legible::text(near.relation),
            fact::word(Some(&near.id)),
            fact::word(Some(near.outcome)),
            fact::number(near.start_ms),
            fact::number(near.end_ms),
            fact::count(near.input_tokens),
            fact::count(near.output_tokens),
            fact::number(near.queue_wait_ms),
            fact::number(near.decode_time_ms),
            fact::word(near.gpu_id.as_deref()),
            fact::word(near.batch_id.as_deref()),
            fact::word(near.role.as_deref()),
            fact::word(Some(&near.place)),
        ]
    });
    Section { title: "Neighbours", grid: Grid::of(&columns).filled(rows, MOST_OTHERS).known(), ..Section::default() }
}

/// Every step, however many.
fn each_step(life: &Life) -> Section {
    let Some(tokens) = &life.tokens else { return Section::default() };
    let columns = [
        ("index", Number, 9),
        ("at ms", Number, 6),
        ("step ms", Number, 8),
        ("", Sentence, 1),
        ("wait ms", Number, 5),
        ("state", Sentence, 7),
        ("context", Number, 4),
        ("batch", Number, 3),
    ];
    let longest = tokens.steps.iter().filter_map(|step| step.step_ms).fold(0.0, f64::max);
    let scale = Axis { length_ms: longest, cells: STEP_CELLS };
    let rows = tokens.steps.iter().map(|step| {
        vec![
            step.index.to_string(),
            fact::number(step.at_ms),
            fact::number(step.step_ms),
            step.step_ms.map(|took| scale.bar(0.0, took)).unwrap_or_default(),
            fact::number(step.wait_ms),
            if step.stall { format!("{} ▲ stall", legible::text(step.state)) } else { legible::text(step.state) },
            fact::count(step.context_len),
            fact::count(step.batch_size),
        ]
    });
    Section { title: "Steps", grid: Grid::of(&columns).filled(rows, usize::MAX).known(), ..Section::default() }
}
