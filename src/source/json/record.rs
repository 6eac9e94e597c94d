//! A record: where in its line the wanted values stand.

use std::borrow::Cow;

use memchr::memchr;

use super::quoted::Apart;
use super::shape::{Bounds, Value};
use super::unescape::unescape;
use crate::record::excerpt::Excerpt;
use crate::source::value::RawValue;

/// Where a value stands in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// In no text.
    pub const ABSENT: Span = Span { start: u32::MAX, end: 0 };

    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// What stands there, nothing if it is not in the text.
    pub fn of(self, text: &[u8]) -> &[u8] {
        self.within(text).unwrap_or_default()
    }

    /// Writers that put a blank behind the colon put it before some kinds of values only.
    #[inline(always)]
    pub fn without_blank(self, text: &[u8]) -> Span {
        let blank = text.get(self.start as usize) == Some(&b' ');
        Span { start: self.start + u32::from(blank), ..self }
    }

    /// From the opening quote to before the closing one, if they are escaped.
    #[inline(always)]
    pub fn without_escapes(self, text: &[u8]) -> Span {
        let escape = u32::from(text.get(self.start as usize) == Some(&b'\\'));
        Span { start: self.start + escape, end: self.end - escape }
    }

    #[inline(always)]
    pub fn within(self, text: &[u8]) -> Option<&[u8]> {
        text.get(self.start as usize..self.end as usize)
    }
}

/// The wanted values of one accepted line, not yet converted.
pub struct Record<'a> {
    pub(super) text: &'a [u8],
    /// Where the record itself stands in the text.
    pub(super) line: Span,
    pub(super) offset: usize,
    pub(super) layout: Option<usize>,
    pub(super) present: &'a [u32],
    pub(super) places: Places<'a>,
    /// Whether texts may have escapes; false is sure.
    pub(super) may_hold_escapes: bool,
    pub(super) duplicate_keys: u32,
    /// In a text that is the inside of a JSON string: the values that are not in the text as they are.
    pub(super) apart: Option<&'a Apart>,
}

/// Where the values of the slots stand.
#[derive(Clone, Copy)]
pub(super) enum Places<'a> {
    /// For each slot the place of its value, or [`Span::ABSENT`].
    Parsed(&'a [Span]),
    /// What a shape knows of them, and the bounds of the line that fits it.
    Shaped { values: &'a [Value], bounds: Bounds<'a> },
}

impl<'a> Record<'a> {
    /// Where the value of the slot stands, which may be nowhere in the text.
    #[inline(always)]
    pub(super) fn span(&self, slot: usize) -> Option<Span> {
        match self.places {
            Places::Parsed(spans) => spans.get(slot).copied(),
            Places::Shaped { values, bounds } => values.get(slot)?.span(self.text, bounds),
        }
    }

    pub(super) fn slots(&self) -> usize {
        match self.places {
            Places::Parsed(spans) => spans.len(),
            Places::Shaped { values, .. } => values.len(),
        }
    }

    /// Where the line's first byte stands in the block.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The text of the record itself.
    pub fn line(&self) -> Cow<'a, [u8]> {
        let line = self.line.of(self.text);
        match self.apart {
            None => Cow::Borrowed(line),
            Some(_) => {
                let mut text = Vec::with_capacity(line.len());
                unescape(line, &mut text);
                Cow::Owned(text)
            }
        }
    }

    /// The value at the slot's path. Always inlined, since a call costs more than what it does.
    #[inline(always)]
    pub fn get(&self, slot: usize) -> RawValue<'a> {
        let Some((text, span)) = self.place(slot) else { return RawValue::Missing };
        let Some(value) = span.within(text) else { return RawValue::Missing };
        raw_value(value, |content| self.may_hold_escapes && is_escaped(content))
    }

    /// The value at the slot's path, where it stands.
    #[inline(always)]
    pub fn excerpt(&self, slot: usize) -> Option<Excerpt<'a>> {
        let (text, span) = self.place(slot)?;
        Some(Excerpt { text, start: span.start as usize, end: span.end as usize })
    }

    /// Where the value stands, and in which text.
    #[inline(always)]
    fn place(&self, slot: usize) -> Option<(&'a [u8], Span)> {
        let span = self.span(slot)?;
        Some(match self.apart {
            None => (self.text, span),
            Some(apart) => apart.place(slot, self.text, span, self.may_hold_escapes),
        })
    }

    /// The number of the set of present slots: records of the same layout fill the same slots. None
    /// if the line came through the general parser. Numbers count up from 0 as a decoder learns,
    /// and are not used twice.
    pub fn layout(&self) -> Option<usize> {
        self.layout
    }

    /// The slots whose path the record has, in no order.
    pub fn present(&self) -> &'a [u32] {
        self.present
    }

    /// How many keys repeat an earlier one of their object, at any level. The last of them is the
    /// one that counts.
    pub fn duplicate_keys(&self) -> u32 {
        self.duplicate_keys
    }
}

/// Whether the text of a string holds escapes.
#[inline(never)]
pub(super) fn is_escaped(text: &[u8]) -> bool {
    memchr(b'\\', text).is_some()
}

/// The value that `text`, which is valid JSON, says. `is_escaped` is asked of the content if it is a string.
#[inline(always)]
pub(super) fn raw_value(text: &[u8], is_escaped: impl FnOnce(&[u8]) -> bool) -> RawValue<'_> {
    match text {
        [b'-'..=b'9', ..] => RawValue::Number(text),
        [b'"', bytes @ .., _] => RawValue::Text { bytes, escaped: is_escaped(bytes) },
        [b'n', ..] => RawValue::Null,
        [b't', ..] => RawValue::Bool(true),
        [b'f', ..] => RawValue::Bool(false),
        [b'{' | b'[', ..] => RawValue::Nested(text),
        _ => RawValue::Number(text),
    }
}
