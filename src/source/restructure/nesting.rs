//! Calls that were observed at several levels: only the innermost is a request.
//!
//! A framework, an SDK and an HTTP client may each report the same call. One with usage that has another with usage below
//! it is not a request of its own, and of calls with one provider's response id the first counts. Exporters write inner
//! spans first or outer ones first; so what may still prove to be an outer one is held back while a window of records
//! passes by.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Part, Parts};

/// Records that are held back; those of one trace stand much closer together.
const WINDOW: usize = 8192;

/// Bytes of them.
const BYTES: usize = 64 << 20;

/// Ids that are remembered behind the window.
const REMEMBERED: usize = 1 << 20;

/// Calls above each other, at most; more are a circle.
const DEEPEST: usize = 1024;

/// Something that was observed.
#[derive(Debug)]
pub(super) struct Item {
    pub part: Part,
    pub id: String,
    pub parent: Option<String>,
    /// The provider's id of the response.
    pub response: Option<String>,
    /// A model call that says what it used.
    pub has_usage: bool,
}

/// What has been seen of a file.
#[derive(Default)]
pub(super) struct Nesting {
    held: VecDeque<Item>,
    bytes: usize,
    parents: HashMap<String, String>,
    /// Those that have a call with usage below them.
    outer: HashSet<String>,
    responses: HashSet<String>,
}

impl Nesting {
    pub fn take(&mut self, item: Item) {
        if self.parents.len() > REMEMBERED {
            self.parents.clear();
            self.outer.clear();
        }
        if let Some(parent) = &item.parent {
            self.parents.insert(item.id.clone(), parent.clone());
            // it may be between a call that came before it and its parent
            if item.has_usage || self.outer.contains(&item.id) {
                self.cover(&item.id, parent.clone());
            }
        }
        self.bytes += item.part.json.len();
        self.held.push_back(item);
    }

    /// Notes that what is above a call has one below; nothing where the parents lead back to where they began.
    fn cover(&mut self, id: &str, parent: String) {
        let mut above = vec![parent];
        while let Some(last) = above.last() {
            if last == id || above.len() > DEEPEST {
                return;
            }
            match self.parents.get(last) {
                Some(next) if !self.outer.contains(last) => above.push(next.clone()),
                _ => break,
            }
        }
        self.outer.extend(above);
    }

    /// Hands out what has passed the window.
    pub fn pass(&mut self, parts: &mut Parts) {
        while self.held.len() > WINDOW || self.bytes > BYTES {
            self.release(parts);
        }
    }

    /// Hands out all.
    pub fn finish(mut self, parts: &mut Parts) {
        while !self.held.is_empty() {
            self.release(parts);
        }
    }

    fn release(&mut self, parts: &mut Parts) {
        let Some(item) = self.held.pop_front() else { return };
        self.bytes -= item.part.json.len();
        if item.has_usage && self.outer.contains(&item.id) {
            parts.skipped.push("outer span");
        } else if item.has_usage && item.response.is_some_and(|response| !self.responses.insert(response)) {
            parts.skipped.push("same response");
        } else {
            parts.records.push(item.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(items: &[(&str, &str, bool)]) -> Vec<String> {
        let mut nesting = Nesting::default();
        for (id, parent, has_usage) in items {
            let part = Part { json: id.as_bytes().to_vec(), offset: None };
            let parent = (!parent.is_empty()).then(|| (*parent).to_owned());
            nesting.take(Item { part, id: (*id).to_owned(), parent, response: None, has_usage: *has_usage });
        }
        let mut parts = Parts::default();
        nesting.finish(&mut parts);
        parts.records.into_iter().map(|part| String::from_utf8(part.json).unwrap()).collect()
    }

    #[test]
    fn a_call_above_another_call_is_no_request_in_whatever_order_they_come() {
        let outer_first = [("a", "", true), ("b", "a", false), ("c", "b", true), ("d", "", true)];
        assert_eq!(kept(&outer_first), ["b", "c", "d"]);
        let mut inner_first = outer_first;
        inner_first.reverse();
        assert_eq!(kept(&inner_first), ["d", "c", "b"]);
        assert_eq!(kept(&[("c", "b", true), ("a", "", true), ("b", "a", false)]), ["c", "b"]);
    }

    #[test]
    fn of_calls_that_are_each_other_s_parents_one_is_a_request() {
        assert_eq!(kept(&[("a", "b", true), ("b", "a", true)]), ["a"]);
        assert_eq!(kept(&[("a", "a", true)]), ["a"]);
        assert_eq!(kept(&[("x", "y", false), ("y", "x", false), ("c", "x", true)]), ["x", "y", "c"]);
    }
}
