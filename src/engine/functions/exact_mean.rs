//! `exact_mean(x)`: `exact_sum(x)` divided by the number of values, with the same bits for any number of threads and
//! files. Null without values; nulls and NaN are no values.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::accumulator::{Grouped, Ungrouped, state_fields};
use super::argument::{measured, refuse_distinct};
use super::fixed_sum::{FixedSums, Total};

/// The aggregate function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExactMean {
    signature: Signature,
}

impl ExactMean {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn states(&self, args: &AccumulatorArgs) -> Result<FixedSums> {
        refuse_distinct(self.name(), args)?;
        Ok(FixedSums::new(Total::mean))
    }
}

impl AggregateUDFImpl for ExactMean {
    fn name(&self) -> &str {
        "exact_mean"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value] = arg_types else {
            return plan_err!("exact_mean takes one number, as in exact_mean(total_latency_ms)");
        };
        Ok(vec![measured(self.name(), value)?])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(&args, self.name()))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Ungrouped::new(self.states(&args)?)))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Grouped(self.states(&args)?)))
    }
}
