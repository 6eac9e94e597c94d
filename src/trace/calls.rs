//! Which record of a request is of the call that another record made.

use super::entry::Entry;
use crate::record::Column;

/// How far inside the chain from the caller to the GPU a role stands.
pub fn depth(entry: &Entry) -> u8 {
    match entry.role() {
        Some("app") => 0,
        Some("engine") => 2,
        _ => 1,
    }
}

/// For each record the one that called it: of the next role outwards, the one with its attempt whose time it fits best; of
/// records without a role, the shortest that it lies within.
pub fn callers(records: &[&Entry]) -> Vec<Option<usize>> {
    let caller = |inner: &&Entry| {
        let outers = || (0..records.len()).map(|index| (index, records[index]));
        let next = outers().map(|(_, outer)| depth(outer)).filter(|outer| *outer < depth(inner)).max();
        let of_role = outers().filter(|(_, outer)| Some(depth(outer)) == next);
        let by_role = of_role.min_by_key(|(_, outer)| (is_other_attempt(outer, inner), outside(outer, inner)));
        let around = outers().filter(|(_, outer)| is_within(outer, inner));
        by_role.or(around.min_by_key(|(_, outer)| length(outer))).map(|(index, _)| index)
    };
    records.iter().map(caller).collect()
}

fn is_other_attempt(outer: &Entry, inner: &Entry) -> bool {
    let attempt = |entry: &Entry| entry.count(Column::Attempt.name());
    attempt(outer).zip(attempt(inner)).is_some_and(|(outer, inner)| outer != inner)
}

/// How much of a record lies outside the time of another, nanoseconds.
fn outside(outer: &Entry, inner: &Entry) -> i64 {
    let before = outer.start().zip(inner.start()).map_or(0, |(outer, inner)| outer.saturating_sub(inner).max(0));
    let behind = outer.end().zip(inner.end()).map_or(0, |(outer, inner)| inner.saturating_sub(outer).max(0));
    before.saturating_add(behind)
}

fn length(entry: &Entry) -> Option<i64> {
    Some(entry.end()?.saturating_sub(entry.start()?))
}

/// Whether a record without a role lies within another such, as what that one waited for.
fn is_within(outer: &Entry, inner: &Entry) -> bool {
    let span = |entry: &Entry| Some((entry.start()?, entry.end()?));
    let (Some(outer_span), Some(inner_span)) = (span(outer), span(inner)) else { return false };
    let has_role = outer.role().is_some() || inner.role().is_some();
    !has_role && outer_span.0 <= inner_span.0 && inner_span.1 <= outer_span.1 && outer_span != inner_span
}
