//! Counts the rows that a report uses: what is left after the asked time range and predicate.
//!
//! It stands directly above the filter, so that the accounting holds whatever the SQL above does with the rows.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::kernels::aggregate::{max, min};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef, TimestampNanosecondType};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::StreamExt;

use crate::record::Column;

/// Passes batches through and counts them.
#[derive(Debug)]
pub struct TallyExec {
    input: Arc<dyn ExecutionPlan>,
    scan: usize,
    /// The column that tells how many records a row stands for; None: one.
    weight: Option<&'static str>,
    /// Whether another scan of the same number has counted the records below.
    is_part: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl TallyExec {
    /// `scan` numbers the scans of one query: a query that reads the table twice must not count it twice.
    pub fn new(input: Arc<dyn ExecutionPlan>, scan: usize) -> Self {
        Self { input, scan, weight: None, is_part: false, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// For rows each of which stands for as many records as its column `weight` says.
    pub fn weighted(input: Arc<dyn ExecutionPlan>, scan: usize, weight: &'static str) -> Self {
        Self { weight: Some(weight), ..Self::new(input, scan) }
    }

    /// The same for records that another scan of this number counts, among others.
    pub fn of_part(input: Arc<dyn ExecutionPlan>, scan: usize, weight: &'static str) -> Self {
        Self { is_part: true, ..Self::weighted(input, scan, weight) }
    }

    pub fn is_part(&self) -> bool {
        self.is_part
    }

    pub fn scan(&self) -> usize {
        self.scan
    }
}

/// What the tallies of a plan counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub used: u64,
    /// Rows whose outcome is unknown, where the query asked for it.
    pub outcome_unknown: u64,
    /// Nanoseconds since 1970.
    pub first: Option<i64>,
    pub last: Option<i64>,
}

impl Tally {
    /// Adds what one operator counted.
    pub fn collect(&mut self, metrics: &MetricsSet) {
        for metric in metrics.iter() {
            let value = metric.value().as_usize();
            match metric.value().name() {
                "used" => self.used += value as u64,
                "outcome_unknown" => self.outcome_unknown += value as u64,
                // 0 is a gauge that was never set
                "first" | "last" if value > 0 => self.include(ungauged(value)),
                _ => {}
            }
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Tally) {
        self.used += other.used;
        self.outcome_unknown += other.outcome_unknown;
        other.first.into_iter().chain(other.last).for_each(|time| self.include(time));
    }

    /// Widens first and last to an instant.
    pub fn include(&mut self, nanoseconds: i64) {
        self.first = Some(self.first.map_or(nanoseconds, |first| first.min(nanoseconds)));
        self.last = Some(self.last.map_or(nanoseconds, |last| last.max(nanoseconds)));
    }
}

/// A time as a gauge holds it, which has no sign: in the same order, and never 0.
fn gauged(nanoseconds: i64) -> usize {
    (nanoseconds.saturating_add(1) as u64 ^ (1 << 63)).max(1) as usize
}

fn ungauged(value: usize) -> i64 {
    (value as u64 ^ (1 << 63)) as i64 - 1
}

/// The counters of one partition.
struct Counters {
    used: Count,
    outcome_unknown: Count,
    first: Gauge,
    last: Gauge,
    weight: Option<usize>,
    timestamp: Option<usize>,
    failed: Option<usize>,
}

impl Counters {
    fn new(metrics: &ExecutionPlanMetricsSet, schema: &SchemaRef, weight: Option<&str>, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        let gauge = |name: &'static str| MetricBuilder::new(metrics).gauge(name, partition);
        Self {
            used: count("used"),
            outcome_unknown: count("outcome_unknown"),
            first: gauge("first"),
            last: gauge("last"),
            weight: weight.and_then(|weight| schema.index_of(weight).ok()),
            timestamp: schema.index_of(Column::Timestamp.name()).ok(),
            failed: schema.index_of(Column::Failed.name()).ok(),
        }
    }

    fn count(&self, batch: &RecordBatch) {
        let records = |column: usize| batch.column(column).as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        self.used.add(self.weight.map_or(batch.num_rows(), |weight| records(weight) as usize));
        if let Some(failed) = self.failed {
            self.outcome_unknown.add(batch.column(failed).null_count());
        }
        if let Some(timestamp) = self.timestamp {
            let times = batch.column(timestamp).as_primitive::<TimestampNanosecondType>();
            if let (Some(low), Some(high)) = (min(times), max(times)) {
                let (low, high) = (gauged(low), gauged(high));
                if self.first.value() == 0 || low < self.first.value() {
                    self.first.set(low);
                }
                self.last.set_max(high);
            }
        }
    }
}

impl DisplayAs for TallyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TallyExec")
    }
}

impl ExecutionPlan for TallyExec {
    fn name(&self) -> &str {
        "TallyExec"
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
        let (weight, is_part) = (self.weight, self.is_part);
        Ok(Arc::new(Self { weight, is_part, ..Self::new(children.swap_remove(0), self.scan) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let schema = stream.schema();
        let counters = Counters::new(&self.metrics, &schema, self.weight, partition);
        let counted = stream.inspect(move |batch| {
            if let Ok(batch) = batch {
                counters.count(batch);
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
