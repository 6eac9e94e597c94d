//! The table `requests`: one row a request, put together from the records that share its id.
//!
//! ```text
//! logs (all records, a margin around the time range) -> bare id -> dealt out by its hash -> sorted, on disk if need be
//!   -> merged id by id (record::merge) -> the request's own time range and predicate -> counted
//! ```

mod column;
mod exec;
mod id;
mod matches;
mod merger;
mod skew;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, col};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr};

use crate::profile::IdRule;
use crate::record::Column;
use crate::source::table::LogTable;
use crate::source::tally::TallyExec;
use exec::MergeExec;
pub use matches::{COMPARED, Matches};
pub use skew::{Skew, Skews};

/// The column of the id that records of one request have in common.
const MATCH_ID: &str = "match_id";

/// How many attempts a request took, as the role that saw most of them tells.
const ATTEMPTS: &str = "attempts";

/// How many records a request was put together from.
pub const RECORDS: &str = "records";

/// Scans of this table are numbered from here on: where a query reads the records as well, those are counted.
const BEHIND: usize = 1 << 20;

/// What records are told apart and put in order by.
const IDENTITY: [Column; 9] = [
    Column::RequestId,
    Column::Role,
    Column::Host,
    Column::Timestamp,
    Column::CompletedAt,
    Column::Attempt,
    Column::ModelName,
    Column::SourceFile,
    Column::SourceOffset,
];

/// What two records of one role must both say to be the same one, whatever a query reads.
const VALUES: [Column; 12] = [
    Column::Tenant,
    Column::PromptHash,
    Column::InputTokens,
    Column::OutputTokens,
    Column::CachedTokens,
    Column::TotalLatencyMs,
    Column::TtftMs,
    Column::Status,
    Column::ErrorCode,
    Column::HttpStatus,
    Column::FinishReason,
    Column::CostLogged,
];

/// All requests in the logs as one table: the columns of `logs`, and how many attempts and records each took.
#[derive(Debug)]
pub struct RequestTable {
    /// All records that may be part of a wanted request.
    pub logs: LogTable,
    /// Requests that it does not hold for are not in the table.
    pub predicate: Option<Expr>,
    /// What producers put around the id of a request.
    pub ids: Arc<IdRule>,
    /// Which log of a role is believed first: names of files with the priority of their source.
    pub priorities: Arc<[(String, i64)]>,
    pub skews: Arc<Skews>,
    pub matches: Arc<Matches>,
    schema: SchemaRef,
    scans: AtomicUsize,
}

impl RequestTable {
    pub fn new(
        logs: LogTable,
        ids: Arc<IdRule>,
        priorities: Arc<[(String, i64)]>,
        skews: Arc<Skews>,
        matches: Arc<Matches>,
    ) -> Self {
        let count = |name: &str| Arc::new(Field::new(name, DataType::Int64, true));
        let mut fields: Vec<Arc<Field>> = logs.schema.arrow.fields().iter().cloned().collect();
        fields.push(count(ATTEMPTS));
        fields.push(count(RECORDS));
        let schema = Arc::new(Schema::new(fields));
        Self { logs, predicate: None, ids, priorities, skews, matches, schema, scans: AtomicUsize::new(0) }
    }

    /// The columns of `logs` to read for these columns of the table, in order, each once.
    fn read(&self, wanted: &[usize]) -> Vec<usize> {
        let logged = self.logs.schema.arrow.fields().len();
        let identity = IDENTITY.iter().chain(&VALUES).map(|column| column.index());
        // what a merged value of another column is made of
        let made_of = [Column::TotalLatencyMs, Column::TtftMs, Column::Timestamp].map(|column| column.index());
        let mut read: Vec<usize> = wanted.iter().copied().filter(|index| *index < logged).collect();
        read.extend(identity.chain(made_of));
        read.sort_unstable();
        read.dedup();
        read
    }
}

#[async_trait]
impl TableProvider for RequestTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// A query's own filters are about whole requests: they are left to it.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let table = DFSchema::try_from(self.schema.clone())?;
        let predicate = self.predicate.clone().map(|expr| state.create_physical_expr(expr, &table)).transpose()?;
        let mut wanted = projection.clone();
        if let Some(predicate) = &predicate {
            let mut tested: Vec<usize> = collect_columns(predicate).iter().map(|column| column.index()).collect();
            tested.sort_unstable();
            wanted.extend(tested);
        }
        // numbered before the scan below, so that this one is counted
        let number = BEHIND + self.scans.fetch_add(2, Ordering::Relaxed);
        self.logs.scans.store(number + 1, Ordering::Relaxed);
        let read = self.read(&wanted);
        let records = self.logs.scan(state, Some(&read), &[], None).await?;
        let records = self.with_match_id(records, state)?;
        let order = order(&records.schema())?;
        let sorted = sorted(records, &order, state)?;
        let (priorities, skews) = (self.priorities.clone(), self.skews.clone());
        let merged: Arc<dyn ExecutionPlan> = Arc::new(MergeExec::new(sorted, order, priorities, skews));
        let position = |name: &str| merged.schema().index_of(name);
        let moved = |expression: &Arc<dyn PhysicalExpr>| -> Result<Arc<dyn PhysicalExpr>> {
            use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
            let place = |node: Arc<dyn PhysicalExpr>| match node.downcast_ref::<ColumnExpr>() {
                Some(column) => {
                    let place = ColumnExpr::new(column.name(), position(column.name())?);
                    Ok(Transformed::yes(Arc::new(place) as Arc<dyn PhysicalExpr>))
                }
                None => Ok(Transformed::no(node)),
            };
            Arc::clone(expression).transform(place).data()
        };
        let filtered = match &predicate {
            Some(predicate) => Arc::new(FilterExecBuilder::new(moved(predicate)?, merged.clone()).build()?),
            None => merged.clone(),
        };
        let tallied: Arc<dyn ExecutionPlan> = Arc::new(TallyExec::weighted(filtered, number, RECORDS));
        let kept = projection.iter().map(|&index| {
            let name = self.schema.field(index).name();
            let column: Arc<dyn PhysicalExpr> = Arc::new(ColumnExpr::new(name, position(name)?));
            Ok((column, name.clone()))
        });
        Ok(Arc::new(ProjectionExec::try_new(kept.collect::<Result<Vec<_>>>()?, tallied)?))
    }
}

impl RequestTable {
    /// The records with the id that those of one request share.
    fn with_match_id(&self, records: Arc<dyn ExecutionPlan>, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = records.schema();
        let of = [Column::RequestId, Column::SourceFile, Column::SourceOffset].map(|column| col(column.name()));
        let id = id::match_id(self.ids.clone(), self.matches.assigned()).call(of.to_vec());
        let id = state.create_physical_expr(id, &DFSchema::try_from(schema.clone())?)?;
        let column = |(at, field): (usize, &Arc<Field>)| {
            (Arc::new(ColumnExpr::new(field.name(), at)) as Arc<dyn PhysicalExpr>, field.name().clone())
        };
        let columns = schema.fields().iter().enumerate().map(column).chain([(id, MATCH_ID.to_owned())]);
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), records)?))
    }
}

/// By the id, then by what tells the order of records.
fn order(schema: &SchemaRef) -> Result<LexOrdering> {
    let key = |name: &str| -> Result<PhysicalSortExpr> {
        Ok(PhysicalSortExpr::new_default(Arc::new(ColumnExpr::new_with_schema(name, schema)?)))
    };
    let rest = [Column::Timestamp.name(), Column::SourceFile.name(), Column::SourceOffset.name()].map(key);
    let keys = std::iter::once(key(MATCH_ID)).chain(rest).collect::<Result<Vec<_>>>()?;
    LexOrdering::new(keys).ok_or_else(|| DataFusionError::Internal("requests are in no order".to_owned()))
}

/// Deals the records out by their id, and sorts each part.
fn sorted(records: Arc<dyn ExecutionPlan>, order: &LexOrdering, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = state.config().target_partitions();
    let by_id = Partitioning::Hash(vec![order.first().expr.clone()], partitions);
    let dealt: Arc<dyn ExecutionPlan> = match partitions {
        1 if records.output_partitioning().partition_count() == 1 => records,
        _ => Arc::new(RepartitionExec::try_new(records, by_id)?),
    };
    Ok(Arc::new(SortExec::new(order.clone(), dealt).with_preserve_partitioning(true)))
}
