//! `bucket_label(bucket, edges)`: the name of a bucket that [`bucket`](super::bucket) counted, such as `1K-2K`.

use std::sync::Arc;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::bucket::{count_and_edges, counts_and_edges};

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BucketLabel {
    signature: Signature,
}

impl BucketLabel {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for BucketLabel {
    fn name(&self) -> &str {
        "bucket_label"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        count_and_edges(self.name(), arg_types)
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (buckets, edges) = counts_and_edges(self.name(), &args)?;
        let labels = edges.labels();
        let label_of = |bucket: i64| {
            let label = usize::try_from(bucket).ok().and_then(|at| labels.get(at));
            label.ok_or_else(|| {
                exec_datafusion_err!(
                    "bucket_label: there is no bucket {bucket}, the edges make {} of them, from 0",
                    labels.len()
                )
            })
        };
        let column = buckets.iter().map(|bucket| bucket.map(label_of).transpose()).collect::<Result<StringArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(column)))
    }
}
