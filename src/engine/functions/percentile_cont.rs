//! `percentile_cont`, under SQL's name and in all its spellings, so that SQL people already have is right:
//! `percentile_cont(x, 0.95)`, `quantile_cont(x, 0.95)` and `percentile_cont(0.95) WITHIN GROUP (ORDER BY x DESC)`.
//!
//! `percentile_cont_desc(x, p)` is what the engine sees of the last one: an `ORDER BY` inside an aggregate would make it sort
//! all rows first, and the order is only a matter of the side that ranks are counted from.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Signature, Volatility,
};

use super::accumulator::{Grouped, Ungrouped, state_fields};
use super::argument::{fraction, measured, refuse_distinct};
use super::percentiles::{PercentileStates, Shape};
use super::quantile::{Method, Quantiles};

/// The aggregate function, counting ranks from either side.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PercentileCont {
    name: &'static str,
    aliases: Vec<String>,
    method: Method,
    signature: Signature,
}

impl PercentileCont {
    /// `percentile_cont`
    pub fn ascending() -> Self {
        Self {
            name: "percentile_cont",
            aliases: vec!["quantile_cont".to_string()],
            method: Method::Continuous,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// `percentile_cont_desc`
    pub fn descending() -> Self {
        Self {
            name: "percentile_cont_desc",
            aliases: vec![],
            method: Method::ContinuousDescending,
            ..Self::ascending()
        }
    }

    fn states(&self, args: &AccumulatorArgs) -> Result<PercentileStates> {
        refuse_distinct(self.name, args)?;
        let fractions = vec![fraction(self.name, args)?];
        let quantiles = Quantiles::new(self.name, fractions, self.method)?;
        Ok(PercentileStates::new(quantiles, Shape::Number))
    }
}

impl AggregateUDFImpl for PercentileCont {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, fraction] = arg_types else {
            return plan_err!("{0} takes a number and a percentile, as in {0}(total_latency_ms, 0.95)", self.name);
        };
        Ok(vec![measured(self.name, value)?, measured(self.name, fraction)?])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields(&args, self.name))
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

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|call, _| Ok(without_order(call))))
    }
}

/// Turns the order of `WITHIN GROUP` into the function that counts from that side.
fn without_order(mut call: AggregateFunction) -> Expr {
    let order = std::mem::take(&mut call.params.order_by);
    if order.first().is_some_and(|sort| !sort.asc) {
        call.func = Arc::new(AggregateUDF::new_from_impl(PercentileCont::descending()));
    }
    Expr::AggregateFunction(call)
}
