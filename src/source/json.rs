//! NDJSON, fast: lines in, the raw values of the wanted key paths out, every accepted line
//! validated.
//!
//! A log repeats the same few sequences of keys. So a line is read in two steps that keep the
//! processor busy instead of waiting:
//!
//! 1. `index` finds the structure of some thousand bytes, 64 at a time, in vector registers
//!    (`simd`);
//! 2. a `shape`, learned from earlier lines (`lesson`), is laid along the index (`fit`). Each
//!    field's key and value are checked where the index says they must stand, and no field waits for
//!    the one before it.
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
mod array;
mod decoder;
mod fit;
mod index;
mod keys;
mod leaves;
mod lesson;
mod parse;
mod record;
mod repertoire;
mod scalar;
mod selection;
mod shape;
mod simd;
mod wanted;

pub use decoder::{LineDecoder, Sink};
pub use leaves::visit;
pub use record::Record;
pub use selection::RecordParser;
pub use wanted::Wanted;
