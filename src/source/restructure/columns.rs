//! Parallel arrays to rows: the i-th item of every array is the i-th record.

use super::Part;
use crate::source::json::{ObjectWriter, Tree};

/// The rows of an object whose longest arrays hold one item a record; everything that is no such array is the same in
/// all of them. An object without arrays has no rows.
pub(super) fn rows(record: &[u8], rows: &mut Vec<Part>) {
    let Ok(tree) = Tree::parse(record) else { return };
    let count = tree.members().iter().map(|(_, value)| value.items().len()).max().unwrap_or(0);
    for number in 0..count {
        let mut row = Vec::new();
        let mut object = ObjectWriter::new(&mut row);
        for (key, value) in tree.members() {
            match value.items() {
                items if value.is_array() && items.len() == count => {
                    object.key(key).extend_from_slice(items[number].text);
                }
                // an array of another length says nothing about single records
                _ if value.is_array() => {}
                _ => object.key(key).extend_from_slice(value.text),
            }
        }
        object.end();
        rows.push(Part { json: row, offset: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_the_longest_arrays_are_rows() {
        let mut found = Vec::new();
        rows(br#"{"m":"x","a":[1,2],"b":[[3],[]],"odd":[7]}"#, &mut found);
        let found: Vec<String> = found.into_iter().map(|row| String::from_utf8(row.json).unwrap()).collect();
        assert_eq!(found, [r#"{"m":"x","a":1,"b":[3]}"#, r#"{"m":"x","a":2,"b":[]}"#]);
    }
}
