//! Requests that two logs saw without an id in common: matched by when they arrived, the model, and the token counts.
//!
//! Only what both logs know is compared. A match must be the only one near in time, from both sides: where several requests
//! alike are near, nothing tells which is which, and none is matched.

use std::collections::{HashMap, HashSet};

/// Nanoseconds between the arrivals of one request in two logs, at most.
const WITHIN: i64 = 10_000_000_000;

/// What one log says of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace<'a> {
    /// Arrival, nanoseconds since 1970.
    pub at: i64,
    pub model: Option<&'a str>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

/// What two logs are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub model: bool,
    pub input_tokens: bool,
    pub output_tokens: bool,
}

/// What requests of both logs must have alike.
type Key<'a> = (Option<&'a str>, Option<i64>, Option<i64>);

impl Compared {
    /// What most requests of both logs say; of models only where both have some name alike.
    pub fn of(one: &[Trace<'_>], other: &[Trace<'_>]) -> Self {
        let most = |traces: &[Trace<'_>], knows: fn(&Trace<'_>) -> bool| {
            traces.iter().filter(|trace| knows(trace)).count() * 2 > traces.len()
        };
        let both = |knows: fn(&Trace<'_>) -> bool| most(one, knows) && most(other, knows);
        let names = |traces: &[Trace<'_>]| -> HashSet<String> {
            traces.iter().filter_map(|trace| trace.model).map(str::to_owned).collect()
        };
        Self {
            model: both(|trace| trace.model.is_some()) && !names(one).is_disjoint(&names(other)),
            input_tokens: both(|trace| trace.input_tokens.is_some()),
            output_tokens: both(|trace| trace.output_tokens.is_some()),
        }
    }

    /// Whether there is enough to tell requests apart by.
    pub fn suffices(self) -> bool {
        self.input_tokens || self.output_tokens
    }

    /// None where a request lacks what it is compared by.
    fn key<'a>(self, trace: &Trace<'a>) -> Option<Key<'a>> {
        let known = (!self.model || trace.model.is_some())
            && (!self.input_tokens || trace.input_tokens.is_some())
            && (!self.output_tokens || trace.output_tokens.is_some());
        known.then(|| {
            (
                trace.model.filter(|_| self.model),
                trace.input_tokens.filter(|_| self.input_tokens),
                trace.output_tokens.filter(|_| self.output_tokens),
            )
        })
    }
}

/// The requests of one log with those of another that they are, by their indices.
pub fn matched(one: &[Trace<'_>], other: &[Trace<'_>], by: Compared) -> Vec<(usize, usize)> {
    if !by.suffices() {
        return Vec::new();
    }
    let (ours, theirs) = (by_key(one, by), by_key(other, by));
    let mut pairs = Vec::new();
    for (key, ours) in &ours {
        let Some(theirs) = theirs.get(key) else { continue };
        for &(at, index) in ours {
            if let Some((_, found)) = nearest(theirs, at)
                && nearest(ours, other[found].at).is_some_and(|(_, back)| back == index)
            {
                pairs.push((index, found));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The arrivals of each key in order, with their indices.
fn by_key<'a>(traces: &[Trace<'a>], by: Compared) -> HashMap<Key<'a>, Vec<(i64, usize)>> {
    let mut keys: HashMap<Key<'a>, Vec<(i64, usize)>> = HashMap::new();
    for (index, trace) in traces.iter().enumerate() {
        if let Some(key) = by.key(trace) {
            keys.entry(key).or_default().push((trace.at, index));
        }
    }
    keys.values_mut().for_each(|arrivals| arrivals.sort_unstable());
    keys
}

/// The one arrival that is near a time; None where several are, or none is.
fn nearest(arrivals: &[(i64, usize)], at: i64) -> Option<(i64, usize)> {
    let behind = arrivals.partition_point(|(arrival, _)| *arrival < at);
    // the two before and the two behind: enough to see whether one is alone
    let near = arrivals[behind.saturating_sub(2)..arrivals.len().min(behind + 2)].iter();
    let mut near: Vec<(i64, usize)> =
        near.map(|(arrival, index)| (arrival.saturating_sub(at).saturating_abs(), *index)).collect();
    near.sort_unstable();
    let first = *near.first().filter(|(distance, _)| *distance <= WITHIN)?;
    let is_alone = near.get(1).is_none_or(|(distance, _)| *distance > WITHIN);
    is_alone.then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn trace(second: i64, input: i64) -> Trace<'static> {
        Trace { at: second * SECOND, model: Some("m"), input_tokens: Some(input), output_tokens: Some(5) }
    }

    fn pairs(one: &[Trace<'_>], other: &[Trace<'_>]) -> Vec<(usize, usize)> {
        matched(one, other, Compared::of(one, other))
    }

    #[test]
    fn the_one_near_among_those_that_are_alike_is_the_match() {
        let gateway = [trace(0, 10), trace(1, 20), trace(60, 10)];
        let engine = [trace(61, 10), trace(2, 20), trace(1, 10)];
        assert_eq!(pairs(&gateway, &engine), [(0, 2), (1, 1), (2, 0)]);
    }

    #[test]
    fn what_is_too_far_or_not_alone_is_not_matched() {
        assert_eq!(pairs(&[trace(0, 10)], &[trace(11, 10)]), []);
        assert_eq!(pairs(&[trace(5, 10)], &[trace(4, 10), trace(6, 10)]), []);
        assert_eq!(pairs(&[trace(5, 10), trace(5, 10)], &[trace(6, 10)]), []);
        // both may be the one
        assert_eq!(pairs(&[trace(0, 10), trace(3, 10)], &[trace(4, 10)]), []);
    }

    #[test]
    fn only_what_both_logs_know_is_compared() {
        let no_output = |second| Trace { output_tokens: None, model: Some("other"), ..trace(second, 10) };
        assert_eq!(pairs(&[trace(0, 10)], &[no_output(1)]), [(0, 0)]);
        let no_tokens = Trace { input_tokens: None, ..no_output(1) };
        assert_eq!(pairs(&[trace(0, 10)], &[no_tokens]), []);
    }
}
