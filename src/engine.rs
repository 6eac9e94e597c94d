//! The engine: a DataFusion session set up for logs, one query run on it, and what its operators counted on the way.

pub mod accounting;
pub mod functions;
pub mod mistake;
pub mod progress;
pub mod session;
pub mod weights;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::engine::progress::Progress;
use crate::record::Column;
use crate::report::{Rows, stored};

/// A statement ready to run: its text and the values of its named parameters.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Files of earlier answers, each with the table that its rows become.
    pub stored: Vec<(String, PathBuf)>,
    /// Queries to run before it, each with the table that its rows become.
    pub steps: Vec<Step>,
    pub sql: String,
    pub values: Vec<(String, ScalarValue)>,
    /// Whether records count for as many requests as their weights say.
    pub weighs: bool,
}

/// The step whose rows are notes.
const NOTES: &str = "notes";

/// A query whose rows later ones read as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub table: String,
    pub sql: String,
}

impl Statement {
    /// That of one query.
    pub fn new(sql: String, values: Vec<(String, ScalarValue)>) -> Self {
        Self { stored: Vec::new(), steps: Vec::new(), sql, values, weighs: false }
    }
}

/// Rows, and the plan that made them, whose metrics hold the accounting.
pub struct Answer {
    pub rows: Rows,
    /// What the report itself says about its numbers: a code, a text, a count.
    pub notes: Option<Rows>,
    pub plan: Arc<dyn ExecutionPlan>,
}

/// Plans a read-only statement whose steps have run; what is wrong with its SQL comes as a
/// [`SqlMistake`](mistake::SqlMistake).
pub async fn plan(context: &SessionContext, statement: &Statement) -> anyhow::Result<DataFrame> {
    try_plan(context, &statement.sql, statement).await.map_err(in_words)
}

/// Runs a statement with its steps. The plan of the answer is that of the first of them, which reads the logs.
pub async fn answer(
    context: &SessionContext,
    statement: &Statement,
    total_bytes: u64,
    quiet: bool,
) -> anyhow::Result<Answer> {
    for (table, path) in &statement.stored {
        context.deregister_table(table.as_str()).map_err(in_words)?;
        context.register_table(table.as_str(), Arc::new(stored::table(path)?)).map_err(in_words)?;
    }
    let mut first = None;
    let mut notes = None;
    for step in &statement.steps {
        let frame = try_plan(context, &step.sql, statement).await.map_err(in_words)?;
        let mut answer = run(context, frame, total_bytes, quiet).await?;
        // dealt out to all threads
        let mut parts = vec![Vec::new(); context.copied_config().target_partitions()];
        let count = parts.len();
        for (number, batch) in answer.rows.batches()?.enumerate() {
            parts[number % count].push(batch?);
        }
        let table = MemTable::try_new(answer.rows.schema().clone(), parts).map_err(in_words)?;
        context.deregister_table(step.table.as_str()).map_err(in_words)?;
        context.register_table(step.table.as_str(), Arc::new(table)).map_err(in_words)?;
        first.get_or_insert(answer.plan);
        if step.table == NOTES {
            notes = Some(answer.rows);
        }
    }
    let answer = run(context, plan(context, statement).await?, total_bytes, quiet).await?;
    Ok(Answer { plan: first.unwrap_or(answer.plan), rows: answer.rows, notes })
}

/// All rows of some columns of a table that is not registered.
pub async fn collect(
    context: &SessionContext,
    table: impl TableProvider + 'static,
    columns: &[Column],
) -> anyhow::Result<Vec<RecordBatch>> {
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let frame = context.read_table(Arc::new(table)).and_then(|frame| frame.select_columns(&names)).map_err(in_words)?;
    frame.collect().await.map_err(in_words)
}

/// A query that even spilling does not bring below the limit.
#[derive(Debug, thiserror::Error)]
#[error("the answer does not fit, even with spilling to disk: give more memory, use fewer --threads, or group by less")]
pub struct OutOfMemory;

/// An error of the engine in the user's words: a mistake in their SQL, or too little memory.
pub fn in_words(error: DataFusionError) -> anyhow::Error {
    if let Some(mistake) = mistake::sql_mistake(&error) {
        return mistake.into();
    }
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => OutOfMemory.into(),
        DataFusionError::External(cause) => anyhow::anyhow!("{cause}"),
        DataFusionError::ParquetError(cause) => damaged_parquet(cause),
        DataFusionError::ArrowError(cause, _) if matches!(cause.as_ref(), ArrowError::ArithmeticOverflow(_)) => {
            anyhow::anyhow!(
                "a number becomes too large to be counted with: some value of the logs, or of the price book, is absurd"
            )
        }
        DataFusionError::ArrowError(cause, _) if matches!(cause.as_ref(), ArrowError::ParquetError(_)) => {
            damaged_parquet(cause)
        }
        _ => error.into(),
    }
}

fn damaged_parquet(cause: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!(
        "a Parquet log is damaged behind its footer, so that its records cannot be read; leave it out ({cause})"
    )
}

async fn try_plan(context: &SessionContext, sql: &str, statement: &Statement) -> Result<DataFrame, DataFusionError> {
    let read_only = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let frame = context.sql_with_options(sql, read_only).await?;
    // A surplus value would be ignored in silence, a missing one is DataFusion's error.
    let named = frame.logical_plan().get_parameter_names()?;
    let values: Vec<(&str, ScalarValue)> = statement
        .values
        .iter()
        .filter(|(name, _)| named.contains(&format!("${name}")))
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let frame = if values.is_empty() { frame } else { frame.with_param_values(values)? };
    if !statement.weighs {
        return Ok(frame);
    }
    let (state, plan) = frame.into_parts();
    let plan = weights::weighted(plan, &state)?;
    Ok(DataFrame::new(state, plan))
}

/// Runs a planned statement to its last row.
pub async fn run(context: &SessionContext, frame: DataFrame, total_bytes: u64, quiet: bool) -> anyhow::Result<Answer> {
    let plan = frame.create_physical_plan().await.map_err(in_words)?;
    let mut stream = execute_stream(plan.clone(), context.task_ctx()).map_err(in_words)?;
    let mut rows = Rows::new(stream.schema());
    let mut progress = Progress::new(plan.clone(), total_bytes, quiet);
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            batch = stream.next() => match batch {
                Some(batch) => rows.push(batch.map_err(in_words)?).context("could not keep the answer")?,
                None => break,
            },
            _ = ticks.tick() => progress.tick(),
        }
    }
    // Counts become metrics when the streams are dropped.
    drop(stream);
    progress.finish();
    Ok(Answer { rows, plan, notes: None })
}
