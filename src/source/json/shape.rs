//! A shape: the sequence of keys that many lines share, and the check that a line has it.
//!
//! A shape knows, for each entry of the index, the bytes from the entry before it up to the value: key, colon, blanks. If those bytes and
//! the structural byte are as learned, what is left of the segment must be one value.
//!
//! Why a line that fits is valid JSON: the entries cut it into segments without gaps, each is the learned text plus a number or word that
//! is checked whole, or plus a string. A string is only seen to begin and to end with a quote. But the line has as many unescaped quotes as
//! its keys and strings need if each string has just two, and none has fewer, so no string has more. Everything else that could be wrong
//! inside or outside strings the index lists as suspect.

use super::index::Index;
use super::parse::nested_end;
use super::record::{Layout, Span};
use super::scalar::scalar_length;
use super::simd::{Lanes, WINDOW};

/// A sequence of keys, learned from a line.
pub(super) struct Shape {
    pub layout: Layout,
    pub duplicate_keys: u32,
    steps: Vec<Step>,
    /// Quotes of all keys.
    key_quotes: u32,
    /// How many entries such a line has, its newline not counted, if all have the same number.
    entries: Option<usize>,
}

/// What must stand between two entries of the index, and the second of them.
pub(super) struct Step {
    /// The first bytes of the learned text up to and including the colon, and which of them count.
    head: [u8; WINDOW],
    head_mask: u32,
    /// The rest of it.
    tail: Box<[u8]>,
    /// Place of the value's span.
    place: u32,
    /// Place of the span of the object that ends here.
    closes: u32,
    learned: u8,
    structural: u8,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string, number or word stands behind the learned text.
    Scalar,
    /// Nothing does.
    Bare,
    /// Nothing does, and an array of any length starts, below this many objects.
    Array { depth: u8 },
}

/// A line of an indexed text, and how far the decoder is.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Its first byte.
    pub start: usize,
    /// Its first entry in the index.
    pub entry: usize,
    /// Quotes before it.
    pub quotes_before: u32,
}

/// Where a line that fits ends.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// The entry of its newline.
    pub entry: usize,
    /// The newline, or the end of the text.
    pub at: usize,
    /// Quotes before that.
    pub quotes_before: u32,
}

impl Shape {
    pub fn new(
        steps: Vec<Step>,
        entries: Option<usize>,
        key_quotes: u32,
        layout: Layout,
        duplicate_keys: u32,
    ) -> Shape {
        Shape { layout, duplicate_keys, steps, key_quotes, entries }
    }

    /// How many places `fit` needs in its list of spans.
    pub fn places(&self) -> usize {
        self.layout.present.len() + 1
    }

    /// Whether the line has this shape and is valid but for suspect bytes. If so, `spans` holds its values by the places of the layout.
    #[inline(always)]
    pub fn fit<L: Lanes>(&self, lanes: L, text: &[u8], index: &Index, line: Line, spans: &mut [Span]) -> Option<End> {
        let entries = index.entries();
        if let Some(count) = self.entries {
            let at = *entries.get(line.entry + count)? as usize;
            if text.get(at).is_some_and(|&byte| byte != b'\n') {
                return None;
            }
        }
        let mut entry = line.entry;
        let mut from = line.start;
        let mut value_quotes = 0;
        for step in &self.steps {
            let mut at = *entries.get(entry)? as usize;
            entry += 1;
            let window = window(text, from);
            if step.head_mask & !lanes.equal(&window, &step.head) != 0
                || (step.learned as usize > WINDOW && !step.tail_stands(text, from))
                || text.get(at) != Some(&step.structural)
            {
                return None;
            }
            let mut start = from + step.learned as usize;
            // Writers that put a blank behind the colon put it before some kinds of values only.
            start += usize::from(text.get(start) == Some(&b' '));
            match step.kind {
                Kind::Scalar => value_quotes += scalar_quotes(lanes, text, start, at)?,
                _ if start != at => return None,
                Kind::Bare => {}
                Kind::Array { depth } => {
                    let array = fit_array(lanes, text, index, entry, at, depth)?;
                    value_quotes += array.quotes;
                    (entry, at) = (array.entry, array.at);
                }
            }
            from = at + 1;
            spans[step.place as usize] = Span::new(start, if step.kind == Kind::Scalar { at } else { from });
            if step.closes != Layout::ABSENT {
                spans[step.closes as usize].end = from as u32;
            }
        }
        let at = *entries.get(entry)? as usize;
        let quotes_before = index.quotes_before(at);
        let ends = text.get(at).is_none_or(|&byte| byte == b'\n')
            && text[from..at].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
            && quotes_before - line.quotes_before == self.key_quotes + value_quotes;
        ends.then_some(End { entry, at, quotes_before })
    }
}

impl Step {
    /// None if the learned text is too long to be worth it.
    pub fn new(learned: &[u8], structural: u8, kind: Kind, place: u32, closes: u32) -> Option<Step> {
        let length = learned.len().min(WINDOW);
        let mut head = [0; WINDOW];
        head[..length].copy_from_slice(&learned[..length]);
        Some(Step {
            head,
            head_mask: u32::MAX.checked_shr((WINDOW - length) as u32).unwrap_or(0),
            tail: learned[length..].into(),
            place,
            closes,
            learned: u8::try_from(learned.len()).ok()?,
            structural,
            kind,
        })
    }

    #[cold]
    fn tail_stands(&self, text: &[u8], from: usize) -> bool {
        text.get(from + WINDOW..from + self.learned as usize) == Some(&*self.tail)
    }
}

/// Quotes that the string, number or word from `start` to `end` adds to its line; None if it is none.
#[inline(always)]
fn scalar_quotes<L: Lanes>(lanes: L, text: &[u8], start: usize, end: usize) -> Option<u32> {
    if text.get(start) == Some(&b'"') {
        // A single quote cannot be both, since the entry at `end` is outside strings.
        return (text.get(end - 1) == Some(&b'"')).then_some(2);
    }
    if is_plain_number(lanes, &window(text, start), end - start) {
        return Some(0);
    }
    let scalar = text.get(start..end)?;
    (scalar_length(scalar) == Ok(scalar.len())).then_some(0)
}

/// Whether the first bytes of the window are a number without exponent. False is not sure.
#[inline(always)]
fn is_plain_number<L: Lanes>(lanes: L, window: &[u8; WINDOW], length: usize) -> bool {
    if length == 0 || length > WINDOW {
        return false;
    }
    let (digits, stops) = lanes.digits_and_stops(window);
    let number = u32::MAX >> (WINDOW - length);
    let sign = u32::from(window[0] == b'-');
    let (digits, stops, number) = ((digits & number) >> sign, (stops & number) >> sign, number >> sign);
    let last = number ^ (number >> 1);
    let leading_zero = window[sign as usize] == b'0' && number > 1 && stops & 2 == 0;
    digits | stops == number
        && stops & stops.wrapping_sub(1) == 0
        && stops & (1 | last) == 0
        && !leading_zero
        && number != 0
}

/// Where an array ends.
struct ArrayEnd {
    /// The entry behind its bracket.
    entry: usize,
    /// Its closing bracket.
    at: usize,
    /// Quotes inside.
    quotes: u32,
}

/// Checks the array whose opening bracket is at `open` and whose first entry is `entry`, `depth` objects deep.
#[inline(always)]
fn fit_array<L: Lanes>(
    lanes: L,
    text: &[u8],
    index: &Index,
    mut entry: usize,
    open: usize,
    depth: u8,
) -> Option<ArrayEnd> {
    let first = entry;
    let mut from = open + 1;
    let mut quotes = 0;
    loop {
        let at = *index.entries().get(entry)? as usize;
        entry += 1;
        let structural @ (b',' | b']') = *text.get(at)? else {
            return fit_nested_array(text, index, first, open, depth);
        };
        let start = from + usize::from(text.get(from) == Some(&b' '));
        let is_empty = start == at && structural == b']' && from == open + 1;
        if !is_empty {
            quotes += scalar_quotes(lanes, text, start, at)?;
        }
        if structural == b']' {
            return Some(ArrayEnd { entry, at, quotes });
        }
        from = at + 1;
    }
}

/// The same for an array that holds arrays or objects.
fn fit_nested_array(text: &[u8], index: &Index, first: usize, open: usize, depth: u8) -> Option<ArrayEnd> {
    let at = nested_end(text, open, u32::from(depth))? - 1;
    let inside = index.entries().get(first..)?.iter().take_while(|&&entry| (entry as usize) < at);
    let mut entry = first;
    for &inner in inside {
        // To the general parser a newline is a blank, but here it ends the line.
        if text.get(inner as usize) == Some(&b'\n') {
            return None;
        }
        entry += 1;
    }
    Some(ArrayEnd { entry: entry + 1, at, quotes: index.quotes_before(at) - index.quotes_before(open) })
}

/// The bytes from `from` on, zeros behind the end.
#[inline(always)]
fn window(text: &[u8], from: usize) -> [u8; WINDOW] {
    match text.get(from..).and_then(<[u8]>::first_chunk) {
        Some(window) => *window,
        None => last_window(text, from),
    }
}

#[cold]
fn last_window(text: &[u8], from: usize) -> [u8; WINDOW] {
    let mut window = [0; WINDOW];
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.len().min(WINDOW);
    window[..length].copy_from_slice(&rest[..length]);
    window
}
