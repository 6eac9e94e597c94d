//! One scan of the logs for what stands around requests: how long others of their kind took, what ran in their batch and on
//! their GPU, and whether the log of a role covers the time at all.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Array, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::entry::Entry;
use super::life::Standing;
use super::steps::quantile;
use crate::engine;
use crate::engine::accounting::Counted;
use crate::engine::functions::Edges;
use crate::record::Column;
use crate::source::table::LogTable;

/// A role's log covers a time when it has records so near to it.
const COVERS_NS: i64 = 60_000_000_000;

/// A batch is over within this time.
const BATCH_NS: i64 = 600_000_000_000;

/// Who runs on a GPU may have arrived so long before.
const LONGEST_NS: i64 = 3_600_000_000_000;

/// Columns that a row is judged by.
const JUDGED: [Column; 10] = [
    Column::RequestId,
    Column::Role,
    Column::Timestamp,
    Column::TotalLatencyMs,
    Column::ModelName,
    Column::InputTokens,
    Column::OutputTokens,
    Column::DecodeTimeMs,
    Column::Failed,
    Column::GpuId,
];

/// What a record is compared with: successful records of its role, its model and its input bucket, as far as it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    pub role: Option<String>,
    pub model_name: Option<String>,
    /// The number of the bucket and its label.
    pub bucket: Option<(usize, String)>,
}

impl Kind {
    pub fn of(record: &Entry, edges: &Edges) -> Self {
        let bucket = record.count(Column::InputTokens.name()).map(|tokens| {
            let number = edges.bucket(tokens);
            (number, edges.labels().swap_remove(number))
        });
        let text = |column: Column| record.text(column.name()).map(str::to_owned);
        Self { role: text(Column::Role), model_name: text(Column::ModelName), bucket }
    }
}

/// What to look for.
#[derive(Debug, Default)]
pub struct Wanted {
    pub kinds: Vec<Kind>,
    /// The durations that are compared.
    pub durations: Vec<Column>,
    /// First and last moment of the requests, nanoseconds.
    pub window: Option<(i64, i64)>,
    /// How much longer before and after that others on the GPU are looked for.
    pub context_ns: i64,
    pub gpus: BTreeSet<String>,
    pub batches: BTreeSet<String>,
}

/// What was found.
#[derive(Default)]
pub struct Surroundings {
    kinds: Vec<Kind>,
    durations: Vec<Column>,
    /// Sorted, by kind and duration; the last of each kind are paces.
    values: Vec<Vec<Vec<f64>>>,
    /// Ids of other requests in the same batches, and of those on the same GPUs, in order of their arrival.
    pub in_batch: Vec<String>,
    pub on_gpu: Vec<String>,
    /// Events on the same GPUs and in the same batches.
    pub events: Vec<Entry>,
    /// Records of each role while the requests ran.
    pub roles: BTreeMap<String, u64>,
    pub counted: Counted,
}

impl Wanted {
    /// The rows that any of this asks for.
    fn condition(&self, edges: &Edges) -> Expr {
        let column = |column: Column| col(column.name());
        let kind = |kind: &Kind| {
            let equals =
                |what: Column, text: &Option<String>| text.as_ref().map(|text| column(what).eq(lit(text.as_str())));
            let bucket = kind.bucket.as_ref().and_then(|(number, _)| {
                let (from, to) = edges.range(*number);
                let tokens = || column(Column::InputTokens);
                let to = to.map(|to| tokens().lt(lit(to)));
                [Some(tokens().gt_eq(lit(from))), to].into_iter().flatten().reduce(Expr::and)
            });
            let parts = [equals(Column::Role, &kind.role), equals(Column::ModelName, &kind.model_name), bucket];
            parts.into_iter().flatten().fold(column(Column::Failed).is_not_true(), Expr::and)
        };
        let near = self.window.map(|(start, end)| {
            let between = |from: i64, to: i64| column(Column::Timestamp).between(lit(instant(from)), lit(instant(to)));
            let in_list = |what: Column, texts: &BTreeSet<String>| {
                column(what).in_list(texts.iter().map(|text| lit(text.as_str())).collect(), false)
            };
            let on_gpu = between(start - LONGEST_NS, end + self.context_ns).and(in_list(Column::GpuId, &self.gpus));
            let in_batch = || between(start - BATCH_NS, end + BATCH_NS).and(in_list(Column::BatchId, &self.batches));
            let in_batch = (!self.batches.is_empty()).then(in_batch);
            let near = between(start - COVERS_NS, end + COVERS_NS).or(on_gpu);
            in_batch.into_iter().fold(near, Expr::or)
        });
        self.kinds.iter().map(kind).chain(near).reduce(Expr::or).unwrap_or_else(|| lit(false))
    }

    /// The columns to read.
    fn columns(&self) -> Vec<&'static str> {
        let mut columns: Vec<Column> = JUDGED.iter().chain(&self.durations).copied().collect();
        if !self.batches.is_empty() {
            columns.push(Column::BatchId);
        }
        columns.sort_unstable();
        columns.dedup();
        let beyond = ["event", "message", "table"];
        columns.into_iter().map(Column::name).chain(beyond).collect()
    }

    fn is_in_batch(&self, row: &Row<'_>) -> bool {
        row.batch.is_some_and(|batch| self.batches.contains(batch))
    }

    /// Whether a row ran on one of the GPUs at the time.
    fn is_on_gpu(&self, row: &Row<'_>) -> bool {
        let Some(((start, end), at)) = self.window.zip(row.at) else { return false };
        let until = at + row.total_ms.map_or(0, super::entry::nanoseconds);
        let at_the_time = at <= end + self.context_ns && until >= start - self.context_ns;
        at_the_time && row.gpu.is_some_and(|gpu| self.gpus.contains(gpu))
    }
}

fn instant(nanoseconds: i64) -> ScalarValue {
    ScalarValue::TimestampNanosecond(Some(nanoseconds), Some("UTC".into()))
}

/// The columns of a batch that every row is looked at by.
struct Rows<'a> {
    id: &'a StringViewArray,
    role: &'a StringViewArray,
    model: &'a StringViewArray,
    gpu: &'a StringViewArray,
    batch: Option<&'a StringViewArray>,
    table: &'a StringViewArray,
    at: &'a datafusion::arrow::array::TimestampNanosecondArray,
    total: &'a Float64Array,
    input: &'a Int64Array,
    output: &'a Int64Array,
    decode: &'a Float64Array,
    failed: &'a BooleanArray,
}

/// One of them.
struct Row<'a> {
    role: Option<&'a str>,
    model: Option<&'a str>,
    gpu: Option<&'a str>,
    batch: Option<&'a str>,
    at: Option<i64>,
    total_ms: Option<f64>,
    input: Option<i64>,
    pace_ms: Option<f64>,
    is_event: bool,
    failed: bool,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let texts = |name: &str| batch.column_by_name(name)?.as_string_view_opt();
        Some(Self {
            id: texts(Column::RequestId.name())?,
            role: texts(Column::Role.name())?,
            model: texts(Column::ModelName.name())?,
            gpu: texts(Column::GpuId.name())?,
            batch: texts(Column::BatchId.name()),
            table: texts("table")?,
            at: batch.column_by_name(Column::Timestamp.name())?.as_primitive_opt()?,
            total: batch.column_by_name(Column::TotalLatencyMs.name())?.as_primitive_opt()?,
            input: batch.column_by_name(Column::InputTokens.name())?.as_primitive_opt()?,
            output: batch.column_by_name(Column::OutputTokens.name())?.as_primitive_opt()?,
            decode: batch.column_by_name(Column::DecodeTimeMs.name())?.as_primitive_opt()?,
            failed: batch.column_by_name(Column::Failed.name())?.as_boolean_opt()?,
        })
    }

    fn row(&self, row: usize) -> Row<'a> {
        let text = |texts: &'a StringViewArray| texts.is_valid(row).then(|| texts.value(row));
        Row {
            role: text(self.role),
            model: text(self.model),
            gpu: text(self.gpu),
            batch: self.batch.and_then(text),
            at: self.at.is_valid(row).then(|| self.at.value(row)),
            total_ms: self.total.is_valid(row).then(|| self.total.value(row)),
            input: self.input.is_valid(row).then(|| self.input.value(row)),
            pace_ms: (self.decode.is_valid(row) && self.output.is_valid(row))
                .then(|| pace_ms(self.decode.value(row), self.output.value(row)))
                .flatten(),
            is_event: text(self.table) == Some("events"),
            failed: self.failed.is_valid(row) && self.failed.value(row),
        }
    }
}

impl Row<'_> {
    fn is_of(&self, kind: &Kind, edges: &Edges) -> bool {
        let same = |own: Option<&str>, wanted: &Option<String>| wanted.is_none() || own == wanted.as_deref();
        let in_bucket = |(number, _): &(usize, String)| self.input.map(|tokens| edges.bucket(tokens)) == Some(*number);
        same(self.role, &kind.role) && same(self.model, &kind.model_name) && kind.bucket.as_ref().is_none_or(in_bucket)
    }
}

impl Surroundings {
    /// Reads the table of requests and events once.
    ///
    /// # Errors
    /// A log cannot be read.
    pub async fn scan(
        context: &SessionContext,
        table: LogTable,
        wanted: &Wanted,
        edges: &Edges,
    ) -> anyhow::Result<Self> {
        let frame = context.read_table(std::sync::Arc::new(table)).map_err(engine::in_words)?;
        let frame = frame.filter(wanted.condition(edges)).and_then(|frame| frame.select_columns(&wanted.columns()));
        let plan = frame.map_err(engine::in_words)?.create_physical_plan().await.map_err(engine::in_words)?;
        let mut stream = execute_stream(plan.clone(), context.task_ctx()).map_err(engine::in_words)?;
        let mut found = Self {
            kinds: wanted.kinds.clone(),
            durations: wanted.durations.clone(),
            values: vec![vec![Vec::new(); wanted.durations.len() + 1]; wanted.kinds.len()],
            ..Self::default()
        };
        let (mut in_batch, mut on_gpu) = (Vec::new(), Vec::new());
        while let Some(batch) = stream.next().await {
            found.take(&batch.map_err(engine::in_words)?, wanted, edges, &mut in_batch, &mut on_gpu)?;
        }
        // counts become metrics when the streams are dropped
        drop(stream);
        found.counted = Counted::of(plan.as_ref());
        found.values.iter_mut().flatten().for_each(|values| values.sort_unstable_by(f64::total_cmp));
        found.events.sort_by_key(|event| (event.start(), event.text("event").map(str::to_owned)));
        // threads hand batches over in any order
        let ids = |mut near: Vec<(Option<i64>, String)>| -> Vec<String> {
            near.sort();
            let mut known = BTreeSet::new();
            near.into_iter().map(|(_, id)| id).filter(|id| known.insert(id.clone())).collect()
        };
        (found.in_batch, found.on_gpu) = (ids(in_batch), ids(on_gpu));
        Ok(found)
    }

    fn take(
        &mut self,
        batch: &RecordBatch,
        wanted: &Wanted,
        edges: &Edges,
        in_batch: &mut Vec<(Option<i64>, String)>,
        on_gpu: &mut Vec<(Option<i64>, String)>,
    ) -> anyhow::Result<()> {
        let Some(rows) = Rows::of(batch) else { return Ok(()) };
        let durations: Vec<Option<&Float64Array>> = self
            .durations
            .iter()
            .map(|column| batch.column_by_name(column.name())?.as_primitive_opt::<Float64Type>())
            .collect();
        let covered = wanted.window.map(|(start, end)| start - COVERS_NS..=end + COVERS_NS);
        let mut happened = vec![false; batch.num_rows()];
        for (number, happened) in happened.iter_mut().enumerate() {
            let row = rows.row(number);
            if let (Some(role), false, Some(true)) =
                (row.role, row.is_event, row.at.map(|at| covered.as_ref().is_some_and(|covered| covered.contains(&at))))
            {
                *self.roles.entry(role.to_owned()).or_default() += 1;
            }
            let (is_in_batch, is_on_gpu) = (wanted.is_in_batch(&row), wanted.is_on_gpu(&row));
            *happened = row.is_event && (is_in_batch || is_on_gpu);
            if !row.is_event && rows.id.is_valid(number) {
                let near = || (row.at, rows.id.value(number).to_owned());
                in_batch.extend(is_in_batch.then(near));
                on_gpu.extend((is_on_gpu && !is_in_batch).then(near));
            }
            if row.is_event || row.failed {
                continue;
            }
            for (kind, values) in self.kinds.iter().zip(&mut self.values) {
                if !row.is_of(kind, edges) {
                    continue;
                }
                for (values, durations) in values.iter_mut().zip(&durations) {
                    values.extend(durations.filter(|ms| ms.is_valid(number)).map(|ms| ms.value(number)));
                }
                if let Some(paces) = values.last_mut() {
                    paces.extend(row.pace_ms);
                }
            }
        }
        if happened.contains(&true) {
            self.events.extend(Entry::all(&filter_record_batch(batch, &BooleanArray::from(happened))?));
        }
        Ok(())
    }

    /// Where a duration stands among those of its kind, without its `own` value where it is one of them; None where there are
    /// no others.
    pub fn standing(&self, kind: &Kind, column: Column, ms: f64, own: Option<f64>) -> Option<Standing> {
        let at = self.durations.iter().position(|other| *other == column)?;
        self.among(kind, at, ms, own)
    }

    /// The same of a pace.
    pub fn standing_of_pace(&self, kind: &Kind, ms: f64, own: Option<f64>) -> Option<Standing> {
        self.among(kind, self.durations.len(), ms, own)
    }

    fn among(&self, kind: &Kind, column: usize, ms: f64, own: Option<f64>) -> Option<Standing> {
        let kind_at = self.kinds.iter().position(|other| other == kind)?;
        let mut values = self.values[kind_at].get(column)?.clone();
        if let Some(Ok(own)) = own.map(|own| values.binary_search_by(|value| value.total_cmp(&own))) {
            values.remove(own);
        }
        let count = values.len();
        let below = values.partition_point(|value| *value < ms);
        Some(Standing {
            model_name: kind.model_name.clone(),
            input_bucket: kind.bucket.as_ref().map(|(_, label)| label.clone()),
            count: count as u64,
            p50_ms: quantile(&values, 0.5)?,
            p95_ms: quantile(&values, 0.95)?,
            p99_ms: quantile(&values, 0.99)?,
            below: below as f64 / count as f64,
        })
    }
}

/// Time of decoding for each token behind the first; None where there is none.
pub fn pace_ms(decode_ms: f64, output_tokens: i64) -> Option<f64> {
    (output_tokens > 1).then(|| decode_ms / (output_tokens - 1) as f64)
}
