//! The wanted values of a record, picked while the general parser reads it.

use std::sync::Arc;

use super::keys::{Key, Keys};
use super::parse::{Visitor, parse_object};
use super::record::{Places, Record, Span};
use super::wanted::{NodeId, Wanted};
use crate::source::value::Reject;

/// Parses records of any form, one at a time.
pub struct RecordParser {
    selection: Selection,
    keys: Keys,
}

impl RecordParser {
    pub fn new(wanted: Arc<Wanted>) -> RecordParser {
        RecordParser { selection: Selection::new(wanted), keys: Keys::default() }
    }

    /// Parses one JSON text, blanks and newlines around and inside it allowed.
    ///
    /// # Errors
    /// The reason why the text is not one valid object.
    pub fn parse<'a>(&'a mut self, text: &'a [u8]) -> Result<Record<'a>, Reject> {
        self.selection.clear();
        let duplicate_keys = parse_object(text, &mut self.selection, &mut self.keys)?;
        Ok(Record {
            text,
            line: Span::new(0, text.len()),
            offset: 0,
            layout: None,
            present: &self.selection.present,
            places: Places::Parsed(&self.selection.spans),
            may_hold_escapes: true,
            duplicate_keys,
            apart: None,
        })
    }
}

/// Keeps where the wanted values stand.
struct Selection {
    wanted: Arc<Wanted>,
    /// The slots that have a value, and for each slot where that stands.
    present: Vec<u32>,
    spans: Vec<Span>,
    open: Vec<Open>,
    /// The wanted node of the value that comes next.
    next: Option<NodeId>,
    /// The wanted nodes whose key has been seen, so that a repeated key takes back what the earlier
    /// one gave.
    seen: Vec<bool>,
    seen_nodes: Vec<NodeId>,
}

/// An array or object that has not ended.
struct Open {
    node: Option<NodeId>,
    /// The node that its keys are looked up in. A path does not look into arrays.
    keys: Option<NodeId>,
}

impl Selection {
    fn new(wanted: Arc<Wanted>) -> Selection {
        Selection {
            present: Vec::new(),
            spans: vec![Span::ABSENT; wanted.slots()],
            open: Vec::new(),
            next: None,
            seen: vec![false; wanted.nodes()],
            seen_nodes: Vec::new(),
            wanted,
        }
    }

    fn clear(&mut self) {
        for slot in self.present.drain(..) {
            self.spans[slot as usize] = Span::ABSENT;
        }
        for node in self.seen_nodes.drain(..) {
            self.seen[node.index()] = false;
        }
        self.open.clear();
        self.next = Some(NodeId::ROOT);
    }

    fn fill(&mut self, node: Option<NodeId>, value: Span) {
        if let Some(slot) = node.and_then(|node| self.wanted.slot(node)) {
            self.present.push(slot);
            self.spans[slot as usize] = value;
        }
    }

    /// Forgets the value at the node and all below it.
    #[cold]
    fn take_back(&mut self, node: NodeId) {
        if let Some(slot) = self.wanted.slot(node) {
            self.spans[slot as usize] = Span::ABSENT;
            self.present.retain(|&present| present != slot);
        }
        let wanted = Arc::clone(&self.wanted);
        for child in wanted.children(node) {
            self.take_back(child);
        }
    }
}

impl Visitor for Selection {
    fn key(&mut self, text: &[u8], key: Key) {
        let Some(object) = self.open.last().and_then(|open| open.keys) else {
            return;
        };
        let name = key.name.of(text);
        self.next = if key.escaped { self.wanted.child_escaped(object, name) } else { self.wanted.child(object, name) };
        let Some(node) = self.next else { return };
        if self.seen[node.index()] {
            self.take_back(node);
        } else {
            self.seen[node.index()] = true;
            self.seen_nodes.push(node);
        }
    }

    fn scalar(&mut self, value: Span) {
        let node = self.next.take();
        self.fill(node, value);
    }

    fn open(&mut self, bracket: u8) {
        let node = self.next.take();
        self.open.push(Open { node, keys: node.filter(|_| bracket == b'{') });
    }

    fn close(&mut self, value: Span) {
        let node = self.open.pop().and_then(|open| open.node);
        self.fill(node, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::value::RawValue;

    #[test]
    fn a_record_may_span_lines() {
        let paths = vec![vec!["a".to_string()], vec!["u".to_string(), "x".to_string()]];
        let mut parser = RecordParser::new(Arc::new(Wanted::new(paths)));
        let record = parser.parse(b" {\n\t\"u\": {\"x\" : [\n1]},\r\n \"a\" : -0.5e3 }\n").expect("valid");
        assert_eq!(record.get(0), RawValue::Number(b"-0.5e3"));
        assert_eq!(record.get(1), RawValue::Nested(b"[\n1]"));
        assert_eq!(record.get(2), RawValue::Missing);
        assert_eq!(record.layout(), None);
        assert_eq!(parser.parse(b"{\"a\":1}").expect("valid").present(), [0]);
        assert_eq!(parser.parse(b" [1]").err(), Some(Reject::NotAnObject));
    }
}
