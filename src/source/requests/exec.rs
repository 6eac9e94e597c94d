//! The operator that merges: records sorted by id in, requests out.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PhysicalExpr, PlanProperties,
};
use futures::StreamExt;

use super::Unit;
use super::merger::{Merger, schema};
use super::skew::Skews;
use crate::source::counts::PublishedCounts;

/// Merges the records of each partition, all of an id being in one.
#[derive(Debug)]
pub(super) struct MergeExec {
    unit: Unit,
    input: Arc<dyn ExecutionPlan>,
    /// By the id first.
    order: LexOrdering,
    schema: SchemaRef,
    priorities: Arc<[(String, i64)]>,
    skews: Arc<Skews>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergeExec {
    /// `order` is that in which the records come, by the id first.
    pub fn new(
        unit: Unit,
        input: Arc<dyn ExecutionPlan>,
        order: LexOrdering,
        priorities: Arc<[(String, i64)]>,
        skews: Arc<Skews>,
    ) -> Self {
        let schema = schema(unit, &input.schema());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            datafusion::physical_plan::Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { unit, input, order, schema, priorities, skews, properties: Arc::new(properties), metrics }
    }
}

impl DisplayAs for MergeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MergeExec")
    }
}

impl ExecutionPlan for MergeExec {
    fn name(&self) -> &str {
        "MergeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    /// All records of an id in one partition.
    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(vec![self.order.first().expr.clone()])])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.order.clone()))]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (order, priorities, skews) = (self.order.clone(), self.priorities.clone(), self.skews.clone());
        Ok(Arc::new(Self::new(self.unit, children.swap_remove(0), order, priorities, skews)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let merger = Merger::new(self.unit, &input.schema(), self.priorities.clone(), self.skews.clone());
        let counts = PublishedCounts::new(self.metrics.clone(), partition);
        // the end of the input is a step of its own, in which the last requests come out
        let steps = input.map(Some).chain(futures::stream::iter([None]));
        let merged = steps.scan((merger, counts), |(merger, counts), step| {
            let batch = match step {
                Some(batch) => batch.and_then(|batch| merger.push(batch)),
                None => {
                    let last = merger.finish();
                    counts.duplicates = merger.counts.duplicates;
                    counts.collisions = merger.counts.collisions;
                    counts.unrelated = merger.counts.unrelated;
                    last
                }
            };
            futures::future::ready(Some(batch))
        });
        let merged = merged.filter_map(|batch: Result<Option<RecordBatch>>| futures::future::ready(batch.transpose()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), merged)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
