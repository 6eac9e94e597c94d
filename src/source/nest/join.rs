//! Lines that come in pieces: what a container runtime cut because it was long, and JSON that a program wrote over
//! several lines.

use crate::source::carried::{Carried, Labels};
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
}

impl Ending {
    /// That of a piece whose envelope has no mark for it.
    pub fn of(piece: &[u8], until_newline: bool, sees_newlines: bool) -> Self {
        let is_open = until_newline && piece.last() != Some(&b'\n');
        // Some collectors strip the newline from every line; what the runtime cut is long, or not whole JSON.
        let is_cut = || match starts_object(piece) {
            true => !Balance::default().after(piece).is_even(),
            false => sees_newlines || piece.len() >= RUNTIME_PIECE,
        };
        if is_open && is_cut() { Ending::Partial } else { Ending::Whole }
    }
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
}

/// Lines that have come in part.
#[derive(Default)]
pub(super) struct Joins {
    open: Vec<Join>,
}

struct Join {
    by: Vec<u8>,
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
        if let Some(at) = self.open.iter().position(|join| join.by == piece.by) {
            // A line of its own begins another record, whatever became of the one before.
            if self.open[at].ending == Ending::Whole && piece.text.first() == Some(&b'{') {
                done.push(self.open.swap_remove(at).joined);
            } else {
                self.open[at].add(&piece.text, piece.ending);
                if self.open[at].is_done() {
                    done.push(self.open.swap_remove(at).joined);
                }
                return done;
            }
        }
        let mut labels = Labels::default();
        labels.extend(piece.carried);
        let joined = Joined { text: Vec::new(), offset: piece.offset, labels };
        let mut join = Join { by: piece.by, joined, balance: Balance::default(), ending: piece.ending };
        join.add(&piece.text, piece.ending);
        if join.is_done() {
            done.push(join.joined)
        } else {
            self.open.push(join)
        }
        done
    }

    /// The lines that nothing follows any more, as far as they came.
    pub fn finish(&mut self) -> impl Iterator<Item = Joined> {
        std::mem::take(&mut self.open).into_iter().map(|join| join.joined)
    }
}

impl Join {
    fn add(&mut self, text: &[u8], ending: Ending) {
        self.joined.text.extend_from_slice(text);
        // The newline of a piece that others follow is no part of a text that was cut, and a blank in JSON.
        self.balance = self.balance.after(text);
        self.ending = ending;
    }

    fn is_done(&self) -> bool {
        let whole = self.ending == Ending::Whole && (!starts_object(&self.joined.text) || self.balance.is_even());
        whole || self.joined.text.len() > MAX_RECORD
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
    fn a_line_whose_newline_a_collector_took_away_is_whole() {
        assert_eq!(Ending::of(b"{\"a\":1}", true, true), Whole);
        assert_eq!(Ending::of(b"text", true, false), Whole);
        assert_eq!(Ending::of(b"text", true, true), Partial);
        assert_eq!(Ending::of(b"{\"a\":\"x", true, false), Partial);
        assert_eq!(Ending::of(&[b'x'; 16 << 10], true, false), Partial);
        assert_eq!(Ending::of(b"{\"a\":\"x\n", true, true), Whole);
    }
}
