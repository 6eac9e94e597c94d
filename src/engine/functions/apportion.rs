//! `apportion(amount, weight, places) OVER (PARTITION BY ... ORDER BY ...)`: an amount split by weights into parts of so many
//! decimals, by largest remainder, so that the parts of a partition are the amount to the last digit.
//!
//! The amount is that of the partition's first row. Of equal remainders the first row gets the unit. An amount below zero is
//! split like one above. Null where no row has a weight above zero; rows without weight get nothing.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, i256};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDFImpl};

use crate::record::Kind;

/// Decimals of the amount and of its parts, those of money in a record.
const SCALE: u32 = 12;

/// The window function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Apportion {
    signature: Signature,
}

impl Apportion {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl WindowUDFImpl for Apportion {
    fn name(&self) -> &str {
        "apportion"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let money = Kind::Money.data_type();
        match given {
            // weights keep their decimals: only their ratios count
            [_, DataType::Decimal128(_, scale), _] => {
                Ok(vec![money, DataType::Decimal128(38, *scale), DataType::Int64])
            }
            [_, _, _] => Ok(vec![money.clone(), money, DataType::Int64]),
            _ => plan_err!("apportion takes an amount, a weight and a number of decimals"),
        }
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Split))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), Kind::Money.data_type(), true)))
    }
}

#[derive(Debug)]
struct Split;

impl PartitionEvaluator for Split {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let amounts = values[0].as_primitive::<Decimal128Type>();
        let weights = values[1].as_primitive::<Decimal128Type>();
        let places = values[2].as_primitive::<Int64Type>();
        let mut parts = vec![None; rows];
        if rows > 0 && amounts.is_valid(0) && places.is_valid(0) {
            let weights: Vec<i128> = weights.iter().map(|weight| weight.unwrap_or(0).max(0)).collect();
            let Some(places) = u32::try_from(places.value(0)).ok().filter(|places| *places <= SCALE) else {
                return exec_err!("apportion keeps 0 to {SCALE} decimals, not {}", places.value(0));
            };
            if let Some(split) = apportioned(amounts.value(0), &weights, places) {
                parts = split.into_iter().map(Some).collect();
            }
        }
        let parts = parts.into_iter().collect::<Decimal128Array>();
        Ok(Arc::new(parts.with_data_type(Kind::Money.data_type())))
    }
}

/// The parts of an amount, in its own units of 10^-12; each but one a multiple of 10^-`places`. None without weights.
pub(super) fn apportioned(amount: i128, weights: &[i128], places: u32) -> Option<Vec<i128>> {
    let unit = 10i128.pow(SCALE - places);
    let (sign, size) = (amount.signum(), amount.abs());
    let units = size / unit;
    let total = weights.iter().fold(i256::ZERO, |sum, weight| sum.wrapping_add(i256::from_i128(*weight)));
    if total == i256::ZERO {
        return None;
    }
    let shares = weights.iter().map(|weight| i256::from_i128(units).wrapping_mul(i256::from_i128(*weight)));
    let (mut parts, remainders): (Vec<i128>, Vec<i256>) = shares
        .map(|share| {
            let whole = share.wrapping_div(total).to_i128().unwrap_or_default();
            (whole, share.wrapping_rem(total))
        })
        .unzip();
    let left = usize::try_from(units - parts.iter().sum::<i128>()).unwrap_or_default();
    let mut order: Vec<usize> = (0..weights.len()).filter(|row| weights[*row] > 0).collect();
    order.sort_by_key(|row| (std::cmp::Reverse(remainders[*row]), *row));
    order.iter().take(left).for_each(|row| parts[*row] += 1);
    parts.iter_mut().for_each(|part| *part *= sign * unit);
    // what is finer than a unit stays in one part
    let first = order.first()?;
    parts[*first] += sign * (size % unit);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOLLAR: i128 = 1_000_000_000_000;
    const CENT: i128 = DOLLAR / 100;

    #[test]
    fn a_hundred_dollars_over_three_equal_lines_are_a_hundred_dollars() {
        assert_eq!(apportioned(100 * DOLLAR, &[1, 1, 1], 2), Some(vec![3334 * CENT, 3333 * CENT, 3333 * CENT]));
        assert_eq!(apportioned(-100 * DOLLAR, &[1, 1, 1], 2), Some(vec![-3334 * CENT, -3333 * CENT, -3333 * CENT]));
    }

    #[test]
    fn the_largest_remainder_gets_the_unit_and_the_finest_digits_stay() {
        assert_eq!(apportioned(DOLLAR / 10 + 1, &[1, 2, 0], 2), Some(vec![3 * CENT, 7 * CENT + 1, 0]));
        assert_eq!(apportioned(DOLLAR, &[0, 0], 2), None);
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole_and_never_off_by_more_than_a_unit(
            amount in -1_000_000_000_000_000_000_000i128..1_000_000_000_000_000_000_000,
            weights in prop::collection::vec(0i128..1_000_000_000_000_000_000_000_000, 1..20),
            places in 0u32..=12,
        ) {
            let unit = 10i128.pow(SCALE - places);
            if let Some(parts) = apportioned(amount, &weights, places) {
                prop_assert_eq!(parts.iter().sum::<i128>(), amount);
                let total = weights.iter().sum::<i128>() as f64;
                for (part, weight) in parts.iter().zip(&weights) {
                    let exact = amount as f64 * *weight as f64 / total;
                    prop_assert!((*part as f64 - exact).abs() <= 2.0 * unit as f64 + exact.abs() * 1e-9);
                }
            }
        }
    }
}
