//! A row of a table of logs with its values at hand, whatever their types.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, SchemaRef, TimestampNanosecondType,
};
use datafusion::arrow::util::display::array_value_to_string;

use super::life::Value;
use crate::record::Column;

/// One record, event or step.
#[derive(Clone, Debug)]
pub struct Entry {
    schema: SchemaRef,
    values: Vec<Option<Value>>,
}

impl Entry {
    /// Every row of a batch.
    pub fn all(batch: &RecordBatch) -> Vec<Self> {
        let entry = |row: usize| Self {
            schema: batch.schema(),
            values: batch.columns().iter().map(|column| value(column, row)).collect(),
        };
        (0..batch.num_rows()).map(entry).collect()
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values[self.schema.index_of(name).ok()?].as_ref()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn count(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Count(count) => Some(*count),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Nanoseconds since 1970; of years in which nothing was served, none.
    pub fn time(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Time(time) => Some(*time).filter(|time| YEARS.contains(time)),
            _ => None,
        }
    }

    pub fn role(&self) -> Option<&str> {
        self.text(Column::Role.name())
    }

    pub fn start(&self) -> Option<i64> {
        self.time(Column::Timestamp.name())
    }

    /// When it ended: as logged, else by how long it took; never before it began.
    pub fn end(&self) -> Option<i64> {
        let took = || Some(self.start()? + nanoseconds(self.number(Column::TotalLatencyMs.name())?));
        let logged = self.time(Column::CompletedAt.name());
        logged.or_else(took).filter(|end| self.start().is_none_or(|start| *end >= start))
    }

    /// `failed`, `success` or `unknown`.
    pub fn outcome(&self) -> &'static str {
        match self.flag(Column::Failed.name()) {
            Some(true) => "failed",
            Some(false) => "success",
            None => "unknown",
        }
    }

    /// The file and the byte that it starts at.
    pub fn source(&self) -> (&str, Option<i64>) {
        (self.text(Column::SourceFile.name()).unwrap_or_default(), self.count(Column::SourceOffset.name()))
    }

    /// What it says, wherever it stands.
    pub fn says(&self) -> Vec<(&'static str, Value)> {
        let place = [Column::SourceFile.name(), Column::SourceOffset.name()];
        self.known().into_iter().filter(|(name, _)| !place.contains(name)).collect()
    }

    /// Every canonical column with a value, in the order of the schema.
    pub fn known(&self) -> Vec<(&'static str, Value)> {
        let known = |column: &Column| Some((column.name(), self.value(column.name())?.clone()));
        Column::ALL.iter().filter_map(known).collect()
    }
}

/// From 1990 to 2100.
const YEARS: std::ops::Range<i64> = 631_152_000_000_000_000..4_102_444_800_000_000_000;

/// Ten years: nothing takes longer, and times that it is added to stay what they are.
const LONGEST_MS: f64 = 3.2e11;

pub fn nanoseconds(ms: f64) -> i64 {
    (ms.clamp(-LONGEST_MS, LONGEST_MS) * 1e6).round() as i64
}

fn value(column: &ArrayRef, row: usize) -> Option<Value> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8View => Value::Text(column.as_string_view().value(row).to_owned()),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Int64 => Value::Count(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Number(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::Flag(column.as_boolean().value(row)),
        DataType::Timestamp(..) => Value::Time(column.as_primitive_opt::<TimestampNanosecondType>()?.value(row)),
        DataType::Decimal128(..) => {
            let money = column.as_primitive::<Decimal128Type>().value_as_string(row);
            Value::Money(match money.contains('.') {
                true => money.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => money,
            })
        }
        _ => Value::Text(array_value_to_string(column, row).ok()?),
    })
}
