//! Whether an id that a log writes is one that is looked for.

use std::collections::BTreeSet;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::logical_expr::{Expr, col, lit};

use crate::profile::IdRule;
use crate::record::Column;
use crate::source::needles::{is_hex, with_hyphens};

/// The columns that may hold the id of a request, or of what it is part of.
pub const LINKS: [Column; 4] = [Column::RequestId, Column::PreviousRequestId, Column::TraceId, Column::BatchId];

/// Ids that are looked for, without what producers put around them.
#[derive(Clone, Debug)]
pub struct Ids {
    rule: IdRule,
    ids: BTreeSet<String>,
}

impl Ids {
    pub fn new<'a>(rule: &IdRule, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let ids = ids.into_iter().map(|id| canonical(rule, id)).collect();
        Self { rule: rule.clone(), ids }
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(String::as_str)
    }

    /// Whether a log's id is one of them.
    pub fn contain(&self, id: &str) -> bool {
        self.ids.contains(&canonical(&self.rule, id))
    }

    /// Whether a log's id begins with one of them.
    pub fn begin(&self, id: &str) -> bool {
        let id = canonical(&self.rule, id);
        self.ids.iter().any(|known| id.starts_with(known.as_str()))
    }

    /// The rows of which one of some columns satisfies a test.
    pub fn rows(&self, batch: &RecordBatch, columns: &[Column], test: impl Fn(&Self, &str) -> bool) -> BooleanArray {
        let columns = columns.iter().filter_map(|column| batch.column_by_name(column.name()));
        let columns: Vec<_> = columns.filter_map(|column| column.as_string_view_opt()).collect();
        let is_one = |row: usize| columns.iter().any(|ids| ids.is_valid(row) && test(self, ids.value(row)));
        (0..batch.num_rows()).map(|row| Some(is_one(row))).collect()
    }

    /// The same as a condition that Parquet can skip row groups by: an id may stand there with any prefix.
    pub fn condition(&self, columns: &[Column]) -> Option<Expr> {
        let mut spellings = BTreeSet::new();
        for id in &self.ids {
            let written = match is_hex(id) {
                true => {
                    let hyphens = with_hyphens(id, "-");
                    vec![id.clone(), id.to_uppercase(), hyphens.to_uppercase(), hyphens]
                }
                false => vec![id.clone()],
            };
            let prefixed = |id: String| self.rule.prefixes.iter().map(move |prefix| format!("{prefix}{id}"));
            spellings.extend(written.iter().cloned().flat_map(prefixed).collect::<Vec<_>>());
            spellings.extend(written);
        }
        let equals = |column: &Column| {
            let texts = spellings.iter().map(|text| lit(text.as_str()));
            texts.map(|text| col(column.name()).eq(text)).reduce(Expr::or)
        };
        columns.iter().filter_map(equals).reduce(Expr::or)
    }

    /// The condition that an id begins with one of them.
    pub fn beginning(&self) -> Option<Expr> {
        let id = || col(Column::RequestId.name());
        let prefixes = || self.rule.prefixes.iter().map(String::as_str).chain([""]);
        let texts = self.ids.iter().flat_map(|id| prefixes().map(move |prefix| format!("{prefix}{id}")));
        texts.map(|text| id().gt_eq(lit(text.clone())).and(id().lt(lit(format!("{text}\u{10ffff}"))))).reduce(Expr::or)
    }
}

/// An id without what its producer put around it; a number in hexadecimal digits in small letters and without hyphens.
pub fn canonical(rule: &IdRule, id: &str) -> String {
    let bare = rule.bare(id);
    if is_hex(bare) { bare.to_lowercase().replace('-', "") } else { bare.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(of: &[&str]) -> Ids {
        let rule = IdRule { prefixes: vec!["chatcmpl-".to_owned()], cuts: vec!["_cache_hit".to_owned()] };
        Ids::new(&rule, of.iter().copied())
    }

    #[test]
    fn an_id_is_the_same_with_and_without_what_producers_put_around_it() {
        for written in ["a-1", "chatcmpl-a-1", "a-1_cache_hit1700000000"] {
            assert!(ids(&["a-1"]).contain(written), "{written}");
            assert!(ids(&[written]).contain("a-1"), "{written}");
        }
        assert!(!ids(&["a-1"]).contain("a-10"));
        assert!(ids(&["a-1"]).begin("chatcmpl-a-10"));
    }

    #[test]
    fn case_counts_but_in_hexadecimal_numbers() {
        assert!(!ids(&["Req-1"]).contain("req-1"));
        assert!(ids(&["0AF7651916CD43DD8448EB211C80319C"]).contain("0af7651916cd43dd8448eb211c80319c"));
    }
}
