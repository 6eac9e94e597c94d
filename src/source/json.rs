//! NDJSON, fast: lines in, the raw values of the wanted key paths out, every accepted line
//! validated.
//!
//! A log repeats the same few sequences of keys. So lines are read in two steps that keep the processor busy instead of
//! waiting:
//!
//! 1. `index` finds the lines of some ten thousand bytes and what in them is suspect, 64 bytes at a time, in vector
//!    registers (`simd`);
//! 2. a `shape`, learned from earlier lines (`lesson`), is laid along several lines side by side (`fit`): text that must
//!    stand where it does, and between it values, each followed to its end (`extent`).
//!
//! A record that stands inside a string of another, with its quotes escaped, is read in that form (`quoted`).
//!
//! A line that no shape fits goes through the general parser (`parse`), which knows all of JSON,
//! decides alone what is valid, and is what shapes are learned from. So the answer for a line is
//! the same whichever way it took; only the time differs.
//!
//! ```text
//! block -> LineDecoder -> index -> shape fits? -> Record
//!                                    | no
//!                                    v
//!                         RecordParser -> Record, or Reject;  the line's shape is learned
//! ```

#[cfg(test)]
mod agreement;
mod decoder;
mod extent;
mod fit;
mod index;
mod keys;
mod leaves;
mod lesson;
mod parse;
mod quoted;
mod record;
mod repertoire;
mod scalar;
mod selection;
mod shape;
mod simd;
mod tree;
mod unescape;
mod walk;
mod wanted;

pub use decoder::{LineDecoder, ROOM, Sink, Writing};
pub use leaves::visit;
pub use quoted::{object as quoted_object, one_line};
pub use record::Record;
pub use selection::RecordParser;
pub use tree::{Branches, ObjectWriter, Tree, write_line, write_text};
pub use unescape::unescape;
pub use walk::{walk, walk_all};
pub use wanted::Wanted;
