//! From what was asked for to the lives of requests.

use std::collections::BTreeSet;

use super::case::{Beside, Case, MOST_BESIDE, column_of};
use super::discretion::public;
use super::entry::Entry;
use super::life::Life;
use super::lookup::{Lookup, Seen};
use super::matching::{Ids, LINKS, canonical};
use super::surroundings::{Kind, Surroundings, Wanted};
use crate::engine::accounting::Counted;
use crate::engine::functions::Edges;
use crate::record::Column;
use crate::request::Trace;
use crate::source::table::LogTable;

/// Requests of a trace or a batch that are told of, where the id of that was asked for.
const MOST_LIVES: usize = 20;

/// Retries are followed so many times.
const MOST_HOPS: usize = 8;

/// An id that is shorter stands in too many lines to look for it by its bytes.
const LEAST_LINK: usize = 6;

/// The lives that were asked for.
#[derive(Default)]
pub struct Chronicle {
    pub lives: Vec<Life>,
    /// What nothing was found for, each with ids that begin with it.
    pub unknown: Vec<(String, BTreeSet<String>)>,
    /// What stood for more requests than are told of: the id, and how many.
    pub cut: Vec<(String, usize)>,
    /// What was read.
    pub counted: Counted,
    /// Requests in its batch and on its GPU that are not told of.
    pub left_out: usize,
    /// Lines that hold one of the ids.
    pub lines: usize,
}

/// What a typed id stands for.
enum Asked {
    Requests(Vec<String>),
    Unknown(BTreeSet<String>),
}

/// Tells the lives of the requests that were asked for. `around` makes the table of requests and events that a condition
/// holds for; `roles` are those whose logs are read.
///
/// # Errors
/// A log cannot be read.
pub async fn chronicle(
    question: &Trace,
    lookup: &Lookup<'_>,
    around: impl Fn() -> LogTable,
    roles: &[&str],
    edges: &[i64],
) -> anyhow::Result<Chronicle> {
    let rule = lookup.rule;
    let all = Ids::new(rule, question.ids.iter().map(String::as_str));
    let mut seen = lookup.look(&all, if question.alone { &LINKS[..1] } else { &LINKS }).await?;
    if question.alone && seen.records.is_empty() {
        seen = lookup.look(&all, &LINKS).await?;
    }
    let lines = seen.lines.iter().map(|found| found.count()).sum();
    let mut told = Chronicle { counted: seen.counted.clone(), lines, ..Chronicle::default() };
    let mut wanted: Vec<(String, String)> = Vec::new();
    for asked in &question.ids {
        let mut found = asked_for(asked, &seen, lookup);
        if let Asked::Unknown(longer) = &found {
            let one = Ids::new(rule, [asked.as_str()]);
            let longer = if longer.is_empty() && !seen.records.is_empty() {
                lookup.look(&one, &LINKS).await?.longer
            } else {
                longer.clone()
            };
            // a beginning that only one request has stands for it
            if longer.len() == 1 {
                let ids = Ids::new(rule, longer.iter().map(String::as_str));
                seen.add(lookup.look(&ids, &LINKS).await?);
                found = Asked::Requests(longer.into_iter().collect());
            } else {
                found = Asked::Unknown(longer);
            }
        }
        match found {
            Asked::Requests(ids) => {
                if ids.len() > MOST_LIVES {
                    told.cut.push((asked.clone(), ids.len()));
                }
                wanted.extend(ids.into_iter().take(MOST_LIVES).map(|id| (asked.clone(), id)));
            }
            Asked::Unknown(longer) => told.unknown.push((asked.clone(), longer)),
        }
    }
    let mut known = BTreeSet::new();
    wanted.retain(|(_, id)| known.insert(id.clone()));
    if wanted.is_empty() {
        return Ok(told);
    }
    // a member of what was asked for by the id of the whole has lines without that
    let missing = wanted.iter().filter(|(asked, id)| canonical(rule, asked) != *id).map(|(_, id)| id.as_str());
    seen.add(lookup.look(&Ids::new(rule, missing), &LINKS[..1]).await?);
    if !question.alone {
        follow(&wanted, &mut seen, lookup).await?;
    }
    let cases: Vec<Case<'_>> = wanted.iter().map(|(asked, id)| Case::of(asked, id, &seen, lookup)).collect();
    let edges = Edges::checked(edges);
    let surroundings = match question.alone {
        true => None,
        false => {
            let wanted = surroundings_of(&cases, question, &edges);
            let found = Surroundings::scan(lookup.context, around(), &wanted, &edges).await?;
            told.counted = found.counted.clone();
            let all = found.in_batch.len() + found.on_gpu.len();
            told.left_out = all - found.in_batch.len().min(MOST_BESIDE) - found.on_gpu.len().min(MOST_BESIDE);
            let beside = found.in_batch.iter().take(MOST_BESIDE).chain(found.on_gpu.iter().take(MOST_BESIDE));
            let beside = lookup.look(&Ids::new(rule, beside.map(String::as_str)), &LINKS[..1]).await?;
            Some(Beside { found, records: beside.records, lines: beside.lines })
        }
    };
    for case in &cases {
        let life = case.life(surroundings.as_ref(), &seen, &edges, roles, question.context_ns, lookup).await?;
        told.lives.push(life);
    }
    Ok(told)
}

/// The requests that a typed id stands for: that with the id, those of the trace, those of the batch.
fn asked_for(asked: &str, seen: &Seen, lookup: &Lookup<'_>) -> Asked {
    let ids = Ids::new(lookup.rule, [asked]);
    for column in [Column::RequestId, Column::TraceId, Column::BatchId] {
        let has = |record: &&Entry| record.text(column.name()).is_some_and(|id| ids.contain(id));
        let mut found: Vec<&Entry> = seen.records.iter().filter(has).collect();
        found.sort_by_key(|record| record.start());
        let mut known = BTreeSet::new();
        let ids = found.iter().filter_map(|record| record.text(Column::RequestId.name()));
        let ids = ids.map(|id| canonical(lookup.rule, id));
        let requests: Vec<String> = ids.filter(|id| known.insert(id.clone())).collect();
        if !requests.is_empty() {
            return Asked::Requests(requests);
        }
    }
    // only lines of text, or tokens, may name it
    let needles = lookup.needles(&ids);
    let named = |entry: &Entry| {
        let is_its = entry.text(Column::RequestId.name()).is_some_and(|id| ids.contain(id));
        is_its || entry.text("message").is_some_and(|text| needles.stand_in(public(text)))
    };
    match seen.events.iter().chain(&seen.steps).any(named) {
        true => Asked::Requests(ids.iter().map(str::to_owned).collect()),
        false => Asked::Unknown(seen.longer.iter().filter(|longer| ids.begin(longer)).cloned().collect()),
    }
}

/// Looks up what the records name: requests before and after, and the trace.
async fn follow(wanted: &[(String, String)], seen: &mut Seen, lookup: &Lookup<'_>) -> anyhow::Result<()> {
    let rule = lookup.rule;
    let mut chain: BTreeSet<String> = wanted.iter().map(|(_, id)| id.clone()).collect();
    let mut looked: BTreeSet<String> = chain.clone();
    for _ in 0..MOST_HOPS {
        let mut next = BTreeSet::new();
        for record in &seen.records {
            let text = |column: Column| record.text(column.name()).map(|id| canonical(rule, id));
            let (id, previous) = (text(Column::RequestId), text(Column::PreviousRequestId));
            let is_linked = |id: &Option<String>| id.as_ref().is_some_and(|id| chain.contains(id));
            if is_linked(&id) {
                next.extend(previous.clone());
                next.extend(text(Column::TraceId).filter(|id| id.len() >= LEAST_LINK));
            }
            if is_linked(&previous) {
                next.extend(id);
            }
        }
        chain.extend(next.iter().cloned());
        next.retain(|id| looked.insert(id.clone()));
        if next.is_empty() {
            break;
        }
        seen.add(lookup.look(&Ids::new(rule, next.iter().map(String::as_str)), &LINKS).await?);
    }
    Ok(())
}

/// What must be known around some requests.
fn surroundings_of(cases: &[Case<'_>], question: &Trace, edges: &Edges) -> Wanted {
    let mut wanted = Wanted { context_ns: question.context_ns, ..Wanted::default() };
    let texts = |column: Column| -> BTreeSet<String> {
        let records = cases.iter().flat_map(|case| &case.records);
        records.filter_map(|record| record.text(column.name()).map(str::to_owned)).collect()
    };
    (wanted.gpus, wanted.batches) = (texts(Column::GpuId), texts(Column::BatchId));
    for case in cases {
        for record in &case.records {
            let kind = Kind::of(record, edges);
            if !wanted.kinds.contains(&kind) {
                wanted.kinds.push(kind);
            }
        }
        let columns = case.stages.iter().filter_map(column_of);
        wanted.durations.extend(columns);
        wanted.window = [wanted.window, case.span].into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }
    wanted.durations.sort_unstable();
    wanted.durations.dedup();
    wanted
}
