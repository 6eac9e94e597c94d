//! `median(x)`: the middle value, or half-way between the two in the middle. The stock one of this name cuts the median of
//! decimals to their scale.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::accumulator::{Grouped, Ungrouped, state_fields};
use super::argument::{measured, refuse_distinct};
use super::percentiles::{PercentileStates, Shape};
use super::quantile::Quantiles;

/// The aggregate function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Median {
    signature: Signature,
}

impl Median {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn states(&self, args: &AccumulatorArgs) -> Result<PercentileStates> {
        refuse_distinct(self.name(), args)?;
        Ok(PercentileStates::new(Quantiles::median(), Shape::Number))
    }
}

impl AggregateUDFImpl for Median {
    fn name(&self) -> &str {
        "median"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value] = arg_types else {
            return plan_err!("median takes one number, as in median(total_latency_ms)");
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
