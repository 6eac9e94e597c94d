//! A sum of floating-point numbers that has the same bits in whatever order, and in however many parts, it was added.
//!
//! Floating-point addition rounds at each step, so its result depends on the order. Integer addition does not. Each value
//! is therefore cut into an integer and a fraction in units of 2^-62, and both are added as integers. A value of at least
//! 2^-9 is cut without any loss; a smaller one loses what it has below 2^-62, always the same. Rounding happens once, when
//! the sum is read.
//!
//! The few values past 2^62 (and infinities) that a broken log may hold are kept as they are and added at the end in
//! ascending order.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryViewArray, Float64Array};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::EmitTo;

use super::accumulator::{GroupStates, take_groups};
use super::state::StateColumn;

/// A fraction is a number of 2^-62.
const FRACTION_BITS: u32 = 62;
const ONE: f64 = (1_u64 << FRACTION_BITS) as f64;
const FRACTION_MASK: i64 = (1 << FRACTION_BITS) - 1;

/// Values from here on, of either sign, do not fit.
const LIMIT: f64 = (1_u64 << 62) as f64;

/// The sum of one group: `whole + fraction / 2^62`. Equal sums have equal fields.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct FixedSum {
    whole: i128,
    /// From 0 to less than 2^62.
    fraction: i64,
    /// Values of the group, those that did not fit included.
    count: u64,
}

impl FixedSum {
    /// Adds a value between -[`LIMIT`] and [`LIMIT`].
    fn add(&mut self, value: f64) {
        let whole = value as i64;
        let fraction = ((value - whole as f64) * ONE) as i64;
        self.carry(i128::from(whole), fraction);
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.carry(other.whole, other.fraction);
        self.count += other.count;
    }

    /// `fraction` may be negative, but its size is below 2^62, so that the sum of two fits.
    fn carry(&mut self, whole: i128, fraction: i64) {
        let fraction = self.fraction + fraction;
        self.whole += whole + i128::from(fraction >> FRACTION_BITS);
        self.fraction = fraction & FRACTION_MASK;
    }

    /// The nearest floating-point number.
    fn value(&self) -> f64 {
        if i64::try_from(self.whole).is_ok() {
            ((self.whole << FRACTION_BITS) | i128::from(self.fraction)) as f64 / ONE
        } else {
            // The fraction is far below the last digit; it only decides between two equally near numbers.
            ((self.whole << 1) | i128::from(self.fraction != 0)) as f64 / 2.0
        }
    }
}

/// The sums of all groups, and what is read from them.
#[derive(Debug)]
pub struct FixedSums {
    sums: Vec<FixedSum>,
    /// The values that do not fit, by group.
    outliers: BTreeMap<usize, Vec<f64>>,
    outlier_count: usize,
    reading: fn(Total) -> Option<f64>,
}

impl FixedSums {
    /// `reading` is [`Total::sum`] or [`Total::mean`].
    pub fn new(reading: fn(Total) -> Option<f64>) -> Self {
        Self { sums: vec![], outliers: BTreeMap::new(), outlier_count: 0, reading }
    }

    fn add_outliers(&mut self, group: usize, values: &[f64]) {
        if !values.is_empty() {
            self.outliers.entry(group).or_default().extend(values);
            self.outlier_count += values.len();
        }
    }

    fn take(&mut self, emit_to: EmitTo) -> (Vec<FixedSum>, BTreeMap<usize, Vec<f64>>) {
        let outliers = take_groups(&mut self.outliers, emit_to);
        self.outlier_count -= outliers.values().map(Vec::len).sum::<usize>();
        (emit_to.take_needed(&mut self.sums), outliers)
    }

    fn read(&self, sums: &[FixedSum], outliers: &BTreeMap<usize, Vec<f64>>) -> ArrayRef {
        let answers = sums.iter().enumerate().map(|(group, &sum)| {
            let outliers = outliers.get(&group).cloned().unwrap_or_default();
            (self.reading)(Total { sum, outliers })
        });
        Arc::new(answers.collect::<Float64Array>())
    }
}

impl GroupStates for FixedSums {
    fn resize(&mut self, groups: usize) {
        if self.sums.len() < groups {
            self.sums.resize(groups, FixedSum::default());
        }
    }

    fn add(&mut self, group: usize, value: f64) {
        if value.abs() < LIMIT {
            self.sums[group].add(value);
        } else {
            self.sums[group].count += 1;
            self.add_outliers(group, &[value]);
        }
    }

    fn merge(&mut self, states: &BinaryViewArray, groups: &[usize]) -> Result<()> {
        for (row, &group) in groups.iter().enumerate() {
            let state = states.value(row);
            match decode(state).ok_or_else(|| internal_datafusion_err!("a state of {} bytes is no sum", state.len()))? {
                State::Nothing => {}
                State::Lone(value) => self.add(group, value),
                State::Sum(sum, outliers) => {
                    self.sums[group].merge(sum);
                    self.add_outliers(group, &outliers);
                }
            }
        }
        Ok(())
    }

    /// 8 bytes for a lone value, else 32 and 8 for each outlier.
    fn state(&mut self, emit_to: EmitTo) -> Result<BinaryViewArray> {
        let (sums, outliers) = self.take(emit_to);
        let mut column = StateColumn::with_capacity(sums.len());
        for (group, sum) in sums.iter().enumerate() {
            let outliers = outliers.get(&group).map_or(&[][..], Vec::as_slice);
            match (sum.count, outliers) {
                (0, _) => column.push(&[]),
                (1, []) => column.push(&sum.value().to_ne_bytes()),
                (1, [value]) => column.push(&value.to_ne_bytes()),
                _ => column.push(&encode(sum, outliers)),
            }
        }
        column.finish()
    }

    fn answers(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, outliers) = self.take(emit_to);
        Ok(self.read(&sums, &outliers))
    }

    fn answer(&mut self) -> Result<ArrayRef> {
        Ok(self.read(&self.sums, &self.outliers))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<FixedSum>()
            + self.outliers.len() * size_of::<(usize, Vec<f64>)>()
            + self.outlier_count * size_of::<f64>()
    }
}

/// What a group comes to.
pub struct Total {
    sum: FixedSum,
    outliers: Vec<f64>,
}

impl Total {
    /// `None` without values, and where plus and minus infinity meet.
    pub fn sum(mut self) -> Option<f64> {
        self.outliers.sort_unstable_by(f64::total_cmp);
        let sum = self.outliers.iter().fold(self.sum.value(), |sum, x| sum + x);
        (self.sum.count > 0 && !sum.is_nan()).then_some(sum)
    }

    /// The sum divided by the number of values, rounded once: never below the least or above the largest of equal values.
    pub fn mean(self) -> Option<f64> {
        let count = self.sum.count;
        if count > 0 && self.outliers.is_empty() && i64::try_from(self.sum.whole).is_ok() {
            let fixed = (self.sum.whole << FRACTION_BITS) | i128::from(self.sum.fraction);
            let (whole, rest) = (fixed.div_euclid(i128::from(count)), fixed.rem_euclid(i128::from(count)));
            return Some((whole as f64 + rest as f64 / count as f64) / ONE);
        }
        self.sum().map(|sum| sum / count as f64)
    }
}

enum State {
    Nothing,
    Lone(f64),
    Sum(FixedSum, Vec<f64>),
}

fn encode(sum: &FixedSum, outliers: &[f64]) -> Vec<u8> {
    let mut state = Vec::with_capacity(size_of::<FixedSum>() + size_of_val(outliers));
    state.extend_from_slice(&sum.whole.to_ne_bytes());
    state.extend_from_slice(&sum.fraction.to_ne_bytes());
    state.extend_from_slice(&sum.count.to_ne_bytes());
    state.extend(outliers.iter().flat_map(|value| value.to_ne_bytes()));
    state
}

fn decode(state: &[u8]) -> Option<State> {
    if state.is_empty() {
        return Some(State::Nothing);
    }
    if let Ok(lone) = <[u8; 8]>::try_from(state) {
        return Some(State::Lone(f64::from_ne_bytes(lone)));
    }
    let (whole, rest) = state.split_first_chunk()?;
    let (fraction, rest) = rest.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (outliers, []) = rest.as_chunks() else {
        return None;
    };
    let sum = FixedSum {
        whole: i128::from_ne_bytes(*whole),
        fraction: i64::from_ne_bytes(*fraction),
        count: u64::from_ne_bytes(*count),
    };
    let outliers = outliers.iter().map(|&value| f64::from_ne_bytes(value));
    Some(State::Sum(sum, outliers.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Float64Type;
    use proptest::prelude::*;

    fn sums(values: &[f64]) -> FixedSums {
        let mut sums = FixedSums::new(Total::sum);
        sums.resize(1);
        values.iter().for_each(|&value| sums.add(0, value));
        sums
    }

    fn sum(values: &[f64]) -> Option<f64> {
        read(&mut sums(values))
    }

    fn read(sums: &mut FixedSums) -> Option<f64> {
        let answers = sums.answers(EmitTo::All).unwrap();
        answers.as_primitive::<Float64Type>().iter().next().unwrap()
    }

    #[test]
    fn the_mean_of_equal_values_is_their_value() {
        for value in [0.8, 0.1, 1.0 / 3.0, 0.7, 12_345.678, 0.0] {
            for count in [3, 7, 1000] {
                let mut means = FixedSums::new(Total::mean);
                means.resize(1);
                (0..count).for_each(|_| means.add(0, value));
                assert_eq!(read(&mut means), Some(value), "{count} times {value}");
            }
        }
    }

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(sum(&[0.1; 10]), Some(1.0));
        assert_eq!(sum(&[1e15, 0.3, -1e15]), Some(0.3));
        assert_eq!(sum(&[-2.5, -0.25]), Some(-2.75));
        assert_eq!(sum(&[-1e-12, 1.0]), Some(1.0 - 1e-12));
        assert_eq!(sum(&[LIMIT * 0.75; 4]), Some(LIMIT * 3.0));
        assert_eq!(sum(&[-LIMIT * 0.75; 4]), Some(-LIMIT * 3.0));
    }

    #[test]
    fn without_values_there_is_no_sum() {
        assert_eq!(sum(&[]), None);
        assert_eq!(sum(&[0.0]), Some(0.0));
    }

    #[test]
    fn values_out_of_range_still_count() {
        assert_eq!(sum(&[2e19, 1.0, -1e19]), Some(1e19));
        assert_eq!(sum(&[f64::INFINITY, 1.0]), Some(f64::INFINITY));
        assert_eq!(sum(&[f64::INFINITY, f64::NEG_INFINITY]), None);
    }

    #[test]
    fn a_fraction_decides_between_two_numbers_equally_near() {
        // 2^63 + 1024 lies half-way between two floats; to even it would go down
        let half_way = [LIMIT * 0.75, LIMIT * 0.75, LIMIT * 0.5, 1024.0];
        assert_eq!(sum(&half_way), Some(LIMIT * 2.0));

        let above = [&half_way[..], &[0.5]].concat();
        assert_eq!(sum(&above), Some(LIMIT * 2.0 + 2048.0));
    }

    #[test]
    fn a_mean_divides_by_all_values() {
        let mut sums = FixedSums::new(Total::mean);
        sums.resize(2);
        [1.0, 2.0, 6.0].iter().for_each(|&value| sums.add(1, value));

        let means = sums.answers(EmitTo::All).unwrap();

        let means: Vec<_> = means.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(means, [None, Some(3.0)]);
    }

    #[test]
    fn a_lone_value_travels_as_itself() {
        for value in [1.5, -2.0_f64.powi(-61), 0.1, -3e18, 1e300, f64::INFINITY] {
            let state = sums(&[value]).state(EmitTo::All).unwrap();
            assert_eq!(state.value(0), value.to_ne_bytes(), "{value}");
        }
    }

    #[test]
    fn bytes_that_are_no_sum_are_an_error() {
        for bytes in [&[0_u8; 9][..], &[0; 31], &[0; 39]] {
            let state = BinaryViewArray::from_iter_values([bytes]);
            assert!(sums(&[]).merge(&state, &[0]).is_err());
        }
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => -1e6..1e6_f64,
            2 => -1e-15..1e-15_f64,
            2 => -1e18..1e18_f64,
            1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
        ]
    }

    proptest! {
        #[test]
        fn order_and_parts_change_no_bit(
            values in prop::collection::vec(value(), 1..50),
            shuffled in any::<prop::sample::Index>(),
            part in prop::collection::vec(0..4_usize, 50),
        ) {
            let mut rotated = values.clone();
            rotated.rotate_left(shuffled.index(values.len()));
            let mut parts = FixedSums::new(Total::sum);
            parts.resize(4);
            for (&value, &part) in rotated.iter().zip(&part) {
                parts.add(part, value);
            }
            let mut merged = sums(&[]);
            let first = parts.state(EmitTo::First(1)).unwrap();
            let rest = parts.state(EmitTo::All).unwrap();
            merged.merge(&rest, &[0, 0, 0]).unwrap();
            merged.merge(&first, &[0]).unwrap();

            prop_assert_eq!(parts.size(), 0);
            prop_assert_eq!(
                read(&mut merged).map(f64::to_bits),
                sum(&values).map(f64::to_bits)
            );
        }

        #[test]
        fn the_sum_of_whole_milliseconds_is_exact(
            values in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 1..100),
        ) {
            let floats: Vec<f64> = values.iter().map(|&value| value as f64 / 8.0).collect();
            let exact = values.iter().sum::<i64>() as f64 / 8.0;

            prop_assert_eq!(sum(&floats), Some(exact));
        }
    }
}
