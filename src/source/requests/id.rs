//! The id of a request without what its producer put around it.

use std::sync::Arc;

use datafusion::arrow::array::StringViewArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::as_string_view_array;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::profile::IdRule;

/// The function that takes prefixes and endings off an id.
pub(super) fn bare_id(rule: Arc<IdRule>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    ScalarUDF::new_from_impl(BareId { rule, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BareId {
    rule: Arc<IdRule>,
    signature: Signature,
}

impl ScalarUDFImpl for BareId {
    fn name(&self) -> &str {
        "bare_id"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let ids = as_string_view_array(&arrays[0])?;
        if ids.iter().flatten().all(|id| self.rule.bare(id).len() == id.len()) {
            return Ok(ColumnarValue::Array(arrays[0].clone()));
        }
        let bare: StringViewArray = ids.iter().map(|id| id.map(|id| self.rule.bare(id))).collect();
        Ok(ColumnarValue::Array(Arc::new(bare)))
    }
}
