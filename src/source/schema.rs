//! The columns of the table `logs`: the canonical record, what `--column` adds, and the folders' `key=value` parts.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};

use crate::record::{Column, Kind, column};
use crate::request::ExtraColumn;

/// The table's columns and what each stands for.
#[derive(Clone, Debug)]
pub struct LogSchema {
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
        Self { arrow: Arc::new(Schema::new(fields)), extras: extras.to_vec(), partitions: names }
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
