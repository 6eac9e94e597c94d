//! A record: where in its line the wanted values stand.

use memchr::memchr;

use super::index::Index;
use crate::source::value::RawValue;

/// Where a value stands in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    pub fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Which of the wanted values a record has, and where in its list of spans they stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// For each slot the position of its span, or [`Layout::ABSENT`].
    pub places: Vec<u32>,
    /// The slots that have a span.
    pub present: Vec<u32>,
}

impl Layout {
    /// No list of spans is this long.
    pub const ABSENT: u32 = u32::MAX;
}

/// The wanted values of one accepted line, not yet converted.
pub struct Record<'a> {
    pub(super) text: &'a [u8],
    pub(super) offset: usize,
    pub(super) layout: &'a Layout,
    pub(super) layout_id: Option<usize>,
    pub(super) spans: &'a [Span],
    /// The index of `text`, if it has one: it knows texts without escapes.
    pub(super) index: Option<&'a Index>,
    pub(super) duplicate_keys: u32,
}

impl<'a> Record<'a> {
    /// Where the line's first byte stands in the block.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The value at the slot's path.
    #[inline]
    pub fn get(&self, slot: usize) -> RawValue<'a> {
        let span = self.layout.places.get(slot).and_then(|&place| self.spans.get(place as usize));
        span.map_or(RawValue::Missing, |span| self.value(*span))
    }

    /// The number of the set of present slots: records of the same layout fill the same slots. None
    /// if the line came through the general parser. Numbers count up from 0 as a decoder learns,
    /// and are not used twice.
    pub fn layout(&self) -> Option<usize> {
        self.layout_id
    }

    /// The slots whose path the record has, in no order.
    pub fn present(&self) -> &'a [u32] {
        &self.layout.present
    }

    /// How many keys repeat an earlier one of their object, at any level. The last of them is the
    /// one that counts.
    pub fn duplicate_keys(&self) -> u32 {
        self.duplicate_keys
    }

    #[inline]
    fn value(&self, span: Span) -> RawValue<'a> {
        let escapes_possible =
            || self.index.is_none_or(|index| index.may_hold_escapes(span.start as usize, span.end as usize));
        raw_value(span.of(self.text), escapes_possible)
    }
}

/// The value that `text`, which is valid JSON, says. `escapes_possible` may know without looking
/// that there is no backslash in it.
#[inline]
pub(super) fn raw_value(text: &[u8], escapes_possible: impl FnOnce() -> bool) -> RawValue<'_> {
    match text {
        [b'"', bytes @ .., _] => {
            let escaped = escapes_possible() && memchr(b'\\', bytes).is_some();
            RawValue::Text { bytes, escaped }
        }
        [b'{' | b'[', ..] => RawValue::Nested(text),
        [b'n', ..] => RawValue::Null,
        [b't', ..] => RawValue::Bool(true),
        [b'f', ..] => RawValue::Bool(false),
        _ => RawValue::Number(text),
    }
}
