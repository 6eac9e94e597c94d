//! The table `logs`: one row a record, whatever the files are.
//!
//! The request's own time range and predicate are applied here, below all SQL, so that every report and every query
//! of a user sees the same records and the accounting knows where the others went.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::record::Column;
use crate::source::LogFile;
use crate::source::mapping::Mapping;
use crate::source::parquet::{self, ParquetLog};
use crate::source::rejects::Rejects;
use crate::source::scan::LogScan;
use crate::source::schema::LogSchema;
use crate::source::search::Found;
use crate::source::sieve::{Condition, SieveExec};
use crate::source::tally::TallyExec;

/// All inputs of a request as one table.
#[derive(Debug)]
pub struct LogTable {
    pub schema: Arc<LogSchema>,
    pub mappings: Arc<[Mapping]>,
    /// Files that are read record by record.
    pub texts: Vec<Arc<LogFile>>,
    pub parquets: Vec<ParquetLog>,
    pub rejects: Arc<Rejects>,
    /// Records that it does not hold for are not in the table.
    pub predicate: Option<Expr>,
    /// Whether few rows are wanted, so that Parquet reads the columns that a filter does not name for those alone.
    pub is_lookup: bool,
    /// The lines of the logs that are read, where those were looked for; the others are passed over.
    pub found: Option<Arc<Found>>,
    /// Whether the Parquet footers told first and last already, so that no scan needs to read the times for it.
    pub span_known: bool,
    /// How often the table was scanned.
    pub scans: AtomicUsize,
}

#[async_trait]
impl TableProvider for LogTable {
    fn schema(&self) -> SchemaRef {
        self.schema.arrow.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// A query's own filters only help to skip row groups.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = (0..self.schema.arrow.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let table = DFSchema::try_from(self.schema.arrow.clone())?;
        let physical = |expr: Expr| state.create_physical_expr(expr, &table);
        let predicate = self.predicate.clone().map(physical).transpose()?;
        let hints = conjunction(filters.iter().cloned()).map(physical).transpose()?;
        let partitions = state.config().target_partitions();
        let number = self.scans.fetch_add(1, Ordering::Relaxed);
        let scans = Scans { table: self, number, projection, predicate, hints };

        let mut plans = Vec::new();
        if !self.texts.is_empty() {
            let columns = scans.columns(true);
            let (schema, mappings, rejects) = (self.schema.clone(), self.mappings.clone(), self.rejects.clone());
            let found = self.found.clone();
            let scan = LogScan::plan(schema, mappings, rejects, found, &self.texts, &columns, partitions)?;
            plans.push(scans.finish(scan, &columns)?);
        }
        if !self.parquets.is_empty() {
            let columns = scans.columns(!self.span_known);
            let pruning = scans.pruning(&columns)?;
            // the pieces of one file share its footer
            let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
            let footers = state.runtime_env().cache_manager.get_file_metadata_cache();
            let reader: Arc<dyn ParquetFileReaderFactory> =
                Arc::new(CachedParquetFileReaderFactory::new(store, footers));
            let (logs, pruning) = (&self.parquets, pruning.as_ref());
            let reading =
                parquet::Reading { predicate: pruning, is_lookup: self.is_lookup, partitions, reader: &reader };
            for scan in parquet::plans(logs, &self.schema, &self.mappings, &columns, &reading)? {
                plans.push(scans.finish(scan, &columns)?);
            }
        }
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.arrow.project(projection)?)))),
            1 => Ok(plans.remove(0)),
            _ => UnionExec::try_new(plans),
        }
    }
}

/// What every scan of one query shares.
struct Scans<'a> {
    table: &'a LogTable,
    number: usize,
    projection: &'a [usize],
    /// Over the whole table's schema.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    hints: Option<Arc<dyn PhysicalExpr>>,
}

impl Scans<'_> {
    /// The columns to read: what the query wants, what the predicate tests, and the time for first and last.
    fn columns(&self, with_time: bool) -> Vec<usize> {
        let mut columns = self.projection.to_vec();
        let mut add = |index| {
            if !columns.contains(&index) {
                columns.push(index);
            }
        };
        if let Some(predicate) = &self.predicate {
            let mut tested: Vec<usize> = collect_columns(predicate).iter().map(|column| column.index()).collect();
            tested.sort_unstable();
            tested.into_iter().for_each(&mut add);
        }
        if with_time {
            add(Column::Timestamp.index());
        }
        columns
    }

    /// Predicate and hints over the columns that are read. A hint on a column that only it reads is dropped.
    fn pruning(&self, columns: &[usize]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let mut parts = Vec::new();
        for expression in self.predicate.iter().chain(&self.hints) {
            for part in datafusion::physical_expr::split_conjunction(expression) {
                parts.extend(remapped(part, columns)?);
            }
        }
        Ok((!parts.is_empty()).then(|| datafusion::physical_expr::utils::conjunction(parts)))
    }

    /// Filter, tally, and the columns in the query's order.
    fn finish(&self, scan: Arc<dyn ExecutionPlan>, columns: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
        let filtered = match &self.predicate {
            None => scan,
            Some(predicate) => match remapped(predicate, columns)? {
                Some(predicate) => Arc::new(SieveExec::new(Arc::new(Condition(predicate)), scan)),
                None => scan,
            },
        };
        let tallied: Arc<dyn ExecutionPlan> = Arc::new(TallyExec::new(filtered, self.number));
        if columns == self.projection {
            return Ok(tallied);
        }
        let fields = self.table.schema.arrow.fields();
        let kept = self.projection.iter().enumerate().map(|(position, &index)| {
            let name = fields[index].name();
            let column: Arc<dyn PhysicalExpr> =
                Arc::new(datafusion::physical_expr::expressions::Column::new(name, position));
            (column, name.clone())
        });
        Ok(Arc::new(ProjectionExec::try_new(kept.collect::<Vec<_>>(), tallied)?))
    }
}

/// An expression over the table as one over `columns`; None where it needs another column.
fn remapped(expression: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
    let mut complete = true;
    let remapped = Arc::clone(expression)
        .transform(|node| {
            let Some(column) = node.downcast_ref::<datafusion::physical_expr::expressions::Column>() else {
                return Ok(Transformed::no(node));
            };
            match columns.iter().position(|&index| index == column.index()) {
                Some(position) => {
                    let moved = datafusion::physical_expr::expressions::Column::new(column.name(), position);
                    Ok(Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>))
                }
                None => {
                    complete = false;
                    Ok(Transformed::no(node))
                }
            }
        })
        .data()?;
    Ok(complete.then_some(remapped))
}
