//! The table `tokens`: one row a step in which tokens were made, whether it was logged on a line of its own or in a list of
//! the request's record.

mod exec;
mod steps;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::record::Column;
use crate::source::schema::OF_TOKENS;
use crate::source::table::LogTable;
use exec::StepsExec;

/// What a step is read from beside its own columns: where on the time axis a list of gaps begins, and what it must add up to.
const READ: [Column; 6] = [
    Column::Timestamp,
    Column::FirstTokenAt,
    Column::CompletedAt,
    Column::TtftMs,
    Column::TotalLatencyMs,
    Column::OutputTokens,
];

/// Columns of the record that are those of the step instead, with those that only a step has.
const OF_STEPS: [&str; 10] = [
    "timestamp",
    "cache_hit",
    "batch_size",
    "token_index",
    "gap_ms",
    "step_ms",
    "wait_ms",
    "context_len",
    "recompute",
    "unit",
];

/// The columns of a step beside those of the canonical record.
fn own_columns() -> [Field; 7] {
    [
        Field::new("token_index", DataType::Int64, true),
        Field::new("gap_ms", DataType::Float64, true),
        Field::new("step_ms", DataType::Float64, true),
        Field::new("wait_ms", DataType::Float64, true),
        Field::new("context_len", DataType::Int64, true),
        Field::new("recompute", DataType::Boolean, true),
        Field::new("unit", DataType::Utf8View, true),
    ]
}

/// All steps in the logs as one table.
#[derive(Debug)]
pub struct TokenTable {
    /// The records, with the columns of tokens as they are written.
    records: LogTable,
    schema: SchemaRef,
}

impl TokenTable {
    /// `records` must have the columns of [`LogSchema::of_tokens`](crate::source::schema::LogSchema::of_tokens).
    pub fn new(records: LogTable) -> Self {
        let written = |field: &Arc<Field>| OF_TOKENS.iter().all(|(name, ..)| field.name() != name);
        let fields = records.schema.arrow.fields().iter().filter(|field| written(field)).cloned();
        let own = own_columns().into_iter().map(Arc::new);
        let schema = Arc::new(Schema::new(fields.chain(own).collect::<Vec<_>>()));
        Self { records, schema }
    }
}

#[async_trait]
impl TableProvider for TokenTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// What a query asks of records only helps to skip row groups; of steps, it sees to itself.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.schema.project(projection)?),
            None => self.schema.clone(),
        };
        let records = &self.records.schema.arrow;
        let wanted = schema.fields().iter().map(|field| field.name().as_str());
        let written = OF_TOKENS.iter().map(|(name, ..)| *name).chain(READ.map(Column::name));
        let mut read: Vec<usize> = wanted.chain(written).filter_map(|name| records.index_of(name).ok()).collect();
        read.sort_unstable();
        read.dedup();
        let is_of_records = |filter: &&Expr| {
            let columns = filter.column_refs();
            let records = &self.records.schema.arrow;
            columns.iter().all(|column| !OF_STEPS.contains(&&*column.name) && records.index_of(&column.name).is_ok())
        };
        let hints: Vec<Expr> = filters.iter().filter(is_of_records).cloned().collect();
        let records = self.records.scan(state, Some(&read), &hints, None).await?;
        Ok(Arc::new(StepsExec::new(records, schema)))
    }
}
