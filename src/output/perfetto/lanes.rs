//! Tracks in which no two slices overlap.
//!
//! On one track slices must be nested or apart: of two that overlap in part the importer drops the later
//! (<https://perfetto.dev/docs/faq#why-are-overlapping-events-in-json-traces-not-displayed-correctly>). Requests beside
//! each other are not inside each other either, so that here they share a track only where they are apart; what is part
//! of a slice was put inside it before.

use super::slice::Slice;

/// The slices in as few lanes as keep them apart. Up to `deepest` that take no time may share a moment.
pub(super) fn lanes(mut slices: Vec<Slice>, deepest: usize) -> Vec<Vec<Slice>> {
    slices.sort_by_key(|slice| (slice.start, slice.end));
    let mut lanes: Vec<Vec<Slice>> = Vec::new();
    for slice in slices {
        match lanes.iter_mut().find(|lane| has_room(lane, &slice, deepest)) {
            Some(lane) => lane.push(slice),
            None => lanes.push(vec![slice]),
        }
    }
    lanes
}

fn has_room(lane: &[Slice], slice: &Slice, deepest: usize) -> bool {
    let Some(last) = lane.last() else { return true };
    let takes_none = |slice: &Slice| slice.duration() == 0;
    match last.end.cmp(&slice.start) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        // one ends where the other begins
        std::cmp::Ordering::Equal if !takes_none(last) && !takes_none(slice) => true,
        // without a duration the importer cannot tell which was first, and puts one below the other
        std::cmp::Ordering::Equal => {
            let there = lane.iter().rev().take_while(|other| takes_none(other) && other.end == slice.start).count();
            there + 1 < deepest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(slices: &[(i64, i64)], deepest: usize) -> Vec<Vec<i64>> {
        let slices = slices.iter().map(|&(start, end)| Slice { start, end, ..Slice::default() }).collect();
        lanes(slices, deepest).iter().map(|lane| lane.iter().map(|slice| slice.start).collect()).collect()
    }

    #[test]
    fn what_overlaps_stands_in_another_lane_and_what_follows_in_the_same() {
        assert_eq!(starts(&[(0, 10), (10, 20), (20, 30)], 1), [[0, 10, 20]]);
        assert_eq!(starts(&[(5, 15), (0, 10), (10, 20)], 1), [vec![0, 10], vec![5]]);
        assert_eq!(starts(&[(0, 10), (2, 4)], 1), [[0], [2]]);
    }

    #[test]
    fn moments_are_stacked_as_deep_as_asked() {
        assert_eq!(starts(&[(5, 5), (5, 5), (5, 5)], 1), [[5], [5], [5]]);
        assert_eq!(starts(&[(5, 5), (5, 5), (5, 5)], 3), [vec![5, 5], vec![5]]);
        assert_eq!(starts(&[(0, 5), (5, 5), (5, 9)], 1), [vec![0, 5], vec![5]]);
    }
}
