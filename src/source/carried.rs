//! What an envelope says besides what it carries: the time and the labels of the one who passed a record on.

use std::ops::Range;

use crate::record::Column;
use crate::record::unit::Unit;
use crate::source::value::RawValue;

/// Values of envelopes, kept until the records inside them are read.
#[derive(Debug, Default)]
pub struct Labels {
    text: Vec<u8>,
    labels: Vec<Label>,
}

#[derive(Clone, Debug)]
struct Label {
    column: Column,
    unit: Option<Unit>,
    place: Range<usize>,
    is_number: bool,
    escaped: bool,
}

/// The values that hold for one record, those of the innermost envelope first.
#[derive(Clone, Copy, Debug)]
pub struct Carried<'a> {
    text: &'a [u8],
    labels: &'a [Label],
}

impl Labels {
    /// Those of a record, kept beyond it.
    pub fn of(carried: Carried<'_>) -> Self {
        let mut labels = Self::default();
        labels.extend(carried);
        labels
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.labels.clear();
    }

    /// How many there are; what is added from here on is behind.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn push(&mut self, column: Column, value: RawValue<'_>, unit: Option<Unit>) {
        let (text, is_number, escaped) = match value {
            RawValue::Missing | RawValue::Null => return,
            RawValue::Number(text) => (text, true, false),
            RawValue::Text { bytes, escaped } => (bytes, false, escaped),
            RawValue::Bool(true) => (&b"true"[..], false, false),
            RawValue::Bool(false) => (&b"false"[..], false, false),
            RawValue::Nested(json) => (json, false, false),
        };
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.labels.push(Label { column, unit, place: start..self.text.len(), is_number, escaped });
    }

    /// Adds those of an outer envelope behind.
    pub fn extend(&mut self, outer: Carried<'_>) {
        for label in outer.labels {
            let (value, unit) = outer.value(label);
            self.push(label.column, value, unit);
        }
    }

    pub fn range(&self, range: Range<usize>) -> Carried<'_> {
        Carried { text: &self.text, labels: self.labels.get(range).unwrap_or_default() }
    }
}

impl<'a> Carried<'a> {
    /// Whether no envelope says anything.
    pub fn is_nothing(&self) -> bool {
        self.labels.is_empty()
    }

    pub const NOTHING: Carried<'static> = Carried { text: &[], labels: &[] };

    /// The value for a column that the record itself lacks.
    pub fn get(self, column: Column) -> Option<(RawValue<'a>, Option<Unit>)> {
        self.labels.iter().find(|label| label.column == column).map(|label| self.value(label))
    }

    fn value(self, label: &Label) -> (RawValue<'a>, Option<Unit>) {
        let bytes = &self.text[label.place.clone()];
        let value = match label.is_number {
            true => RawValue::Number(bytes),
            false => RawValue::Text { bytes, escaped: label.escaped },
        };
        (value, label.unit)
    }
}
