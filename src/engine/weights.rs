//! A question about sampled logs: each record counts for as many requests as its weight says.
//!
//! A report is written as if all requests were logged. Over a sample its plan is changed instead: the weight is carried from
//! the scan through everything that keeps rows apart, up to the first aggregate, whose counts become sums of weights, whose
//! sums weigh their values and whose percentiles are [`weighted_percentiles`](super::functions). So every report, also a
//! user's own, is right without a word about it in its SQL. What cannot be known from a sample is refused.
//!
//! A record that was sampled at an unknown rate makes every count and sum that it is part of unknown.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as PlanColumn, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionDefinition};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, col, lit, try_cast, when,
};

use crate::cost::MONEY_SCALE;
use crate::engine::mistake::SqlMistake;
use crate::record::Column;

/// The weight on its way up, under a name that no query has.
const CARRIED: &str = "__weight";

/// Tables of records.
const RECORDS: [&str; 4] = ["logs", "requests", "attempts", "inference_logs"];

/// The same question over records of which each stands for as many as its weight says.
///
/// # Errors
/// [`SqlMistake::NotOfASample`] where the answer needs every request.
pub fn weighted(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let asked: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let Weighed { plan, weight } = Weighing { state }.weigh(plan)?;
    match weight {
        Some(_) => LogicalPlanBuilder::from(plan).project(asked)?.build(),
        None => Ok(plan),
    }
}

/// A plan, and the column of its rows that holds their weight; none where they are no records any more.
struct Weighed {
    plan: LogicalPlan,
    weight: Option<PlanColumn>,
}

struct Weighing<'a> {
    state: &'a SessionState,
}

impl Weighing<'_> {
    fn weigh(&self, plan: LogicalPlan) -> Result<Weighed> {
        if let LogicalPlan::TableScan(scan) = &plan {
            let is_of_records = RECORDS.contains(&scan.table_name.table());
            let weight = PlanColumn::new(Some(scan.table_name.clone()), Column::SampleWeight.name());
            let weight = (is_of_records && plan.schema().has_column(&weight)).then_some(weight);
            return Ok(Weighed { plan, weight });
        }
        refuse_subqueries(&plan)?;
        let inputs = plan.inputs().into_iter().map(|input| self.weigh(input.clone()));
        let inputs: Vec<Weighed> = inputs.collect::<Result<_>>()?;
        match &plan {
            LogicalPlan::Projection(_) => self.project(plan, inputs),
            LogicalPlan::SubqueryAlias(alias) => {
                let name = alias.alias.clone();
                let carried = inputs.iter().find_map(|input| input.weight.clone());
                let weight = carried.map(|weight| PlanColumn::new(Some(name), weight.name));
                Ok(Weighed { plan: rebuilt(&plan, inputs)?, weight })
            }
            LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::Unnest(_) => {
                let weight = inputs.iter().find_map(|input| input.weight.clone());
                Ok(Weighed { plan: rebuilt(&plan, inputs)?, weight })
            }
            LogicalPlan::Window(window) => {
                let weight = inputs.iter().find_map(|input| input.weight.clone());
                if weight.is_some() {
                    window.window_expr.iter().try_for_each(refuse_counts)?;
                }
                Ok(Weighed { plan: rebuilt(&plan, inputs)?, weight })
            }
            LogicalPlan::Join(_) => {
                let carried: Vec<PlanColumn> = inputs.iter().filter_map(|input| input.weight.clone()).collect();
                match carried.as_slice() {
                    [] | [_] => Ok(Weighed { plan: rebuilt(&plan, inputs)?, weight: carried.first().cloned() }),
                    _ => Err(refusal("what several requests have in common")),
                }
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, inputs),
            // the rest knows its rows as they were asked for
            _ => {
                let originals: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
                let stripped = inputs.into_iter().zip(originals).map(|(input, original)| match input.weight {
                    None => Ok(input.plan),
                    Some(_) => {
                        let asked = original.schema().columns().into_iter().map(Expr::Column);
                        LogicalPlanBuilder::from(input.plan).project(asked)?.build()
                    }
                });
                let inputs = stripped.collect::<Result<Vec<_>>>()?;
                Ok(Weighed { plan: plan.with_new_exprs(plan.expressions(), inputs)?, weight: None })
            }
        }
    }

    fn project(&self, plan: LogicalPlan, inputs: Vec<Weighed>) -> Result<Weighed> {
        let weight = inputs.iter().find_map(|input| input.weight.clone());
        let mut shown = plan.expressions();
        shown.extend(weight.iter().map(|weight| Expr::Column(weight.clone()).alias(CARRIED)));
        let inputs: Vec<LogicalPlan> = inputs.into_iter().map(|input| input.plan).collect();
        let [input] = <[LogicalPlan; 1]>::try_from(inputs)
            .map_err(|inputs| DataFusionError::Plan(format!("a projection of {} inputs", inputs.len())))?;
        let plan = LogicalPlanBuilder::from(input).project(shown)?.build()?;
        Ok(Weighed { plan, weight: weight.map(|_| PlanColumn::new_unqualified(CARRIED)) })
    }

    /// Aggregates that weigh, and above them what makes the asked values of theirs.
    fn aggregate(&self, aggregate: &Aggregate, inputs: Vec<Weighed>) -> Result<Weighed> {
        let plan = LogicalPlan::Aggregate(aggregate.clone());
        let Some(weight) = inputs.iter().find_map(|input| input.weight.clone()) else {
            return Ok(Weighed { plan: rebuilt(&plan, inputs)?, weight: None });
        };
        let Some(Weighed { plan: input, .. }) = inputs.into_iter().next() else {
            return Ok(Weighed { plan, weight: None });
        };
        let weight = Expr::Column(weight);
        let schema = input.schema().clone();
        let mut parts = Parts { state: self.state, weight, found: Vec::new() };
        let groups = aggregate.group_expr.len();
        let mut shown: Vec<Expr> = plan.schema().columns().into_iter().take(groups).map(Expr::Column).collect();
        for asked in &aggregate.aggr_expr {
            let name = asked.schema_name().to_string();
            shown.push(parts.weighted(unaliased(asked), &schema)?.alias(name));
        }
        let builder = LogicalPlanBuilder::from(input).aggregate(aggregate.group_expr.clone(), parts.found)?;
        Ok(Weighed { plan: builder.project(shown)?.build()?, weight: None })
    }
}

/// The aggregates that a weighted answer is made of.
struct Parts<'a> {
    state: &'a SessionState,
    weight: Expr,
    found: Vec<Expr>,
}

impl Parts<'_> {
    /// What an aggregate of all requests is estimated by, over the aggregates that are computed.
    fn weighted(&mut self, asked: &Expr, schema: &DFSchema) -> Result<Expr> {
        let Expr::AggregateFunction(call) = asked else {
            return Err(refusal("what it asks"));
        };
        let AggregateFunctionParams { args, distinct, .. } = &call.params;
        let weight = self.weight.clone();
        Ok(match (call.func.name(), args.as_slice()) {
            ("count", [value]) if !distinct => {
                let weighed = if matches!(value, Expr::Literal(..)) {
                    weight
                } else {
                    when(value.clone().is_not_null(), weight).end()?
                };
                let there = self.part(call, count(value.clone()));
                let known = self.part(call, count(weighed.clone()));
                let sum = self.part(call, self.function("exact_sum", vec![weighed])?);
                let estimate = try_cast(self.round(sum)?, DataType::Int64);
                when(there.clone().eq(lit(0_i64)), lit(0_i64)).when(there.eq(known), estimate).end()?
            }
            ("sum" | "exact_sum", [value]) if !distinct => {
                let asked_type = asked.get_type(schema)?;
                if matches!(asked_type, DataType::Decimal128(_, 1..)) {
                    return self.money(call, value, asked_type);
                }
                let product = cast(value.clone(), DataType::Float64) * weight;
                let there = self.part(call, count(value.clone()));
                let known = self.part(call, count(product.clone()));
                let sum = self.part(call, self.function("exact_sum", vec![product])?);
                let estimate = if asked_type == DataType::Float64 { sum } else { self.round(sum)? };
                when(there.eq(known), try_cast(estimate, asked_type)).end()?
            }
            ("exact_mean", [value]) if !distinct => {
                let number = cast(value.clone(), DataType::Float64);
                let weighed = when(value.clone().is_not_null(), weight.clone()).end()?;
                let there = self.part(call, count(value.clone()));
                let known = self.part(call, count(weighed.clone()));
                let sum = self.part(call, self.function("exact_sum", vec![number * weight])?);
                let weights = self.part(call, self.function("exact_sum", vec![weighed])?);
                when(there.eq(known), sum / weights).end()?
            }
            ("percentiles", [value, fractions]) => {
                self.percentiles(call, "weighted_percentiles", value, fractions.clone())?
            }
            ("percentiles_nearest", [value, fractions]) => {
                self.percentiles(call, "weighted_percentiles_nearest", value, fractions.clone())?
            }
            ("median", [value]) => {
                let half = ScalarValue::new_list_nullable(&[ScalarValue::Float64(Some(0.5))], &DataType::Float64);
                let half = Expr::Literal(ScalarValue::List(half), None);
                let list = self.percentiles(call, "weighted_percentiles", value, half)?;
                self.state.udf("array_element")?.call(vec![list, lit(1_i64)])
            }
            // the least, the most, and how many different ones there are at least
            ("min" | "max" | "bool_or" | "bool_and" | "count", _) => self.part(call, asked.clone()),
            ("breakdown", _) => return Err(refusal("who fails more often than others")),
            (other, _) => return Err(refusal(&format!("`{other}`"))),
        })
    }

    /// A sum of money, which is no float, weighted or not.
    fn money(&mut self, call: &AggregateFunction, value: &Expr, asked_type: DataType) -> Result<Expr> {
        let exact = cast(value.clone(), DataType::Decimal256(56, MONEY_SCALE));
        let product = exact * cast(self.weight.clone(), DataType::Decimal256(18, 6));
        let there = self.part(call, count(value.clone()));
        let known = self.part(call, count(product.clone()));
        let sum = self.part(call, self.function("sum", vec![product])?);
        when(there.eq(known), try_cast(sum, asked_type)).end()
    }

    fn percentiles(&mut self, call: &AggregateFunction, function: &str, value: &Expr, fractions: Expr) -> Result<Expr> {
        let weighted = self.function(function, vec![value.clone(), fractions, self.weight.clone()])?;
        Ok(self.part(call, weighted))
    }

    fn function(&self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        Ok(self.state.udaf(name)?.call(args))
    }

    fn round(&self, value: Expr) -> Result<Expr> {
        Ok(self.state.udf("round")?.call(vec![value]))
    }

    /// Computes a part under the filter of the `call` that it is for; the column that it becomes.
    fn part(&mut self, call: &AggregateFunction, part: Expr) -> Expr {
        let part = match part {
            Expr::AggregateFunction(mut part) => {
                part.params.filter = call.params.filter.clone();
                Expr::AggregateFunction(part)
            }
            other => other,
        };
        let place = self.found.iter().position(|found| found.clone().unalias() == part);
        let place = place.unwrap_or(self.found.len());
        let name = format!("__part_{place}");
        if place == self.found.len() {
            self.found.push(part.alias(&name));
        }
        col(PlanColumn::new_unqualified(name))
    }
}

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

fn rebuilt(plan: &LogicalPlan, inputs: Vec<Weighed>) -> Result<LogicalPlan> {
    plan.with_new_exprs(plan.expressions(), inputs.into_iter().map(|input| input.plan).collect())
}

/// Counts and sums over windows of records would count the sample.
fn refuse_counts(window: &Expr) -> Result<()> {
    let Expr::WindowFunction(call) = unaliased(window) else { return Ok(()) };
    match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) if !["min", "max"].contains(&function.name()) => {
            Err(refusal(&format!("`{}` over rows", function.name())))
        }
        WindowFunctionDefinition::WindowUDF(function)
            if ["lag", "lead", "replay_prefixes"].contains(&function.name()) =>
        {
            Err(refusal("the order"))
        }
        _ => Ok(()),
    }
}

fn refuse_subqueries(plan: &LogicalPlan) -> Result<()> {
    for expression in plan.expressions() {
        expression.apply(|part| match part {
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => Err(refusal("a query within it")),
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
    }
    Ok(())
}

fn refusal(what: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlMistake::NotOfASample { what: what.to_owned() }))
}
