//! Polars: the rows of an answer in another shape. What goes over and comes back stands here; Arrow's arrays of the engine
//! and of Polars are different types.

pub mod pivot;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array};
use polars::prelude::{Column, DataType};
use std::sync::Arc;

/// A column of numbers as the engine has them.
fn numbers(column: &Column) -> anyhow::Result<ArrayRef> {
    Ok(match column.dtype() {
        DataType::Int64 => Arc::new(column.i64()?.iter().collect::<Int64Array>()),
        _ => Arc::new(column.cast(&DataType::Float64)?.f64()?.iter().collect::<Float64Array>()),
    })
}
