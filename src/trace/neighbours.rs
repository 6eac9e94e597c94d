//! Other requests that have to do with one: its retries, its trace, its batch, its GPU.

use std::collections::hash_map::Entry as Entries;
use std::collections::{BTreeSet, HashMap};

use super::entry::Entry;
use super::life::Neighbour;
use super::matching::canonical;
use crate::profile::IdRule;
use crate::record::Column;

/// The other requests among some records, each once, with how they are related; the closest relation counts.
pub struct Relations<'a> {
    pub rule: &'a IdRule,
    /// Without what producers put around it.
    pub id: &'a str,
    pub origin: Option<i64>,
    /// The records of the request itself.
    pub own: &'a [&'a Entry],
    /// The time in which others on its GPU are beside it, nanoseconds.
    pub while_it_ran: Option<(i64, i64)>,
    /// Where a record stands, as `file:line`.
    pub place: &'a dyn Fn(&Entry) -> String,
}

impl Relations<'_> {
    fn own_texts(&self, column: Column) -> BTreeSet<&str> {
        self.own.iter().filter_map(|entry| entry.text(column.name())).collect()
    }

    /// How another record is related; None where it is not.
    fn relation(&self, other: &Entry) -> Option<&'static str> {
        let text = |column: Column| other.text(column.name());
        let id = canonical(self.rule, text(Column::RequestId)?);
        if id == self.id {
            return None;
        }
        let same = |column: Column| text(column).is_some_and(|text| self.own_texts(column).contains(text));
        let previous = |entry: &Entry| entry.text(Column::PreviousRequestId.name()).map(|id| canonical(self.rule, id));
        let span = |entry: &Entry, name: &str| entry.text(name).map(str::to_owned);
        let (parents, spans): (BTreeSet<_>, BTreeSet<_>) = (
            self.own.iter().filter_map(|own| span(own, "parent_span_id")).collect(),
            self.own.iter().filter_map(|own| span(own, "span_id")).collect(),
        );
        Some(match () {
            () if previous(other).as_deref() == Some(self.id) => {
                if self.own.iter().any(|own| was_left(own)) {
                    "reconnect"
                } else {
                    "retry"
                }
            }
            () if self.own.iter().filter_map(|own| previous(own)).any(|previous| previous == id) => {
                if was_left(other) {
                    "reconnected"
                } else {
                    "retried"
                }
            }
            () if span(other, "span_id").is_some_and(|span| parents.contains(&span)) => "parent",
            () if span(other, "parent_span_id").is_some_and(|parent| spans.contains(&parent)) => "child",
            () if same(Column::BatchId) => "batch",
            () if same(Column::TraceId) => "trace",
            () if same(Column::GpuId) && self.ran_beside(other) => "gpu",
            () => return None,
        })
    }

    /// Whether a record on a GPU of that name was on the same machine, at the time.
    fn ran_beside(&self, other: &Entry) -> bool {
        let hosts = self.own_texts(Column::Host);
        let is_there = other.text(Column::Host.name()).is_none_or(|host| hosts.is_empty() || hosts.contains(host));
        let overlaps = |((from, to), start): ((i64, i64), i64)| start <= to && other.end().unwrap_or(start) >= from;
        is_there && self.while_it_ran.zip(other.start()).is_some_and(overlaps)
    }

    /// The related requests among some records.
    pub fn among<'a>(&self, others: impl Iterator<Item = &'a Entry>) -> Vec<Neighbour> {
        let mut neighbours: HashMap<String, Neighbour> = HashMap::new();
        for other in others {
            let Some(relation) = self.relation(other) else { continue };
            let id = canonical(self.rule, other.text(Column::RequestId.name()).unwrap_or_default());
            let neighbour = self.neighbour(other, relation);
            match neighbours.entry(id) {
                Entries::Occupied(mut known) => merge(known.get_mut(), neighbour),
                Entries::Vacant(free) => _ = free.insert(neighbour),
            }
        }
        let mut neighbours: Vec<Neighbour> = neighbours.into_values().collect();
        neighbours.sort_by(|a, b| {
            let start = |neighbour: &Neighbour| neighbour.start_ms.unwrap_or(f64::INFINITY);
            closeness(a.relation).cmp(&closeness(b.relation)).then(start(a).total_cmp(&start(b))).then(a.id.cmp(&b.id))
        });
        neighbours
    }

    fn neighbour(&self, other: &Entry, relation: &'static str) -> Neighbour {
        let axis = |time: Option<i64>| Some((time? - self.origin?) as f64 / 1e6);
        let text = |column: Column| other.text(column.name()).map(str::to_owned);
        Neighbour {
            id: text(Column::RequestId).unwrap_or_default(),
            relation,
            start_ms: axis(other.start()),
            end_ms: axis(other.end()),
            role: text(Column::Role),
            gpu_id: text(Column::GpuId),
            batch_id: text(Column::BatchId),
            input_tokens: other.count(Column::InputTokens.name()),
            output_tokens: other.count(Column::OutputTokens.name()),
            queue_wait_ms: other.number(Column::QueueWaitMs.name()),
            decode_time_ms: other.number(Column::DecodeTimeMs.name()),
            outcome: other.outcome(),
            place: (self.place)(other),
        }
    }
}

/// Whether the caller left before the answer was whole, so that the next call takes it up again.
fn was_left(entry: &Entry) -> bool {
    let is_one = |column: Column, words: &[&str]| {
        entry.text(column.name()).is_some_and(|text| words.iter().any(|word| text.eq_ignore_ascii_case(word)))
    };
    let words =
        ["abort", "aborted", "cancelled", "canceled", "disconnected", "client_disconnect", "client_closed_request"];
    entry.count(Column::HttpStatus.name()) == Some(499)
        || is_one(Column::Status, &words)
        || is_one(Column::FinishReason, &words)
        || is_one(Column::ErrorCode, &words)
        || is_one(Column::ErrorCode, &["499"])
}

/// The same request as another role saw it: what is not known yet is filled in.
fn merge(known: &mut Neighbour, other: Neighbour) {
    if closeness(other.relation) < closeness(known.relation) {
        known.relation = other.relation;
    }
    // of several attempts the last tells how it ended
    if other.outcome != "unknown" && (known.outcome == "unknown" || other.end_ms > known.end_ms) {
        known.outcome = other.outcome;
    }
    known.start_ms = known.start_ms.into_iter().chain(other.start_ms).reduce(f64::min);
    known.end_ms = known.end_ms.into_iter().chain(other.end_ms).reduce(f64::max);
    known.gpu_id = known.gpu_id.take().or(other.gpu_id);
    known.batch_id = known.batch_id.take().or(other.batch_id);
    known.input_tokens = known.input_tokens.or(other.input_tokens);
    known.output_tokens = known.output_tokens.or(other.output_tokens);
    known.queue_wait_ms = known.queue_wait_ms.or(other.queue_wait_ms);
    known.decode_time_ms = known.decode_time_ms.or(other.decode_time_ms);
}

/// The place of a relation among all, the closest first.
fn closeness(relation: &str) -> usize {
    const RELATIONS: [&str; 9] =
        ["retry", "retried", "reconnect", "reconnected", "parent", "child", "batch", "trace", "gpu"];
    RELATIONS.iter().position(|known| *known == relation).unwrap_or(RELATIONS.len())
}
