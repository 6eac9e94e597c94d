//! What one piece of a cut log cannot settle alone: lines that go on in the next piece or began in the one before, and
//! records whose meaning depends on others of the whole log. They wait until all pieces are read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::source::carried::Labels;
use crate::source::nest::Nest;
use crate::source::nest::join::Ending;
use crate::source::sink::Desk;

/// Pieces of a stream without the beginning of an object, after which it is taken for text that needs no beginning.
const TEXTS: u32 = 4096;

/// What is left of the pieces of a log, by how many envelopes stand around it.
pub type Left = Vec<Vec<Deferred>>;

/// Something that waits, with where it stands and what stands around it.
#[derive(Debug)]
pub struct Deferred {
    pub(super) offset: u64,
    pub(super) labels: Labels,
    pub(super) text: Vec<u8>,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// A piece of a line of the stream `by`.
    Piece { by: Vec<u8>, ending: Ending },
    /// The stream `by` goes on with a line that its piece of the log knew to begin a record.
    Beginning { by: Vec<u8> },
    /// A record of this dialect that is to be taken apart.
    Record { dialect: usize, stream: u64 },
}

/// How the records of a nest come.
#[derive(Debug, Default)]
pub enum Course {
    /// All of a log, in order.
    #[default]
    Whole,
    /// Those of the first piece of a log.
    First,
    /// Those of a later piece: how its streams began, nobody knows.
    Later(Streams),
    /// In any order: everything waits.
    Any,
}

impl Course {
    /// That of a piece of a log that starts at this byte; None is the whole log.
    pub fn of_piece(start: Option<u64>) -> Self {
        match start {
            None => Course::Whole,
            Some(0) => Course::First,
            Some(_) => Course::Later(Streams::default()),
        }
    }

    /// That of what is inside the same records.
    pub fn inside(&self) -> Self {
        match self {
            Course::Whole => Course::Whole,
            Course::First => Course::First,
            Course::Later(_) => Course::Later(Streams::default()),
            Course::Any => Course::Any,
        }
    }

    /// Whether records whose meaning depends on others must wait.
    pub fn is_part(&self) -> bool {
        !matches!(self, Course::Whole)
    }
}

/// What is known of the streams in a piece of a log.
#[derive(Debug, Default)]
pub struct Streams {
    known: HashMap<Vec<u8>, Start>,
    /// A stream whose beginning is known: most lines are of the one before them.
    last: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Start {
    /// So many pieces have come, and how the last of them ended.
    Unknown {
        pieces: u32,
        last: Ending,
    },
    Known,
}

/// What is known of a stream where a piece of a line comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Unknown,
    /// Known from this piece on.
    Settled,
    Known,
}

impl Streams {
    /// Whether what stands before a piece is known: it was whole, and this begins an object, by its first byte.
    pub(super) fn settle(&mut self, by: &[u8], first: Option<u8>, ending: Ending) -> Standing {
        if self.last.as_deref() == Some(by) {
            return Standing::Known;
        }
        let start = match self.known.get_mut(by) {
            Some(start) => start,
            None => {
                self.known.insert(by.to_vec(), Start::Unknown { pieces: 1, last: ending });
                return Standing::Unknown;
            }
        };
        let standing = match start {
            Start::Known => Standing::Known,
            Start::Unknown { last: Ending::Whole, .. } if first == Some(b'{') => Standing::Settled,
            Start::Unknown { pieces, last } if *pieces < TEXTS || *last == Ending::Partial => {
                (*pieces, *last) = (*pieces + 1, ending);
                return Standing::Unknown;
            }
            Start::Unknown { .. } => Standing::Settled,
        };
        *start = Start::Known;
        self.last = Some(by.to_vec());
        standing
    }
}

/// Where the pieces of cut logs leave what they could not settle, until the last of a log is read.
#[derive(Debug, Default)]
pub struct Handover {
    logs: Mutex<HashMap<usize, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    pieces: usize,
    read: usize,
    left: Left,
}

impl Handover {
    /// For logs of so many pieces, by their index.
    pub fn new(logs: impl Iterator<Item = (usize, usize)>) -> Self {
        let waiting = |(log, pieces)| (log, Waiting { pieces, read: 0, left: Left::new() });
        Self { logs: Mutex::new(logs.map(waiting).collect()) }
    }

    /// Ends a log or a piece of one; with the last of its pieces, what all of them left is settled.
    pub fn settle(&self, nest: &mut Nest, desk: &mut Desk<'_>) {
        if !nest.is_part() {
            return nest.finish(desk);
        }
        let left = nest.hand_over(desk);
        if let Some(left) = self.take(desk.file.index, left) {
            Nest::settle(left, desk);
        }
    }

    /// Takes what one piece of a log left; hands out what all of them left with the last.
    fn take(&self, log: usize, left: Left) -> Option<Left> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = logs.get_mut(&log)?;
        for (depth, mut deferred) in left.into_iter().enumerate() {
            if waiting.left.len() <= depth {
                waiting.left.push(Vec::new());
            }
            waiting.left[depth].append(&mut deferred);
        }
        waiting.read += 1;
        (waiting.read == waiting.pieces).then(|| {
            waiting.read = 0;
            std::mem::take(&mut waiting.left)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_where_an_object_begins_behind_a_whole_line() {
        use Ending::{Partial, Whole};
        use Standing::{Known, Settled, Unknown};
        let mut streams = Streams::default();
        let mut standing = |by: &str, text: &str, ending| streams.settle(by.as_bytes(), text.bytes().next(), ending);
        assert_eq!(standing("out", "{\"may\":\"stand in a text", Partial), Unknown);
        assert_eq!(standing("out", "{\"still\":1}\"}", Whole), Unknown);
        assert_eq!(standing("err", "{\"x\":1}", Whole), Unknown);
        assert_eq!(standing("out", "{\"a\":1}", Whole), Settled);
        assert_eq!(standing("out", "text", Whole), Known);
        assert_eq!(standing("err", "text", Whole), Unknown);
        assert_eq!(standing("err", "{\"b\":1}", Whole), Settled);
    }
}
