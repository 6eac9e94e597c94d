//! `percentiles(x, [0.5, 0.95, 0.99])` and `percentiles_nearest`: several exact percentiles out of one state.
//!
//! The answer is a list in the order asked, so `percentiles(x, [0.5, 0.99])[2]` is P99. The engine computes equal
//! aggregate calls once, so a query may write the call once for each percentile it shows. Without any value the
//! list holds nulls. Nulls and NaN are no values; infinities are.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryViewArray, Float64Array, Float64Builder, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Signature, Volatility};

use super::accumulator::{GroupStates, Grouped, Ungrouped, state_fields};
use super::argument::{constants, fractions, list_of, measured, refuse_distinct};
use super::quantile::{Method, Quantiles};
use super::samples::{Group, Samples};

/// The aggregate function, of either method.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Percentiles {
    name: &'static str,
    method: Method,
    signature: Signature,
}

impl Percentiles {
    /// `percentiles`
    pub fn continuous() -> Self {
        Self {
            name: "percentiles",
            method: Method::Continuous,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// `percentiles_nearest`
    pub fn nearest() -> Self {
        Self { name: "percentiles_nearest", method: Method::Nearest, ..Self::continuous() }
    }

    fn states(&self, args: &AccumulatorArgs) -> Result<PercentileStates> {
        refuse_distinct(self.name, args)?;
        let quantiles = Quantiles::new(self.name, fractions(self.name, args)?, self.method)?;
        Ok(PercentileStates::new(quantiles, Shape::List))
    }
}

impl AggregateUDFImpl for Percentiles {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, list] = arg_types else {
            return plan_err!(
                "{0} takes a number and a list of percentiles, as in {0}(total_latency_ms, [0.5, 0.95])",
                self.name
            );
        };
        Ok(vec![measured(self.name, value)?, constants(self.name, list, DataType::Float64)?])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(list_of(DataType::Float64))
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

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|call, _| Ok(share_list(call))))
    }
}

/// The engine repeats a constant argument for each row of each batch, and for a list that costs more than the
/// aggregate itself. As a dictionary of one entry all rows share it.
fn share_list(mut call: AggregateFunction) -> Expr {
    if let Some(Expr::Literal(value, _)) = call.params.args.get_mut(1)
        && matches!(value, ScalarValue::List(_))
    {
        let list = std::mem::replace(value, ScalarValue::Null);
        *value = ScalarValue::Dictionary(Box::new(DataType::Int8), Box::new(list));
    }
    Expr::AggregateFunction(call)
}

/// How the percentiles of a group become a row.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A list with one item for each.
    List,
    /// The number itself, of the one that was asked.
    Number,
}

/// The groups of a percentile aggregate.
#[derive(Debug)]
pub struct PercentileStates {
    samples: Samples,
    quantiles: Quantiles,
    shape: Shape,
}

impl PercentileStates {
    pub fn new(quantiles: Quantiles, shape: Shape) -> Self {
        Self { samples: Samples::default(), quantiles, shape }
    }

    fn column(&self, found: Float64Array, groups: usize) -> Result<ArrayRef> {
        match self.shape {
            Shape::Number => Ok(Arc::new(found)),
            Shape::List if i32::try_from(found.len()).is_err() => {
                exec_err!("{groups} groups with {} percentiles each are too many for one answer", self.quantiles.len())
            }
            Shape::List => Ok(Arc::new(ListArray::try_new(
                Arc::new(Field::new_list_field(DataType::Float64, true)),
                OffsetBuffer::from_repeated_length(self.quantiles.len(), groups),
                Arc::new(found),
                None,
            )?)),
        }
    }
}

impl GroupStates for PercentileStates {
    fn resize(&mut self, groups: usize) {
        self.samples.resize(groups);
    }

    fn add(&mut self, group: usize, value: f64) {
        self.samples.add(group, value);
    }

    fn add_all(&mut self, group: usize, values: impl Iterator<Item = f64>) {
        self.samples.add_all(group, values);
    }

    fn merge(&mut self, states: &BinaryViewArray, groups: &[usize]) -> Result<()> {
        self.samples.merge(states, groups)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<BinaryViewArray> {
        self.samples.state(emit_to)
    }

    fn answers(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = self.samples.emitted(emit_to);
        let mut found = Float64Builder::with_capacity(groups * self.quantiles.len());
        self.samples.drain(emit_to, |group| match group {
            Group::Few(values) => self.quantiles.of(values, &mut found),
            Group::Parts(parts) => self.quantiles.of_parts(parts, &mut found),
        })?;
        self.column(found.finish(), groups)
    }

    fn answer(&mut self) -> Result<ArrayRef> {
        let mut found = Float64Builder::with_capacity(self.quantiles.len());
        self.quantiles.of(self.samples.only()?, &mut found);
        self.column(found.finish(), 1)
    }

    fn size(&self) -> usize {
        self.samples.size()
    }
}
