//! Percentiles of a list of values: which ranks they need, how to find those without sorting, and what lies between.

use datafusion::arrow::array::Float64Builder;
use datafusion::common::{Result, plan_err};
use smallvec::SmallVec;

use super::selection;

/// Up to this many values are sorted, which is faster than selecting from them.
const SORT_BELOW: usize = 32;

/// More ranks than this are found by sorting: selecting would recurse once for each.
const SORT_ABOVE_RANKS: usize = 32;

/// Which of the usual definitions of a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// SQL's `PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)` (ISO/IEC 9075-2:2003, aggregate functions): with the n
    /// values in order and counted from 0, the value at rank `p(n-1)`, linear between the two neighbours. The same
    /// as type 7 of Hyndman and Fan, the default of NumPy, R and DuckDB.
    Continuous,
    /// The same with `ORDER BY x DESC`: the value at rank `p(n-1)` from the top.
    ContinuousDescending,
    /// Nearest rank: the value at place `ceil(pn)` counted from 1; the smallest for p = 0.
    Nearest,
}

/// The percentiles that are asked for, in the order asked.
#[derive(Debug)]
pub struct Quantiles {
    /// Each between 0 and 1.
    fractions: Vec<f64>,
    method: Method,
}

impl Quantiles {
    /// # Errors
    /// If a fraction is not between 0 and 1; `function` is the name for that sentence.
    pub fn new(function: &str, fractions: Vec<f64>, method: Method) -> Result<Self> {
        let in_range = |fraction: &&f64| !(0.0..=1.0).contains(*fraction);
        if let Some(outside) = fractions.iter().find(in_range) {
            return plan_err!(
                "{function}: a percentile is given as a number from 0 to 1, such as 0.95, and {outside} is not"
            );
        }
        Ok(Self { fractions, method })
    }

    /// The median.
    pub fn median() -> Self {
        Self { fractions: vec![0.5], method: Method::Continuous }
    }

    /// How many percentiles are asked for.
    pub fn len(&self) -> usize {
        self.fractions.len()
    }

    /// Appends the percentiles of `values` (none of them NaN) to `found`, nulls if there is no value.
    /// Reorders `values`.
    pub fn of(&self, values: &mut [f64], found: &mut Float64Builder) {
        match values {
            [] => found.append_nulls(self.len()),
            [only] => self.fractions.iter().for_each(|_| found.append_value(*only)),
            _ => {
                let positions = self.positions(values.len());
                select(values, 0, &ranks(&positions));
                for position in positions {
                    found.append_value(position.value_in(|rank| values[rank]));
                }
            }
        }
    }

    /// The same of [very many](selection::WORTHWHILE) values in several parts, each value by its bytes.
    pub fn of_parts(&self, parts: &[&[[u8; 8]]], found: &mut Float64Builder) {
        let positions = self.positions(parts.iter().map(|part| part.len()).sum());
        let ranks = ranks(&positions);
        let values = selection::values_at(parts, &ranks);
        for position in positions {
            found.append_value(position.value_in(|rank| values[ranks.partition_point(|&other| other < rank)]));
        }
    }

    fn positions(&self, count: usize) -> SmallVec<[Position; 8]> {
        let position = |&fraction: &f64| Position::new(self.method, fraction, count);
        self.fractions.iter().map(position).collect()
    }
}

/// Where a percentile lies among values in ascending order.
#[derive(Debug, PartialEq)]
struct Position {
    lower: usize,
    upper: usize,
    /// How far from `lower` to `upper`, from 0 to less than 1.
    weight: f64,
}

impl Position {
    fn new(method: Method, fraction: f64, count: usize) -> Self {
        let last = (count - 1) as f64;
        match method {
            Method::Continuous => Self::at(whole_if_meant(fraction * last)),
            Method::ContinuousDescending => Self::at(last - whole_if_meant(fraction * last)),
            Method::Nearest => {
                let place = whole_if_meant(fraction * count as f64).ceil();
                Self::at((place - 1.0).max(0.0))
            }
        }
    }

    fn at(rank: f64) -> Self {
        Self { lower: rank.floor() as usize, upper: rank.ceil() as usize, weight: rank.fract() }
    }

    fn value_in(&self, value_at: impl Fn(usize) -> f64) -> f64 {
        between(value_at(self.lower), value_at(self.upper), self.weight)
    }
}

/// The ranks that the positions lie between, ascending.
fn ranks(positions: &[Position]) -> SmallVec<[usize; 16]> {
    let mut ranks: SmallVec<[usize; 16]> = positions.iter().flat_map(|p| [p.lower, p.upper]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// A product such as 0.07 * 100 is 7.000000000000001 in floating point, and its ceiling one rank too high. A rank that is
/// whole but for the rounding of the fraction and of the product (half a unit in the last place each) is meant to be whole.
fn whole_if_meant(rank: f64) -> f64 {
    let whole = rank.round();
    if (rank - whole).abs() <= rank * f64::EPSILON { whole } else { rank }
}

/// The point between `lower` and `upper`, never outside of the two, whatever rounding does.
fn between(lower: f64, upper: f64, weight: f64) -> f64 {
    if weight == 0.0 || lower == upper {
        return lower;
    }
    let distance = upper - lower;
    let value = if distance.is_finite() {
        lower + distance * weight
    } else {
        // Two finite values can be further apart than the largest number.
        lower * (1.0 - weight) + upper * weight
    };
    // Between minus and plus infinity there is no number: NaN becomes `lower` here.
    value.max(lower).min(upper)
}

/// Puts the values of the given ranks, ascending, where they would be if `values` were sorted; `values[0]` has rank `first`.
///
/// Quickselect of the rank nearest to the middle, then of the others on their side of it: for P50, P95 and P99
/// about the work of selecting two.
fn select(values: &mut [f64], first: usize, ranks: &[usize]) {
    if ranks.is_empty() {
        return;
    }
    if values.len() < SORT_BELOW || ranks.len() > SORT_ABOVE_RANKS {
        values.sort_unstable_by(f64::total_cmp);
        return;
    }
    let middle = first + values.len() / 2;
    let after = ranks.partition_point(|&rank| rank < middle);
    let nearest = match (ranks.get(after.wrapping_sub(1)), ranks.get(after)) {
        (Some(&below), Some(&above)) if middle - below <= above - middle => after - 1,
        (Some(_), None) => after - 1,
        _ => after,
    };
    let rank = ranks[nearest];
    let (below, _, above) = values.select_nth_unstable_by(rank - first, f64::total_cmp);
    select(below, first, &ranks[..nearest]);
    select(above, rank + 1, &ranks[nearest + 1..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quantiles(values: &[f64], fractions: &[f64], method: Method) -> Vec<Option<f64>> {
        let mut found = Float64Builder::new();
        Quantiles::new("test", fractions.to_vec(), method).unwrap().of(&mut values.to_vec(), &mut found);
        found.finish().iter().collect()
    }

    fn quantile(values: &[f64], fraction: f64, method: Method) -> f64 {
        quantiles(values, &[fraction], method)[0].unwrap()
    }

    #[test]
    fn a_continuous_percentile_lies_between_its_neighbours() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();

        assert_eq!(quantile(&values, 0.5, Method::Continuous), 4.5);
        assert_eq!(quantile(&values, 0.0, Method::Continuous), 0.0);
        assert_eq!(quantile(&values, 1.0, Method::Continuous), 9.0);
        assert_eq!(quantile(&[0.0, 1.0, 2.0], 2.5e-7, Method::Continuous), 5e-7);
    }

    #[test]
    fn a_descending_percentile_counts_from_the_top() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];

        assert_eq!(quantile(&values, 0.25, Method::ContinuousDescending), 4.0);
        assert_eq!(quantile(&values, 0.0, Method::ContinuousDescending), 5.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.25, Method::ContinuousDescending), 1.75);
    }

    #[test]
    fn a_nearest_rank_is_a_value_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();

        for percent in 1..=100 {
            let fraction = f64::from(percent) / 100.0;
            let found = quantile(&values, fraction, Method::Nearest);
            assert_eq!(found, f64::from(percent), "P{percent} of 1 to 100");
        }
        assert_eq!(quantile(&values, 0.0, Method::Nearest), 1.0);
        assert_eq!(quantile(&values, 0.001, Method::Nearest), 1.0);
        assert_eq!(quantile(&values, 0.501, Method::Nearest), 51.0);
    }

    #[test]
    fn a_rank_meant_to_be_whole_is_whole() {
        let values: Vec<f64> = (0..=100).map(|i| f64::from(i) / 3.0).collect();

        for percent in 0..=100_u32 {
            let fraction = f64::from(percent) / 100.0;
            let found = quantile(&values, fraction, Method::Continuous);
            assert_eq!(found, values[percent as usize], "P{percent}");
        }
    }

    #[test]
    fn extremes_neither_overflow_nor_become_nan() {
        let far = [-f64::MAX, f64::MAX];
        assert_eq!(quantile(&far, 0.5, Method::Continuous), 0.0);
        let ratio = quantile(&far, 0.75, Method::Continuous) / (f64::MAX / 2.0);
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");

        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(quantile(&[1.0, high], 0.5, Method::Continuous), high);
        assert_eq!(quantile(&[low, 1.0], 0.5, Method::Continuous), low);
        assert_eq!(quantile(&[low, high], 0.5, Method::Continuous), low);
        assert_eq!(quantile(&[high, high], 0.5, Method::Continuous), high);
    }

    #[test]
    fn without_values_each_percentile_is_null() {
        let found = quantiles(&[], &[0.5, 0.99], Method::Continuous);
        assert_eq!(found, [None, None]);
    }

    #[test]
    fn a_percent_is_refused_where_a_fraction_is_meant() {
        for wrong in [95.0, -0.1, f64::NAN] {
            let error = Quantiles::new("percentiles", vec![0.5, wrong], Method::Nearest);
            let error = error.unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong} is not")), "{error}");
        }
    }

    /// The definition, word for word, on sorted values.
    fn by_sorting(values: &[f64], fraction: f64, method: Method) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = (sorted.len() - 1) as f64;
        let rank = match method {
            Method::Continuous => fraction * last,
            Method::ContinuousDescending => last - fraction * last,
            Method::Nearest => ((fraction * sorted.len() as f64).ceil() - 1.0).max(0.0),
        };
        let (lower, upper) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
        lower + (upper - lower) * rank.fract()
    }

    proptest! {
        #[test]
        fn selecting_agrees_with_sorting(
            values in prop::collection::vec(-1e6..1e6_f64, 1..500),
            // 1/64 is exact, so that the oracle needs no rule for ranks meant to be whole
            steps in prop::collection::vec(0..=64_u32, 1..40),
            method in prop::sample::select(vec![
                Method::Continuous,
                Method::ContinuousDescending,
                Method::Nearest,
            ]),
        ) {
            let fractions: Vec<f64> = steps.iter().map(|&step| f64::from(step) / 64.0).collect();

            let found = quantiles(&values, &fractions, method);

            for (found, &fraction) in found.iter().zip(&fractions) {
                let expected = by_sorting(&values, fraction, method);
                prop_assert!((found.unwrap() - expected).abs() <= 1e-9 * expected.abs().max(1.0));
            }
        }

        #[test]
        fn a_percentile_stays_within_the_values(
            values in prop::collection::vec(any::<f64>().prop_filter("no NaN", |x| !x.is_nan()), 1..100),
            fraction in 0.0..=1.0_f64,
        ) {
            let found = quantile(&values, fraction, Method::Continuous);

            prop_assert!(values.iter().any(|&value| value <= found));
            prop_assert!(values.iter().any(|&value| value >= found));
        }
    }
}
