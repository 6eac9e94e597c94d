//! Learning a shape from a line that the general parser has accepted, and more about it from every
//! further line.

use memchr::memchr;

use super::fit::Line;
use super::index::Index;
use super::record::Record;
use super::shape::{Array, Field, Shape, Step, Tail, Value};

/// What has been learned about lines with the same keys.
pub(super) struct Lesson {
    parts: Vec<Part>,
    wanted: Vec<WantedValue>,
    /// How many slots there are, with a value or not.
    slots: usize,
    duplicate_keys: u32,
}

/// What has been learned about one entry of the index and the bytes before it.
struct Part {
    /// Key and colon, or blanks.
    key: Box<[u8]>,
    blanks: Box<[u8]>,
    kind: Kind,
    value: Kinds,
    /// The entry's byte; for an array the one that ends it.
    structural: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A string, number or word stands before the entry.
    Scalar,
    /// Nothing does.
    Empty,
    /// Nothing does, and an array of any length starts, below this many objects.
    Array { depth: u8 },
}

/// A wanted value and the steps at which it starts and ends.
struct WantedValue {
    slot: u32,
    first: u32,
    last: u32,
    is_nested: bool,
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
            Some(b'"') => Kinds::STRING,
            Some(b'-' | b'0'..=b'9') => Kinds::NUMBER,
            _ => Kinds::WORD,
        }
    }

    fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Whether values of these kinds are checked in a way of their own, else as values of any kind.
    fn are_usual(self) -> bool {
        matches!(self, Kinds::STRING | Kinds::NUMBER | Kinds::WORD | Kinds::TEXT)
    }
}

impl Lesson {
    /// Looks at a valid line. None if it has something that shapes cannot express: keys that repeat
    /// inside an array.
    pub fn new(text: &[u8], index: &Index, line: Line, record: &Record<'_>) -> Option<Lesson> {
        let mut segments = Segments { text, index, entry: line.entry, from: line.start };
        let mut lesson = Lesson {
            parts: Vec::new(),
            wanted: Vec::new(),
            slots: record.slots(),
            duplicate_keys: record.duplicate_keys(),
        };
        // The steps at which each slot's value and each object and array starts, and at which the
        // latter end; those at which the objects that are open started.
        let mut starts = vec![0; record.slots()];
        let mut nested = Vec::new();
        let mut objects = Vec::new();
        while lesson.parts.last().is_none_or(|part| part.structural != b'\n') {
            let segment = segments.next_segment()?;
            let step = lesson.parts.len() as u32;
            let mut structural = segment.structural;
            let kind = match structural {
                b'[' => {
                    let has_nested = segments.skip_array()?;
                    if has_nested && record.duplicate_keys() > 0 {
                        return None;
                    }
                    structural = b']';
                    nested.push((step, step));
                    Kind::Array { depth: u8::try_from(objects.len()).ok()? }
                }
                b'{' => {
                    objects.push(step);
                    Kind::Empty
                }
                _ if segment.value == segment.at => Kind::Empty,
                _ => Kind::Scalar,
            };
            if structural == b'}' {
                nested.push((objects.pop()?, step));
            }
            for &slot in record.present() {
                let start = record.span(slot as usize)?.start as usize;
                if line.start + start == segment.value {
                    starts[slot as usize] = step;
                }
            }
            lesson.parts.push(Part {
                key: text[segment.start..segment.key_end].into(),
                blanks: text[segment.key_end..segment.value].into(),
                kind,
                value: Kinds::of(&text[segment.value..segment.at]),
                structural,
            });
        }
        for &slot in record.present() {
            let first = starts[slot as usize];
            let end = nested.iter().find(|(start, _)| *start == first).map(|&(_, last)| last);
            lesson.wanted.push(WantedValue { slot, first, last: end.unwrap_or(first), is_nested: end.is_some() });
        }
        Some(lesson)
    }

    /// Takes in what another lesson found about the same keys. None if its keys are others, else
    /// whether there was anything new.
    pub fn merge(&mut self, other: &Lesson) -> Option<bool> {
        let alike = |(part, other): (&Part, &Part)| {
            let same = part.key == other.key && part.kind == other.kind && part.structural == other.structural;
            same && (part.kind == Kind::Scalar || part.blanks == other.blanks)
        };
        if self.parts.len() != other.parts.len() || !self.parts.iter().zip(&other.parts).all(alike) {
            return None;
        }
        let mut is_new = false;
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            let same_blanks = part.blanks == other.blanks;
            let kinds = if same_blanks { part.value.and(other.value) } else { Kinds::ANY };
            is_new |= kinds != part.value;
            part.value = kinds;
        }
        Some(is_new)
    }

    /// Learns that the value before the entry of a step may be of another kind. Returns whether
    /// that is new.
    pub fn broaden(&mut self, step: u32, value: &[u8]) -> bool {
        let Some(part) = self.parts.get_mut(step as usize) else { return false };
        let before = part.value;
        part.value = before.and(Kinds::of(value));
        part.value != before
    }

    /// The shape of such lines.
    pub fn shape(&self) -> Shape {
        let mut shape = Shape {
            present: self.wanted.iter().map(|value| value.slot).collect(),
            values: vec![Value::ABSENT; self.slots],
            duplicate_keys: self.duplicate_keys,
            steps: Vec::with_capacity(self.parts.len()),
            tails: Vec::new(),
            arrays: Vec::new(),
            numbers: Vec::new(),
            words: Vec::new(),
            texts: Vec::new(),
            mixed: Vec::new(),
            empty: Vec::new(),
            quotes: 0,
        };
        let mut fields = Vec::with_capacity(self.parts.len());
        // What the entry before leaves to this step, and where that starts: its own byte, and the
        // closing quote of a string before that.
        let mut learned = Vec::new();
        let mut skip = 1_u32;
        for (part, step) in self.parts.iter().zip(0..) {
            let is_scalar = part.kind == Kind::Scalar;
            learned.extend_from_slice(&part.key);
            if !is_scalar || part.value.are_usual() {
                learned.extend_from_slice(&part.blanks);
            }
            let field = Field { step, skip: skip.wrapping_add(learned.len() as u32) };
            fields.push(field);
            let is_string = is_scalar && part.value == Kinds::STRING;
            let quote: &[u8] = if is_string { b"\"" } else { b"" };
            learned.extend_from_slice(quote);
            match (part.kind, part.value) {
                (Kind::Array { depth }, _) => shape.arrays.push(Array { field, depth }),
                (Kind::Empty, _) => shape.empty.push(field),
                (Kind::Scalar, Kinds::STRING) => shape.quotes += 2,
                (Kind::Scalar, Kinds::NUMBER) => shape.numbers.push(field),
                (Kind::Scalar, Kinds::WORD) => shape.words.push(field),
                (Kind::Scalar, Kinds::TEXT) => shape.texts.push(field),
                (Kind::Scalar, _) => shape.mixed.push(field),
            }
            shape.quotes += if part.key.contains(&b'"') { 2 } else { 0 };
            shape.steps.push(Step::new(&learned, skip));
            shape.tails.extend(Tail::new(step, &learned, skip));
            skip = if is_string { u32::MAX } else { 0 };
            learned.clear();
            learned.extend_from_slice(quote);
            learned.push(part.structural);
        }
        for &WantedValue { slot, first, last, is_nested } in &self.wanted {
            let field = fields[first as usize];
            let is_mixed = shape.mixed.contains(&field);
            shape.values[slot as usize] = Value { field, last, closing: u32::from(is_nested), is_mixed };
        }
        shape
    }
}

/// A valid line on its way from entry to entry.
struct Segments<'a> {
    text: &'a [u8],
    index: &'a Index,
    /// The next entry, and the byte behind the last.
    entry: usize,
    from: usize,
}

/// What stands between two entries, and the second of them.
struct Segment {
    start: usize,
    /// Behind the colon; at the entry if there is no key.
    key_end: usize,
    /// Where a value would start.
    value: usize,
    at: usize,
    structural: u8,
}

impl Segments<'_> {
    fn next_segment(&mut self) -> Option<Segment> {
        let start = self.from;
        let (at, structural) = self.next_entry()?;
        let key_end = start + key_length(&self.text[start..at]);
        let blanks = self.text[key_end..at].iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        Some(Segment { start, key_end, value: key_end + blanks.count(), at, structural })
    }

    fn next_entry(&mut self) -> Option<(usize, u8)> {
        let at = *self.index.entries().get(self.entry)? as usize;
        self.entry += 1;
        self.from = at + 1;
        Some((at, *self.text.get(at)?))
    }

    /// Goes on behind the array whose bracket was the last entry. Returns whether it holds arrays
    /// or objects.
    fn skip_array(&mut self) -> Option<bool> {
        let mut depth = 1;
        let mut has_nested = false;
        while depth > 0 {
            match self.next_entry()?.1 {
                b'[' | b'{' => {
                    depth += 1;
                    has_nested = true;
                }
                b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
        Some(has_nested)
    }
}

/// How much of the segment is a key with its colon; all of it if there is none.
fn key_length(segment: &[u8]) -> usize {
    let Some(quote) = memchr(b'"', segment) else {
        return segment.len();
    };
    let mut end = quote + 1;
    while let Some(&byte) = segment.get(end)
        && byte != b'"'
    {
        end += if byte == b'\\' { 2 } else { 1 };
    }
    let behind_key = segment.get(end..).unwrap_or_default();
    memchr(b':', behind_key).map_or(segment.len(), |colon| end + colon + 1)
}
