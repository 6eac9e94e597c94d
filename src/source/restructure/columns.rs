//! Parallel arrays to rows: the i-th item of every array is the i-th record.

use std::borrow::Cow;

use super::{Part, Parts};
use crate::profile::Profile;
use crate::source::json::{ObjectWriter, Tree};
use crate::source::value::Reject;

/// Bytes of a value that is repeated in every row, at most: a longer one is no column of a request.
const REPEATED: usize = 4096;

/// The rows of an object whose longest arrays hold one item a record; everything that is no such array is the same in
/// all of them. An object without arrays has no rows.
pub(super) fn rows(record: &[u8], profile: &Profile, parts: &mut Parts) -> Result<(), Reject> {
    // the arrays and their items
    let tree = Tree::parse_to(2, record)?;
    let count = tree.members().iter().map(|(_, value)| value.items().len()).max().unwrap_or(0);
    let is_lost = |(key, value): &&(Cow<'_, str>, Tree<'_>)| {
        value.is_array() && !matches!(value.items().len(), 0 | 1) && value.items().len() != count && profile.reads(key)
    };
    // whoever wrote lists of different lengths does not say which item belongs to which request
    parts.skipped.extend(tree.members().iter().filter(is_lost).map(|_| "list of another length"));
    for number in 0..count {
        let mut row = Vec::new();
        let mut object = ObjectWriter::new(&mut row);
        for (key, value) in tree.members() {
            match value.items() {
                items if value.is_array() && items.len() == count => {
                    object.key(key).extend_from_slice(items[number].text);
                }
                // an array of another length says nothing about single records
                _ if value.is_array() || value.text.len() > REPEATED => {}
                _ => object.key(key).extend_from_slice(value.text),
            }
        }
        object.end();
        parts.records.push(Part { json: row, offset: None });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Catalog;

    #[test]
    fn the_items_of_the_longest_arrays_are_rows() {
        let mut found = Parts::default();
        let catalog = Catalog::embedded();
        let bench = catalog.find("vllm-bench").unwrap();
        rows(br#"{"m":"x","a":[1,2],"b":[[3],[]],"odd":[7]}"#, &bench, &mut found).unwrap();
        let found: Vec<String> = found.records.into_iter().map(|row| String::from_utf8(row.json).unwrap()).collect();
        assert_eq!(found, [r#"{"m":"x","a":1,"b":[3]}"#, r#"{"m":"x","a":2,"b":[]}"#]);
    }

    #[test]
    fn a_list_that_is_read_and_has_another_length_is_told() {
        let mut found = Parts::default();
        let bench = Catalog::embedded().find("vllm-bench").unwrap();
        rows(br#"{"ttfts":[1,2],"input_lens":[1,2,3],"others":[1,2]}"#, &bench, &mut found).unwrap();
        assert_eq!((found.records.len(), found.skipped), (3, vec!["list of another length"]));
    }
}
