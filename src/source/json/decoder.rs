//! Lines in, records out: each line by a shape if one fits, else by the general parser.

use std::mem;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::fit::{Fit, Line};
use super::index::{Index, Reading};
use super::lesson::Lesson;
use super::quoted::{Apart, one_line};
use super::record::{Places, Record, Span};
use super::repertoire::{Repertoire, SIDE_BY_SIDE};
use super::selection::RecordParser;
use super::shape::Bounds;
use super::simd::{Instructions, Lanes, Task, Text, WINDOW};
use super::unescape::unescape;
use super::wanted::Wanted;
use crate::source::value::Reject;

/// Lines are taken in portions of about this many bytes, so that text and index stay in the
/// processor's own caches.
const PORTION: usize = 64 << 10;

/// Bytes behind lines that are decoded where they stand.
pub const ROOM: usize = WINDOW;

/// What becomes of the lines of a block.
pub trait Sink {
    fn record(&mut self, record: &Record<'_>);

    /// `line` stands at `offset` in the block, and is without its newline, LF or CRLF.
    fn reject(&mut self, offset: usize, line: &[u8], why: Reject);
}

/// What the lines of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    Plain,
    /// The insides of valid JSON strings, which hold other lines.
    Quoted,
}

/// Decodes lines, one block after the other, and learns their shapes on the way. One per thread.
pub struct LineDecoder {
    instructions: Instructions,
    index: Index,
    repertoire: Repertoire,
    /// The lines of a portion, and the bounds of those that are fitted.
    lines: Vec<FittedLine>,
    bounds: Vec<u32>,
    /// How many bounds are in use; the rest is room.
    bound_count: usize,
    parser: RecordParser,
    /// A copy of the last lines of a block, with room behind them.
    padded: Vec<u8>,
    writing: Writing,
    apart: Apart,
    /// A quoted line with its escapes resolved.
    unquoted: Vec<u8>,
    /// Lines that went through the general parser.
    parsed: usize,
}

/// A line and the shape it has, if one was found.
#[derive(Clone, Copy)]
struct FittedLine {
    line: Line,
    fitted: Option<Fitted>,
    /// The edition of a shape that it does not have; 0 is none.
    misfit: u32,
}

/// How a line fits.
#[derive(Clone, Copy)]
struct Fitted {
    /// The shape, by its position in the repertoire and the edition that was there.
    position: u32,
    edition: u32,
    /// Where in the decoder's bounds those of the line begin, and how many lines take turns there.
    bounds: u32,
    lines: u32,
    may_hold_escapes: bool,
    is_unusual: bool,
}

impl LineDecoder {
    pub fn new(wanted: Arc<Wanted>, writing: Writing) -> LineDecoder {
        LineDecoder::with_instructions(wanted, writing, Instructions::detect())
    }

    pub(super) fn with_instructions(wanted: Arc<Wanted>, writing: Writing, instructions: Instructions) -> LineDecoder {
        LineDecoder {
            instructions,
            index: Index::default(),
            repertoire: Repertoire::default(),
            lines: Vec::new(),
            bounds: Vec::new(),
            bound_count: 0,
            parser: RecordParser::new(wanted),
            padded: Vec::new(),
            writing,
            apart: Apart::default(),
            unquoted: Vec::new(),
            parsed: 0,
        }
    }

    /// How many lines have gone through the general parser since this was last asked.
    pub fn take_parsed(&mut self) -> usize {
        mem::take(&mut self.parsed)
    }

    /// Hands each line of the block that is not blank to the sink, in order. The block is whole
    /// lines; the last may lack its newline.
    pub fn decode<S: Sink>(&mut self, block: &[u8], sink: &mut S) {
        let mut offset = 0;
        let roomy = block.len().saturating_sub(WINDOW);
        let last_lines = memrchr(b'\n', &block[..roomy]).map_or(0, |newline| newline + 1);
        while offset < last_lines {
            let length = portion_length(&block[offset..last_lines]);
            self.decode_lines(&block[offset..], length, offset, sink);
            offset += length;
        }
        let mut padded = mem::take(&mut self.padded);
        padded.clear();
        padded.extend_from_slice(&block[last_lines..]);
        if padded.last().is_some_and(|&byte| byte != b'\n') {
            padded.push(b'\n');
        }
        let length = padded.len();
        padded.extend_from_slice(&[0; WINDOW]);
        self.decode_lines(&padded, length, last_lines, sink);
        self.padded = padded;
    }

    /// The same for lines whose newlines are known, and which are valid text without control characters; [`ROOM`] more
    /// bytes stand behind them.
    pub fn decode_known<S: Sink>(&mut self, text: &[u8], newlines: impl Iterator<Item = u32>, sink: &mut S) {
        self.index.take(newlines);
        match Text::new(text) {
            Some(text) => self.instructions.run(Lines { decoder: self, text, unread: None, offset: 0, sink }),
            None => sink.reject(0, text, Reject::TooLong),
        }
    }

    /// Decodes the first `length` bytes of `text`, which stands at `offset` in the block and goes
    /// on for at least a window.
    fn decode_lines<S: Sink>(&mut self, text: &[u8], length: usize, offset: usize, sink: &mut S) {
        match Text::new(text) {
            Some(text) => self.instructions.run(Lines { decoder: self, text, unread: Some(length), offset, sink }),
            None => sink.reject(offset, text[..length].trim_ascii_end(), Reject::TooLong),
        }
    }

    #[inline(always)]
    fn decode_indexed<L: Lanes, S: Sink>(&mut self, lanes: L, text: Text<'_>, offset: usize, sink: &mut S) {
        self.fit_side_by_side(lanes, text);
        let mut suspects = 0;
        for number in 0..self.lines.len() {
            let FittedLine { line, fitted, misfit } = self.lines[number];
            let newline = self.index.newlines()[number];
            let is_suspect = self.index.suspects()[suspects] < newline;
            let is_current = |fitted: &Fitted| self.repertoire.edition(fitted.position as usize) == fitted.edition;
            let fitted = match fitted.filter(is_current) {
                _ if is_suspect => None,
                None => self.fit_alone(lanes, text, line, misfit),
                fitted => fitted,
            };
            match fitted {
                Some(fitted) => {
                    let position = fitted.position as usize;
                    let known = &self.repertoire.shapes()[position];
                    let bounds = Bounds { at: &self.bounds[fitted.bounds as usize..], lines: fitted.lines };
                    let apart = match self.writing {
                        Writing::Plain => None,
                        Writing::Quoted => {
                            self.apart.clear(known.shape.values.len());
                            Some(&self.apart)
                        }
                    };
                    sink.record(&Record {
                        text: text.bytes(),
                        line: Span { start: line.start, end: line.end },
                        offset: offset + line.start as usize,
                        layout: Some(known.id),
                        present: &known.shape.present,
                        places: Places::Shaped { values: &known.shape.values, bounds },
                        may_hold_escapes: fitted.may_hold_escapes,
                        duplicate_keys: known.shape.duplicate_keys,
                        apart,
                    });
                    self.repertoire.fitted(position);
                    if fitted.is_unusual {
                        self.repertoire.broaden(position, text.bytes(), bounds);
                    }
                }
                None => self.parse_line(lanes, text, offset, line, !is_suspect, sink),
            }
            while self.index.suspects()[suspects] <= newline {
                suspects += 1;
            }
        }
        self.repertoire.sort();
    }

    /// Lists the lines, and fits those whose shape shows at their start.
    #[inline(always)]
    fn fit_side_by_side<L: Lanes>(&mut self, lanes: L, text: Text<'_>) {
        self.lines.clear();
        self.bound_count = 0;
        let mut start = 0;
        for number in 0..self.index.newlines().len() {
            let newline = self.index.newlines()[number];
            let has_return = newline > start && text.byte(newline - 1) == b'\r';
            let line = Line { start, end: newline - u32::from(has_return) };
            self.lines.push(FittedLine { line, fitted: None, misfit: 0 });
            if let Some(position) = self.repertoire.wait(lanes, text, start, number as u32) {
                self.fit_waiting(lanes, text, position);
            }
            start = newline + 1;
        }
        for position in 0..self.repertoire.shapes().len() {
            self.fit_waiting(lanes, text, position);
        }
    }

    /// Fits the lines that wait for the shape at the position.
    #[inline(always)]
    fn fit_waiting<L: Lanes>(&mut self, lanes: L, text: Text<'_>, position: usize) {
        let known = &mut self.repertoire.shapes_mut()[position];
        let (numbers, count) = known.take_waiting();
        if count <= SIDE_BY_SIDE / 2 {
            // As fast one by one, which comes later.
            return;
        }
        let from = self.bound_count;
        let bounds = room_for(&mut self.bounds, &mut self.bound_count, (known.shape.steps.len() + 1) * SIDE_BY_SIDE);
        let lines = &numbers.map(|number| self.lines[number as usize].line);
        let found = lanes.run(Fit { shape: &known.shape, text, lines, bounds });
        known.note_fitting(found.fits.count_ones());
        for (place, &number) in numbers[..count].iter().enumerate() {
            let line = &mut self.lines[number as usize];
            if found.fits >> place & 1 == 0 {
                line.misfit = known.edition;
                continue;
            }
            line.fitted = Some(Fitted {
                position: position as u32,
                edition: known.edition,
                bounds: (from + place) as u32,
                lines: SIDE_BY_SIDE as u32,
                may_hold_escapes: found.escaped >> place & 1 == 1,
                is_unusual: found.unusual >> place & 1 == 1,
            });
        }
    }

    /// Finds the first shape that fits the line; one edition of them is known not to.
    #[inline(never)]
    fn fit_alone<L: Lanes>(&mut self, lanes: L, text: Text<'_>, line: Line, misfit: u32) -> Option<Fitted> {
        if !self.repertoire.is_worth_trying() {
            return None;
        }
        let from = self.bound_count;
        for (position, known) in self.repertoire.shapes().iter().enumerate() {
            if known.edition == misfit {
                continue;
            }
            self.bound_count = from;
            let bounds = room_for(&mut self.bounds, &mut self.bound_count, known.shape.steps.len() + 1);
            let found = lanes.run(Fit { shape: &known.shape, text, lines: &[line], bounds });
            if found.fits == 1 {
                let fitted = Fitted {
                    position: position as u32,
                    edition: known.edition,
                    bounds: from as u32,
                    lines: 1,
                    may_hold_escapes: found.escaped == 1,
                    is_unusual: found.unusual == 1,
                };
                self.repertoire.note_hit();
                return Some(fitted);
            }
        }
        self.repertoire.note_miss();
        None
    }

    /// Parses a line, and learns from it if it `teaches`.
    #[inline(never)]
    fn parse_line<L: Lanes, S: Sink>(
        &mut self,
        lanes: L,
        text: Text<'_>,
        offset: usize,
        line: Line,
        teaches: bool,
        sink: &mut S,
    ) {
        let bytes = &text.bytes()[line.start as usize..line.end as usize];
        let offset = offset + line.start as usize;
        self.parsed += 1;
        let lesson = match self.writing {
            Writing::Plain => self.parse(offset, bytes, teaches, sink),
            Writing::Quoted => {
                let mut unquoted = mem::take(&mut self.unquoted);
                unquoted.clear();
                unescape(bytes, &mut unquoted);
                one_line(&mut unquoted, 0);
                let mut lesson = None;
                for part in unquoted.split(|&byte| byte == b'\n') {
                    lesson = self.parse(offset, part, teaches, sink);
                }
                self.unquoted = unquoted;
                lesson
            }
        };
        if let Some(lesson) = lesson {
            self.learn(lanes, text, line, lesson);
        }
    }

    /// Hands the record of a text to the sink. Returns what is to be learned from it.
    fn parse<S: Sink>(&mut self, offset: usize, bytes: &[u8], teaches: bool, sink: &mut S) -> Option<Lesson> {
        if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return None;
        }
        let record = match self.parser.parse(bytes) {
            Ok(record) => Record { offset, ..record },
            Err(why) => {
                sink.reject(offset, bytes, why);
                return None;
            }
        };
        sink.record(&record);
        if !teaches || !self.repertoire.wants_lesson() {
            return None;
        }
        let lesson = Lesson::new(bytes, &record, self.writing == Writing::Quoted);
        if lesson.is_none() {
            self.repertoire.rest();
        }
        lesson
    }

    fn learn<L: Lanes>(&mut self, lanes: L, text: Text<'_>, line: Line, lesson: Lesson) {
        if self.repertoire.merge(&lesson) {
            return;
        }
        let shape = lesson.shape();
        let bounds = &mut vec![0; shape.steps.len() + 1];
        if lanes.run(Fit { shape: &shape, text, lines: &[line], bounds }).fits == 1 {
            return self.repertoire.learn(lesson, shape);
        }
        // The line has a form that shapes do not allow for.
        self.repertoire.rest();
    }
}

/// Takes so many bounds into use.
#[inline(always)]
fn room_for<'a>(bounds: &'a mut Vec<u32>, in_use: &mut usize, count: usize) -> &'a mut [u32] {
    let from = *in_use;
    *in_use += count;
    if bounds.len() < *in_use {
        bounds.resize(2 * *in_use, 0);
    }
    &mut bounds[from..*in_use]
}

/// The length of the first lines that make up a portion, or of one longer line. All lines have
/// their newline.
fn portion_length(lines: &[u8]) -> usize {
    let (near, far) = lines.split_at(lines.len().min(PORTION));
    match memrchr(b'\n', near) {
        Some(newline) => newline + 1,
        None => memchr(b'\n', far).map_or(lines.len(), |newline| PORTION + newline + 1),
    }
}

/// The decoding of some lines, as work for the vector instructions.
struct Lines<'a, S> {
    decoder: &'a mut LineDecoder,
    text: Text<'a>,
    /// How many bytes are to be indexed before; None if the lines are known.
    unread: Option<usize>,
    offset: usize,
    sink: &'a mut S,
}

impl<S: Sink> Task for Lines<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        if let Some(length) = self.unread {
            lanes.run(Reading { index: &mut self.decoder.index, text: &self.text.bytes()[..length] });
        }
        self.decoder.decode_indexed(lanes, self.text, self.offset, self.sink);
    }
}

#[cfg(test)]
mod tests;
