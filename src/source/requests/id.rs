//! The id that the records of a request have in common: without what its producer put around it, or that of a match.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::{as_int64_array, as_string_view_array};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::matches::Assigned;
use crate::profile::IdRule;

/// The function of a record's id, log and place that takes prefixes and endings off the id.
pub(super) fn match_id(rule: Arc<IdRule>, assigned: Arc<Assigned>) -> ScalarUDF {
    let signature =
        Signature::exact(vec![DataType::Utf8View, DataType::Utf8View, DataType::Int64], Volatility::Immutable);
    ScalarUDF::new_from_impl(MatchId { rule, assigned, signature })
}

#[derive(Debug)]
struct MatchId {
    rule: Arc<IdRule>,
    assigned: Arc<Assigned>,
    signature: Signature,
}

/// Two functions with one table of matches are the same.
impl PartialEq for MatchId {
    fn eq(&self, other: &Self) -> bool {
        self.rule == other.rule && Arc::ptr_eq(&self.assigned, &other.assigned)
    }
}

impl Eq for MatchId {}

impl Hash for MatchId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rule.hash(state);
    }
}

impl ScalarUDFImpl for MatchId {
    fn name(&self) -> &str {
        "match_id"
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
        let bare = |id| self.rule.bare(id);
        let named = |id: &str| !is_placeholder(id);
        if self.assigned.is_empty() {
            if ids.iter().flatten().all(|id| bare(id).len() == id.len() && named(id)) {
                return Ok(ColumnarValue::Array(arrays[0].clone()));
            }
            let bare: StringViewArray = ids.iter().map(|id| id.filter(|id| named(id)).map(bare)).collect();
            return Ok(ColumnarValue::Array(Arc::new(bare)));
        }
        let (files, offsets) = (as_string_view_array(&arrays[1])?, as_int64_array(&arrays[2])?);
        let matched = |row: usize| {
            let id = ids.is_valid(row).then(|| ids.value(row)).filter(|id| named(id)).map(bare);
            self.assigned.get(id, files.value(row), offsets.value(row)).or(id)
        };
        Ok(ColumnarValue::Array(Arc::new((0..ids.len()).map(matched).collect::<StringViewArray>())))
    }
}

/// Whether a text stands where nobody had an id: what shares it is not one request.
pub(super) fn is_placeholder(id: &str) -> bool {
    const WORDS: [&str; 8] =
        ["unknown", "n/a", "na", "nil", "none", "null", "undefined", "00000000-0000-0000-0000-000000000000"];
    id == "0" || WORDS.iter().any(|word| word.eq_ignore_ascii_case(id))
}
