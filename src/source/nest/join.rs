//! Lines that come in pieces: what a container runtime cut because it was long, and JSON that a program wrote over
//! several lines.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use datafusion::common::hash_utils::RandomState;

use crate::source::carried::{Carried, Labels};
use crate::source::nest::deferred::{Deferred, What};
use crate::source::window::MAX_RECORD;

/// Bytes that a container runtime writes at most at once.
const RUNTIME_PIECE: usize = 16 << 10;

/// How a piece ends, as far as its envelope tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The line ends here.
    Whole,
    /// The line goes on in the next piece.
    Partial,
    /// What the next piece of the stream tells: a text that it ends goes on in it, as an object with open braces does.
    Unmarked,
}

impl Ending {
    /// That of a piece whose envelope has no mark for it.
    pub fn of(piece: &[u8], until_newline: bool) -> Self {
        if !until_newline || piece.last() == Some(&b'\n') {
            return Ending::Whole;
        }
        // Some collectors strip the newline from every line; what the runtime cut is long, or not whole JSON.
        match starts_object(piece) {
            true if Balance::default().after(piece).is_even() => Ending::Whole,
            false if piece.len() < RUNTIME_PIECE => Ending::Unmarked,
            _ => Ending::Partial,
        }
    }
}

/// A hash of what tells one stream from another.
pub(super) fn hash(stream: &[u8]) -> u64 {
    use std::hash::BuildHasher;
    RandomState::with_seed(0).hash_one(stream)
}

/// One piece of a line.
pub(super) struct Piece<'a> {
    /// What pieces of one line have in common.
    pub by: Vec<u8>,
    pub text: Vec<u8>,
    pub ending: Ending,
    pub offset: u64,
    pub carried: Carried<'a>,
}

/// A line put together.
pub(super) struct Joined {
    pub text: Vec<u8>,
    /// Where its first piece stands.
    pub offset: u64,
    pub labels: Labels,
    /// A hash of what its pieces had in common.
    pub stream: u64,
}

/// Lines that have come in part, by what their pieces have in common.
#[derive(Default)]
pub(super) struct Joins {
    open: HashMap<Vec<u8>, Join>,
}

struct Join {
    joined: Joined,
    balance: Balance,
    ending: Ending,
}

impl Joins {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes a piece; returns the lines that end with it.
    pub fn take(&mut self, piece: Piece<'_>) -> Vec<Joined> {
        let mut done = Vec::new();
        let new = || Join::new(piece.offset, piece.carried, hash(&piece.by));
        let mut join = match self.open.entry(piece.by.clone()) {
            // A line of its own begins another record, whatever became of the one before.
            Entry::Occupied(mut open) if open.get().ends_before(&piece.text, piece.ending) => {
                done.push(open.insert(new()).joined);
                open
            }
            Entry::Occupied(open) => open,
            Entry::Vacant(free) => free.insert_entry(new()),
        };
        join.get_mut().add(&piece.text, piece.ending);
        if join.get().is_done() {
            done.push(join.remove().joined);
        }
        done
    }

    /// The line of a stream that nothing follows any more.
    pub fn end(&mut self, by: &[u8]) -> Option<Joined> {
        self.open.remove(by).map(|join| join.joined)
    }

    /// The lines that nothing follows any more, as far as they came.
    pub fn finish(&mut self) -> impl Iterator<Item = Joined> {
        self.in_order().map(|(_, join)| join.joined)
    }

    /// The lines that may go on in another piece of the log.
    pub fn hand_over(&mut self) -> impl Iterator<Item = Deferred> {
        self.in_order().map(|(by, Join { joined: Joined { text, offset, labels, .. }, ending, .. })| Deferred {
            offset,
            labels,
            text,
            what: What::Piece { by, ending },
        })
    }

    fn in_order(&mut self) -> impl Iterator<Item = (Vec<u8>, Join)> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_by_key(|(_, join)| join.joined.offset);
        open.into_iter()
    }
}

impl Join {
    fn new(offset: u64, carried: Carried<'_>, stream: u64) -> Self {
        let joined = Joined { text: Vec::new(), offset, labels: Labels::of(carried), stream };
        Self { joined, balance: Balance::default(), ending: Ending::Partial }
    }

    fn add(&mut self, text: &[u8], ending: Ending) {
        self.joined.text.extend_from_slice(text);
        // The newline of a piece that others follow is no part of a text that was cut, and a blank in JSON.
        self.balance = self.balance.after(text);
        self.ending = match (self.ending, ending) {
            (Ending::Partial, Ending::Unmarked) if self.is_open_object() => Ending::Partial,
            (_, Ending::Unmarked) if starts_object(&self.joined.text) => Ending::Whole,
            (_, ending) => ending,
        };
    }

    /// Whether a piece that comes behind is of another line.
    fn ends_before(&self, next: &[u8], ending: Ending) -> bool {
        match self.ending {
            // the rest of a cut object is no whole one: the program was stopped before it wrote the rest
            Ending::Partial => {
                ending == Ending::Whole && next.starts_with(b"{\"") && Balance::default().after(next).is_even()
            }
            Ending::Whole => next.first() == Some(&b'{'),
            // a program wrote the line in parts; where collectors strip newlines, no piece has one
            Ending::Unmarked => starts_object(next) || next.last() != Some(&b'\n'),
        }
    }

    fn is_open_object(&self) -> bool {
        starts_object(&self.joined.text) && !self.balance.is_even()
    }

    fn is_done(&self) -> bool {
        (self.ending == Ending::Whole && !self.is_open_object()) || self.joined.text.len() > MAX_RECORD
    }
}

/// Whether a line is no part of anything longer: it is not JSON that goes on in the next line.
pub(super) fn is_whole(line: &[u8]) -> bool {
    !starts_object(line) || line.trim_ascii_end().last() == Some(&b'}') || !is_first_of_many(line)
}

/// The first line of JSON over many lines ends behind a bracket or a comma.
fn is_first_of_many(line: &[u8]) -> bool {
    matches!(line.trim_ascii_end().last(), Some(b'{' | b'[' | b','))
}

fn starts_object(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'{')
}

/// How many braces are open, and whether a text is.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    depth: i32,
    in_string: bool,
    escaped: bool,
}

impl Balance {
    fn after(mut self, text: &[u8]) -> Self {
        for &byte in text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' if !self.in_string => self.depth += 1,
                b'}' if !self.in_string => self.depth -= 1,
                _ => {}
            }
        }
        self
    }

    fn is_even(self) -> bool {
        self.depth <= 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[(&str, &str, Ending)]) -> Vec<String> {
        let mut joins = Joins::default();
        let mut lines = Vec::new();
        for (offset, (by, text, ending)) in (0..).zip(pieces) {
            let (by, text) = (by.as_bytes().to_vec(), text.as_bytes().to_vec());
            lines.extend(joins.take(Piece { by, text, ending: *ending, offset, carried: Carried::NOTHING }));
        }
        lines.extend(joins.finish());
        lines.into_iter().map(|line| format!("{} {}", line.offset, String::from_utf8(line.text).unwrap())).collect()
    }

    use Ending::{Partial, Whole};

    #[test]
    fn pieces_of_two_streams_are_joined_each_with_its_own() {
        let pieces = [
            ("out", "{\"a\":\"x", Partial),
            ("err", "trace", Partial),
            ("out", "y\"}\n", Whole),
            ("err", "back\n", Whole),
        ];
        assert_eq!(joined(&pieces), ["0 {\"a\":\"xy\"}\n", "1 traceback\n"]);
    }

    #[test]
    fn json_over_several_lines_is_joined_until_its_braces_are_even() {
        let pieces = [("o", "{\n", Whole), ("o", "  \"a\": \"}\"\n", Whole), ("o", "}\n", Whole), ("o", "x\n", Whole)];
        assert_eq!(joined(&pieces), ["0 {\n  \"a\": \"}\"\n}\n", "3 x\n"]);
    }

    #[test]
    fn a_record_that_was_cut_off_ends_where_the_next_one_begins() {
        let pieces = [("o", "{\"a\":\n", Whole), ("o", "{\"b\":1}\n", Whole), ("o", "{\"c\"", Partial)];
        assert_eq!(joined(&pieces), ["0 {\"a\":\n", "1 {\"b\":1}\n", "2 {\"c\""]);
    }

    #[test]
    fn an_object_that_came_in_small_pieces_ends_with_its_newline() {
        let ending = |piece: &str| Ending::of(piece.as_bytes(), true);
        let pieces = ["{\"a\":\"", "{ in a text", "\"}\n", "{\"b\":1}\n"].map(|piece| ("o", piece, ending(piece)));
        assert_eq!(joined(&pieces), ["0 {\"a\":\"{ in a text\"}\n", "3 {\"b\":1}\n"]);
    }

    #[test]
    fn a_line_whose_newline_a_collector_took_away_is_whole() {
        assert_eq!(Ending::of(b"{\"a\":1}", true), Whole);
        assert_eq!(Ending::of(b"{\"a\":\"x", true), Partial);
        assert_eq!(Ending::of(&[b'x'; 16 << 10], true), Partial);
        assert_eq!(Ending::of(b"{\"a\":\"x\n", true), Whole);
        let texts = ["one", "two", "{\"a\":1}"].map(|text| ("o", text, Ending::of(text.as_bytes(), true)));
        assert_eq!(joined(&texts), ["0 one", "1 two", "2 {\"a\":1}"]);
        let parts = ["one, ", "two\n"].map(|text| ("o", text, Ending::of(text.as_bytes(), true)));
        assert_eq!(joined(&parts), ["0 one, two\n"]);
    }
}
