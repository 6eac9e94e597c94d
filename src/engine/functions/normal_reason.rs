//! `normal_reason(finish_reason)`: why generation ended in one of a few words, whatever the producer calls it; see
//! [`outcome::normal_reason`]. Null for null.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::record::outcome;

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct NormalReason {
    signature: Signature,
}

impl NormalReason {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NormalReason {
    fn name(&self) -> &str {
        "normal_reason"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [_] => Ok(vec![DataType::Utf8View]),
            _ => plan_err!("normal_reason takes one text, as in normal_reason(finish_reason)"),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let reasons = arrays[0].as_string_view().iter();
        let normal: ArrayRef =
            Arc::new(reasons.map(|reason| reason.map(outcome::normal_reason)).collect::<StringViewArray>());
        Ok(ColumnarValue::Array(normal))
    }
}
