//! The check that a line has a shape, and where its values stand if so.
//!
//! The check goes over a line once for each kind of thing there is to check, keys first, rather
//! than once for everything: each loop does the same few operations all the way, and the processor
//! finds no branch in it to guess wrong. They are loops, not iterators with closures, since the
//! compiler builds closures without the vector instructions.
//!
//! Why a line that fits is valid JSON: the steps cover it without gaps by learned text and by
//! values. Numbers and words are checked whole. A string is only seen to begin and to end with a
//! quote. But the line has as many unescaped quotes as its keys and strings need if each string has
//! just two, and none has fewer, so no string has more. Everything else that could be wrong inside
//! or outside strings the index lists as suspect.

use super::array::fit_array;
use super::index::Index;
use super::record::Span;
use super::scalar::{faults_of_two, is_usual_word, number_faults, scalar_quotes};
use super::shape::{Shape, Step};
use super::simd::{Lanes, Task, WINDOW, window};

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
#[derive(Clone, Copy, Default)]
pub(super) struct End {
    /// The entry of its newline.
    pub entry: usize,
    /// Its newline.
    pub at: usize,
    /// Quotes before that.
    pub quotes_before: u32,
}

/// What is known of the line that was fitted last.
#[derive(Default)]
pub(super) struct Fitted {
    pub end: End,
    /// Whether a value is of a kind that the line's shape is not used to.
    pub is_unusual: bool,
    /// The values that could be, and their steps, if any is.
    pub unusual: Vec<(u32, Span)>,
    /// The bounds of its fields, if it has arrays.
    bounds: Vec<u32>,
}

/// The bounds of a line's fields: the entry before the line, then the entry of each step, for an
/// array that of its closing bracket.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    at: &'a [u32],
    /// How many entries they take up.
    entries: usize,
    /// Quotes in arrays.
    quotes: u32,
}

impl Shape {
    /// The bounds of the fields of the line that was fitted last, `line`.
    #[inline(always)]
    pub fn bounds<'a>(&self, index: &'a Index, line: &Line, fitted: &'a Fitted) -> &'a [u32] {
        match self.arrays.as_slice() {
            [] => index.entries().get(line.entry - 1..line.entry + self.steps.len()).unwrap_or_default(),
            _ => &fitted.bounds,
        }
    }

    /// Some if the line has this shape and is valid but for suspect bytes. `text` goes on for at least a window behind
    /// the last line.
    #[inline(always)]
    fn fit<L: Lanes>(&self, lanes: L, text: &[u8], index: &Index, line: &Line, fitted: &mut Fitted) -> Option<()> {
        let entries = index.entries().get(line.entry - 1..)?;
        let bounds = if self.arrays.is_empty() {
            let at = entries.get(..=self.steps.len())?;
            if !ends_line(text, at) {
                return None;
            }
            self.heads_stand(lanes, text, 0, at)?;
            Bounds { at, entries: at.len(), quotes: 0 }
        } else {
            self.bounds_around_arrays(lanes, text, index, entries, &mut fitted.bounds)?
        };
        self.tails_stand(text, bounds.at)?;
        self.are_empty(bounds.at)?;
        let usual_quotes = self.usual_quotes(lanes, text, bounds.at);
        let scalar_quotes = match usual_quotes {
            Some(quotes) => quotes,
            None => self.unusual_quotes(lanes, text, bounds.at, &mut fitted.unusual)?,
        };
        let at = *bounds.at.last()? as usize;
        let quotes_before = index.quotes_before(at);
        if quotes_before - line.quotes_before != self.quotes + bounds.quotes + scalar_quotes {
            return None;
        }
        fitted.end = End { entry: line.entry + bounds.entries - 2, at, quotes_before };
        fitted.is_unusual = usual_quotes.is_none();
        Some(())
    }

    /// Some if the heads of the steps from `first` on stand where they must behind the bounds.
    #[inline(always)]
    fn heads_stand<L: Lanes>(&self, lanes: L, text: &[u8], first: usize, bounds: &[u32]) -> Option<()> {
        let steps = self.steps.get(first..)?;
        let count = steps.len().min(bounds.len());
        let (steps, rest) = steps[..count].as_chunks::<4>();
        let (bounds, rest_bounds) = bounds[..count].as_chunks::<4>();
        // Several between decisions, which a line of another shape ends early.
        for (steps, bounds) in steps.iter().zip(bounds) {
            let mut differing = 0;
            for at in 0..4 {
                differing |= steps[at].difference(lanes, text, bounds[at])?;
            }
            if differing != 0 {
                return None;
            }
        }
        let mut differing = 0;
        for (step, &before) in rest.iter().zip(rest_bounds) {
            differing |= step.difference(lanes, text, before)?;
        }
        (differing == 0).then_some(())
    }

    /// Some if what is left of the learned bytes does.
    #[inline(always)]
    fn tails_stand(&self, text: &[u8], bounds: &[u32]) -> Option<()> {
        for tail in &self.tails {
            let start = bounds.get(tail.step as usize)?.wrapping_add(tail.skip) as usize;
            if !text.get(start..)?.starts_with(&tail.bytes) {
                return None;
            }
        }
        Some(())
    }

    /// Some if nothing stands where nothing must.
    #[inline(always)]
    fn are_empty(&self, bounds: &[u32]) -> Option<()> {
        for field in &self.empty {
            let span = field.span(bounds)?;
            if span.start != span.end {
                return None;
            }
        }
        Some(())
    }

    /// Checks the heads and the arrays of a line whose bounds are to be found on the way.
    #[inline(always)]
    fn bounds_around_arrays<'a, L: Lanes>(
        &self,
        lanes: L,
        text: &[u8],
        index: &Index,
        entries: &[u32],
        bounds: &'a mut Vec<u32>,
    ) -> Option<Bounds<'a>> {
        bounds.clear();
        let mut rest = entries;
        let mut checked = 0;
        let mut quotes = 0;
        for array in &self.arrays {
            let (before, behind) = rest.split_at_checked(array.field.step as usize + 1 - bounds.len())?;
            bounds.extend_from_slice(before);
            self.heads_stand(lanes, text, checked, &bounds[checked..])?;
            checked = bounds.len();
            let (&open, inside) = behind.split_first()?;
            if bounds.last()?.wrapping_add(array.field.skip) != open {
                return None;
            }
            let end = fit_array(lanes, text, index, inside, open as usize, array.depth)?;
            bounds.push(end.at as u32);
            quotes += end.quotes;
            rest = end.entries;
        }
        let (before, behind) = rest.split_at_checked(self.steps.len() + 1 - bounds.len())?;
        bounds.extend_from_slice(before);
        self.heads_stand(lanes, text, checked, &bounds[checked..])?;
        ends_line(text, bounds).then_some(Bounds { at: bounds, entries: entries.len() - behind.len(), quotes })
    }

    /// How many quotes the values have that are not always strings, if each is valid and as usual.
    /// None is not sure.
    #[inline(always)]
    fn usual_quotes<L: Lanes>(&self, lanes: L, text: &[u8], bounds: &[u32]) -> Option<u32> {
        let mut faults = 0;
        let (pairs, rest) = self.numbers.as_chunks::<2>();
        for [first, second] in pairs {
            let (first, second) = (first.span(bounds)?, second.span(bounds)?);
            let windows = [window(text, first.start as usize)?, window(text, second.start as usize)?];
            let lengths = [first.length(), second.length()];
            if faults_of_two(lanes, windows, lengths) != 0 {
                faults |= number_faults(lanes, windows[0], lengths[0]) | number_faults(lanes, windows[1], lengths[1]);
            }
        }
        for number in rest {
            let span = number.span(bounds)?;
            faults |= number_faults(lanes, window(text, span.start as usize)?, span.length());
        }
        let mut valid = faults == 0;
        for &word in &self.words {
            let span = word.span(bounds)?;
            valid &= is_usual_word(window(text, span.start as usize)?, span.length());
        }
        let mut strings = 0;
        for &value in &self.texts {
            let span = value.span(bounds)?;
            let window = window(text, span.start as usize)?;
            let is_string = is_string(text, window, span);
            valid &= is_string | is_usual_word(window, span.length());
            strings += u32::from(is_string);
        }
        for &value in &self.mixed {
            let span = value.span(bounds)?.without_blank(text);
            let window = window(text, span.start as usize)?;
            let is_string = is_string(text, window, span);
            let is_number = number_faults(lanes, window, span.length()) == 0;
            valid &= is_string | is_number | is_usual_word(window, span.length());
            strings += u32::from(is_string);
        }
        valid.then_some(2 * strings)
    }

    /// The same for values of any kind. None means that one is invalid.
    #[cold]
    #[inline(never)]
    fn unusual_quotes<L: Lanes>(
        &self,
        lanes: L,
        text: &[u8],
        bounds: &[u32],
        unusual: &mut Vec<(u32, Span)>,
    ) -> Option<u32> {
        unusual.clear();
        let mut quotes = 0;
        for field in self.numbers.iter().chain(&self.words).chain(&self.texts) {
            let span = field.span(bounds)?;
            unusual.push((field.step, span));
            quotes += scalar_quotes(lanes, text, span.start as usize, span.end as usize)?;
        }
        for value in &self.mixed {
            let span = value.span(bounds)?.without_blank(text);
            quotes += scalar_quotes(lanes, text, span.start as usize, span.end as usize)?;
        }
        Some(quotes)
    }
}

impl Step {
    /// Zero if its head stands where it must behind the entry before.
    #[inline(always)]
    fn difference<L: Lanes>(&self, lanes: L, text: &[u8], before: u32) -> Option<u32> {
        let window = window(text, before.wrapping_add(self.skip) as usize)?;
        Some(self.mask & !lanes.equal(window, &self.head))
    }
}

#[inline(always)]
fn ends_line(text: &[u8], bounds: &[u32]) -> bool {
    bounds.last().and_then(|&newline| text.get(newline as usize)) == Some(&b'\n')
}

/// Whether what stands in the span, the window being its first bytes, begins and ends with a quote.
#[inline(always)]
fn is_string(text: &[u8], window: &[u8; WINDOW], span: Span) -> bool {
    (window[0] == b'"') & (text.get((span.end as usize).wrapping_sub(1)) == Some(&b'"'))
}

/// The fitting of a shape to a line, as work for the vector instructions.
pub(super) struct Fit<'a> {
    pub shape: &'a Shape,
    pub text: &'a [u8],
    pub index: &'a Index,
    /// By reference, as what is found is handed back in `fitted`: the processor would have to wait for copies of them.
    pub line: &'a Line,
    pub fitted: &'a mut Fitted,
}

impl Task for Fit<'_> {
    /// Whether it fits.
    type Output = bool;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> bool {
        self.shape.fit(lanes, self.text, self.index, self.line, self.fitted).is_some()
    }
}
