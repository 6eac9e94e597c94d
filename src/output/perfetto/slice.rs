//! What is drawn of a life: slices of its tracks, each with all that is known of it.

use serde_json::{Map, Value, json};

use super::{Anchor, DEEPEST, begin, nanoseconds};
use crate::trace::life::{Event, Life, Neighbour, Record, Stage, Stall, Standing, Step, Value as Known};

/// A stretch of a track, or a moment.
#[derive(Debug, Default)]
pub(super) struct Slice {
    /// Nanoseconds from the origin.
    pub start: i64,
    /// Never before the start.
    pub end: i64,
    /// Drawn as a mark.
    pub is_instant: bool,
    pub name: String,
    pub category: String,
    /// One of the reserved colour names of the format.
    pub colour: Option<&'static str>,
    pub args: Map<String, Value>,
    /// Each within this one, apart from each other or within the one before.
    pub inside: Vec<Slice>,
    pub anchor: Option<Anchor>,
    /// What a counter of the process is from the start on.
    pub counter: Option<(&'static str, Value)>,
}

impl Slice {
    /// From one time to the other; a moment where one of them is not known, and none where both are not.
    fn between(start_ms: Option<f64>, end_ms: Option<f64>, name: &str, category: &str) -> Option<Self> {
        let (from, to) = (nanoseconds(start_ms), nanoseconds(end_ms));
        let start = from.or(to)?;
        let end = to.unwrap_or(start).max(start);
        // the importer has a name of its own for what has none
        let name = if name.is_empty() { category } else { name }.to_owned();
        let category = category.to_owned();
        Some(Self { start, end, is_instant: from.is_none() || to.is_none(), name, category, ..Self::default() })
    }

    pub fn duration(&self) -> i64 {
        self.end - self.start
    }

    fn holds(&self, other: &Slice) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// When an arrow leaves this slice and arrives at the other: from the last part that had begun when the other did.
    /// Arrows are tied to what began last on their track, so that both are beginnings. None where the other began
    /// before this one, which only clocks that disagree say.
    pub fn arrow_to(&self, other: &Slice) -> Option<(i64, i64)> {
        let leaves = self.beginnings().filter(|start| *start <= other.start).max().unwrap_or(self.start);
        Some((leaves, other.beginnings().filter(|start| *start >= leaves).min()?))
    }

    /// When it and its parts begin.
    fn beginnings(&self) -> impl Iterator<Item = i64> {
        std::iter::once(self.start).chain(self.inside.iter().map(|part| part.start))
    }
}

/// The request from the first to the last moment of its records, and what passed between them.
pub(super) fn request(life: &Life) -> Vec<Slice> {
    let length = Some(life.length_ms).filter(|length| *length > 0.0).or(Some(0.0));
    let whole = Slice::between(Some(0.0), length, &life.id, "request").unwrap_or_default();
    let between = life.stages.iter().filter(|stage| record_of(life, stage).is_none() && stage.role.is_none());
    let mut slices = with_parts(whole, between.filter_map(stage));
    if let Some(whole) = slices.first_mut() {
        whole.anchor = Some(Anchor::Request);
        whole.args = about(life);
    }
    slices
}

/// What the slice of the request tells: all that has no time of its own.
fn about(life: &Life) -> Map<String, Value> {
    let facts = members(life.facts.iter().map(|fact| (fact.name, &fact.value)));
    let records = life.records.iter().filter(|record| is_undated([record.start_ms, record.end_ms]));
    let events = life.events.iter().filter(|event| is_undated([event.at_ms]));
    let neighbours = life.neighbours.iter().filter(|other| is_undated([other.start_ms, other.end_ms]));
    known([
        ("id", json!(life.id)),
        ("asked", json!(life.asked)),
        ("trace_id", json!(life.trace_id)),
        ("origin", json!(life.origin_ns.and_then(super::time))),
        ("outcome", json!(life.outcome)),
        ("total_ms", json!(life.total_ms)),
        ("facts", facts),
        ("missing", list(life.missing.iter().map(|missing| json!({ "role": missing.role, "text": missing.text })))),
        ("skews", list(life.skews.iter().map(|skew| json!(skew)))),
        ("token_unit", json!(life.tokens.as_ref().map(|tokens| tokens.unit))),
        ("itl", json!(life.tokens.as_ref().and_then(|tokens| tokens.itl.as_ref()))),
        ("records_without_time", list(records.map(|record| Value::Object(of_record(record))))),
        ("events_without_time", list(events.map(|event| Value::Object(of_event(event))))),
        ("neighbours_without_time", list(neighbours.map(|other| Value::Object(of_neighbour(other))))),
    ])
}

fn is_undated<const N: usize>(times: [Option<f64>; N]) -> bool {
    times.into_iter().all(|time| nanoseconds(time).is_none())
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.collect();
    if items.is_empty() { Value::Null } else { Value::Array(items) }
}

/// The values that are known, numbers that are none left out.
fn members<'v>(values: impl Iterator<Item = (&'static str, &'v Known)>) -> Value {
    let values = values.map(|(name, value)| (name.to_owned(), json!(value)));
    let members: Map<_, _> = values.filter(|(_, value)| !value.is_null()).collect();
    if members.is_empty() { Value::Null } else { Value::Object(members) }
}

/// The findings below each other, each as long as the request, so that they can be read without a click.
pub(super) fn findings(life: &Life) -> Vec<Slice> {
    let end = nanoseconds(Some(life.length_ms)).unwrap_or(0).max(0);
    let slices = life.findings.iter().map(|finding| Slice {
        end,
        name: if finding.text.is_empty() { finding.code.to_owned() } else { finding.text.clone() },
        category: "finding".to_owned(),
        colour: match finding.severity {
            "error" => Some("terrible"),
            "warning" => Some("bad"),
            _ => None,
        },
        args: known([("code", json!(finding.code)), ("severity", json!(finding.severity))]),
        ..Slice::default()
    });
    let mut stacks: Vec<Slice> = Vec::new();
    for slice in slices {
        match stacks.last_mut().filter(|stack| stack.inside.len() + 1 < DEEPEST) {
            Some(stack) => stack.inside.push(slice),
            None => stacks.push(slice),
        }
    }
    stacks
}

/// The records of a role with their stages inside, and what else belongs to the role.
pub(super) fn role(life: &Life, role: Option<&str>) -> Vec<Slice> {
    let mut slices = Vec::new();
    let of_role = |other: &Option<String>| other.as_deref() == role;
    for (at, record) in life.records.iter().enumerate().filter(|(_, record)| of_role(&record.role)) {
        let stages = life.stages.iter().filter(|stage| stage.record == Some(at)).filter_map(stage);
        let name = role.unwrap_or("record");
        match Slice::between(record.start_ms, record.end_ms, name, "record") {
            Some(mut whole) => {
                whole.anchor = Some(Anchor::Record(at));
                whole.args = of_record(record);
                slices.extend(with_parts(whole, stages));
            }
            None => slices.extend(stages),
        }
    }
    let is_own = |stage: &&Stage| record_of(life, stage).is_none() && stage.role.is_some() && of_role(&stage.role);
    slices.extend(life.stages.iter().filter(is_own).filter_map(stage));
    slices
}

fn record_of<'l>(life: &'l Life, stage: &Stage) -> Option<&'l Record> {
    life.records.get(stage.record?)
}

fn of_record(record: &Record) -> Map<String, Value> {
    known([
        ("place", json!(record.place)),
        ("role", json!(record.role)),
        ("host", json!(record.host)),
        ("attempt", json!(record.attempt)),
        ("values", members(record.values.iter().map(|(name, value)| (*name, value)))),
    ])
}

/// A slice with the parts that fit into it, and behind it those that do not: a log may contradict itself.
fn with_parts(mut whole: Slice, parts: impl Iterator<Item = Slice>) -> Vec<Slice> {
    let mut outside = Vec::new();
    let mut parts: Vec<Slice> = parts.collect();
    parts.sort_by_key(|part| (part.start, part.end));
    for part in parts {
        let is_apart = whole.inside.last().is_none_or(|last| last.end <= part.start);
        if whole.holds(&part) && is_apart && !whole.is_instant && whole.inside.len() < DEEPEST {
            whole.inside.push(part);
        } else {
            outside.push(part);
        }
    }
    outside.insert(0, whole);
    outside
}

fn stage(stage: &Stage) -> Option<Slice> {
    let mut slice = Slice::between(Some(stage.start_ms), Some(stage.end_ms), stage.name, "stage")?;
    slice.colour = stage.dominant.then_some("bad");
    slice.args = known([
        ("duration_ms", json!(stage.duration_ms)),
        ("share", json!(stage.share)),
        ("dominant", json!(stage.dominant.then_some(true))),
        ("role", json!(stage.role)),
        ("standing", stage.standing.as_ref().map_or(Value::Null, standing)),
    ]);
    Some(slice)
}

fn standing(standing: &Standing) -> Value {
    Value::Object(known([
        ("model_name", json!(standing.model_name)),
        ("input_bucket", json!(standing.input_bucket)),
        ("count", json!(standing.count)),
        ("p50_ms", json!(standing.p50_ms)),
        ("p95_ms", json!(standing.p95_ms)),
        ("p99_ms", json!(standing.p99_ms)),
        ("below", json!(standing.below)),
    ]))
}

/// Each token while it was made; never before the one before it was there, whatever the rounding of the log.
pub(super) fn tokens(life: &Life) -> Vec<Slice> {
    let Some(tokens) = &life.tokens else { return Vec::new() };
    let mut dated: Vec<&Step> = tokens.steps.iter().filter(|step| nanoseconds(step.at_ms).is_some()).collect();
    dated.sort_by(|one, other| one.at_ms.partial_cmp(&other.at_ms).unwrap_or(std::cmp::Ordering::Equal));
    let mut there = i64::MIN;
    let mut slices = Vec::new();
    for step in dated {
        let stall = tokens.stalls.iter().find(|stall| stall.index == step.index);
        let name = format!("{} {}{}", tokens.unit, step.index, if step.stall { " (stall)" } else { "" });
        let start_ms = step.step_ms.and_then(|_| begin(step.at_ms, step.step_ms));
        let Some(mut slice) = Slice::between(start_ms, step.at_ms, &name, "token") else { continue };
        slice.start = slice.start.max(there).min(slice.end);
        there = slice.end;
        slice.colour = match (step.stall, step.state) {
            (true, _) => Some("terrible"),
            (_, "cache_miss" | "recompute") => Some("bad"),
            _ => None,
        };
        slice.counter = step.step_ms.filter(|step_ms| step_ms.is_finite()).map(|step_ms| ("step_ms", json!(step_ms)));
        slice.args = of_step(step, stall);
        slices.push(slice);
    }
    slices
}

fn of_step(step: &Step, stall: Option<&Stall>) -> Map<String, Value> {
    known([
        ("index", json!(step.index)),
        ("state", json!(step.state)),
        ("step_ms", json!(step.step_ms)),
        ("wait_ms", json!(step.wait_ms)),
        ("context_len", json!(step.context_len)),
        ("cache_hit", json!(step.cache_hit)),
        ("recompute", json!(step.recompute)),
        ("batch_size", json!(step.batch_size)),
        ("stall", stall.map_or(json!(step.stall.then_some(true)), |stall| Value::Object(of_stall(stall)))),
    ])
}

fn of_stall(stall: &Stall) -> Map<String, Value> {
    known([
        ("text", json!(stall.text)),
        ("cause", json!(stall.cause)),
        ("over_ms", json!(stall.over_ms)),
        ("step_ms", json!(stall.step_ms)),
        ("neighbours", json!(stall.neighbours)),
    ])
}

/// What happened, and where a token stalled.
pub(super) fn events(life: &Life) -> Vec<Slice> {
    let events = life.events.iter().filter_map(|event| {
        let end_ms = event.at_ms.zip(event.duration_ms).map(|(at, duration)| at + duration.max(0.0));
        let mut slice = Slice::between(event.at_ms, end_ms, &event.name, "event")?;
        slice.args = of_event(event);
        Some(slice)
    });
    let stalls = life.tokens.iter().flat_map(|tokens| &tokens.stalls).filter_map(|stall| {
        let mut slice = Slice::between(stall.at_ms, None, &stall.text, "stall")?;
        slice.colour = Some("terrible");
        slice.args = of_stall(stall);
        slice.args.insert("index".to_owned(), json!(stall.index));
        Some(slice)
    });
    events.chain(stalls).collect()
}

fn of_event(event: &Event) -> Map<String, Value> {
    known([
        ("name", json!(event.name)),
        ("text", json!(event.text)),
        ("role", json!(event.role)),
        ("host", json!(event.host)),
        ("gpu_id", json!(event.gpu_id)),
        ("duration_ms", json!(event.duration_ms)),
        ("place", json!(event.place)),
    ])
}

/// The other requests.
pub(super) fn neighbours(life: &Life) -> Vec<Slice> {
    let neighbours = life.neighbours.iter().enumerate().filter_map(|(at, neighbour)| {
        let mut slice = Slice::between(neighbour.start_ms, neighbour.end_ms, &neighbour.id, "neighbour")?;
        slice.anchor = Some(Anchor::Neighbour(at));
        slice.args = of_neighbour(neighbour);
        Some(slice)
    });
    neighbours.collect()
}

fn of_neighbour(neighbour: &Neighbour) -> Map<String, Value> {
    known([
        ("relation", json!(neighbour.relation)),
        ("id", json!(neighbour.id)),
        ("role", json!(neighbour.role)),
        ("outcome", json!(neighbour.outcome)),
        ("gpu_id", json!(neighbour.gpu_id)),
        ("batch_id", json!(neighbour.batch_id)),
        ("input_tokens", json!(neighbour.input_tokens)),
        ("output_tokens", json!(neighbour.output_tokens)),
        ("queue_wait_ms", json!(neighbour.queue_wait_ms)),
        ("decode_time_ms", json!(neighbour.decode_time_ms)),
        ("place", json!(neighbour.place)),
    ])
}

/// The members that are known.
fn known<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}
