//! Finding what the logs say about some ids, without reading all of them where that can be helped.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::discretion::public;
use super::entry::Entry;
use super::matching::{Ids, canonical};
use crate::engine;
use crate::engine::accounting::Counted;
use crate::profile::IdRule;
use crate::record::Column;
use crate::source::Place;
use crate::source::logs::Logs;
use crate::source::needles::Needles;
use crate::source::rejects::positions;
use crate::source::schema::LogSchema;
use crate::source::search::Found;
use crate::source::table::LogTable;
use crate::source::tokens::TokenTable;

/// Columns of a step that are looked at.
const OF_STEPS: [&str; 13] = [
    "request_id",
    "role",
    "timestamp",
    "gpu_id",
    "token_index",
    "gap_ms",
    "step_ms",
    "wait_ms",
    "context_len",
    "recompute",
    "cache_hit",
    "batch_size",
    "unit",
];

/// Columns of an event that are looked at.
const OF_EVENTS: [&str; 14] = [
    "request_id",
    "previous_request_id",
    "trace_id",
    "batch_id",
    "role",
    "host",
    "timestamp",
    "completed_at",
    "gpu_id",
    "total_latency_ms",
    "source_file",
    "source_offset",
    "event",
    "message",
];

/// Looks ids up in the logs of a request.
pub struct Lookup<'a> {
    pub logs: &'a Logs,
    pub context: &'a SessionContext,
    pub rule: &'a IdRule,
    /// The time range and `--where`.
    pub predicate: Option<Expr>,
    pub threads: usize,
}

/// What the logs say about some ids.
#[derive(Default)]
pub struct Seen {
    pub records: Vec<Entry>,
    pub events: Vec<Entry>,
    pub steps: Vec<Entry>,
    /// Ids that only begin with one that was looked for; where one was found, none.
    pub longer: BTreeSet<String>,
    /// What was read.
    pub counted: Counted,
    /// The lines that were read.
    pub lines: Vec<Arc<Found>>,
}

impl Seen {
    /// Adds what another look found.
    pub fn add(&mut self, other: Self) {
        let key = |entry: &Entry| match entry.source() {
            (file, Some(offset)) => format!("{file} {offset} {:?}", entry.text(Column::RequestId.name())),
            (file, None) => format!("{file} {:?}", entry.known()),
        };
        for (own, others) in [(&mut self.records, other.records), (&mut self.events, other.events)] {
            let known: HashSet<String> = own.iter().map(key).collect();
            own.extend(others.into_iter().filter(|entry| !known.contains(&key(entry))));
        }
        self.steps.extend(other.steps);
        self.lines.extend(other.lines);
    }

    /// Whether something was found for each of the ids.
    fn has_all(&self, ids: &Ids, columns: &[Column], rule: &IdRule) -> bool {
        let entries = self.records.iter().chain(&self.events).chain(&self.steps);
        let named = entries.flat_map(|entry| columns.iter().filter_map(|column| entry.text(column.name())));
        let named: BTreeSet<String> = named.map(|id| canonical(rule, id)).collect();
        ids.iter().all(|id| named.contains(id))
    }
}

impl Lookup<'_> {
    /// The records that have one of the ids in one of some columns, and the events and the steps of tokens with them.
    ///
    /// # Errors
    /// A log cannot be read.
    pub async fn look(&self, ids: &Ids, columns: &[Column]) -> anyhow::Result<Seen> {
        if ids.is_empty() {
            return Ok(Seen::default());
        }
        let needles = self.needles(ids);
        let found = self.logs.search(&needles, self.threads)?;
        let mut seen = self.among(ids, columns, &needles, &found).await?;
        let is_all = seen.has_all(ids, columns, self.rule);
        // an id itself may lie across two pieces of a line
        if let Some(found) = (!is_all).then(|| found.without_pieces()).flatten() {
            seen.add(self.among(ids, columns, &needles, &found).await?);
        }
        Ok(seen)
    }

    /// The same among the lines that were found.
    async fn among(&self, ids: &Ids, columns: &[Column], needles: &Needles, found: &Found) -> anyhow::Result<Seen> {
        let whole = Arc::new(found.whole());
        let has_id = |batch: &RecordBatch| ids.rows(batch, columns, Ids::contain);
        let of_traces = self.logs.schema.of_traces();
        let (mut records, plan) = self.rows(self.texts(whole.clone(), &of_traces), None, &[], has_id).await?;
        let counted = Counted::of(plan.as_ref());
        records.extend(self.of_parquet(ids.condition(columns), has_id).await?);
        let events = self.texts(whole.clone(), &LogSchema { takes_lines: true, ..self.logs.schema.of_events() });
        let speaks = |batch: &RecordBatch| speaks_of(batch, ids, columns, needles);
        let (events, _) = self.rows(events, None, &OF_EVENTS, speaks).await?;
        let steps = self.steps(ids, whole.clone()).await?;
        let mut longer = BTreeSet::new();
        if records.is_empty() && events.is_empty() && steps.is_empty() {
            longer = self.longer(ids, Arc::new(found.clone())).await?;
        }
        Ok(Seen { records, events, steps, longer, counted, lines: vec![whole] })
    }

    /// Where an entry stands, as `file:line`; the line of a log that was read whole is not known, nor is that of Parquet.
    pub fn place(&self, entry: &Entry, lines: &[Arc<Found>]) -> String {
        let (name, offset) = entry.source();
        let file = self.logs.files.iter().find(|file| file.input.name == name);
        let number = file.zip(offset).and_then(|(file, offset)| {
            let offset = u64::try_from(offset).ok()?;
            let read = || positions(&self.logs.files, &[Place { file: file.index, offset }]).pop();
            let found = lines.iter().find_map(|found| found.number(file.index, offset));
            found.map(|number| format!("{name}:{number}")).or_else(read)
        });
        number.unwrap_or_else(|| name.to_owned())
    }

    /// What finds the ids in a text.
    pub fn needles(&self, ids: &Ids) -> Needles {
        Needles::new(ids.iter(), &self.rule.cuts)
    }

    /// The steps of tokens of these requests.
    ///
    /// # Errors
    /// A log cannot be read.
    pub async fn steps_of(&self, ids: &Ids) -> anyhow::Result<Vec<Entry>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.logs.search(&self.needles(ids), self.threads)?;
        self.steps(ids, Arc::new(found.whole())).await
    }

    async fn steps(&self, ids: &Ids, found: Arc<Found>) -> anyhow::Result<Vec<Entry>> {
        let id = [Column::RequestId];
        let has_id = |batch: &RecordBatch| ids.rows(batch, &id, Ids::contain);
        let schema = self.logs.schema.of_tokens();
        let (mut steps, _) = self.rows(TokenTable::new(self.texts(found, &schema)), None, &OF_STEPS, has_id).await?;
        let parquets = self.logs.parquets.iter().chain(&self.logs.token_parquets);
        let parquets: Vec<_> = parquets.filter(|log| log.may_tell_of_tokens()).cloned().collect();
        if !parquets.is_empty() {
            let table = LogTable { texts: Vec::new(), parquets, schema: Arc::new(schema), ..self.logs.table(None) };
            let table = TokenTable::new(table);
            steps.extend(self.rows(table, ids.condition(&id), &OF_STEPS, has_id).await?.0);
        }
        Ok(steps)
    }

    /// The ids that begin with one of these.
    async fn longer(&self, ids: &Ids, found: Arc<Found>) -> anyhow::Result<BTreeSet<String>> {
        let id = [Column::RequestId];
        let begins = |batch: &RecordBatch| ids.rows(batch, &id, Ids::begin);
        let (mut entries, _) = self.rows(self.texts(found, &self.logs.schema), None, &[id[0].name()], begins).await?;
        entries.extend(self.of_parquet(ids.beginning(), begins).await?);
        let longer = entries.iter().filter_map(|entry| entry.text(id[0].name()));
        Ok(longer.map(|id| canonical(self.rule, id)).collect())
    }

    /// The lines that were found, of the logs that were searched; the others whole.
    fn texts(&self, found: Arc<Found>, schema: &LogSchema) -> LogTable {
        let (schema, parquets) = (Arc::new(schema.clone()), Vec::new());
        LogTable { schema, parquets, found: Some(found), ..self.logs.table(self.predicate.clone()) }
    }

    async fn of_parquet(
        &self,
        condition: Option<Expr>,
        keep: impl Fn(&RecordBatch) -> BooleanArray,
    ) -> anyhow::Result<Vec<Entry>> {
        if self.logs.parquets.is_empty() {
            return Ok(Vec::new());
        }
        let schema = Arc::new(self.logs.schema.of_traces());
        let table = LogTable { schema, texts: Vec::new(), is_lookup: true, ..self.logs.table(self.predicate.clone()) };
        Ok(self.rows(table, condition, &[], keep).await?.0)
    }

    /// Rows of a table that are kept, with these columns or all; the condition helps to read less.
    async fn rows(
        &self,
        table: impl TableProvider + 'static,
        condition: Option<Expr>,
        columns: &[&str],
        keep: impl Fn(&RecordBatch) -> BooleanArray,
    ) -> anyhow::Result<(Vec<Entry>, Arc<dyn ExecutionPlan>)> {
        let mut frame = self.context.read_table(Arc::new(table)).map_err(engine::in_words)?;
        if let Some(condition) = condition {
            frame = frame.filter(condition).map_err(engine::in_words)?;
        }
        if !columns.is_empty() {
            frame = frame.select_columns(columns).map_err(engine::in_words)?;
        }
        let plan = frame.create_physical_plan().await.map_err(engine::in_words)?;
        let mut stream = execute_stream(plan.clone(), self.context.task_ctx()).map_err(engine::in_words)?;
        let mut entries = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(engine::in_words)?;
            entries.extend(Entry::all(&filter_record_batch(&batch, &keep(&batch))?));
        }
        // counts become metrics when the streams are dropped
        drop(stream);
        // threads hand batches over in any order
        entries.sort_by(|a, b| (a.source(), a.start()).cmp(&(b.source(), b.start())));
        Ok((entries, plan))
    }
}

/// The events that name one of the ids, or whose text does.
fn speaks_of(batch: &RecordBatch, ids: &Ids, columns: &[Column], needles: &Needles) -> BooleanArray {
    let named = ids.rows(batch, columns, Ids::contain);
    let Some(messages) = batch.column_by_name("message").and_then(|column| column.as_string_view_opt()) else {
        return named;
    };
    let speaks = |(is_named, text): (Option<bool>, Option<&str>)| {
        Some(is_named == Some(true) || text.is_some_and(|text| needles.stand_in(public(text))))
    };
    named.iter().zip(messages).map(speaks).collect()
}
