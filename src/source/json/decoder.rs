//! Lines in, records out: each line by a shape if one fits, else by the general parser.

use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::index::Index;
use super::lesson::learn;
use super::record::{Record, Span};
use super::repertoire::Repertoire;
use super::selection::RecordParser;
use super::shape::{End, Line};
use super::simd::{Instructions, Lanes, Task};
use super::wanted::Wanted;
use crate::source::value::Reject;

/// Lines are taken in portions of about this many bytes, so that text and index stay in the nearest cache.
const PORTION: usize = 32 << 10;

/// What becomes of the lines of a block.
pub trait Sink {
    fn record(&mut self, record: &Record<'_>);

    /// `line` stands at `offset` in the block and has no newline.
    fn reject(&mut self, offset: usize, line: &[u8], why: Reject);
}

/// Decodes lines, one block after the other, and learns their shapes on the way. One per thread.
pub struct LineDecoder {
    instructions: Instructions,
    index: Index,
    repertoire: Repertoire,
    /// The values of the current line, if a shape fits.
    spans: Vec<Span>,
    parser: RecordParser,
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
            spans: Vec::new(),
            parser: RecordParser::new(wanted),
        }
    }

    /// Hands each line of the block that is not blank to the sink, in order. The block is whole lines; the last may lack its newline.
    pub fn decode<S: Sink>(&mut self, block: &[u8], sink: &mut S) {
        let mut offset = 0;
        while offset < block.len() {
            let text = first_portion(&block[offset..]);
            if u32::try_from(text.len()).is_ok() {
                self.instructions.run(Portion { decoder: self, text, offset, sink });
            } else {
                sink.reject(offset, text, Reject::TooLong);
            }
            offset += text.len();
        }
    }

    #[inline(always)]
    fn decode_portion<L: Lanes, S: Sink>(&mut self, lanes: L, text: &[u8], offset: usize, sink: &mut S) {
        self.index.read(lanes, text);
        let mut suspects = 0;
        let mut line = Line { start: 0, entry: 0, quotes_before: 0 };
        while line.start < text.len() {
            let fitting = self.fitting_shape(lanes, text, line);
            let end = match fitting {
                Some((position, end)) if self.index.suspects()[suspects] as usize > end.at => {
                    let known = &self.repertoire.shapes()[position];
                    sink.record(&Record {
                        text,
                        offset: offset + line.start,
                        layout: &known.shape.layout,
                        layout_id: Some(known.id),
                        spans: &self.spans,
                        index: Some(&self.index),
                        duplicate_keys: known.shape.duplicate_keys,
                    });
                    self.repertoire.fitted(position);
                    end
                }
                _ => self.parse_line(lanes, text, offset, line, sink),
            };
            while self.index.suspects()[suspects] as usize <= end.at {
                suspects += 1;
            }
            line = Line { start: end.at + 1, entry: end.entry + 1, quotes_before: end.quotes_before };
        }
    }

    /// The first shape that fits the line, by its position in the repertoire.
    #[inline(always)]
    fn fitting_shape<L: Lanes>(&mut self, lanes: L, text: &[u8], line: Line) -> Option<(usize, End)> {
        let LineDecoder { index, repertoire, spans, .. } = self;
        for (position, known) in repertoire.shapes().iter().enumerate() {
            if let Some(end) = known.shape.fit(lanes, text, index, line, spans) {
                return Some((position, end));
            }
        }
        None
    }

    #[inline(never)]
    fn parse_line<L: Lanes, S: Sink>(&mut self, lanes: L, text: &[u8], offset: usize, line: Line, sink: &mut S) -> End {
        let end = self.line_end(text, line);
        let bytes = &text[line.start..end.at];
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
        if self.repertoire.wants_lesson()
            && let Some(shape) = learn(text, &self.index, line, &record)
        {
            self.spans.resize(self.spans.len().max(shape.places()), Span::default());
            // A line can have a form that shapes do not allow for, such as blanks before a comma.
            if shape.fit(lanes, text, &self.index, line, &mut self.spans).is_some() {
                self.repertoire.learn(shape);
            }
        }
        end
    }

    fn line_end(&self, text: &[u8], line: Line) -> End {
        let entries = &self.index.entries()[line.entry..];
        let is_end = |&entry: &u32| text.get(entry as usize).is_none_or(|&byte| byte == b'\n');
        let count = entries.iter().take_while(|entry| !is_end(entry)).count();
        let at = entries.get(count).map_or(text.len(), |&entry| entry as usize);
        End { entry: line.entry + count, at, quotes_before: self.index.quotes_before(at) }
    }
}

/// Whole lines of about the length of a portion, or one longer line.
fn first_portion(block: &[u8]) -> &[u8] {
    let (near, far) = block.split_at(block.len().min(PORTION));
    match memrchr(b'\n', near) {
        _ if far.is_empty() => block,
        Some(newline) => &block[..=newline],
        None => memchr(b'\n', far).map_or(block, |newline| &block[..=PORTION + newline]),
    }
}

/// The decoding of one portion, as work for the vector instructions.
struct Portion<'a, S> {
    decoder: &'a mut LineDecoder,
    text: &'a [u8],
    offset: usize,
    sink: &'a mut S,
}

impl<S: Sink> Task for Portion<'_, S> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        self.decoder.decode_portion(lanes, self.text, self.offset, self.sink);
    }
}
