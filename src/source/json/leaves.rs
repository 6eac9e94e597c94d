//! Every value of a record with its path: what `inspect` shows of a log that nobody has described
//! yet.

use std::borrow::Cow;

use super::keys::{Key, Keys};
use super::parse::{Visitor, parse_object};
use super::record::{Span, is_escaped, raw_value};
use crate::source::value::{RawValue, Reject};

/// Calls `leaf` with each value of one JSON text that is not an object with keys, and the keys that
/// lead to it; arrays are not looked into. A key that is repeated comes each time. Returns how many
/// were repetitions.
///
/// # Errors
/// The reason why the text is not one valid object; leaves before the fault have been handed out by
/// then.
pub fn visit<'t>(text: &'t [u8], leaf: &mut dyn FnMut(&[Cow<'t, str>], RawValue<'t>)) -> Result<u32, Reject> {
    let mut leaves = Leaves { text, path: Vec::new(), arrays: 0, leaf };
    parse_object(text, &mut leaves, &mut Keys::default())
}

struct Leaves<'t, 'f> {
    text: &'t [u8],
    /// The keys of the objects that are open, and that of the value that comes next.
    path: Vec<Cow<'t, str>>,
    /// How many arrays are open.
    arrays: u32,
    leaf: &'f mut dyn FnMut(&[Cow<'t, str>], RawValue<'t>),
}

impl Leaves<'_, '_> {
    /// Ends the value that the path leads to.
    fn end(&mut self, value: Span, is_leaf: bool) {
        // The record itself has no path, and is no leaf even if it is empty.
        if is_leaf && !self.path.is_empty() {
            let text = value.of(self.text);
            (self.leaf)(&self.path, raw_value(text, is_escaped));
        }
        self.path.pop();
    }
}

impl Visitor for Leaves<'_, '_> {
    fn key(&mut self, _: &[u8], key: Key) {
        if self.arrays == 0 {
            self.path.push(match key.unescaped(self.text) {
                Cow::Borrowed(name) => String::from_utf8_lossy(name),
                Cow::Owned(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
            });
        }
    }

    fn scalar(&mut self, value: Span) {
        if self.arrays == 0 {
            self.end(value, true);
        }
    }

    fn open(&mut self, bracket: u8) {
        self.arrays += u32::from(bracket == b'[');
    }

    fn close(&mut self, value: Span) {
        let text = value.of(self.text);
        let is_array = text.starts_with(b"[");
        self.arrays -= u32::from(is_array);
        if self.arrays == 0 {
            let has_keys = text.starts_with(b"{") && text.contains(&b'"');
            self.end(value, !has_keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str) -> Result<(Vec<String>, u32), Reject> {
        let mut found = Vec::new();
        let duplicates =
            visit(text.as_bytes(), &mut |path, value| found.push(format!("{}={value:?}", path.join("."))))?;
        Ok((found, duplicates))
    }

    #[test]
    fn each_value_comes_with_its_path() {
        let text = r#"{"id":"a","usage":{"in":1,"details":{"cached":null}},"ok":true}"#;
        let (found, duplicates) = leaves(text).expect("valid");
        let id = format!("id={:?}", RawValue::Text { bytes: b"a", escaped: false });
        let number = format!("usage.in={:?}", RawValue::Number(b"1"));
        assert_eq!(found, [id.as_str(), &number, "usage.details.cached=Null", "ok=Bool(true)"]);
        assert_eq!(duplicates, 0);
    }

    #[test]
    fn arrays_and_empty_objects_are_leaves_and_keys_are_unescaped() {
        let (found, duplicates) = leaves(r#"{"t\u0061gs":[{"x":[1]},{}],"none":{ },"none":{"y":[]}}"#).expect("valid");
        let nested = |path: &str, text: &str| format!("{path}={:?}", RawValue::Nested(text.as_bytes()));
        let expected = [nested("tags", r#"[{"x":[1]},{}]"#), nested("none", "{ }"), nested("none.y", "[]")];
        assert_eq!(found, expected);
        assert_eq!(duplicates, 1);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(leaves("[1]"), Err(Reject::NotAnObject));
        assert_eq!(leaves(r#"{"a":1"#), Err(Reject::CutOff));
        assert_eq!(leaves("{}"), Ok((Vec::new(), 0)));
    }
}
