//! `bucket(x, edges)`: which bucket a count falls into.
//!
//! `edges` are the inner edges, so n of them make n + 1 buckets, counted from 0: below the first edge is 0, from the last
//! edge on is n. The lower edge belongs to its bucket. The answer is a small integer, which is faster to group by than a
//! label and sorts in the right order; [`bucket_label`](super::bucket_label) names it afterwards.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::argument::{constants, items};

/// The scalar function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    signature: Signature,
}

impl Bucket {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &str {
        "bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        count_and_edges(self.name(), arg_types)
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (counts, edges) = counts_and_edges(self.name(), &args)?;
        let buckets: Int64Array = counts.unary(|count| edges.bucket_of(count));
        Ok(ColumnarValue::Array(Arc::new(buckets)))
    }
}

/// Inner edges, ascending and positive.
#[derive(Debug)]
pub struct Edges(Vec<i64>);

impl Edges {
    /// From edges that were checked when they were typed.
    pub fn checked(edges: &[i64]) -> Self {
        Self(edges.to_vec())
    }

    /// The number of the bucket that `count` falls into.
    pub fn bucket(&self, count: i64) -> usize {
        self.0.partition_point(|&edge| edge <= count)
    }

    /// The first count of a bucket, and the first behind it.
    pub fn range(&self, bucket: usize) -> (i64, Option<i64>) {
        (bucket.checked_sub(1).and_then(|before| self.0.get(before)).copied().unwrap_or(0), self.0.get(bucket).copied())
    }

    fn bucket_of(&self, count: i64) -> i64 {
        self.bucket(count) as i64
    }

    /// One label per bucket, in order: `0-1K`, `1K-2K`, `2K+`.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = vec![];
        let mut lower = "0".to_string();
        for &edge in &self.0 {
            let upper = size(edge);
            labels.push(format!("{lower}-{upper}"));
            lower = upper;
        }
        labels.push(format!("{lower}+"));
        labels
    }

    fn read(function: &str, argument: &ColumnarValue) -> Result<Self> {
        let ColumnarValue::Scalar(ScalarValue::List(list)) = argument else {
            return plan_err!("{function}: the edges must be a constant list, such as [1024, 2048]");
        };
        let Some(edges) = items::<Int64Type>(list) else {
            return plan_err!("{function}: the edges must be whole numbers, and one of them is null");
        };
        if edges.first().is_some_and(|&first| first <= 0) || !edges.is_sorted_by(|a, b| a < b) {
            return plan_err!("{function}: the edges must be above 0 and ascending, and {edges:?} are not");
        }
        Ok(Self(edges))
    }
}

/// A count of tokens as people write it: `1K` for 1024, `1M` for 1024 K, other numbers as they are.
fn size(count: i64) -> String {
    const K: i64 = 1024;
    match count {
        _ if count % (K * K) == 0 => format!("{}M", count / (K * K)),
        _ if count % K == 0 => format!("{}K", count / K),
        _ => count.to_string(),
    }
}

/// The types of the arguments of `bucket` and `bucket_label`: an integer and a list of integers.
pub fn count_and_edges(function: &str, arg_types: &[DataType]) -> Result<Vec<DataType>> {
    match arg_types {
        [count, edges] if count.is_integer() || count.is_null() => {
            Ok(vec![DataType::Int64, constants(function, edges, DataType::Int64)?])
        }
        [other, _] => plan_err!("{function} takes a whole number first, not {other}"),
        _ => plan_err!("{function} takes a whole number and a list of edges, such as [1024, 2048]"),
    }
}

/// The arguments of `bucket` and `bucket_label` for one batch.
///
/// # Errors
/// If the edges are not constant, not ascending or null.
pub fn counts_and_edges(function: &str, args: &ScalarFunctionArgs) -> Result<(Int64Array, Edges)> {
    let [counts, edges] = args.args.as_slice() else {
        return exec_err!("{function} takes two arguments, and got {}", args.args.len());
    };
    let edges = Edges::read(function, edges)?;
    let counts = counts.to_array(args.number_rows)?;
    Ok((counts.as_primitive::<Int64Type>().clone(), edges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges(edges: &[i64]) -> Edges {
        Edges(edges.to_vec())
    }

    #[test]
    fn the_lower_edge_belongs_to_its_bucket() {
        let edges = edges(&[1024, 2048]);

        let buckets = [-1, 0, 1023, 1024, 2047, 2048, i64::MAX].map(|count| edges.bucket_of(count));

        assert_eq!(buckets, [0, 0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn labels_are_written_in_k_where_an_edge_is_a_multiple_of_it() {
        const K: i64 = 1024;
        let input = edges(&[K, 2 * K, 4 * K, 128 * K, K * K]);
        assert_eq!(input.labels(), ["0-1K", "1K-2K", "2K-4K", "4K-128K", "128K-1M", "1M+"]);
        let output = edges(&[16, 512, K]);
        assert_eq!(output.labels(), ["0-16", "16-512", "512-1K", "1K+"]);
        let own = edges(&[500, 2000, 8000]);
        assert_eq!(own.labels(), ["0-500", "500-2000", "2000-8000", "8000+"]);
        assert_eq!(edges(&[]).labels(), ["0+"]);
    }

    proptest! {
        #[test]
        fn counting_edges_agrees_with_searching_them(
            mut inner in prop::collection::vec(1..1000_i64, 0..12),
            count in -10..1010_i64,
        ) {
            inner.sort_unstable();
            inner.dedup();
            let found = inner.partition_point(|&edge| edge <= count);

            prop_assert_eq!(Edges(inner).bucket_of(count), found as i64);
        }
    }
}
