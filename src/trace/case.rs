//! One request while its life is put together from what was found of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::calls::depth;
use super::clocks::skews;
use super::discretion::{public, shown};
use super::entry::Entry;
use super::findings::findings;
use super::life::{Event, Fact, Life, Missing, Record, Stage, Tokens, Value};
use super::lookup::{Lookup, Seen};
use super::matching::{Ids, canonical};
use super::neighbours::Relations;
use super::stages::stages;
use super::steps::{explain, tokens};
use super::surroundings::{Kind, Surroundings, pace_ms};
use crate::engine::functions::Edges;
use crate::record::{Column, timestamp};
use crate::source::search::Found;

/// Requests beside one that are told of, and whose tokens are looked at: of its batch, and of its GPU.
pub const MOST_BESIDE: usize = 64;

/// What stands around requests, and the records of those that ran beside them.
pub struct Beside {
    pub found: Surroundings,
    pub records: Vec<Entry>,
    pub lines: Vec<Arc<Found>>,
}

/// One request while its life is put together.
pub struct Case<'a> {
    asked: &'a str,
    /// Without what producers put around it.
    id: &'a str,
    /// In order of their start.
    pub records: Vec<&'a Entry>,
    events: Vec<&'a Entry>,
    steps: Vec<&'a Entry>,
    /// First and last moment.
    pub span: Option<(i64, i64)>,
    pub stages: Vec<Stage>,
}

impl<'a> Case<'a> {
    pub fn of(asked: &'a str, id: &'a str, seen: &'a Seen, lookup: &Lookup<'_>) -> Self {
        let ids = Ids::new(lookup.rule, [id]);
        let is_its = |entry: &&Entry| entry.text(Column::RequestId.name()).is_some_and(|id| ids.contain(id));
        let mut records: Vec<&Entry> = seen.records.iter().filter(is_its).collect();
        records.sort_by_key(|record| (record.start().is_none(), record.start(), depth(record), record.source()));
        // a log that is read in two forms
        records.dedup_by(|a, b| a.says() == b.says());
        let batches: BTreeSet<&str> = records.iter().filter_map(|record| record.text(Column::BatchId.name())).collect();
        let needles = lookup.needles(&ids);
        let speaks = |entry: &&Entry| {
            is_its(entry)
                || entry.text(Column::BatchId.name()).is_some_and(|batch| batches.contains(batch))
                || entry.text("message").is_some_and(|text| needles.stand_in(public(text)))
        };
        // a line may be the record itself, behind what a logger writes before it
        let places: BTreeSet<(&str, Option<i64>)> = records.iter().map(|record| record.source()).collect();
        let is_record = |event: &&Entry| event.source().1.is_some() && places.contains(&event.source());
        let events = seen.events.iter().filter(speaks).filter(|event| !is_record(event)).collect();
        let steps: Vec<&Entry> = seen.steps.iter().filter(is_its).collect();
        let moments = records.iter().flat_map(|record| [record.start(), record.end()]).flatten();
        let of_steps = steps.iter().filter_map(|step| step.start());
        let moments: Vec<i64> = moments.chain(of_steps).collect();
        let span = moments.iter().min().copied().zip(moments.iter().max().copied());
        let stages = stages(&records, span.map(|(origin, _)| origin));
        Self { asked, id, records, events, steps, span, stages }
    }

    /// The outermost record: that of the gateway, else of the app, else of the engine.
    fn outermost(&self) -> Option<&'a Entry> {
        let order = |record: &&&Entry| match record.role() {
            Some("gateway") => 0,
            Some("app") => 1,
            Some("engine") => 3,
            _ => 2,
        };
        self.records.iter().min_by_key(order).copied()
    }

    /// From the first start to the last end of the outermost role's records, else as it tells.
    fn total_ms(&self) -> Option<f64> {
        let outermost = self.outermost()?;
        let same: Vec<&&Entry> = self.records.iter().filter(|record| record.role() == outermost.role()).collect();
        if same.len() == 1 {
            let span = || Some((outermost.end()? - outermost.start()?) as f64 / 1e6);
            return outermost.number(Column::TotalLatencyMs.name()).or_else(span);
        }
        let start = same.iter().filter_map(|record| record.start()).min()?;
        let end = same.iter().filter_map(|record| record.end()).max()?;
        Some((end - start) as f64 / 1e6)
    }

    /// What the records say of a column, those of roles that know it best first.
    fn value(&self, column: Column) -> Option<Value> {
        let outer_first = matches!(column.name(), "tenant" | "http_status" | "status");
        let mut records = self.records.clone();
        // of several attempts the last
        records.sort_by_key(|record| {
            let nearness = if outer_first { depth(record) } else { u8::MAX - depth(record) };
            (nearness, std::cmp::Reverse(record.start()))
        });
        let mut known = records.iter().flat_map(|record| record.known());
        known.find(|(name, _)| *name == column.name()).map(|(_, value)| value)
    }

    /// When others may have been beside it.
    fn window(&self, context_ns: i64) -> Option<(i64, i64)> {
        self.span.map(|(start, end)| (start.saturating_sub(context_ns), end.saturating_add(context_ns)))
    }

    /// The status with which the gateway turned it away, if it did.
    fn refused(&self) -> Option<i64> {
        let gateway = self.records.iter().filter(|record| record.role() == Some("gateway"));
        let status = gateway.filter_map(|record| record.count(Column::HttpStatus.name())).max()?;
        (400..500).contains(&status).then_some(status).filter(|status| !matches!(status, 408 | 499))
    }

    /// The innermost record that decoded, and its time for each token behind the first.
    fn pace(&self) -> Option<(&'a Entry, f64)> {
        let pace = |record: &&'a Entry| {
            let (decode, output) = (Column::DecodeTimeMs.name(), Column::OutputTokens.name());
            Some((*record, pace_ms(record.number(decode)?, record.count(output)?)?))
        };
        self.records.iter().filter_map(pace).max_by_key(|(record, _)| (depth(record), record.start()))
    }

    fn outcome(&self) -> &'static str {
        let Some(outermost) = self.outermost() else { return "unknown" };
        let of_role = self.records.iter().filter(|record| record.role() == outermost.role());
        let last = of_role.max_by_key(|record| record.start()).map_or("unknown", |record| record.outcome());
        match last {
            "unknown" => {
                let outcomes: Vec<&str> = self.records.iter().map(|record| record.outcome()).collect();
                let is = |word: &str| outcomes.contains(&word);
                if is("failed") {
                    "failed"
                } else if is("success") {
                    "success"
                } else {
                    "unknown"
                }
            }
            known => known,
        }
    }

    fn missing(&self, roles: &[&str], surroundings: Option<&Beside>) -> Vec<Missing> {
        let known: BTreeSet<&str> = self.records.iter().filter_map(|record| record.role()).collect();
        let covered = surroundings.map(|beside| &beside.found.roles);
        let chain = ["app", "gateway", "engine"];
        let expected = roles.iter().copied().chain(covered.iter().flat_map(|roles| roles.keys().map(String::as_str)));
        let expected: BTreeSet<&str> = expected.filter(|role| !known.contains(role)).collect();
        if known.is_empty() {
            return Vec::new();
        }
        let missing = |role: &str| {
            let is_covered = covered.is_none_or(|roles| roles.contains_key(role));
            let place = chain.iter().position(|other| *other == role);
            let before = place.and_then(|place| chain[..place].iter().rev().find(|role| known.contains(*role)));
            let refused = self.refused().filter(|_| role == "engine");
            let why = match (before, is_covered) {
                _ if refused.is_some() => format!("the gateway answered {} itself", refused.unwrap_or_default()),
                (_, false) => format!("no log of {role} has anything within a minute of it"),
                (Some(_), true) if covered.is_none() => {
                    "--alone does not look whether its log covers that time".to_owned()
                }
                (Some(before), true) => format!("lost between {before} and {role}"),
                (None, true) => format!("it did not come by {role}, or {role} did not log it"),
            };
            Missing { role: role.to_owned(), text: format!("{role} has no record of this id: {why}") }
        };
        expected.into_iter().map(missing).collect()
    }

    pub async fn life(
        &self,
        surroundings: Option<&Beside>,
        seen: &Seen,
        edges: &Edges,
        roles: &[&str],
        context_ns: i64,
        lookup: &Lookup<'_>,
    ) -> anyhow::Result<Life> {
        let origin = self.span.map(|(start, _)| start);
        let axis = |time: Option<i64>| Some((time? - origin?) as f64 / 1e6);
        let total_ms = self.total_ms();
        let laid_end = self.stages.last().map(|stage| stage.end_ms);
        let length_ms = axis(self.span.map(|(_, end)| end)).or(laid_end).unwrap_or(0.0);
        let mut stages = self.stages.clone();
        for stage in &mut stages {
            // what lies outside the outermost record is a part of all the time
            let whole = total_ms.map(|total| if stage.duration_ms > total { length_ms } else { total });
            stage.share = whole.filter(|whole| *whole > 0.0).map(|whole| stage.duration_ms / whole);
            let record = stage.record.map(|record| self.records[record]);
            stage.standing = record.zip(column_of(stage)).zip(surroundings).and_then(|((record, column), beside)| {
                beside.found.standing(&Kind::of(record, edges), column, stage.duration_ms, measured(record, column))
            });
        }
        let lines = seen.lines.iter().chain(surroundings.iter().flat_map(|beside| &beside.lines));
        let lines: Vec<_> = lines.cloned().collect();
        let place = |entry: &Entry| lookup.place(entry, &lines);
        let relations = Relations {
            rule: lookup.rule,
            id: self.id,
            origin,
            own: &self.records,
            while_it_ran: self.window(context_ns),
            place: &place,
        };
        let others = seen.records.iter().chain(surroundings.iter().flat_map(|beside| &beside.records));
        let neighbours = if surroundings.is_some() { relations.among(others) } else { Vec::new() };
        let gpus: BTreeSet<&str> = self.records.iter().filter_map(|record| record.text(Column::GpuId.name())).collect();
        let on_gpu = surroundings.iter().flat_map(|beside| &beside.found.events);
        let is_then = |event: &&Entry| {
            self.window(context_ns).zip(event.start()).is_some_and(|((from, to), at)| (from..=to).contains(&at))
        };
        let on_gpu = on_gpu.filter(is_then);
        let on_gpu = on_gpu.filter(|event| event.text(Column::GpuId.name()).is_some_and(|gpu| gpus.contains(gpu)));
        let mut events: Vec<Event> = Vec::new();
        let told = self.events.iter().copied().chain(on_gpu);
        for event in
            told.map(|entry| event(entry, place(entry), axis(entry.start().or_else(|| undated(entry, origin?)))))
        {
            // the scan of what is around sees those of the request once more, but not where they stand
            let is_same = |other: &Event| {
                (other.at_ms, &other.name, &other.text, &other.gpu_id)
                    == (event.at_ms, &event.name, &event.text, &event.gpu_id)
            };
            if !(event.place.is_empty() && events.iter().any(is_same)) {
                events.push(event);
            }
        }
        events.sort_by(|a, b| {
            let at = |event: &Event| event.at_ms.unwrap_or(f64::INFINITY);
            at(a).total_cmp(&at(b)).then(a.place.cmp(&b.place))
        });
        let mut life = Life {
            id: self
                .records
                .first()
                .and_then(|record| record.text(Column::RequestId.name()))
                .unwrap_or(self.id)
                .to_owned(),
            asked: self.asked.to_owned(),
            trace_id: self.records.iter().find_map(|record| record.text(Column::TraceId.name())).map(str::to_owned),
            origin_ns: origin,
            length_ms,
            total_ms,
            outcome: self.outcome(),
            facts: self.facts(),
            records: self.records.iter().map(|entry| record(entry, place(entry), &axis)).collect(),
            stages,
            events,
            tokens: tokens(&self.steps, origin),
            missing: self.missing(roles, surroundings),
            skews: skews(&self.records),
            neighbours,
            findings: Vec::new(),
        };
        self.explain_stalls(&mut life, lookup).await?;
        let paced = self.pace().and_then(|(record, ms)| {
            let standing = surroundings?.found.standing_of_pace(
                &Kind::of(record, edges),
                ms,
                Some(ms).filter(|_| record.outcome() != "failed"),
            );
            Some((ms, standing?))
        });
        life.findings = findings(&life, &self.records, paced.as_ref().map(|(ms, standing)| (*ms, standing)));
        Ok(life)
    }

    /// Compares stalls with those of requests in the same batch, and on the same GPU.
    async fn explain_stalls(&self, life: &mut Life, lookup: &Lookup<'_>) -> anyhow::Result<()> {
        let Some(own) = life.tokens.as_mut().filter(|tokens| !tokens.stalls.is_empty()) else { return Ok(()) };
        let beside = life.neighbours.iter().filter(|other| matches!(other.relation, "batch" | "gpu"));
        let beside: Vec<&str> = beside.take(MOST_BESIDE).map(|other| other.id.as_str()).collect();
        let steps = lookup.steps_of(&Ids::new(lookup.rule, beside)).await?;
        let mut by_request: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
        for step in &steps {
            let id = step.text(Column::RequestId.name()).unwrap_or_default();
            by_request.entry(canonical(lookup.rule, id)).or_default().push(step);
        }
        let others: Vec<Tokens> = by_request.values().filter_map(|steps| tokens(steps, life.origin_ns)).collect();
        explain(own, &life.events, &others);
        Ok(())
    }

    fn facts(&self) -> Vec<Fact> {
        const SHOWN: [(Column, &str); 20] = [
            (Column::Status, ""),
            (Column::HttpStatus, ""),
            (Column::ErrorCode, ""),
            (Column::ErrorStage, ""),
            (Column::FinishReason, ""),
            (Column::ModelName, ""),
            (Column::ModelVersion, ""),
            (Column::Tenant, ""),
            (Column::BusinessLine, ""),
            (Column::UserTag, ""),
            (Column::App, ""),
            (Column::SessionId, ""),
            (Column::InputTokens, "tokens"),
            (Column::CachedTokens, "tokens"),
            (Column::OutputTokens, "tokens"),
            (Column::TtftMs, "ms"),
            (Column::TpotMs, "ms"),
            (Column::GpuId, ""),
            (Column::BatchId, ""),
            (Column::BatchSize, ""),
        ];
        let fact = |(column, unit): (Column, &'static str)| {
            Some(Fact { name: column.name(), value: self.value(column)?, unit })
        };
        SHOWN.into_iter().filter_map(fact).collect()
    }
}

fn record(entry: &Entry, place: String, axis: &impl Fn(Option<i64>) -> Option<f64>) -> Record {
    Record {
        role: entry.role().map(str::to_owned),
        host: entry.text(Column::Host.name()).map(str::to_owned),
        attempt: entry.count(Column::Attempt.name()),
        start_ms: axis(entry.start()),
        end_ms: axis(entry.end()),
        place,
        values: entry.known(),
    }
}

/// When a line happened whose time names no year: in that of the request, if that is near.
fn undated(entry: &Entry, origin: i64) -> Option<i64> {
    const NEAR: i64 = 86_400_000_000_000;
    let year = TimeZone::UTC.to_datetime(Timestamp::from_nanosecond(i128::from(origin)).ok()?).year();
    let (date, time) = timestamp::without_year(entry.text("message")?)?;
    let civil: civil::DateTime = format!("{year:04}-{date}T{time}").parse().ok()?;
    let at = TimeZone::UTC.to_timestamp(civil).ok()?.as_nanosecond();
    i64::try_from(at).ok().filter(|at| (at - origin).abs() < NEAR)
}

fn event(entry: &Entry, place: String, at_ms: Option<f64>) -> Event {
    let name = entry.text("event").unwrap_or("line");
    let message = entry.text("message").filter(|message| *message != name);
    Event {
        at_ms,
        name: shown(name),
        text: message.map(shown).unwrap_or_default(),
        role: entry.role().map(str::to_owned),
        host: entry.text(Column::Host.name()).map(str::to_owned),
        gpu_id: entry.text(Column::GpuId.name()).map(str::to_owned),
        duration_ms: entry.number(Column::TotalLatencyMs.name()),
        place,
    }
}

/// What a record has for a duration, where it is one of those that are compared.
fn measured(record: &Entry, column: Column) -> Option<f64> {
    record.number(column.name()).filter(|_| record.outcome() != "failed")
}

/// The column that holds the time of a stage.
pub fn column_of(stage: &Stage) -> Option<Column> {
    Some(match stage.name {
        "auth" => Column::AuthMs,
        "preprocess" => Column::PreprocessMs,
        "queue" => Column::QueueWaitMs,
        "prefill" => Column::PrefillTimeMs,
        "first_token" => Column::TtftMs,
        "decode" => Column::DecodeTimeMs,
        "postprocess" => Column::PostprocessMs,
        "request" => Column::TotalLatencyMs,
        _ => return None,
    })
}
