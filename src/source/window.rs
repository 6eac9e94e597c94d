//! The bytes of an input between what was handed out and what was read: one reusable buffer that the cutters of lines,
//! objects and CSV records slide over an input of any size.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use memchr::memchr;

use crate::source::value::Reject;

/// The longest record accepted, in bytes; a longer one is rejected, so that memory stays bounded.
pub const MAX_RECORD: usize = 64 << 20;

/// Bytes read at once. Large enough that a block pays for its handling, small enough to stay in the cache of a core.
const CHUNK: usize = 256 * 1024;

/// The buffer doubles up to steps of this size, in bytes, so that it ends little above the longest record.
const LARGEST_STEP: usize = 4 << 20;

/// A stretch of an input: text for a parser, or a record that was rejected before any parser saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text {
        /// Where the text starts, in bytes from the start of the decoded input.
        offset: u64,
        bytes: &'a [u8],
    },
    /// A line of text between records.
    Line { offset: u64 },
    Rejected {
        /// Where the record starts, in bytes from the start of the decoded input.
        offset: u64,
        reject: Reject,
    },
}

/// Where the bytes come from.
enum Origin {
    Stream(Box<dyn Read + Send>),
    /// Positioned reads, so that several threads share one open file.
    File(Arc<File>),
}

/// A sliding view of an input. A read error is kept back until all bytes before it were used: records before damage count.
pub(super) struct Window {
    origin: Origin,
    buffer: Vec<u8>,
    /// `buffer[head..tail]` is in view.
    head: usize,
    tail: usize,
    /// Offset in the input of `buffer[head]`.
    offset: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl Window {
    pub fn over_stream(stream: impl Read + Send + 'static) -> Self {
        Self::new(Origin::Stream(Box::new(stream)), 0)
    }

    /// A view of `file` from the byte at `offset` to its end.
    pub fn over_file(file: Arc<File>, offset: u64) -> Self {
        Self::new(Origin::File(file), offset)
    }

    fn new(origin: Origin, offset: u64) -> Self {
        Self { origin, buffer: Vec::new(), head: 0, tail: 0, offset, ended: false, failure: None }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.head..self.tail]
    }

    /// The offset in the input of the first byte in view.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves the start of the view forward by `count` bytes, at most to its end.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.tail - self.head);
        self.head += count;
        self.offset += count as u64;
    }

    /// Brings more bytes into view behind those there are; false when there are none.
    pub fn extend(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.make_room();
        let position = self.offset + (self.tail - self.head) as u64;
        let room = &mut self.buffer[self.tail..];
        let result = loop {
            let result = match &mut self.origin {
                Origin::Stream(stream) => stream.read(room),
                Origin::File(file) => file.read_at(room, position),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        match result {
            Ok(0) => self.ended = true,
            Ok(count) => self.tail += count,
            Err(error) => {
                self.ended = true;
                self.failure = Some(error);
            }
        }
        !self.ended
    }

    /// Passes over everything up to and including the next newline, without keeping it.
    pub fn skip_line(&mut self) {
        loop {
            let bytes = self.bytes();
            if let Some(newline) = memchr(b'\n', bytes) {
                self.consume(newline + 1);
                return;
            }
            let all = bytes.len();
            self.consume(all);
            if !self.extend() {
                return;
            }
        }
    }

    /// Passes over a byte order mark in front of the first byte.
    pub fn skip_byte_order_mark(&mut self) {
        while self.bytes().len() < BYTE_ORDER_MARK.len() && self.extend() {}
        if self.bytes().starts_with(BYTE_ORDER_MARK) {
            self.consume(BYTE_ORDER_MARK.len());
        }
    }

    /// The byte `at` places behind the start of the view, read if need be; `None` behind the end of the input.
    pub fn byte(&mut self, at: usize) -> Option<u8> {
        while self.bytes().len() <= at && self.extend() {}
        self.bytes().get(at).copied()
    }

    /// Whether the input ended in an error rather than at its end.
    pub fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// The error that ended the input, once; to be called when everything in view was used.
    pub fn finish(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Makes room for one more read: by moving the view to the front of the buffer, else by a longer buffer.
    fn make_room(&mut self) {
        if self.head > 0 {
            self.buffer.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
        if self.buffer.len() - self.tail < CHUNK / 2 {
            let step = self.buffer.len().clamp(CHUNK, LARGEST_STEP);
            self.buffer.resize(self.buffer.len() + step, 0);
        }
    }
}

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
