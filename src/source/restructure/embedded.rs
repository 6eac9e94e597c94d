//! JSON that stands in a text, read as if it stood there itself.

use std::borrow::Cow;

use crate::profile::ValuePath;
use crate::source::json::unescape;
use crate::source::json::{Branches, ObjectWriter, Tree};
use crate::source::value::RawValue;

/// The record with the texts at the paths replaced by the JSON that they hold; a text that holds none stays.
pub(super) fn opened(record: &[u8], paths: &[ValuePath]) -> Vec<u8> {
    let Ok(tree) = Tree::parse(record) else { return record.to_vec() };
    let keys: Vec<&[String]> = paths.iter().map(|path| &path.keys[..]).collect();
    let mut text = Vec::with_capacity(record.len());
    write(&tree, &keys, &mut text);
    text
}

/// Writes a value; `paths` lead on from it.
fn write(tree: &Tree<'_>, paths: &[&[String]], out: &mut Vec<u8>) {
    if let (true, Some(json)) = (paths.iter().any(|path| path.is_empty()), json_in(tree)) {
        let inner: Vec<&[String]> = paths.iter().copied().filter(|path| !path.is_empty()).collect();
        match Tree::parse(&json) {
            Ok(inside) if inside.is_object() || inside.is_array() => return write(&inside, &inner, out),
            _ => {}
        }
    }
    let Branches::Object(members) = &tree.branches else { return out.extend_from_slice(tree.text) };
    if paths.iter().all(|path| path.is_empty()) {
        return out.extend_from_slice(tree.text);
    }
    let mut object = ObjectWriter::new(out);
    for (key, value) in members {
        let inner: Vec<&[String]> = paths.iter().filter_map(|path| below(path, key)).collect();
        write(value, &inner, object.key(key));
    }
    object.end();
}

/// What is left of a path behind a key; a flat record may write several of its keys as one.
fn below<'p>(path: &'p [String], key: &str) -> Option<&'p [String]> {
    let (first, rest) = path.split_first()?;
    if first == key {
        return Some(rest);
    }
    (path.len() > 1 && path.join(".") == key).then_some(&[])
}

/// The text of a string that may be a JSON object or list.
fn json_in<'t>(tree: &Tree<'t>) -> Option<Cow<'t, [u8]>> {
    let RawValue::Text { bytes, escaped } = tree.raw() else { return None };
    let text = match escaped {
        false => Cow::Borrowed(bytes),
        true => {
            let mut text = Vec::with_capacity(bytes.len());
            unescape(bytes, &mut text);
            Cow::Owned(text)
        }
    };
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(record: &str, paths: &[&str]) -> String {
        let paths: Vec<ValuePath> = paths.iter().map(|path| ValuePath::parse(path).unwrap()).collect();
        String::from_utf8(opened(record.as_bytes(), &paths)).unwrap()
    }

    #[test]
    fn json_in_a_text_is_read_as_if_it_stood_there() {
        let record = r#"{"a":1.0,"other":"{\"frt\":420,\"in\":\"[1]\"}","b":{"c":"{\"d\":1}"}}"#;
        let expected = r#"{"a":1.0,"other":{"frt":420,"in":[1]},"b":{"c":{"d":1}}}"#;
        assert_eq!(open(record, &["other", "other.in", "b.c"]), expected);
        assert_eq!(open(r#"{"b.c":"{}"}"#, &["b.c"]), r#"{"b.c":{}}"#);
    }

    #[test]
    fn a_text_that_is_no_json_stays_as_it_is() {
        let record = r#"{"other":"{cut","b":"","c":"12","d":null}"#;
        assert_eq!(open(record, &["other", "b", "c", "d", "e"]), record);
    }
}
