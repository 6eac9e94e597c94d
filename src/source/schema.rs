//! The columns of the tables that are read from logs: the canonical record, what `--column` adds, and the folders'
//! `key=value` parts.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};

use crate::record::{Column, Kind, column};
use crate::request::{ExtraColumn, KeyPath};

/// Which records of the logs are the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    Requests,
    /// What says something about a request: KV eviction, a model load, a line that carries its id.
    Events,
    /// Steps of tokens, and requests that tell them in lists.
    Tokens,
    /// Requests and events alike.
    Both,
}

/// A column beyond the canonical record, with the keys that loggers write it under.
type Beyond = (&'static str, Kind, &'static [&'static str]);

/// Those that an event has.
const OF_EVENTS: [Beyond; 2] = [
    ("event", Kind::Text, &["event", "event_name", "event_type"]),
    ("message", Kind::Text, &["message", "msg", "log"]),
];

/// Those that a request has which is looked at by itself: its place among spans, and what went wrong in words.
const OF_TRACES: [Beyond; 3] = [
    ("span_id", Kind::Text, &["span_id", "spanId"]),
    ("parent_span_id", Kind::Text, &["parent_span_id", "parentSpanId"]),
    ("error_text", Kind::Text, &["error_message", "error_msg", "error"]),
];

/// The column that tells requests and events apart where both are rows.
pub const TABLE: Beyond = ("table", Kind::Text, &[]);

/// Those that a step of tokens has, and in which a request tells of all its steps, as lists.
pub const OF_TOKENS: [Beyond; 15] = [
    ("token_index", Kind::Count, &["token_index", "token_idx", "tokenIndex"]),
    ("step_ms", Kind::Duration, &["step_ms", "step_s", "step_us", "step_ns"]),
    ("wait_ms", Kind::Duration, &["wait_ms", "wait_s", "wait_us", "wait_ns"]),
    ("context_len", Kind::Count, &["context_len", "context_length"]),
    ("recompute", Kind::Flag, &["recompute", "recomputed", "is_recompute"]),
    ("gaps", Kind::Text, &["itls", "inter_token_latencies"]),
    ("gaps_ms", Kind::Text, &["itls_ms", "gaps_ms", "inter_token_latencies_ms"]),
    ("chunk_gaps", Kind::Text, &["inter_chunk_latency"]),
    ("chunk_gaps_ms", Kind::Text, &["inter_chunk_latency_ms"]),
    ("gaps_unit", Kind::Text, &[]),
    ("times", Kind::Text, &["token_times", "token_timestamps"]),
    ("times_ms", Kind::Text, &["token_times_ms"]),
    ("times_s", Kind::Text, &["token_times_s"]),
    ("steps", Kind::Text, &["token_steps"]),
    ("unit", Kind::Text, &[]),
];

/// The keys of lists of steps.
pub const LISTS: [&str; 8] =
    ["gaps", "gaps_ms", "chunk_gaps", "chunk_gaps_ms", "times", "times_ms", "times_s", "steps"];

/// Where events and steps of tokens tell their time, which other records do not.
pub const AT: [&str; 1] = ["at"];

/// The table's columns and what each stands for.
#[derive(Clone, Debug)]
pub struct LogSchema {
    pub rows: Rows,
    /// Whether lines of text that no pattern knows are events too.
    pub takes_lines: bool,
    pub arrow: SchemaRef,
    pub extras: Vec<ExtraColumn>,
    /// Names of `key=value` folders that are no canonical columns.
    pub partitions: Vec<String>,
}

/// What one column of the table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Canonical(Column),
    /// Index into the extra columns.
    Extra(usize),
    /// Index into the partition names.
    Partition(usize),
}

impl LogSchema {
    /// `partitions` are all keys of `key=value` folders among the inputs; one that names a canonical or an extra column
    /// adds none.
    pub fn new(extras: &[ExtraColumn], partitions: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = partitions.into_iter().collect();
        names.retain(|name| Column::named(name).is_none() && extras.iter().all(|extra| extra.name != *name));
        names.sort();
        names.dedup();
        let canonical = column::schema();
        let mut fields: Vec<Arc<Field>> = canonical.fields().iter().cloned().collect();
        fields.extend(extras.iter().map(|extra| Arc::new(Field::new(&extra.name, extra.kind.data_type(), true))));
        fields.extend(names.iter().map(|name| Arc::new(Field::new(name, Kind::Text.data_type(), true))));
        let (arrow, extras) = (Arc::new(Schema::new(fields)), extras.to_vec());
        Self { rows: Rows::Requests, takes_lines: false, arrow, extras, partitions: names }
    }

    /// The columns of the events in the same logs.
    pub fn of_events(&self) -> Self {
        self.with(Rows::Events, &OF_EVENTS)
    }

    /// The columns of the steps of tokens in the same logs, as they are written.
    pub fn of_tokens(&self) -> Self {
        self.with(Rows::Tokens, &OF_TOKENS)
    }

    /// The columns of requests with what only one by itself is looked at for.
    pub fn of_traces(&self) -> Self {
        self.with(Rows::Requests, &OF_TRACES)
    }

    /// The columns of requests and events, and which of them a row is.
    pub fn of_both(&self) -> Self {
        self.with(Rows::Both, &[OF_EVENTS[0], OF_EVENTS[1], TABLE])
    }

    /// More columns, and other rows.
    fn with(&self, rows: Rows, beyond: &[Beyond]) -> Self {
        let extra = |(name, kind, keys): &Beyond| {
            let paths = keys.iter().map(|key| KeyPath::of(key)).collect();
            ExtraColumn { name: (*name).to_owned(), paths, kind: *kind }
        };
        let asked = self.extras.iter().filter(|extra| beyond.iter().all(|(name, ..)| extra.name != *name));
        let extras: Vec<ExtraColumn> = beyond.iter().map(extra).chain(asked.cloned()).collect();
        Self { rows, ..Self::new(&extras, self.partitions.clone()) }
    }

    /// What the column at `index` of the table stands for.
    pub fn meaning(&self, index: usize) -> Meaning {
        let extras = Column::ALL.len();
        let partitions = extras + self.extras.len();
        if index < extras {
            Meaning::Canonical(Column::ALL[index])
        } else if index < partitions {
            Meaning::Extra(index - extras)
        } else {
            Meaning::Partition(index - partitions)
        }
    }
}
