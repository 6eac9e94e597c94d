//! The values of a few ranks among very many values, found without moving or copying them.
//!
//! One pass counts how many values lie in each of many narrow ranges, which tells the range that each rank lies in. A
//! second pass picks out the values of these few ranges, and only those are put in order.

/// From this many values on, this is faster than selecting in place.
pub const WORTHWHILE: usize = 1 << 15;

/// Ranges are told apart by so many of a value's upper bits: its sign, its exponent and 5 bits of its fraction. So a
/// range is at most 3 % wide.
const RANGE_BITS: u32 = 17;

/// The values that have the `ranks`, which are ascending and below the number of values, in the order of
/// [`f64::total_cmp`]. A value is given by its bytes.
pub fn values_at(parts: &[&[[u8; 8]]], ranks: &[usize]) -> Vec<f64> {
    let mut counts = vec![0_u32; 1 << RANGE_BITS];
    for &bytes in parts.iter().copied().flatten() {
        counts[range_of(bytes)] += 1;
    }
    let mut wanted = wanted_ranges(&counts, ranks);
    // From here on the entry of a range says which of the wanted it is, counted from 1.
    counts.fill(0);
    for (range, number) in wanted.iter().zip(1..) {
        counts[range.number] = number;
    }
    for &bytes in parts.iter().copied().flatten() {
        let number = counts[range_of(bytes)];
        if number > 0 {
            wanted[number as usize - 1].values.push(f64::from_ne_bytes(bytes));
        }
    }
    let mut found = Vec::with_capacity(ranks.len());
    for range in &mut wanted {
        for &rank in &range.ranks {
            let (_, value, _) = range.values.select_nth_unstable_by(rank, f64::total_cmp);
            found.push(*value);
        }
    }
    found
}

/// A range that holds some of the ranks.
struct Range {
    number: usize,
    /// Ranks among the values of the range.
    ranks: Vec<usize>,
    values: Vec<f64>,
}

fn wanted_ranges(counts: &[u32], ranks: &[usize]) -> Vec<Range> {
    let mut wanted: Vec<Range> = Vec::new();
    let mut ranks = ranks.iter().copied().peekable();
    let mut before = 0;
    for (number, &count) in counts.iter().enumerate() {
        let count = count as usize;
        let mut inside = Vec::new();
        while let Some(rank) = ranks.next_if(|rank| *rank < before + count) {
            inside.push(rank - before);
        }
        if !inside.is_empty() {
            wanted.push(Range { number, ranks: inside, values: Vec::with_capacity(count) });
        }
        if ranks.peek().is_none() {
            break;
        }
        before += count;
    }
    wanted
}

/// The range of a value; ranges are in the order of [`f64::total_cmp`].
#[inline]
fn range_of(bytes: [u8; 8]) -> usize {
    let bits = i64::from_ne_bytes(bytes);
    // All bits of a negative number are flipped, and the sign of any other.
    let key = bits ^ (bits >> 63 | i64::MIN);
    (key.cast_unsigned() >> (64 - RANGE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => 100.0..200.0_f64,
            2 => (0..5).prop_map(f64::from),
            2 => any::<f64>().prop_filter("a number", |value| !value.is_nan()),
            1 => proptest::sample::select(&[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE][..]),
        ]
    }

    proptest! {
        #[test]
        fn the_values_are_those_of_the_sorted_list(
            values in prop::collection::vec(value(), 1..300),
            cut in any::<prop::sample::Index>(),
            ranks in prop::collection::vec(any::<prop::sample::Index>(), 0..7),
        ) {
            let bytes: Vec<[u8; 8]> = values.iter().map(|value| value.to_ne_bytes()).collect();
            let (first, second) = bytes.split_at(cut.index(bytes.len()));
            let mut ranks: Vec<usize> = ranks.iter().map(|rank| rank.index(values.len())).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let expected: Vec<u64> = ranks.iter().map(|&rank| sorted[rank].to_bits()).collect();
            let found: Vec<u64> = values_at(&[first, second], &ranks).into_iter().map(f64::to_bits).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
