//! A shape: the sequence of keys that many lines share, and what is known about their values.
//!
//! The entries of the index cut a line into fields. A shape has one step per field, and a step
//! knows the bytes that must lead from the entry before to the value: comma, key, colon, blanks,
//! and for values that are always strings their quotes too, the closing one at the front of the
//! next step. If those bytes stand there, what is left up to the next entry must be one value.
//! Whether that is so is checked in `fit`.

use super::record::Span;
use super::simd::WINDOW;

/// A sequence of keys, learned from a line.
pub(super) struct Shape {
    /// The slots that such lines have a value for.
    pub present: Vec<u32>,
    /// For each slot where its value stands.
    pub values: Vec<Value>,
    pub duplicate_keys: u32,
    /// One for each entry of such a line, its newline included.
    pub steps: Vec<Step>,
    /// What steps have learned beyond a window.
    pub tails: Vec<Tail>,
    /// The steps at whose entry an array of any length stands instead.
    pub arrays: Vec<Array>,
    /// The fields that hold a value, by what it has always been, and those that hold none. Values
    /// that have always been strings are checked with the keys.
    pub numbers: Vec<Field>,
    pub words: Vec<Field>,
    /// Strings or words.
    pub texts: Vec<Field>,
    /// Values of any kind, perhaps with a blank before them.
    pub mixed: Vec<Field>,
    pub empty: Vec<Field>,
    /// Quotes of all keys, and of the values that have always been strings.
    pub quotes: u32,
}

/// The first bytes of what must stand before an entry of the index. Aligned so that none lies
/// across cache lines.
#[repr(align(64))]
pub(super) struct Step {
    pub head: [u8; WINDOW],
    /// Which of them count.
    pub mask: u32,
    /// How many bytes behind the entry before they start. It wraps around if that is in front of
    /// it, as the closing quote of a string is.
    pub skip: u32,
}

/// The rest of what must stand there, if it is longer.
pub(super) struct Tail {
    pub step: u32,
    pub skip: u32,
    pub bytes: Box<[u8]>,
}

/// A step at whose entry an array starts, below `depth` objects.
pub(super) struct Array {
    pub field: Field,
    pub depth: u8,
}

/// What is left between the learned bytes of a step and its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub step: u32,
    /// How many bytes behind the entry before it starts.
    pub skip: u32,
}

/// A wanted value: it starts where its field does, perhaps behind a blank, and ends `closing` bytes behind the entry of
/// step `last`.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub field: Field,
    pub last: u32,
    pub closing: u32,
    pub is_mixed: bool,
}

impl Field {
    /// Where it stands, if it does.
    #[inline(always)]
    pub fn span(self, bounds: &[u32]) -> Option<Span> {
        let step = self.step as usize;
        match bounds.get(step..step.wrapping_add(2))? {
            &[before, end] => Some(Span { start: before.wrapping_add(self.skip), end }),
            _ => None,
        }
    }
}

impl Value {
    /// That of a slot without one.
    pub const ABSENT: Value =
        Value { field: Field { step: u32::MAX, skip: 0 }, last: u32::MAX, closing: 0, is_mixed: false };

    #[inline(always)]
    pub fn span(self, text: &[u8], bounds: &[u32]) -> Option<Span> {
        let start = bounds.get(self.field.step as usize)?.wrapping_add(self.field.skip);
        let end = bounds.get(self.last as usize + 1)?.wrapping_add(self.closing);
        let span = Span { start, end };
        Some(if self.is_mixed { span.without_blank(text) } else { span })
    }
}

impl Step {
    pub fn new(learned: &[u8], skip: u32) -> Step {
        let length = learned.len().min(WINDOW);
        let mut head = [0; WINDOW];
        head[..length].copy_from_slice(&learned[..length]);
        Step { head, mask: ((1_u64 << length) - 1) as u32, skip }
    }
}

impl Tail {
    /// None if a step's head says it all.
    pub fn new(step: u32, learned: &[u8], skip: u32) -> Option<Tail> {
        let bytes = learned.get(WINDOW..).filter(|bytes| !bytes.is_empty())?;
        Some(Tail { step, skip: skip.wrapping_add(WINDOW as u32), bytes: bytes.into() })
    }
}
