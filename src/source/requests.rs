//! The tables `requests` and `attempts`: one row a request, or a call upstream, put together from the records that share its
//! id.
//!
//! ```text
//! logs (all records, a margin around the time range) -> bare id -> dealt out by its hash -> sorted, on disk if need be
//!   -> merged id by id (record::merge) -> the request's own time range and predicate -> counted
//! ```
//!
//! A record whose id no other has skips all that: see [`lone`].

mod column;
mod exec;
mod id;
mod lone;
mod matches;
mod merger;
mod skew;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, col};
use datafusion::physical_expr::expressions::{Column as ColumnExpr, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr};

use crate::profile::IdRule;
use crate::record::Column;
use crate::source::sieve::{Condition, SieveExec};
use crate::source::table::LogTable;
use crate::source::tally::TallyExec;
use exec::MergeExec;
pub use lone::Sightings;
use lone::{ById, Kept, Known};
pub use matches::{COMPARED, Matches};
pub use skew::{Skew, Skews};

/// The column of the id that records of one request have in common.
const MATCH_ID: &str = "match_id";

/// How many attempts a request took, as the role that saw most of them tells.
const ATTEMPTS: &str = "attempts";

/// Which of them an attempt is, 1 for the first.
const ATTEMPT_NUMBER: &str = "attempt_number";

/// How many records a row was put together from.
pub const RECORDS: &str = "records";

/// What a row of the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Request,
    /// A call upstream, of which a request may take several.
    Attempt,
}

impl Unit {
    /// The columns beside those of the records.
    fn own_columns(self) -> &'static [&'static str] {
        match self {
            Unit::Request => &[ATTEMPTS, RECORDS],
            Unit::Attempt => &[ATTEMPTS, ATTEMPT_NUMBER, RECORDS],
        }
    }
}

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
    pub unit: Unit,
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
    /// Which ids stand in several records, where the logs can be read again; None: all records are sorted.
    pub sightings: Option<Arc<Sightings>>,
    schema: SchemaRef,
    scans: AtomicUsize,
}

impl RequestTable {
    pub fn new(
        unit: Unit,
        logs: LogTable,
        ids: Arc<IdRule>,
        priorities: Arc<[(String, i64)]>,
        skews: Arc<Skews>,
        matches: Arc<Matches>,
    ) -> Self {
        let count = |name: &&str| Arc::new(Field::new(*name, DataType::Int64, true));
        let fields = logs.schema.arrow.fields().iter().cloned().chain(unit.own_columns().iter().map(count));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (predicate, sightings, scans) = (None, None, AtomicUsize::new(0));
        Self { unit, logs, predicate, ids, priorities, skews, matches, sightings, schema, scans }
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
        // numbered before the scans below, so that this one is counted
        let number = BEHIND + self.scans.fetch_add(2, Ordering::Relaxed);
        self.logs.scans.store(number + 1, Ordering::Relaxed);
        let scan = Scan { table: self, state, wanted: &wanted, projection, predicate: predicate.as_ref(), number };
        let Some(sightings) = &self.sightings else { return scan.together(None).await };
        match sightings.known() {
            Known::Nothing if sightings.begin() => scan.alone(Kept::Noted(sightings.clone())).await,
            Known::Nothing => scan.alone(Kept::All).await,
            Known::TooLittle => scan.together(None).await,
            Known::Repeated(repeated) if repeated.is_empty() => scan.alone(Kept::All).await,
            Known::Repeated(repeated) => {
                let alone = scan.alone(Kept::Lone(repeated.clone())).await?;
                let together = scan.together(Some(Kept::Repeated(repeated))).await?;
                UnionExec::try_new(vec![alone, together])
            }
        }
    }
}

/// One reading of the table.
struct Scan<'a> {
    table: &'a RequestTable,
    state: &'a dyn Session,
    /// The columns of the table to read, those that the predicate tests among them.
    wanted: &'a [usize],
    /// The columns of the table to hand out.
    projection: &'a [usize],
    /// Over the whole table's schema.
    predicate: Option<&'a Arc<dyn PhysicalExpr>>,
    number: usize,
}

impl Scan<'_> {
    /// Records as they are, each a request of its own.
    async fn alone(&self, kept: Kept) -> Result<Arc<dyn ExecutionPlan>> {
        let logged = self.table.logs.schema.arrow.fields().len();
        let mut read: Vec<usize> = self.wanted.iter().copied().filter(|index| *index < logged).collect();
        read.extend([Column::RequestId, Column::Timestamp].map(Column::index));
        read.sort_unstable();
        read.dedup();
        let records = self.table.logs.scan(self.state, Some(&read), &[], None).await?;
        let lone = self.by_id(records, kept);
        let schema = lone.schema();
        let column = |(at, field): (usize, &Arc<Field>)| {
            (Arc::new(ColumnExpr::new(field.name(), at)) as Arc<dyn PhysicalExpr>, field.name().clone())
        };
        let one = |name: &&str| {
            (Arc::new(Literal::new(ScalarValue::Int64(Some(1)))) as Arc<dyn PhysicalExpr>, (*name).to_owned())
        };
        let columns =
            schema.fields().iter().enumerate().map(column).chain(self.table.unit.own_columns().iter().map(one));
        let requests = Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), lone)?);
        self.finish(requests, |filtered| TallyExec::new(filtered, self.number))
    }

    fn by_id(&self, records: Arc<dyn ExecutionPlan>, kept: Kept) -> Arc<dyn ExecutionPlan> {
        Arc::new(SieveExec::new(Arc::new(ById { ids: self.table.ids.clone(), kept }), records))
    }

    /// Requests put together from the records that share an id: of all, or of those that `kept` passes on beside others.
    async fn together(&self, kept: Option<Kept>) -> Result<Arc<dyn ExecutionPlan>> {
        let table = self.table;
        let read = table.read(self.wanted);
        let mut records = table.logs.scan(self.state, Some(&read), &[], None).await?;
        let is_part = kept.is_some();
        if let Some(kept) = kept {
            records = self.by_id(records, kept);
        }
        let records = table.with_match_id(records, self.state)?;
        let order = order(&records.schema())?;
        let sorted = sorted(records, &order, self.state)?;
        let (priorities, skews) = (table.priorities.clone(), table.skews.clone());
        let merged = Arc::new(MergeExec::new(table.unit, sorted, order, priorities, skews));
        self.finish(merged, |filtered| match is_part {
            true => TallyExec::of_part(filtered, self.number, RECORDS),
            false => TallyExec::weighted(filtered, self.number, RECORDS),
        })
    }

    /// The requests that the predicate holds for, counted, with the columns that were asked for.
    fn finish(
        &self,
        requests: Arc<dyn ExecutionPlan>,
        tally: impl FnOnce(Arc<dyn ExecutionPlan>) -> TallyExec,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = requests.schema();
        let position = |name: &str| schema.index_of(name);
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
        let filtered = match self.predicate {
            Some(predicate) => Arc::new(SieveExec::new(Arc::new(Condition(moved(predicate)?)), requests)),
            None => requests,
        };
        let tallied: Arc<dyn ExecutionPlan> = Arc::new(tally(filtered));
        let kept = self.projection.iter().map(|&index| {
            let name = self.table.schema.field(index).name();
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
