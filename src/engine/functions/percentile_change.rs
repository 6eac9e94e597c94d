//! `percentile_change(a, b, p, confidence, seed)`: how a percentile changed between two sides, and within which bounds, as a
//! list `[a, b, low, high]`. `a` and `b` are lists of lists: the values of each part of the traffic, the same parts in the same
//! order.

use std::sync::Arc;

use datafusion::arrow::array::builder::{Float64Builder, ListBuilder};
use datafusion::arrow::array::{Array, AsArray, ListArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::argument::list_of;
use super::bootstrap::{Part, change};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PercentileChange {
    signature: Signature,
}

impl PercentileChange {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for PercentileChange {
    fn name(&self) -> &str {
        "percentile_change"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [_, _, _, _, _] => {
                let parts = list_of(list_of(DataType::Float64));
                Ok(vec![parts.clone(), parts, DataType::Float64, DataType::Float64, DataType::Int64])
            }
            _ => plan_err!("percentile_change takes the values of two sides, a percentile, a confidence and a seed"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(list_of(DataType::Float64))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [a, b, p, confidence, seed] = &args.args[..] else {
            return plan_err!("percentile_change takes five arguments");
        };
        let (a, b, p) = (a.to_array(rows)?, b.to_array(rows)?, p.to_array(rows)?);
        let p = p.as_primitive::<Float64Type>();
        let (
            ColumnarValue::Scalar(ScalarValue::Float64(Some(confidence))),
            ColumnarValue::Scalar(ScalarValue::Int64(Some(seed))),
        ) = (confidence, seed)
        else {
            return plan_err!("the confidence and the seed of percentile_change must be constants");
        };
        if !(0.0..1.0).contains(confidence) {
            return plan_err!("the confidence of percentile_change must be from 0 to below 1");
        }
        let mut changes = ListBuilder::new(Float64Builder::new());
        for row in 0..rows {
            let sides = parts(a.as_list(), row).into_iter().zip(parts(b.as_list(), row));
            let parts: Vec<Part> = sides.map(|(a, b)| Part::new(a, b)).collect();
            let found = p.is_valid(row).then(|| change(&parts, p.value(row), *confidence, *seed as u64)).flatten();
            if let Some(change) = found {
                changes.values().append_slice(&[change.a, change.b, change.low, change.high]);
            }
            changes.append(found.is_some());
        }
        Ok(ColumnarValue::Array(Arc::new(changes.finish())))
    }
}

/// The values of each part in a row.
fn parts(sides: &ListArray, row: usize) -> Vec<Vec<f64>> {
    if sides.is_null(row) {
        return Vec::new();
    }
    let parts = sides.value(row);
    let values = |part: Option<Arc<dyn Array>>| {
        part.map_or_else(Vec::new, |part| part.as_primitive::<Float64Type>().iter().flatten().collect())
    };
    parts.as_list::<i32>().iter().map(values).collect()
}
