//! A shape: the sequence of keys that many lines share, and what is known about their values.
//!
//! A line is text that is the same in all lines of its shape (braces, commas, keys, colons, blanks) and between that its
//! values. A shape has a step for each value, with the text before it, and one for the text at the end. Objects are part
//! of the text; an array, which has any number of items, is one value.

use super::record::Span;
use super::simd::WINDOW;

/// A sequence of keys, learned from a line.
pub(super) struct Shape {
    /// The slots that such lines have a value for.
    pub present: Vec<u32>,
    /// For each slot where its value stands.
    pub values: Vec<Value>,
    pub duplicate_keys: u32,
    pub steps: Vec<Step>,
}

/// The text before a value, and what is to be expected behind it. Aligned so that no head lies across cache lines.
#[repr(align(64))]
pub(super) struct Step {
    /// The first bytes of the text.
    pub head: [u8; WINDOW],
    /// Which of them count.
    pub mask: u32,
    /// How long all of the text is.
    pub length: u32,
    pub value: Expected,
    /// The rest of the text, if it is longer than a window: windows of it, the last of which ends with it.
    pub tail: Box<[Part]>,
}

/// A window of a text.
pub(super) struct Part {
    /// Its first byte in the text.
    pub offset: u32,
    pub bytes: [u8; WINDOW],
}

/// What a value has always been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// A string, whose quotes are part of the text around it.
    String,
    Number,
    Word,
    /// A string or a word.
    Text,
    /// Any of these, perhaps with a blank before it.
    Any,
    /// The same in text that is the inside of a JSON string, where quotes are escaped.
    QuotedString,
    QuotedText,
    QuotedAny,
    /// An array, below `depth` objects.
    Array {
        depth: u8,
    },
    /// Nothing: the line ends.
    End,
}

impl Expected {
    /// That of the same value in text that is the inside of a JSON string.
    pub fn quoted(self) -> Expected {
        match self {
            Expected::String => Expected::QuotedString,
            Expected::Text => Expected::QuotedText,
            Expected::Any => Expected::QuotedAny,
            other => other,
        }
    }
}

/// Where the values of a line end, after where the line starts. The lines that were fitted together take turns.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub at: &'a [u32],
    pub lines: u32,
}

impl Bounds<'_> {
    #[inline(always)]
    pub fn get(self, number: u32) -> Option<u32> {
        self.at.get(number as usize * self.lines as usize).copied()
    }
}

/// Where the value of a slot stands: so many bytes behind one bound to so many behind another.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub start: (u32, u32),
    pub end: (u32, u32),
    pub form: Form,
}

/// How a value stands between its bounds.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As it is.
    Bare,
    /// Perhaps with a blank before it.
    Spaced,
    /// The same, and if it is a string with escaped quotes. Its place is then from the quote to the backslash of the
    /// other, so that its content is between the first and the last byte as always.
    Quoted,
}

impl Value {
    /// That of a slot without one.
    pub const ABSENT: Value = Value { start: (u32::MAX, 0), end: (u32::MAX, 0), form: Form::Bare };

    #[inline(always)]
    pub fn span(self, text: &[u8], bounds: Bounds<'_>) -> Option<Span> {
        let start = bounds.get(self.start.0)? + self.start.1;
        let end = bounds.get(self.end.0)? + self.end.1;
        let span = Span { start, end };
        Some(match self.form {
            Form::Bare => span,
            Form::Spaced => span.without_blank(text),
            Form::Quoted => span.without_blank(text).without_escapes(text),
        })
    }
}

impl Step {
    pub fn new(text: &[u8], value: Expected) -> Step {
        let length = text.len().min(WINDOW);
        let mut head = [0; WINDOW];
        head[..length].copy_from_slice(&text[..length]);
        let mask = ((1_u64 << length) - 1) as u32;
        let last = text.len() - length;
        let offsets = (1..text.len().div_ceil(WINDOW)).map(|number| last.min(number * WINDOW));
        let part = |offset: usize| {
            let bytes = text[offset..].first_chunk().copied()?;
            Some(Part { offset: offset as u32, bytes })
        };
        Step { head, mask, length: text.len() as u32, value, tail: offsets.filter_map(part).collect() }
    }
}
