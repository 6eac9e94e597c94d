//! A shape: the sequence of keys that many lines share, and the check that a line has it.
//!
//! A shape has one step per entry of the index. A step knows the bytes that must lead from the
//! entry before to the value: comma, key, colon, blanks, and for values that are always strings
//! their quotes too, the closing one at the front of the next step. If those bytes stand there,
//! what is left up to the next entry must be one value.
//!
//! Why a line that fits is valid JSON: the steps cover it without gaps by learned text and by
//! values. Numbers and words are checked whole. A string is only seen to begin and to end with a
//! quote. But the line has as many unescaped quotes as its keys and strings need if each string has
//! just two, and none has fewer, so no string has more. Everything else that could be wrong inside
//! or outside strings the index lists as suspect.

use super::array::fit_array;
use super::index::Index;
use super::record::{Layout, Span};
use super::scalar::{is_usual_word, number_faults, scalar_quotes};
use super::simd::{Lanes, Task, WINDOW, window};

/// A sequence of keys, learned from a line.
pub(super) struct Shape {
    /// The span of step n is the n-th.
    pub layout: Layout,
    pub duplicate_keys: u32,
    /// One for each entry of such a line, its newline included.
    pub steps: Vec<Step>,
    /// The steps whose value has always been a number, and those whose value has been of several
    /// kinds. Checking like after like leaves the processor no branch to guess wrong; values that
    /// have always been strings are checked with the keys.
    pub numbers: Vec<u32>,
    pub others: Vec<u32>,
    /// Wanted arrays and objects: the steps at which each starts and ends.
    pub nested: Vec<(u32, u32)>,
    /// Quotes of all keys, and of the values that have always been strings.
    pub quotes: u32,
    /// Whether an array makes the number of entries vary.
    pub has_arrays: bool,
}

/// What must stand before an entry of the index. Aligned so that none lies across cache lines.
#[repr(align(64))]
pub(super) struct Step {
    /// The first of the learned bytes, and which of them count.
    head: [u8; WINDOW],
    head_mask: u32,
    /// The rest of them.
    tail: Box<[u8]>,
    /// 1 if they start before the entry before, with the closing quote of a string.
    back: u8,
    /// Where among them the value starts: at their end, or at the opening quote.
    value: u8,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string, number or word stands behind the learned bytes.
    Scalar,
    /// Nothing does.
    Bare,
    /// Nothing does, and an array of any length starts, below this many objects.
    Array { depth: u8 },
}

/// A line of an indexed text.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Its first byte.
    pub start: usize,
    /// Its first entry in the index.
    pub entry: usize,
    /// Quotes before it.
    pub quotes_before: u32,
}

/// Where a line ends.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// The entry of its newline.
    pub entry: usize,
    /// Its newline.
    pub at: usize,
    /// Quotes before that.
    pub quotes_before: u32,
    /// Whether a value is of a kind that the line's shape is not used to.
    pub unusual: bool,
}

impl Step {
    /// None if the learned bytes are too many to be worth it.
    pub fn new(learned: &[u8], back: u8, value: usize, kind: Kind) -> Option<Step> {
        let (length, tail) = match learned.split_first_chunk::<WINDOW>() {
            Some((_, tail)) => (WINDOW, tail),
            None => (learned.len(), Default::default()),
        };
        let mut head = [0; WINDOW];
        head[..length].copy_from_slice(&learned[..length]);
        let head_mask = ((1_u64 << length) - 1) as u32;
        let value = u8::try_from(value).ok()?;
        Some(Step { head, head_mask, tail: tail.into(), back, value, kind })
    }

    #[inline(always)]
    fn head_stands<L: Lanes>(&self, lanes: L, window: &[u8; WINDOW]) -> bool {
        self.head_mask & !lanes.equal(window, &self.head) == 0
    }
    #[cold]
    #[inline(never)]
    fn tail_stands(&self, text: &[u8], from: usize) -> bool {
        text[from + WINDOW..].starts_with(&self.tail)
    }
}

impl Shape {
    /// Whether the line has this shape and is valid but for suspect bytes. If so, `spans` begins
    /// with the spans of its values, one per step. `text` goes on for at least a window behind the
    /// last line.
    #[inline(always)]
    fn fit<L: Lanes>(&self, lanes: L, text: &[u8], index: &Index, line: Line, spans: &mut [Span]) -> Option<End> {
        let spans = spans.get_mut(..self.steps.len())?;
        let mut entries = index.entries().get(line.entry..)?.iter();
        if !self.has_arrays {
            let newline = *entries.as_slice().get(self.steps.len() - 1)?;
            if text.get(newline as usize) != Some(&b'\n') {
                return None;
            }
        }

        let mut from = line.start as u32;
        let mut array_quotes = 0;
        for (step, span) in self.steps.iter().zip(&mut *spans) {
            let mut at = *entries.next()?;
            let learned = from.wrapping_sub(u32::from(step.back)) as usize;
            if !step.head_stands(lanes, window(text, learned)?) {
                return None;
            }
            if !step.tail.is_empty() && !step.tail_stands(text, learned) {
                return None;
            }
            let start = learned as u32 + u32::from(step.value);
            if step.kind != Kind::Scalar {
                if start != at {
                    return None;
                }
                if let Kind::Array { depth } = step.kind {
                    let inside = entries.as_slice();
                    let array = fit_array(lanes, text, index, inside, at as usize, depth)?;
                    array_quotes += array.quotes;
                    at = array.at as u32;
                    entries = array.entries.iter();
                }
            }
            *span = Span { start, end: at };
            from = at;
        }

        let usual_quotes = self.usual_quotes(lanes, text, spans);
        let scalar_quotes = match usual_quotes {
            Some(quotes) => quotes,
            None => self.unusual_quotes(lanes, text, spans)?,
        };
        let at = from as usize;
        let quotes_before = index.quotes_before(at);
        let quotes = quotes_before - line.quotes_before;
        if text.get(at) != Some(&b'\n') || quotes != self.quotes + array_quotes + scalar_quotes {
            return None;
        }
        for &(first, last) in &self.nested {
            spans[first as usize].end = spans[last as usize].end + 1;
        }
        let entry = index.entries().len() - entries.as_slice().len() - 1;
        Some(End { entry, at, quotes_before, unusual: usual_quotes.is_none() })
    }

    /// How many quotes the numbers and others have, if each is valid and as usual. None is not
    /// sure.
    #[inline(always)]
    fn usual_quotes<L: Lanes>(&self, lanes: L, text: &[u8], spans: &mut [Span]) -> Option<u32> {
        let mut faults = 0;
        for &number in &self.numbers {
            let span = spans.get(number as usize)?;
            faults |= number_faults(lanes, window(text, span.start as usize)?, span.end.wrapping_sub(span.start));
        }
        let mut valid = faults == 0;
        let mut quotes = 0;
        for &other in &self.others {
            let span = spans.get_mut(other as usize)?;
            // Writers that put a blank behind the colon put it before some kinds of values only.
            span.start += u32::from(text.get(span.start as usize) == Some(&b' '));
            let (window, length) = (window(text, span.start as usize)?, span.end.wrapping_sub(span.start));
            let is_string = (window[0] == b'"') & (text.get((span.end as usize).wrapping_sub(1)) == Some(&b'"'));
            valid &= is_string | (number_faults(lanes, window, length) == 0) | is_usual_word(window, length);
            quotes += 2 * u32::from(is_string);
        }
        valid.then_some(quotes)
    }

    /// The same for values of any kind. None means that one is invalid.
    #[cold]
    #[inline(never)]
    fn unusual_quotes<L: Lanes>(&self, lanes: L, text: &[u8], spans: &[Span]) -> Option<u32> {
        let mut quotes = 0;
        for &scalar in self.numbers.iter().chain(&self.others) {
            let span = spans.get(scalar as usize)?;
            quotes += scalar_quotes(lanes, text, span.start as usize, span.end as usize)?;
        }
        Some(quotes)
    }
}

/// The fitting of a shape to a line, as work for the vector instructions.
pub(super) struct Fit<'a> {
    pub shape: &'a Shape,
    pub text: &'a [u8],
    pub index: &'a Index,
    pub line: Line,
    pub spans: &'a mut [Span],
}

impl Task for Fit<'_> {
    type Output = Option<End>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<End> {
        self.shape.fit(lanes, self.text, self.index, self.line, self.spans)
    }
}
