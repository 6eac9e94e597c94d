//! Passes on some of the rows of a scan, batch by batch.
//!
//! Most batches of logs are within the asked time range as a whole, or outside it: such a batch passes as it is, or not at
//! all, while the engine's own filter copies every column to fill its batches up.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{filter_record_batch, prep_null_mask_filter};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::StreamExt;

/// What decides about the rows.
pub trait Mesh: fmt::Debug + Send + Sync {
    /// For people who look at a plan.
    fn describe(&self) -> String;

    /// What decides about the batches of one stream, one after the other.
    fn sift(&self) -> Box<dyn Sift>;
}

/// Decides about the batches of one stream.
pub trait Sift: Send {
    /// The rows that pass.
    ///
    /// # Errors
    /// The rows cannot be looked at.
    fn pass(&mut self, batch: RecordBatch) -> Result<RecordBatch>;

    /// The stream has ended by itself.
    fn end(&mut self) {}
}

/// A condition over the columns of the rows.
#[derive(Debug)]
pub struct Condition(pub Arc<dyn PhysicalExpr>);

impl Mesh for Condition {
    fn describe(&self) -> String {
        self.0.to_string()
    }

    fn sift(&self) -> Box<dyn Sift> {
        Box::new(Held(self.0.clone()))
    }
}

struct Held(Arc<dyn PhysicalExpr>);

impl Sift for Held {
    fn pass(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let holds = self.0.evaluate(&batch)?.into_array(batch.num_rows())?;
        let holds = as_boolean_array(&holds)?;
        // what is not known does not hold
        if holds.null_count() > 0 { kept(batch, &prep_null_mask_filter(holds)) } else { kept(batch, holds) }
    }
}

/// The rows that are true; a batch that passes whole is not copied.
pub fn kept(batch: RecordBatch, rows: &BooleanArray) -> Result<RecordBatch> {
    if rows.true_count() == batch.num_rows() {
        return Ok(batch);
    }
    Ok(filter_record_batch(&batch, rows)?)
}

/// Passes on the rows that its mesh lets through.
#[derive(Debug)]
pub struct SieveExec {
    mesh: Arc<dyn Mesh>,
    input: Arc<dyn ExecutionPlan>,
}

impl SieveExec {
    pub fn new(mesh: Arc<dyn Mesh>, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { mesh, input }
    }
}

impl DisplayAs for SieveExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SieveExec: {}", self.mesh.describe())
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
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(self.mesh.clone(), children.swap_remove(0))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let schema = stream.schema();
        let mut sift = self.mesh.sift();
        // the end of the stream is a step of its own
        let steps = stream.map(Some).chain(futures::stream::iter([None]));
        let passed = steps.filter_map(move |step| {
            let batch = match step {
                Some(batch) => Some(batch.and_then(|batch| sift.pass(batch))),
                None => {
                    sift.end();
                    None
                }
            };
            futures::future::ready(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, passed)))
    }
}
