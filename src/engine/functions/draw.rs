//! `draw(text, seed)`: a number from 0 to less than 1 that looks drawn by chance and is always the same for one text and seed.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use fastrand::Rng;

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    signature: Signature,
}

impl Draw {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Draw {
    fn name(&self) -> &str {
        "draw"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [_, _] => Ok(vec![DataType::Utf8View, DataType::Int64]),
            _ => plan_err!("draw takes a text and a seed, as in draw(request_id, 1)"),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (texts, seeds) = (arrays[0].as_string_view(), arrays[1].as_primitive::<Int64Type>());
        let number = |row: usize| {
            let known = texts.is_valid(row) && seeds.is_valid(row);
            known.then(|| Rng::with_seed(hash(texts.value(row).as_bytes(), seeds.value(row))).f64())
        };
        let drawn: ArrayRef = Arc::new((0..texts.len()).map(number).collect::<Float64Array>());
        Ok(ColumnarValue::Array(drawn))
    }
}

/// FNV-1a in 64 bits (Fowler, Noll, Vo), which `Rng` then mixes: ids that differ in their last digit are far apart.
fn hash(text: &[u8], seed: i64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    text.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_sequence_are_spread_evenly_and_always_alike() {
        let drawn = |id: u32| Rng::with_seed(hash(format!("req-{id:06}").as_bytes(), 1)).f64();
        let below = |part: f64| (0..100_000).filter(|&id| drawn(id) < part).count();
        for (part, expected) in [(0.01, 1000), (0.1, 10_000), (0.5, 50_000)] {
            assert!(below(part).abs_diff(expected) < 500, "{part}: {}", below(part));
        }
        assert_eq!(drawn(7), drawn(7));
    }
}
