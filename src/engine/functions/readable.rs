//! `readable(number)`: a whole number or an amount as a sentence writes it: commas between thousands, and of the decimals those
//! that say something, two at least.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use indicatif::HumanCount;

use crate::record::Kind;

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Readable {
    signature: Signature,
}

impl Readable {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Readable {
    fn name(&self) -> &str {
        "readable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [whole] if whole.is_integer() => Ok(vec![DataType::Int64]),
            [_] => Ok(vec![Kind::Money.data_type()]),
            _ => plan_err!("readable takes one number"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let digits = cast(&arrays[0], &DataType::Utf8)?;
        let texts = digits.as_string::<i32>().iter().map(|digits| digits.map(readable));
        Ok(ColumnarValue::Array(Arc::new(texts.collect::<StringArray>()) as ArrayRef))
    }
}

/// Plain digits, perhaps with a sign and a fraction.
fn readable(digits: &str) -> String {
    let (sign, size) = digits.strip_prefix('-').map_or(("", digits), |size| ("-", size));
    let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
    let grouped = whole.parse().map_or_else(|_| whole.to_owned(), |count| HumanCount(count).to_string());
    let trimmed = fraction.trim_end_matches('0');
    match fraction.len() {
        0 => format!("{sign}{grouped}"),
        all => format!("{sign}{grouped}.{}", &fraction[..trimmed.len().max(2).min(all)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_in_a_sentence() {
        let digits = ["1234567", "-1234.560000", "0.000000000001", "7.100", "-0.50", "12"];
        assert_eq!(digits.map(readable), ["1,234,567", "-1,234.56", "0.000000000001", "7.10", "-0.50", "12"]);
    }
}
