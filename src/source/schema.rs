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
}

/// The columns beyond the canonical record that an event has, with the keys that loggers write them under.
const OF_EVENTS: [(&str, &[&str]); 2] =
    [("event", &["event", "event_name", "event_type"]), ("message", &["message", "msg", "log"])];

/// The table's columns and what each stands for.
#[derive(Clone, Debug)]
pub struct LogSchema {
    pub rows: Rows,
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
        Self { rows: Rows::Requests, arrow: Arc::new(Schema::new(fields)), extras: extras.to_vec(), partitions: names }
    }

    /// The columns of the events in the same logs.
    pub fn of_events(&self) -> Self {
        let extra = |(name, keys): &(&str, &[&str])| {
            let paths = keys.iter().map(|key| KeyPath::of(key)).collect();
            ExtraColumn { name: (*name).to_owned(), paths, kind: Kind::Text }
        };
        let asked = self.extras.iter().filter(|extra| OF_EVENTS.iter().all(|(name, _)| extra.name != *name));
        let extras: Vec<ExtraColumn> = OF_EVENTS.iter().map(extra).chain(asked.cloned()).collect();
        Self { rows: Rows::Events, ..Self::new(&extras, self.partitions.clone()) }
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
