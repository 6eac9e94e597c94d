//! The check that lines have a shape, and where their values end if so.
//!
//! A line is followed from step to step: the text that the shape says must stand here, then a value, whose end is where
//! the next step starts. Each step waits for the one before it, and while it waits the processor has nothing to do. So
//! several lines of one shape are followed side by side. This is done in loops, not in closures, which the compiler builds
//! without the vector instructions.
//!
//! Why a line that fits is valid JSON: it is the text of a valid line with other values in place of its own, each checked
//! whole by its grammar, up to the very end of the line. What is not checked here the index lists as suspect.

use super::extent::{ArrayEnd, ScalarEnd, StringEnd, usual_number_end, usual_word_end};
use super::quoted::QuotedEnd;
use super::shape::{Expected, Shape, Step};
use super::simd::{Lanes, Task, Text};

/// A line of a text.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Its first byte.
    pub start: u32,
    /// Its newline, LF or CRLF.
    pub end: u32,
}

/// The fitting of a shape to some lines, as work for the vector instructions. A window follows each of the lines.
pub(super) struct Fit<'a, const LINES: usize> {
    pub shape: &'a Shape,
    pub text: Text<'a>,
    pub lines: &'a [Line; LINES],
    /// Filled with the bounds of the lines, which take turns: one more for each line than there are steps.
    pub bounds: &'a mut [u32],
}

/// What was found, a bit for each line.
#[derive(Clone, Copy, Default)]
pub(super) struct Fitting {
    /// Which lines have the shape and are valid but for suspect bytes.
    pub fits: u32,
    /// Which of them may hold escapes.
    pub escaped: u32,
    /// Which of them have a value of a kind that the shape is not used to.
    pub unusual: u32,
}

/// Does something for each line, of which there are one to four. Written out, since the compiler does not write out long
/// loops, and what a loop counts through it keeps in memory.
macro_rules! each_line {
    ($line:ident => $body:block) => {
        each_line!(0, $line => $body);
        each_line!(1, $line => $body);
        each_line!(2, $line => $body);
        each_line!(3, $line => $body);
    };
    ($number:literal, $line:ident => $body:block) => {
        if $number < LINES {
            let $line = $number;
            $body
        }
    };
}

impl<const LINES: usize> Task for Fit<'_, LINES> {
    type Output = Fitting;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Fitting {
        let Fit { shape, text, lines, bounds } = self;
        if bounds.len() != (shape.steps.len() + 1) * LINES {
            return Fitting::default();
        }
        let (bounds, _) = bounds.as_chunks_mut::<LINES>();
        let mut walk = Walk { text, at: lines.map(|line| line.start), escaped: 0, unusual: 0 };
        bounds[0] = walk.at;
        for (number, (step, bounds)) in shape.steps.iter().zip(&mut bounds[1..]).enumerate() {
            walk.pass_text(lanes, step);
            if (LINES == 1 || number % 4 == 3) && walk.is_lost() {
                break;
            }
            match step.value {
                Expected::String => walk.pass_strings(lanes),
                Expected::Number => walk.pass_numbers(lanes),
                Expected::Word => walk.pass_words(lanes),
                Expected::Text => walk.pass_texts(lanes),
                Expected::QuotedString => walk.pass_quoted_strings(lanes),
                Expected::QuotedText => walk.pass_quoted_texts(lanes),
                Expected::Any | Expected::QuotedAny | Expected::Array { .. } => {
                    walk = lanes.run(Others { walk, lines, expected: step.value });
                }
                Expected::End => {}
            }
            each_line!(line => {
                bounds[line] = walk.at[line];
            });
        }
        let mut fits = 0;
        each_line!(line => {
            fits |= u32::from(walk.at[line] == lines[line].end) << line;
        });
        Fitting { fits, escaped: walk.escaped, unusual: walk.unusual }
    }
}

/// Some lines on their way from step to step. No reference to it is handed out, so that it stays in registers.
#[derive(Clone, Copy)]
struct Walk<'a, const LINES: usize> {
    text: Text<'a>,
    /// Where each of them is. A line that has something else than the shape is nowhere from then on.
    at: [u32; LINES],
    escaped: u32,
    unusual: u32,
}

impl<const LINES: usize> Walk<'_, LINES> {
    #[inline(always)]
    fn pass_text<L: Lanes>(&mut self, lanes: L, step: &Step) {
        let nowhere = self.text.nowhere();
        each_line!(line => {
            let at = self.at[line];
            let mut differing = step.mask & !lanes.equal(self.text.window(at), &step.head);
            for part in &step.tail {
                differing |= !lanes.equal(self.text.window(at + part.offset), &part.bytes);
            }
            self.at[line] = if differing == 0 { at + step.length } else { nowhere };
        });
    }

    /// Whether no line has the shape.
    #[inline(always)]
    fn is_lost(&self) -> bool {
        let mut is_lost = true;
        each_line!(line => {
            is_lost &= self.at[line] >= self.text.nowhere();
        });
        is_lost
    }

    #[inline(always)]
    fn pass_strings<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            self.at[line] = self.string_end(lanes, line, self.at[line]);
        });
    }

    #[inline(always)]
    fn pass_numbers<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            self.at[line] = match usual_number_end(lanes, self.text, self.at[line]) {
                Some(end) => end,
                None => self.unusual_end(lanes, line, Expected::Number),
            };
        });
    }

    #[inline(always)]
    fn pass_words<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            self.at[line] = self.word_end(lanes, line);
        });
    }

    #[inline(always)]
    fn pass_texts<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            let at = self.at[line];
            self.at[line] = match self.text.byte(at) {
                b'"' => self.string_end(lanes, line, at + 1) + 1,
                _ => self.word_end(lanes, line),
            };
        });
    }

    #[inline(always)]
    fn pass_quoted_strings<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            self.at[line] = self.quoted_end(lanes, line, self.at[line]);
        });
    }

    #[inline(always)]
    fn pass_quoted_texts<L: Lanes>(&mut self, lanes: L) {
        each_line!(line => {
            let at = self.at[line];
            self.at[line] = match self.text.byte(at) {
                b'\\' if self.text.byte(at + 1) == b'"' => self.quoted_end(lanes, line, at + 2) + 2,
                _ => self.word_end(lanes, line),
            };
        });
    }

    /// The backslash before the closing quote of the quoted string whose content starts at `at`.
    #[inline(always)]
    fn quoted_end<L: Lanes>(&mut self, lanes: L, line: usize, at: u32) -> u32 {
        let (quotes, backslashes) = lanes.quotes_and_backslashes(self.text.window(at));
        let stops = quotes | backslashes;
        if stops & stops.wrapping_neg() & backslashes & quotes >> 1 != 0 {
            return at + stops.trailing_zeros();
        }
        self.escaped |= 1 << line;
        lanes.run(QuotedEnd { text: self.text, at }).unwrap_or(self.text.nowhere())
    }

    /// The closing quote of the string whose content starts at `at`.
    #[inline(always)]
    fn string_end<L: Lanes>(&mut self, lanes: L, line: usize, at: u32) -> u32 {
        let end = at + lanes.string_stops(self.text.window(at)).trailing_zeros();
        if self.text.byte(end) == b'"' {
            return end;
        }
        self.escaped |= 1 << line;
        lanes.run(StringEnd { text: self.text, at }).unwrap_or(self.text.nowhere())
    }

    #[inline(always)]
    fn word_end<L: Lanes>(&mut self, lanes: L, line: usize) -> u32 {
        match usual_word_end(self.text, self.at[line]) {
            Some(end) => end,
            None => self.unusual_end(lanes, line, Expected::Word),
        }
    }

    /// The end of a value that is not as usual.
    #[inline(always)]
    fn unusual_end<L: Lanes>(&mut self, lanes: L, line: usize, expected: Expected) -> u32 {
        let (text, at) = (self.text, self.at[line]);
        self.escaped |= 1 << line;
        self.unusual |= u32::from(is_other(text, at, expected)) << line;
        lanes.run(ScalarEnd { text, at }).unwrap_or(text.nowhere())
    }
}

/// Whether a value is of another kind than expected.
#[cold]
#[inline(never)]
fn is_other(text: Text<'_>, at: u32, expected: Expected) -> bool {
    let usual: &[u8] = if expected == Expected::Number { b"-0123456789" } else { b"NI" };
    text.bytes().get(at as usize).is_some_and(|first| !usual.contains(first))
}

/// The passing of values that may be of any kind, or arrays.
struct Others<'a, const LINES: usize> {
    walk: Walk<'a, LINES>,
    lines: &'a [Line; LINES],
    expected: Expected,
}

impl<'a, const LINES: usize> Task for Others<'a, LINES> {
    type Output = Walk<'a, LINES>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Walk<'a, LINES> {
        let Others { mut walk, lines, expected } = self;
        let text = walk.text;
        for (line, &Line { end: line_end, .. }) in lines.iter().enumerate() {
            let at = walk.at[line];
            let end = match expected {
                Expected::Array { depth } => ArrayEnd { text, at, depth, line_end }.run(lanes),
                _ => {
                    walk.escaped |= 1 << line;
                    let at = at + u32::from(text.byte(at) == b' ');
                    let is_quoted = expected == Expected::QuotedAny
                        && text.bytes()[at.min(text.nowhere()) as usize..].starts_with(br#"\""#);
                    match is_quoted {
                        true => QuotedEnd { text, at: at + 2 }.run(lanes).map(|end| end + 2),
                        false => ScalarEnd { text, at }.run(lanes),
                    }
                }
            };
            walk.at[line] = end.unwrap_or(text.nowhere());
        }
        walk
    }
}
