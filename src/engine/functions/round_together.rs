//! `round_together(amount, places) OVER (PARTITION BY ... ORDER BY ...)`: the amounts of a partition in so many decimals, rounded
//! so that they add up to their sum in as many. The largest remainders are rounded up, of equal ones the first.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDFImpl};

use crate::cost::MONEY_SCALE;
use crate::cost::rounding::rounded;
use crate::record::Kind;

/// Decimals of the answers, those of money in a record.
const SCALE: u32 = 12;

/// The window function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RoundTogether {
    signature: Signature,
}

impl RoundTogether {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl WindowUDFImpl for RoundTogether {
    fn name(&self) -> &str {
        "round_together"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [_, _] => Ok(vec![DataType::Decimal128(38, MONEY_SCALE), DataType::Int64]),
            _ => plan_err!("round_together takes an amount and a number of decimals"),
        }
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Together))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), Kind::Money.data_type(), true)))
    }
}

#[derive(Debug)]
struct Together;

impl PartitionEvaluator for Together {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let amounts: Vec<Option<i128>> = values[0].as_primitive::<Decimal128Type>().iter().collect();
        let places = values[1].as_primitive::<Int64Type>();
        let places = if rows > 0 && places.is_valid(0) { places.value(0) } else { i64::from(SCALE) };
        let Some(places) = u32::try_from(places).ok().filter(|places| *places <= SCALE) else {
            return exec_err!("round_together keeps 0 to {SCALE} decimals, not {places}");
        };
        let unit = 10i128.pow(MONEY_SCALE.unsigned_abs() as u32 - places);
        let total = amounts.iter().flatten().sum();
        let of_scale = 10i128.pow(SCALE - places);
        let together =
            rounded(&amounts, Some(total), unit).into_iter().map(|amount| amount.map(|units| units * of_scale));
        let together = together.collect::<Decimal128Array>();
        Ok(Arc::new(together.with_data_type(Kind::Money.data_type())))
    }
}
