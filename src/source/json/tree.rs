//! A JSON text as a tree, for the few records that must be taken apart: batches, columns, lists of records.
//!
//! Everything is borrowed and kept as it was written: numbers are never converted, so that what is put together again
//! says what the log said.

use std::borrow::Cow;

use super::keys::{Key, Keys};
use super::parse::{Visitor, parse_value};
use super::record::{Span, is_escaped, raw_value};
use crate::source::value::{RawValue, Reject};

/// A value with its text.
#[derive(Clone, Debug)]
pub struct Tree<'t> {
    /// The JSON text.
    pub text: &'t [u8],
    pub branches: Branches<'t>,
}

#[derive(Clone, Debug)]
pub enum Branches<'t> {
    /// Of members with one key the last counts.
    Object(Vec<(Cow<'t, str>, Tree<'t>)>),
    Array(Vec<Tree<'t>>),
    None,
}

impl<'t> Tree<'t> {
    /// Parses one JSON value of any kind.
    ///
    /// # Errors
    /// The reason why the text is not one valid value.
    pub fn parse(text: &'t [u8]) -> Result<Self, Reject> {
        Self::parse_to(usize::MAX, text)
    }

    /// Parses one JSON value of which only so many levels are looked into: what stands deeper is text without branches.
    ///
    /// # Errors
    /// The reason why the text is not one valid value.
    pub fn parse_to(levels: usize, text: &'t [u8]) -> Result<Self, Reject> {
        let mut builder = Builder { text, levels, below: 0, open: Vec::new(), key: None, done: None };
        parse_value(text, &mut builder, &mut Keys::default())?;
        builder.done.ok_or(Reject::CutOff)
    }

    pub fn raw(&self) -> RawValue<'t> {
        raw_value(self.text, is_escaped)
    }

    /// The members of an object; of anything else none.
    pub fn members(&self) -> &[(Cow<'t, str>, Tree<'t>)] {
        match &self.branches {
            Branches::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list; of anything else none.
    pub fn items(&self) -> &[Tree<'t>] {
        match &self.branches {
            Branches::Array(items) => items,
            _ => &[],
        }
    }

    pub fn is_object(&self) -> bool {
        matches!(self.branches, Branches::Object(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self.branches, Branches::Array(_))
    }

    /// The member of this key.
    pub fn get(&self, key: &str) -> Option<&Tree<'t>> {
        self.members().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A text without its quotes, or a number or word as written; None for null, lists and objects.
    pub fn scalar(&self) -> Option<Cow<'t, str>> {
        match self.raw() {
            RawValue::Text { bytes, escaped: false } => Some(String::from_utf8_lossy(bytes)),
            RawValue::Text { bytes, escaped: true } => {
                let mut text = Vec::with_capacity(bytes.len());
                crate::source::json::unescape(bytes, &mut text);
                Some(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
            }
            RawValue::Number(text) => Some(String::from_utf8_lossy(text)),
            RawValue::Bool(true) => Some("true".into()),
            RawValue::Bool(false) => Some("false".into()),
            RawValue::Missing | RawValue::Null | RawValue::Nested(_) => None,
        }
    }

    fn of(text: &'t [u8], branches: Branches<'t>) -> Self {
        Self { text, branches }
    }
}

/// An object while it is written.
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Starts a member; its value is to be written behind it.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        write_text(key, self.out);
        self.out.push(b':');
        self.out
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// Writes a text as JSON.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Writes a JSON text on one line: newlines between values become blanks, in texts there are none.
pub fn write_line(json: &[u8], out: &mut Vec<u8>) {
    out.extend(json.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

struct Builder<'t> {
    text: &'t [u8],
    levels: usize,
    /// How many lists and objects are open that are not looked into.
    below: usize,
    open: Vec<(Option<Cow<'t, str>>, Branches<'t>)>,
    key: Option<Cow<'t, str>>,
    done: Option<Tree<'t>>,
}

impl<'t> Builder<'t> {
    fn add(&mut self, tree: Tree<'t>, key: Option<Cow<'t, str>>) {
        match (self.open.last_mut(), key) {
            (Some((_, Branches::Object(members))), Some(key)) => {
                // few records repeat a key, and objects are small
                match members.iter_mut().rev().take(LOOKED_BACK).find(|(name, _)| *name == key) {
                    Some((_, value)) => *value = tree,
                    None => members.push((key, tree)),
                }
            }
            (Some((_, Branches::Array(items))), _) => items.push(tree),
            _ => self.done = Some(tree),
        }
    }
}

/// Members that are compared with a new one: an object of very many keys must not cost their square.
const LOOKED_BACK: usize = 64;

impl Visitor for Builder<'_> {
    fn key(&mut self, _: &[u8], key: Key) {
        if self.below > 0 {
            return;
        }
        self.key = Some(match key.unescaped(self.text) {
            Cow::Borrowed(name) => String::from_utf8_lossy(name),
            Cow::Owned(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
        });
    }

    fn scalar(&mut self, value: Span) {
        if self.below > 0 {
            return;
        }
        let key = self.key.take();
        self.add(Tree::of(value.of(self.text), Branches::None), key);
    }

    fn open(&mut self, bracket: u8) {
        if self.open.len() >= self.levels {
            self.below += 1;
            return;
        }
        let branches = if bracket == b'{' { Branches::Object(Vec::new()) } else { Branches::Array(Vec::new()) };
        self.open.push((self.key.take(), branches));
    }

    fn close(&mut self, value: Span) {
        if self.below > 0 {
            self.below -= 1;
            if self.below == 0 {
                let key = self.key.take();
                self.add(Tree::of(value.of(self.text), Branches::None), key);
            }
            return;
        }
        if let Some((key, branches)) = self.open.pop() {
            self.add(Tree::of(value.of(self.text), branches), key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_every_value_as_written() {
        let tree = Tree::parse(br#" {"a":[1.50,{"b":"x\ny"}],"c\u0061":null,"a2":12345678901234567890} "#).unwrap();
        assert_eq!(tree.get("a").unwrap().items()[0].text, b"1.50");
        assert_eq!(tree.get("a").unwrap().items()[1].get("b").unwrap().scalar().unwrap(), "x\ny");
        assert_eq!(tree.get("ca").unwrap().raw(), RawValue::Null);
        assert_eq!(tree.get("a2").unwrap().scalar().unwrap(), "12345678901234567890");
    }

    #[test]
    fn a_tree_of_some_levels_has_the_rest_as_text() {
        let tree = Tree::parse_to(2, br#"{"a":[[1,{"x":2}],3],"b":{"c":{"d":[]}}}"#).unwrap();
        let items = tree.get("a").unwrap().items();
        assert_eq!((items[0].text, items[0].items().len(), items[1].text), (&br#"[1,{"x":2}]"#[..], 0, &b"3"[..]));
        assert_eq!(tree.get("b").unwrap().get("c").unwrap().text, br#"{"d":[]}"#);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let tree = Tree::parse(br#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!((tree.members().len(), tree.get("a").unwrap().text), (2, &b"3"[..]));
    }

    #[test]
    fn any_value_is_a_tree_and_damage_is_named() {
        assert!(Tree::parse(b"[1,2]").unwrap().is_array());
        assert_eq!(Tree::parse(b"\"x\"").unwrap().scalar().unwrap(), "x");
        assert_eq!(Tree::parse(b"{\"a\":").unwrap_err(), Reject::CutOff);
        assert_eq!(Tree::parse(b"{\"a\":}").unwrap_err(), Reject::Malformed);
    }

    #[test]
    fn what_is_written_parses_again() {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        write_text("x\"\\\n\u{1}é", object.key("a\"b"));
        write_line(b"[1,\n2]", object.key("c"));
        object.end();
        assert_eq!(out, "{\"a\\\"b\":\"x\\\"\\\\\\n\\u0001é\",\"c\":[1, 2]}".as_bytes());
        assert_eq!(Tree::parse(&out).unwrap().get("a\"b").unwrap().scalar().unwrap(), "x\"\\\n\u{1}é");
    }
}
