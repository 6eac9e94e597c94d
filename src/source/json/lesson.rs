//! Learning a shape from a line that the general parser has accepted, and more about it from every
//! further line.

use super::keys::{Key, Keys};
use super::parse::{Visitor, parse_object};
use super::quoted::{quote, quoted_length};
use super::record::{Record, Span};
use super::shape::{Bounds, Expected, Form, Shape, Step, Value};

/// Lines with more values than this are not learned from, so that a shape stays small.
const MOST_PARTS: usize = 4096;

/// What has been learned about lines with the same keys.
pub(super) struct Lesson {
    parts: Vec<Part>,
    /// The text behind the last value.
    end: Box<[u8]>,
    wanted: Vec<WantedValue>,
    /// How many slots there are, with a value or not.
    slots: usize,
    duplicate_keys: u32,
    /// Whether such lines are the inside of JSON strings.
    is_quoted: bool,
}

/// What has been learned about one value and the text before it.
struct Part {
    /// All of the text but for the blanks at its end.
    key: Box<[u8]>,
    blanks: Box<[u8]>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A string, number or word.
    Scalar(Kinds),
    /// An array, below this many objects.
    Array { depth: u8 },
}

/// A wanted value, from one place to another.
struct WantedValue {
    slot: u32,
    start: Place,
    end: Place,
}

/// So many bytes behind as many parts.
#[derive(Clone, Copy)]
struct Place {
    parts: usize,
    offset: usize,
}

/// The kinds that a value has had so far, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const STRING: Kinds = Kinds(1);
    const NUMBER: Kinds = Kinds(2);
    const WORD: Kinds = Kinds(4);
    const TEXT: Kinds = Kinds(1 | 4);
    const ANY: Kinds = Kinds(1 | 2 | 4);

    fn of(value: &[u8]) -> Kinds {
        match value.first() {
            // a quote may be escaped
            Some(b'"' | b'\\') => Kinds::STRING,
            Some(b'-' | b'0'..=b'9') => Kinds::NUMBER,
            _ => Kinds::WORD,
        }
    }

    fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

impl Part {
    fn expected(&self) -> Expected {
        match self.kind {
            Kind::Array { depth } => Expected::Array { depth },
            Kind::Scalar(Kinds::STRING) => Expected::String,
            Kind::Scalar(Kinds::NUMBER) => Expected::Number,
            Kind::Scalar(Kinds::WORD) => Expected::Word,
            Kind::Scalar(Kinds::TEXT) => Expected::Text,
            Kind::Scalar(_) => Expected::Any,
        }
    }
}

impl Lesson {
    /// Looks at a valid line, which may have been the inside of a JSON string. None if it has something that shapes cannot express, keys that
    /// repeat inside an array, or too much.
    pub fn new(line: &[u8], record: &Record<'_>, is_quoted: bool) -> Option<Lesson> {
        let mut reading = Reading { text: line, ..Reading::default() };
        parse_object(line, &mut reading, &mut Keys::default()).ok()?;
        if reading.has_objects_in_arrays && record.duplicate_keys() > 0 || reading.objects_below_array > u8::MAX.into()
        {
            return None;
        }
        let ends = &reading.ends;
        let place = |at: usize| {
            let parts = ends.partition_point(|&end| end <= at);
            Place { parts, offset: at - parts.checked_sub(1).map_or(0, |last| ends[last]) }
        };
        let wanted = record.present().iter().map(|&slot| {
            let span = record.span(slot as usize)?;
            Some(WantedValue { slot, start: place(span.start as usize), end: place(span.end as usize) })
        });
        Some(Lesson {
            wanted: wanted.collect::<Option<_>>()?,
            end: line[ends.last().copied().unwrap_or(0)..].into(),
            parts: reading.parts,
            slots: record.slots(),
            duplicate_keys: record.duplicate_keys(),
            is_quoted,
        })
    }

    /// The length of text in such lines.
    fn length(&self, text: &[u8]) -> usize {
        if self.is_quoted { quoted_length(text) } else { text.len() }
    }

    /// The text before the value of a part; behind the last, the end.
    fn literal(&self, part: usize) -> &[u8] {
        self.parts.get(part).map_or(&self.end, |part| &part.key)
    }

    /// Takes in what another lesson found about the same keys. None if its keys are others, else
    /// whether there was anything new.
    pub fn merge(&mut self, other: &Lesson) -> Option<bool> {
        let alike = |(part, other): (&Part, &Part)| match (part.kind, other.kind) {
            (Kind::Scalar(_), Kind::Scalar(_)) => part.key == other.key,
            (kind, other_kind) => kind == other_kind && part.key == other.key && part.blanks == other.blanks,
        };
        let same_length = self.parts.len() == other.parts.len() && self.end == other.end;
        if !same_length || !self.parts.iter().zip(&other.parts).all(alike) {
            return None;
        }
        let mut is_new = false;
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            if let (Kind::Scalar(kinds), Kind::Scalar(others)) = (part.kind, other.kind) {
                let kinds = if part.blanks == other.blanks { kinds.and(others) } else { Kinds::ANY };
                is_new |= part.kind != Kind::Scalar(kinds);
                part.kind = Kind::Scalar(kinds);
            }
        }
        Some(is_new)
    }

    /// Learns from a line that fits, by its bounds. Returns whether there was anything new.
    pub fn broaden(&mut self, text: &[u8], bounds: Bounds<'_>) -> bool {
        let mut is_new = false;
        let mut quote: &[u8] = b"";
        for number in 0..self.parts.len() {
            let Some(before) = bounds.get(number as u32) else { break };
            let part = &self.parts[number];
            let start = before as usize + self.length(quote) + self.length(&part.key) + part.blanks.len();
            let expected = part.expected();
            quote = closing_quote(expected);
            let part = &mut self.parts[number];
            if let (Kind::Scalar(kinds), Expected::Number | Expected::Word | Expected::Text) = (part.kind, expected) {
                let broader = kinds.and(Kinds::of(text.get(start..).unwrap_or_default()));
                is_new |= broader != kinds;
                part.kind = Kind::Scalar(broader);
            }
        }
        is_new
    }

    fn step(&self, text: &[u8], expected: Expected) -> Step {
        match self.is_quoted {
            true => Step::new(&quote(text), expected.quoted()),
            false => Step::new(text, expected),
        }
    }

    /// The shape of such lines.
    pub fn shape(&self) -> Shape {
        let mut steps = Vec::with_capacity(self.parts.len() + 1);
        // The closing quote of a string belongs to the text behind it.
        let mut text = Vec::new();
        for part in &self.parts {
            let expected = part.expected();
            text.extend_from_slice(&part.key);
            if expected != Expected::Any {
                text.extend_from_slice(&part.blanks);
            }
            let quote = closing_quote(expected);
            text.extend_from_slice(quote);
            steps.push(self.step(&text, expected));
            text.clear();
            text.extend_from_slice(quote);
        }
        text.extend_from_slice(&self.end);
        steps.push(self.step(&text, Expected::End));

        let bound = |place: Place, offset: usize| {
            let before = place.parts.checked_sub(1).map(|last| self.parts[last].expected());
            let literal = self.literal(place.parts);
            // blanks may stand behind it
            let (key, blanks) = literal.split_at(offset.min(literal.len()));
            let blanks = offset.saturating_sub(key.len() + blanks.len());
            let quote = before.map_or(&b""[..], closing_quote);
            (place.parts as u32, (self.length(quote) + self.length(key) + blanks) as u32)
        };
        let mut values = vec![Value::ABSENT; self.slots];
        for &WantedValue { slot, start, end } in &self.wanted {
            let part = self.parts.get(start.parts);
            let scalar = part.filter(|part| {
                matches!(part.kind, Kind::Scalar(_)) && start.offset == part.key.len() + part.blanks.len()
            });
            let spaced = scalar.filter(|part| part.expected() == Expected::Any);
            values[slot as usize] = Value {
                start: bound(start, spaced.map_or(start.offset, |part| part.key.len())),
                end: bound(end, end.offset),
                form: match (scalar, spaced) {
                    (Some(_), _) if self.is_quoted => Form::Quoted,
                    (_, Some(_)) => Form::Spaced,
                    _ => Form::Bare,
                },
            };
        }
        Shape {
            present: self.wanted.iter().map(|value| value.slot).collect(),
            values,
            duplicate_keys: self.duplicate_keys,
            steps,
        }
    }
}

/// The quote that belongs to the text on both sides of such a value.
fn closing_quote(expected: Expected) -> &'static [u8] {
    if expected == Expected::String { b"\"" } else { b"" }
}

/// The parts of a line, as the parser comes to them.
#[derive(Default)]
struct Reading<'t> {
    text: &'t [u8],
    parts: Vec<Part>,
    /// Where the values of the parts end.
    ends: Vec<usize>,
    /// How many objects are open outside arrays, at most when an array starts, and how many arrays.
    objects: usize,
    objects_below_array: usize,
    arrays: usize,
    has_objects_in_arrays: bool,
}

impl Reading<'_> {
    fn add(&mut self, value: Span, kind: Kind) {
        if self.ends.len() > MOST_PARTS {
            return;
        }
        let from = self.ends.last().copied().unwrap_or(0);
        let before = &self.text[from..value.start as usize];
        let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let (key, blanks) = before.split_at(before.len() - blanks);
        self.parts.push(Part { key: key.into(), blanks: blanks.into(), kind });
        self.ends.push(value.end as usize);
    }
}

impl Visitor for Reading<'_> {
    fn key(&mut self, _: &[u8], _: Key) {}

    fn scalar(&mut self, value: Span) {
        if self.arrays == 0 {
            self.add(value, Kind::Scalar(Kinds::of(value.of(self.text))));
        }
    }

    fn open(&mut self, bracket: u8) {
        match bracket {
            b'[' => {
                self.objects_below_array = self.objects_below_array.max(self.objects);
                self.arrays += 1;
            }
            _ if self.arrays > 0 => self.has_objects_in_arrays = true,
            _ => self.objects += 1,
        }
    }

    fn close(&mut self, value: Span) {
        let is_array = value.of(self.text).starts_with(b"[");
        if is_array {
            self.arrays -= 1;
        }
        match self.arrays {
            0 if is_array => self.add(value, Kind::Array { depth: self.objects as u8 }),
            0 => self.objects -= 1,
            _ => {}
        }
    }
}
