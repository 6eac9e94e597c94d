//! The objects inside a record that are the records, as `events[].message` or `data` lead to them.

use std::borrow::Cow;

use crate::source::json::{ObjectWriter, Tree};

/// The objects that the paths lead to, items of lists each, with the scalars around them under keys they lack; the
/// record itself where no path leads anywhere.
pub(super) fn found(tree: &Tree<'_>, paths: &[Vec<String>]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut leads = false;
    for path in paths {
        leads |= descend(tree, path, &mut Vec::new(), &mut records);
    }
    if !leads {
        records.push(tree.text.to_vec());
    }
    records
}

/// Follows the keys; `around` are the objects that were passed. Returns whether they lead anywhere.
fn descend<'t, 'a>(
    tree: &'a Tree<'t>,
    keys: &[String],
    around: &mut Vec<&'a Tree<'t>>,
    records: &mut Vec<Vec<u8>>,
) -> bool {
    if tree.is_array() {
        for item in tree.items() {
            descend(item, keys, around, records);
        }
        return true;
    }
    let Some((key, rest)) = keys.split_first() else {
        if tree.is_object() {
            records.push(with_surroundings(tree, around));
        }
        return tree.is_object();
    };
    let Some(inner) = tree.get(key).filter(|inner| inner.is_object() || inner.is_array()) else { return false };
    around.push(tree);
    let leads = descend(inner, rest, around, records);
    around.pop();
    leads
}

fn with_surroundings(record: &Tree<'_>, around: &[&Tree<'_>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(record.text.len());
    let mut object = ObjectWriter::new(&mut text);
    let mut written: Vec<&Cow<'_, str>> = Vec::new();
    for (key, value) in record.members() {
        object.key(key).extend_from_slice(value.text);
        written.push(key);
    }
    for outer in around.iter().rev() {
        for (key, value) in outer.members() {
            if !value.is_object() && !value.is_array() && !written.contains(&key) {
                object.key(key).extend_from_slice(value.text);
                written.push(key);
            }
        }
    }
    object.end();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(json: &str, paths: &[&[&str]]) -> Vec<String> {
        let paths: Vec<Vec<String>> =
            paths.iter().map(|path| path.iter().map(|key| (*key).to_owned()).collect()).collect();
        let tree = Tree::parse(json.as_bytes()).unwrap();
        found(&tree, &paths).into_iter().map(|record| String::from_utf8(record).unwrap()).collect()
    }

    #[test]
    fn items_of_lists_on_the_way_are_records_with_the_scalars_around_them() {
        let json = r#"{"group":"g","a":{"list":[{"x":1},{"group":"own"}],"n":{}}}"#;
        assert_eq!(records(json, &[&["a", "list"]]), [r#"{"x":1,"group":"g"}"#, r#"{"group":"own"}"#]);
    }

    #[test]
    fn a_record_without_such_a_list_is_the_record() {
        assert_eq!(records(r#"{"x":1}"#, &[&["data"]]), [r#"{"x":1}"#]);
        assert_eq!(records(r#"{"data":[]}"#, &[&["data"]]), [""; 0]);
    }
}
