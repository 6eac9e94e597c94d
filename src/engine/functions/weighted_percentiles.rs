//! `weighted_percentiles(x, [0.5, 0.95], weight)` and `weighted_percentiles_nearest`: percentiles of a sample each of whose
//! values stands for `weight` values of what was sampled.
//!
//! With whole weights they are the percentiles of the list in which every value stands so many times. The continuous one of
//! a total weight W is the value at rank `p(W-1)`: a value of weight w takes up the ranks from what is before it to w - 1
//! further, and between the last rank of a value and the first of the next it is linear. Values without a positive weight
//! make the answer unknown.

use std::mem::size_of_val;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use super::argument::{constants, fractions, list_of, measured, refuse_distinct};
use super::quantile::Method;

/// The aggregate function, of either method.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct WeightedPercentiles {
    name: &'static str,
    method: Method,
    signature: Signature,
}

impl WeightedPercentiles {
    /// `weighted_percentiles`
    pub fn continuous() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { name: "weighted_percentiles", method: Method::Continuous, signature }
    }

    /// `weighted_percentiles_nearest`
    pub fn nearest() -> Self {
        Self { name: "weighted_percentiles_nearest", method: Method::Nearest, ..Self::continuous() }
    }
}

impl AggregateUDFImpl for WeightedPercentiles {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, list, weight] = arg_types else {
            return plan_err!(
                "{0} takes a number, a list of percentiles and a weight, as in {0}(total_latency_ms, [0.5], sample_weight)",
                self.name
            );
        };
        let fractions = constants(self.name, list, DataType::Float64)?;
        Ok(vec![measured(self.name, value)?, fractions, measured(self.name, weight)?])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(list_of(DataType::Float64))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |part| Arc::new(Field::new(format_state_name(args.name, part), list_of(DataType::Float64), true));
        Ok(vec![field("values"), field("weights")])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        refuse_distinct(self.name, &args)?;
        let fractions = fractions(self.name, &args)?;
        if let Some(outside) = fractions.iter().find(|fraction| !(0.0..=1.0).contains(*fraction)) {
            return plan_err!("{}: a percentile is given as a number from 0 to 1, and {outside} is not", self.name);
        }
        Ok(Box::new(Sample { fractions, method: self.method, values: Vec::new(), weights: Vec::new() }))
    }
}

/// The values so far, and what each stands for: NaN where that is not known.
#[derive(Debug)]
struct Sample {
    fractions: Vec<f64>,
    method: Method,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl Sample {
    /// None without a value, or where a weight is unknown.
    fn percentiles(&self) -> Option<Vec<f64>> {
        let is_unknown = |weight: &f64| weight.is_nan() || *weight <= 0.0;
        if self.values.is_empty() || self.weights.iter().any(is_unknown) {
            return None;
        }
        let mut sorted: Vec<(f64, f64)> = self.values.iter().copied().zip(self.weights.iter().copied()).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut before = 0.0;
        // each value with the ranks from where it is alone to where the next begins
        let ranked: Vec<(f64, f64, f64)> = sorted
            .into_iter()
            .map(|(value, weight)| {
                let first = before;
                before += weight;
                (value, first, before)
            })
            .collect();
        let total = before;
        Some(self.fractions.iter().map(|fraction| self.value_at(&ranked, total, *fraction)).collect())
    }

    fn value_at(&self, ranked: &[(f64, f64, f64)], total: f64, fraction: f64) -> f64 {
        let last = ranked.len() - 1;
        match self.method {
            Method::Nearest => ranked[ranked.partition_point(|rank| rank.2 < fraction * total).min(last)].0,
            Method::Continuous | Method::ContinuousDescending => {
                let rank = fraction * (total - 1.0).max(0.0);
                let place = ranked.partition_point(|place| place.2 <= rank).min(last);
                let (value, first, end) = ranked[place];
                let alone_until = (end - 1.0).max(first);
                match ranked.get(place + 1) {
                    Some((next, ..)) if rank > alone_until && next.is_finite() => {
                        value + (next - value) * (rank - alone_until) / (end - alone_until)
                    }
                    _ => value,
                }
            }
        }
    }
}

impl Accumulator for Sample {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = columns[0].as_primitive::<Float64Type>();
        let weights = columns[2].as_primitive::<Float64Type>();
        for row in (0..values.len()).filter(|&row| values.is_valid(row) && !values.value(row).is_nan()) {
            self.values.push(values.value(row));
            self.weights.push(if weights.is_valid(row) { weights.value(row) } else { f64::NAN });
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.percentiles() {
            Some(found) => list(found.into_iter().map(Some)),
            None => list(self.fractions.iter().map(|_| None)),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.values.capacity() + self.weights.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let all = |numbers: &[f64]| list(numbers.iter().copied().map(Some));
        Ok(vec![all(&self.values), all(&self.weights)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (states, known) in states.iter().zip([&mut self.values, &mut self.weights]) {
            for list in states.as_list::<i32>().iter().flatten() {
                known.extend(list.as_primitive::<Float64Type>().values());
            }
        }
        Ok(())
    }
}

fn list(numbers: impl Iterator<Item = Option<f64>>) -> ScalarValue {
    let numbers: Vec<ScalarValue> = numbers.map(ScalarValue::Float64).collect();
    ScalarValue::List(ScalarValue::new_list_nullable(&numbers, &DataType::Float64))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, new_null_array};
    use proptest::prelude::*;

    use super::*;
    use crate::engine::functions::quantile::Quantiles;

    fn sample(method: Method, values: &[f64], weights: &[f64], fractions: &[f64]) -> Option<Vec<f64>> {
        let mut sample = Sample { fractions: fractions.to_vec(), method, values: vec![], weights: vec![] };
        let column = |numbers: &[f64]| Arc::new(Float64Array::from(numbers.to_vec())) as ArrayRef;
        let unused = new_null_array(&DataType::Float64, values.len());
        sample.update_batch(&[column(values), unused, column(weights)]).unwrap();
        sample.percentiles()
    }

    proptest! {
        #[test]
        fn with_whole_weights_they_are_those_of_the_list_with_every_value_so_many_times(
            pairs in prop::collection::vec((-50_i32..50, 1_u8..6), 1..40),
            fraction in 0.0..=1.0,
        ) {
            let values: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0)).collect();
            let weights: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.1)).collect();
            for method in [Method::Continuous, Method::Nearest] {
                let found = sample(method, &values, &weights, &[fraction]).unwrap()[0];
                let mut list: Vec<f64> =
                    pairs.iter().flat_map(|pair| std::iter::repeat_n(f64::from(pair.0), pair.1.into())).collect();
                let mut expected = datafusion::arrow::array::Float64Builder::new();
                Quantiles::new("f", vec![fraction], method).unwrap().of(&mut list, &mut expected);
                let expected = expected.finish().value(0);
                prop_assert!((found - expected).abs() < 1e-9, "{method:?}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn a_weight_that_is_not_known_makes_the_answer_unknown() {
        assert_eq!(sample(Method::Continuous, &[1.0, 2.0], &[1.0, f64::NAN], &[0.5]), None);
        assert_eq!(sample(Method::Continuous, &[], &[], &[0.5]), None);
    }

    #[test]
    fn weights_below_one_weigh_less() {
        let found = sample(Method::Nearest, &[1.0, 2.0, 3.0], &[0.25, 0.25, 8.0], &[0.05, 0.5]);
        assert_eq!(found, Some(vec![2.0, 3.0]));
    }
}
