//! Passes on the rows that a condition holds for.
//!
//! Most batches of logs are within the asked time range as a whole, or outside it: such a batch passes as it is, or not at
//! all, while the engine's own filter copies every column to fill its batches up.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::compute::{filter_record_batch, prep_null_mask_filter};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::StreamExt;

/// A filter for conditions that hold for most rows.
#[derive(Debug)]
pub struct SieveExec {
    condition: Arc<dyn PhysicalExpr>,
    input: Arc<dyn ExecutionPlan>,
}

impl SieveExec {
    /// `condition` is over the columns of `input`.
    pub fn new(condition: Arc<dyn PhysicalExpr>, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { condition, input }
    }
}

impl DisplayAs for SieveExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SieveExec: {}", self.condition)
    }
}

impl ExecutionPlan for SieveExec {
    fn name(&self) -> &str {
        "SieveExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit(&self.condition)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.condition.clone(), children.swap_remove(0))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let (schema, condition) = (stream.schema(), self.condition.clone());
        let kept = stream.map(move |batch| {
            let batch = batch?;
            let holds = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
            let holds = as_boolean_array(&holds)?;
            // what is not known does not hold
            let holds = if holds.nulls().is_some() { &prep_null_mask_filter(holds) } else { holds };
            if holds.true_count() == batch.num_rows() {
                return Ok(batch);
            }
            Ok(filter_record_batch(&batch, holds)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, kept)))
    }
}
