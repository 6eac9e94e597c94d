//! Learning a shape from a line that the general parser has accepted, and more about it from every
//! further line.

use memchr::memchr;

use super::index::Index;
use super::record::{Layout, Record, Span};
use super::shape::{Kind, Line, Shape, Step};

/// What has been learned about lines with the same keys.
pub(super) struct Lesson {
    parts: Vec<Part>,
    /// The steps at which each wanted object and array starts and ends.
    nested: Vec<(u32, u32)>,
    has_arrays: bool,
    /// The wanted values by step.
    layout: Layout,
    duplicate_keys: u32,
}

/// What has been learned about one entry of the index and the bytes before it.
struct Part {
    /// Key and colon, or blanks.
    key: Box<[u8]>,
    blanks: Box<[u8]>,
    kind: Kind,
    value: Usual,
    /// The entry's byte; for an array the one that ends it.
    structural: u8,
}

/// What a value has been so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usual {
    Number,
    String,
    /// Several kinds, a word, or no value at all.
    Other,
}

impl Usual {
    fn of(value: &[u8]) -> Usual {
        match value.first() {
            Some(b'"') => Usual::String,
            Some(b'-' | b'0'..=b'9') => Usual::Number,
            _ => Usual::Other,
        }
    }
}

impl Lesson {
    /// Looks at a valid line. None if it has something that shapes cannot express: keys that repeat
    /// inside an array.
    pub fn new(text: &[u8], index: &Index, line: Line, record: &Record<'_>) -> Option<Lesson> {
        let mut segments = Segments { text, index, entry: line.entry, from: line.start };
        let mut lesson = Lesson {
            parts: Vec::new(),
            nested: Vec::new(),
            has_arrays: false,
            layout: record.layout.clone(),
            duplicate_keys: record.duplicate_keys(),
        };
        // The steps at which the objects that are open started.
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
                    lesson.has_arrays = true;
                    lesson.nested.push((step, step));
                    Kind::Array { depth: u8::try_from(objects.len()).ok()? }
                }
                b'{' => {
                    objects.push(step);
                    Kind::Bare
                }
                _ if segment.value == segment.at => Kind::Bare,
                _ => Kind::Scalar,
            };
            if structural == b'}' {
                lesson.nested.push((objects.pop()?, step));
            }
            for &slot in record.present() {
                let span = record.spans[record.layout.places[slot as usize] as usize];
                if line.start + span.start as usize == segment.value {
                    lesson.layout.places[slot as usize] = step;
                }
            }
            lesson.parts.push(Part {
                key: text[segment.start..segment.key_end].into(),
                blanks: text[segment.key_end..segment.value].into(),
                kind,
                value: Usual::of(&text[segment.value..segment.at]),
                structural,
            });
        }
        lesson.nested.retain(|(first, _)| lesson.layout.places.contains(first));
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
            if part.value != Usual::Other && (part.value != other.value || part.blanks != other.blanks) {
                part.value = Usual::Other;
                is_new = true;
            }
        }
        Some(is_new)
    }

    /// Learns that some numbers need not be numbers, from a line of this shape. Returns whether
    /// there were any.
    pub fn broaden(&mut self, text: &[u8], spans: &[Span]) -> bool {
        let mut is_new = false;
        for (part, span) in self.parts.iter_mut().zip(spans) {
            if part.value == Usual::Number && Usual::of(span.of(text)) != Usual::Number {
                part.value = Usual::Other;
                is_new = true;
            }
        }
        is_new
    }

    /// The shape of such lines. None if a key is too long to be worth it.
    pub fn shape(&self) -> Option<Shape> {
        let mut shape = Shape {
            steps: Vec::with_capacity(self.parts.len()),
            numbers: Vec::new(),
            others: Vec::new(),
            nested: self.nested.clone(),
            quotes: 0,
            has_arrays: self.has_arrays,
            layout: self.layout.clone(),
            duplicate_keys: self.duplicate_keys,
        };
        // What the entry before leaves to this step: its own byte, and the closing quote of a
        // string before that.
        let mut learned = Vec::new();
        let mut back = 0;
        for (part, number) in self.parts.iter().zip(0..) {
            learned.extend_from_slice(&part.key);
            if part.kind != Kind::Scalar || part.value != Usual::Other {
                learned.extend_from_slice(&part.blanks);
            }
            let value = learned.len();
            let is_string = part.kind == Kind::Scalar && part.value == Usual::String;
            learned.extend_from_slice(if is_string { b"\"" } else { b"" });
            match part.value {
                _ if part.kind != Kind::Scalar => {}
                Usual::Number => shape.numbers.push(number),
                Usual::Other => shape.others.push(number),
                Usual::String => shape.quotes += 2,
            }
            shape.quotes += if part.key.contains(&b'"') { 2 } else { 0 };
            shape.steps.push(Step::new(&learned, back, value, part.kind)?);
            back = u8::from(is_string);
            learned.clear();
            learned.extend_from_slice(if is_string { b"\"" } else { b"" });
            learned.push(part.structural);
        }
        Some(shape)
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
