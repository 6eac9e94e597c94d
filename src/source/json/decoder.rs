//! Lines in, records out: each line by a shape if one fits, else by the general parser.

use std::mem;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::fit::{End, Fit, Fitted, Line};
use super::index::{Index, Reading};
use super::lesson::Lesson;
use super::record::{Places, Record};
use super::repertoire::Repertoire;
use super::selection::RecordParser;
use super::simd::{Instructions, Lanes, Task, WINDOW};
use super::wanted::Wanted;
use crate::source::value::Reject;

/// Lines are taken in portions of about this many bytes, so that text and index stay in the
/// processor's own caches.
const PORTION: usize = 64 << 10;

/// What becomes of the lines of a block.
pub trait Sink {
    fn record(&mut self, record: &Record<'_>);

    /// `line` stands at `offset` in the block, and is without its newline, LF or CRLF.
    fn reject(&mut self, offset: usize, line: &[u8], why: Reject);
}

/// Decodes lines, one block after the other, and learns their shapes on the way. One per thread.
pub struct LineDecoder {
    instructions: Instructions,
    index: Index,
    repertoire: Repertoire,
    fitted: Fitted,
    parser: RecordParser,
    /// A copy of the last lines of a block, with room behind them.
    padded: Vec<u8>,
}

impl LineDecoder {
    pub fn new(wanted: Arc<Wanted>) -> LineDecoder {
        LineDecoder::with_instructions(wanted, Instructions::detect())
    }

    pub(super) fn with_instructions(wanted: Arc<Wanted>, instructions: Instructions) -> LineDecoder {
        LineDecoder {
            instructions,
            index: Index::default(),
            repertoire: Repertoire::default(),
            fitted: Fitted::default(),
            parser: RecordParser::new(wanted),
            padded: Vec::new(),
        }
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

    /// Decodes the first `length` bytes of `text`, which stands at `offset` in the block and goes
    /// on for at least a window.
    fn decode_lines<S: Sink>(&mut self, text: &[u8], length: usize, offset: usize, sink: &mut S) {
        // The index counts in u32, with room to spare.
        if i32::try_from(length).is_ok() {
            self.instructions.run(Lines { decoder: self, text, length, offset, sink });
        } else {
            sink.reject(offset, text[..length].trim_ascii_end(), Reject::TooLong);
        }
    }

    #[inline(always)]
    fn decode_indexed<L: Lanes, S: Sink>(&mut self, lanes: L, text: &[u8], length: usize, offset: usize, sink: &mut S) {
        lanes.run(Reading { index: &mut self.index, text: &text[..length] });
        let mut suspects = 0;
        let mut line = Line { start: 0, entry: 1, quotes_before: 0 };
        while line.start < length {
            let fitting = self.fitting_shape(lanes, text, &line);
            match fitting {
                Some(position) if self.index.suspects()[suspects] as usize > self.fitted.end.at => {
                    let known = &self.repertoire.shapes()[position];
                    let bounds = known.shape.bounds(&self.index, &line, &self.fitted);
                    sink.record(&Record {
                        text,
                        offset: offset + line.start,
                        layout: Some(known.id),
                        present: &known.shape.present,
                        places: Places::Shaped { values: &known.shape.values, bounds },
                        escapes: self.index.escapes(line.start, self.fitted.end.at),
                        duplicate_keys: known.shape.duplicate_keys,
                    });
                    if self.fitted.is_unusual {
                        self.repertoire.broaden(position, text, &self.fitted.unusual);
                    }
                    self.repertoire.fitted(position);
                }
                _ => self.fitted.end = self.parse_line(lanes, text, offset, line, sink),
            }
            let end = &self.fitted.end;
            while self.index.suspects()[suspects] as usize <= end.at {
                suspects += 1;
            }
            line = Line { start: end.at + 1, entry: end.entry + 1, quotes_before: end.quotes_before };
        }
    }

    /// The first shape that fits the line, by its position in the repertoire.
    #[inline(always)]
    fn fitting_shape<L: Lanes>(&mut self, lanes: L, text: &[u8], line: &Line) -> Option<usize> {
        let LineDecoder { index, repertoire, fitted, .. } = self;
        let fits = |shape| lanes.run(Fit { shape, text, index, line, fitted });
        repertoire.shapes().iter().map(|known| &known.shape).position(fits)
    }

    #[inline(never)]
    fn parse_line<L: Lanes, S: Sink>(&mut self, lanes: L, text: &[u8], offset: usize, line: Line, sink: &mut S) -> End {
        let end = self.line_end(text, line);
        let bytes = &text[line.start..end.at];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return end;
        }
        let record = match self.parser.parse(bytes) {
            Ok(record) => Record { offset: offset + line.start, ..record },
            Err(why) => {
                sink.reject(offset + line.start, bytes, why);
                return end;
            }
        };
        sink.record(&record);
        if self.repertoire.wants_lesson() {
            match Lesson::new(text, &self.index, line, &record) {
                Some(lesson) => self.learn(lanes, text, line, lesson),
                None => self.repertoire.rest(),
            }
        }
        end
    }

    fn learn<L: Lanes>(&mut self, lanes: L, text: &[u8], line: Line, lesson: Lesson) {
        if self.repertoire.merge(&lesson) {
            return;
        }
        let shape = lesson.shape();
        let fit = Fit { shape: &shape, text, index: &self.index, line: &line, fitted: &mut self.fitted };
        if lanes.run(fit) {
            return self.repertoire.learn(lesson, shape);
        }
        // The line has a form that shapes do not allow for, such as blanks before a comma.
        self.repertoire.rest();
    }

    fn line_end(&self, text: &[u8], line: Line) -> End {
        let entries = &self.index.entries()[line.entry..];
        let is_newline = |&&entry: &&u32| text.get(entry as usize) == Some(&b'\n');
        let count = entries.iter().take_while(|entry| !is_newline(entry)).count();
        let at = entries.get(count).map_or(text.len(), |&entry| entry as usize);
        End { entry: line.entry + count, at, quotes_before: self.index.quotes_before(at) }
    }
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
    text: &'a [u8],
    length: usize,
    offset: usize,
    sink: &'a mut S,
}

impl<S: Sink> Task for Lines<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.decoder.decode_indexed(lanes, self.text, self.length, self.offset, self.sink);
    }
}

#[cfg(test)]
mod tests;
