//! Rows of Parquet as lines of JSON: how the exports of known producers are read, by the rules of their profiles.
//!
//! Logs without a profile are read column by column instead, which is many times faster.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::profile::{Condition, Profile, ValuePath};

/// The rows of a file, in order.
pub struct Rows {
    batches: ParquetRecordBatchReader,
    lines: Vec<u8>,
}

impl Rows {
    pub fn open(path: &Path) -> io::Result<Self> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(io::Error::other)?;
        Ok(Self { batches: builder.build().map_err(io::Error::other)?, lines: Vec::new() })
    }

    /// Some rows, each as an object on a line; None at the end.
    pub fn next_lines(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let batch = with_texts(&batch.map_err(io::Error::other)?).map_err(io::Error::other)?;
        self.lines.clear();
        let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut self.lines);
        writer.write(&batch).map_err(io::Error::other)?;
        writer.finish().map_err(io::Error::other)?;
        Ok(Some(&self.lines))
    }
}

/// A batch with texts where the file says only that there are bytes; bytes that are no text are missing.
fn with_texts(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let data_type = with_text(field.data_type());
        columns.push(cast(column, &data_type)?);
        fields.push(field.as_ref().clone().with_data_type(data_type).with_nullable(true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn with_text(data_type: &DataType) -> DataType {
    let of_field = |field: &Field| field.clone().with_data_type(with_text(field.data_type())).with_nullable(true);
    match data_type {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Utf8,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| of_field(field)).collect()),
        DataType::List(field) => DataType::List(Arc::new(of_field(field))),
        other => other.clone(),
    }
}

/// Whether the rows of a schema are records of a profile, as far as their columns tell.
pub fn are_of(profile: &Profile, schema: &Schema) -> bool {
    let known = |condition: &Condition| {
        let is_there = |path: &ValuePath| path.spellings().any(|keys| holds(schema, &keys));
        let mut valued = [&condition.is, &condition.starts].into_iter().flatten();
        let is_scalar = |path: &ValuePath| {
            let data_type =
                path.keys.first().and_then(|key| schema.field_with_name(key).ok()).map(|field| field.data_type());
            path.keys.len() > 1 || data_type.is_some_and(|data_type| !data_type.is_nested())
        };
        condition.keys.iter().all(is_there)
            && valued.all(|(path, _)| is_there(path) && is_scalar(path))
            && (condition.any.is_empty() || condition.any.iter().any(is_there))
            && !condition.without.iter().any(is_there)
    };
    profile.pattern.is_none() && profile.recognise.iter().any(known)
}

/// Whether a schema has a column at the end of these keys, or one that may hold it: a map, or JSON as text.
fn holds(schema: &Schema, keys: &[String]) -> bool {
    let Some((first, rest)) = keys.split_first() else { return false };
    let Ok(field) = schema.field_with_name(first) else { return false };
    let mut data_type = field.data_type();
    for key in rest {
        data_type = match data_type {
            DataType::Struct(fields) => match fields.iter().find(|field| field.name() == key) {
                Some(field) => field.data_type(),
                None => return false,
            },
            DataType::Map(..) => return true,
            other => return other.is_string(),
        };
    }
    true
}
