//! `around(gap, n) OVER (PARTITION BY ... ORDER BY ...)`: what is usual around each row: the median of the gaps in the `n` rows
//! with the row in their middle, and their median absolute deviation from it (MAD), as `{median, mad, known}`.
//!
//! There are fewer rows at either end, and one more where `n` is even, so that both sides are equal. An unknown gap keeps its
//! place and is not counted in `known`; infinities and NaN are unknown. Both medians are by nearest rank, of two middle values
//! the lower: they are gaps, or differences of gaps, that occurred. Null without any.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDFImpl};

use super::argument::measured;

/// The window function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Around {
    signature: Signature,
}

impl Around {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("median", DataType::Float64, true),
        Field::new("mad", DataType::Float64, true),
        Field::new("known", DataType::Int64, false),
    ])
}

impl WindowUDFImpl for Around {
    fn name(&self) -> &str {
        "around"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [gap, _] => Ok(vec![measured(self.name(), gap)?, DataType::Int64]),
            _ => plan_err!("around takes a number and how many rows, as in around(gap_ms, 31)"),
        }
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Surroundings))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Struct(fields()), true)))
    }
}

#[derive(Debug)]
struct Surroundings;

impl PartitionEvaluator for Surroundings {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let gaps: Vec<Option<f64>> = values[0].as_primitive::<Float64Type>().iter().collect();
        let wide = values[1].as_primitive::<Int64Type>();
        let wide = if rows > 0 && wide.is_valid(0) { usize::try_from(wide.value(0)).unwrap_or(0) } else { 0 };
        if rows > 0 && wide == 0 {
            return exec_err!("around looks at 1 row or more");
        }
        let usual = usual_around(&gaps, wide / 2);
        let of =
            |part: fn(&Usual) -> Option<f64>| Arc::new(usual.iter().map(part).collect::<Float64Array>()) as ArrayRef;
        let known = usual.iter().map(|usual| Some(usual.known as i64)).collect::<Int64Array>();
        let columns = vec![of(|usual| usual.median), of(|usual| usual.mad), Arc::new(known)];
        Ok(Arc::new(StructArray::try_new(fields(), columns, None)?))
    }
}

/// What is usual among the known of some gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Usual {
    median: Option<f64>,
    mad: Option<f64>,
    known: usize,
}

impl Usual {
    fn of(sorted: &[f64]) -> Self {
        let half = sorted.len().div_ceil(2);
        if half == 0 {
            return Self { median: None, mad: None, known: 0 };
        }
        let median = sorted[half - 1];
        // the half of the gaps that is nearest to the median is a stretch of the sorted ones
        let farthest = |stretch: &[f64]| (median - stretch[0]).max(stretch[half - 1] - median);
        let mad = sorted.windows(half).map(farthest).min_by(f64::total_cmp);
        Self { median: Some(median), mad, known: sorted.len() }
    }
}

/// For each gap, what is usual among itself and the `half` gaps on either side.
fn usual_around(gaps: &[Option<f64>], half: usize) -> Vec<Usual> {
    let known = |row: usize| gaps.get(row).copied().flatten().filter(|gap| gap.is_finite());
    let place = |sorted: &[f64], gap: f64| sorted.partition_point(|other| other.total_cmp(&gap).is_lt());
    let mut sorted = Vec::new();
    let enter = |sorted: &mut Vec<f64>, row: usize| {
        if let Some(gap) = known(row) {
            sorted.insert(place(sorted, gap), gap);
        }
    };
    (0..half).for_each(|row| enter(&mut sorted, row));
    let usual = |row: usize| {
        enter(&mut sorted, row + half);
        if let Some(gap) = row.checked_sub(half + 1).and_then(known) {
            sorted.remove(place(&sorted, gap));
        }
        Usual::of(&sorted)
    };
    (0..gaps.len()).map(usual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn low_median(mut values: Vec<f64>) -> Option<f64> {
        values.sort_by(f64::total_cmp);
        values.get(values.len().div_ceil(2).checked_sub(1)?).copied()
    }

    #[test]
    fn an_even_stretch_with_one_stall_has_a_mad_of_zero() {
        let mut gaps = vec![Some(20.0); 40];
        gaps[20] = Some(320.0);
        let usual = usual_around(&gaps, 15);
        assert_eq!(usual[20], Usual { median: Some(20.0), mad: Some(0.0), known: 31 });
        assert_eq!(usual.iter().map(|usual| usual.known).max(), Some(31));
    }

    #[test]
    fn there_are_fewer_rows_at_either_end() {
        let gaps: Vec<Option<f64>> = (1..=7).map(|gap| Some(f64::from(gap))).collect();
        let usual = usual_around(&gaps, 2);
        let medians: Vec<Option<f64>> = usual.iter().map(|usual| usual.median).collect();
        assert_eq!(medians, [2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0].map(Some));
        let known: Vec<usize> = usual.iter().map(|usual| usual.known).collect();
        assert_eq!(known, [3, 4, 5, 5, 5, 4, 3]);
    }

    #[test]
    fn of_two_middle_values_the_lower_is_the_median_and_the_mad() {
        // deviations from 2 are 1, 0, 8, 98
        assert_eq!(Usual::of(&[1.0, 2.0, 10.0, 100.0]), Usual { median: Some(2.0), mad: Some(1.0), known: 4 });
    }

    #[test]
    fn an_unknown_gap_keeps_its_place() {
        let gaps = [None, Some(5.0), None, Some(f64::NAN), Some(f64::INFINITY), Some(7.0)];
        let usual = usual_around(&gaps, 1);
        let nothing = Usual { median: None, mad: None, known: 0 };
        let only = |gap| Usual { median: Some(gap), mad: Some(0.0), known: 1 };
        assert_eq!(usual, [only(5.0), only(5.0), only(5.0), nothing, only(7.0), only(7.0)]);
    }

    #[test]
    fn one_row_is_what_is_usual_around_itself() {
        assert_eq!(usual_around(&[Some(3.0)], 0), [Usual { median: Some(3.0), mad: Some(0.0), known: 1 }]);
        assert_eq!(usual_around(&[], 15), []);
    }

    proptest! {
        #[test]
        fn each_answer_is_that_of_its_rows_alone(
            gaps in prop::collection::vec(prop::option::weighted(0.9, (-5_i32..40).prop_map(f64::from)), 0..60),
            half in 0_usize..20,
        ) {
            for (row, usual) in usual_around(&gaps, half).into_iter().enumerate() {
                let rows = &gaps[row.saturating_sub(half)..(row + half + 1).min(gaps.len())];
                let known: Vec<f64> = rows.iter().copied().flatten().collect();
                let median = low_median(known.clone());
                let mad = median.and_then(|median| low_median(known.iter().map(|gap| (gap - median).abs()).collect()));
                prop_assert_eq!(usual, Usual { median, mad, known: known.len() });
            }
        }
    }
}
