//! Learning a shape from a line that the general parser has accepted.

use memchr::memchr;

use super::index::Index;
use super::record::{Layout, Record};
use super::shape::{Kind, Line, Shape, Step};

/// The shape of a valid line, or None if it has something that shapes cannot express: a key of hundreds of bytes, or keys that repeat
/// inside an array.
pub(super) fn learn(text: &[u8], index: &Index, line: Line, record: &Record<'_>) -> Option<Shape> {
    let mut lesson = Lesson { text, index, entry: line.entry, from: line.start, objects: Vec::new() };
    let values = Values::new(line.start, record);
    let mut steps = Vec::new();
    let mut key_quotes = 0;
    let mut has_arrays = false;
    while let Some(segment) = lesson.next_segment() {
        let place = values.place(segment.value);
        let kind = match segment.structural {
            b'[' => {
                has_arrays = true;
                let has_nested = lesson.skip_array();
                if has_nested && record.duplicate_keys() > 0 {
                    return None;
                }
                Kind::Array { depth: u8::try_from(lesson.objects.len()).ok()? }
            }
            b'{' => {
                lesson.objects.push(place);
                Kind::Bare
            }
            _ if segment.value == segment.at => Kind::Bare,
            _ => Kind::Scalar,
        };
        let closes = match segment.structural {
            b'}' => lesson.objects.pop()?,
            _ => Layout::ABSENT,
        };
        key_quotes += index.quotes_before(segment.learned_end) - index.quotes_before(segment.start);
        let learned = &text[segment.start..segment.learned_end];
        steps.push(Step::new(learned, segment.structural, kind, place, closes)?);
    }
    let entries = (!has_arrays).then_some(steps.len());
    Some(Shape::new(steps, entries, key_quotes, values.layout, record.duplicate_keys()))
}

/// A valid line on its way from entry to entry.
struct Lesson<'a> {
    text: &'a [u8],
    index: &'a Index,
    /// The next entry, and the byte behind the last.
    entry: usize,
    from: usize,
    /// The places of the objects that are open.
    objects: Vec<u32>,
}

/// What stands between two entries, and the second of them.
struct Segment {
    start: usize,
    /// Behind the colon; at the entry if there is no key.
    learned_end: usize,
    /// Where a value would start.
    value: usize,
    at: usize,
    structural: u8,
}

impl Lesson<'_> {
    /// None at the end of the line.
    fn next_segment(&mut self) -> Option<Segment> {
        let start = self.from;
        let (at, structural) = self.next_entry()?;
        let learned_end = start + key_length(&self.text[start..at]);
        let value = learned_end + usize::from(self.text[learned_end] == b' ');
        Some(Segment { start, learned_end, value, at, structural })
    }

    fn next_entry(&mut self) -> Option<(usize, u8)> {
        let at = *self.index.entries().get(self.entry)? as usize;
        let structural = *self.text.get(at).filter(|&&byte| byte != b'\n')?;
        self.entry += 1;
        self.from = at + 1;
        Some((at, structural))
    }

    /// Goes on behind the array whose bracket was the last entry. Returns whether it holds arrays or objects.
    fn skip_array(&mut self) -> bool {
        let mut depth = 1;
        let mut has_nested = false;
        while depth > 0
            && let Some((_, structural)) = self.next_entry()
        {
            match structural {
                b'[' | b'{' => {
                    depth += 1;
                    has_nested = true;
                }
                b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
        has_nested
    }
}

/// How much of the segment is a key with its colon; all of it if there is none.
fn key_length(segment: &[u8]) -> usize {
    let Some(quote) = memchr(b'"', segment) else { return segment.len() };
    let mut end = quote + 1;
    while let Some(&byte) = segment.get(end)
        && byte != b'"'
    {
        end += if byte == b'\\' { 2 } else { 1 };
    }
    let behind_key = segment.get(end..).unwrap_or_default();
    memchr(b':', behind_key).map_or(segment.len(), |colon| end + colon + 1)
}

/// The wanted values of the line, by where they start.
struct Values {
    layout: Layout,
    starts: Vec<(usize, u32)>,
}

impl Values {
    fn new(line_start: usize, record: &Record<'_>) -> Values {
        let present = record.layout.present.clone();
        let mut places = vec![Layout::ABSENT; record.layout.places.len()];
        let mut starts = Vec::with_capacity(present.len());
        for (&slot, place) in present.iter().zip(Layout::ABSENT + 1..) {
            let span = record.spans[record.layout.places[slot as usize] as usize];
            places[slot as usize] = place;
            starts.push((line_start + span.start as usize, place));
        }
        Values { layout: Layout { places, present }, starts }
    }

    /// The place of the value that starts there, if it is wanted.
    fn place(&self, start: usize) -> u32 {
        self.starts.iter().find(|(value, _)| *value == start).map_or(Layout::ABSENT, |&(_, place)| place)
    }
}
