//! Values as they stand in the columns of a batch of canonical records; a column that is not there has none.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, Decimal128Type, Float64Type, Int64Type, TimestampNanosecondType,
};

pub fn text(column: Option<&ArrayRef>, row: usize) -> Option<&str> {
    present(column, row).map(|column| column.as_string_view().value(row))
}

/// Nanoseconds since 1970.
pub fn time(column: Option<&ArrayRef>, row: usize) -> Option<i64> {
    primitive::<TimestampNanosecondType>(column, row)
}

pub fn number(column: Option<&ArrayRef>, row: usize) -> Option<f64> {
    primitive::<Float64Type>(column, row)
}

pub fn count(column: Option<&ArrayRef>, row: usize) -> Option<i64> {
    primitive::<Int64Type>(column, row)
}

/// In the smallest unit of the column.
pub fn money(column: Option<&ArrayRef>, row: usize) -> Option<i128> {
    primitive::<Decimal128Type>(column, row)
}

pub fn flag(column: Option<&ArrayRef>, row: usize) -> Option<bool> {
    present(column, row).map(|column| column.as_boolean().value(row))
}

fn primitive<T: ArrowPrimitiveType>(column: Option<&ArrayRef>, row: usize) -> Option<T::Native> {
    present(column, row).map(|column| column.as_primitive::<T>().value(row))
}

fn present(column: Option<&ArrayRef>, row: usize) -> Option<&ArrayRef> {
    column.filter(|column| column.is_valid(row))
}
