//! Cuts newline-delimited text into blocks of whole lines, from a stream or from a byte range of a shared file.
//!
//! A block is what the NDJSON decoder works on at once. Ranges let threads share one file: a line belongs to the range
//! that holds its first byte, so neighbouring ranges neither lose nor repeat one.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::source::value::Reject;
use crate::source::window::{MAX_RECORD, Piece, Window};

/// The blocks of one input, in order.
pub struct Blocks {
    window: Window,
    /// Lines that start at or behind this offset belong to somebody else.
    end: u64,
    /// Bytes at the front of the window that the last block lent out.
    lent: usize,
    /// The first line of the range is still to be found: what stands before it belongs to the range before.
    aligned: bool,
}

impl Blocks {
    /// The blocks of a whole stream. A byte order mark at its start is passed over.
    pub fn new(stream: impl Read + Send + 'static) -> Self {
        let mut window = Window::over_stream(stream);
        window.skip_byte_order_mark();
        Self { window, end: u64::MAX, lent: 0, aligned: true }
    }

    /// The lines of a file whose first byte lies in `start..end`. The last of them is read to its own end, beyond `end`.
    pub fn range(file: Arc<File>, start: u64, mut end: u64) -> Self {
        // from one byte earlier: a newline there means that a line starts at `start` itself
        let mut window = Window::over_file(file, start.saturating_sub(1));
        if start == 0 && end > 0 {
            window.skip_byte_order_mark();
            // the first line starts at the mark, wherever the range was cut
            end = end.max(window.offset() + 1);
        }
        Self { window, end, lent: 0, aligned: start == 0 }
    }

    /// The next block: whole lines with their newlines, the last line of an input perhaps without; or a line that is
    /// rejected because it is too long. `None` at the end. An error of the stream comes after all bytes before it, the
    /// last of which may be part of a line only.
    pub fn next_block(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.window.consume(self.lent);
        self.lent = 0;
        if !self.aligned {
            self.window.skip_line();
            self.aligned = true;
        }
        let offset = self.window.offset();
        if offset >= self.end {
            return Ok(None);
        }
        let Some(length) = self.whole_lines() else {
            self.window.skip_line();
            return Ok(Some(Piece::Rejected { offset, reject: Reject::TooLong }));
        };
        if length == 0 {
            self.window.finish()?;
            return Ok(None);
        }
        self.lent = length;
        Ok(Some(Piece::Text { offset, bytes: &self.window.bytes()[..length] }))
    }

    /// How many bytes in view are whole lines of this range; none when the first line is too long.
    fn whole_lines(&mut self) -> Option<usize> {
        let mut searched = 0;
        loop {
            let bytes = self.window.bytes();
            if let Some(newline) = memrchr(b'\n', &bytes[searched..]) {
                let length = self.within_range(searched + newline + 1);
                // only a first line can be too long: the view is extended no further once it holds a newline
                let too_long = length > MAX_RECORD
                    && memchr(b'\n', &bytes[searched..]).is_none_or(|newline| searched + newline > MAX_RECORD);
                return (!too_long).then_some(length);
            }
            searched = bytes.len();
            if searched > MAX_RECORD {
                return None;
            }
            if !self.window.extend() {
                return Some(searched);
            }
        }
    }

    /// Shortens a block of whole lines so that it ends with the last line that starts before the end of the range.
    fn within_range(&self, length: usize) -> usize {
        let before_end = self.end - self.window.offset();
        if before_end >= length as u64 {
            return length;
        }
        // less than `length`, so it fits
        let last = before_end as usize - 1;
        memchr(b'\n', &self.window.bytes()[last..length]).map_or(length, |newline| last + newline + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;

    use super::*;

    /// The lines of all blocks with their offsets, and rejects as empty lines.
    fn lines(mut blocks: Blocks) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Vec::new();
        while let Some(piece) = blocks.next_block().unwrap() {
            match piece {
                Piece::Text { mut offset, bytes } => {
                    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                        lines.push((offset, line.to_vec()));
                        offset += line.len() as u64;
                    }
                }
                Piece::Line { .. } => unreachable!(),
                Piece::Rejected { offset, reject } => {
                    assert_eq!(reject, Reject::TooLong);
                    lines.push((offset, Vec::new()));
                }
            }
        }
        lines
    }

    fn of_stream(content: impl Into<Vec<u8>>) -> Blocks {
        Blocks::new(Cursor::new(content.into()))
    }

    fn file_of(content: &[u8]) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        Arc::new(file)
    }

    fn expected(content: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut offset = 0;
        let lines = content.split_inclusive(|&byte| byte == b'\n');
        lines
            .map(|line| {
                offset += line.len() as u64;
                (offset - line.len() as u64, line.to_vec())
            })
            .collect()
    }

    #[test]
    fn a_stream_gives_its_lines_with_or_without_a_last_newline() {
        for content in ["", "a", "a\n", "a\nb", "a\r\n\r\nb\r\n", "\n\n"] {
            assert_eq!(lines(of_stream(content)), expected(content.as_bytes()));
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_at_the_start_only() {
        let content = "\u{feff}a\n\u{feff}b\n";
        let lines_of_stream = lines(of_stream(content));
        assert_eq!(lines_of_stream, [(3, b"a\n".to_vec()), (5, "\u{feff}b\n".into())]);
        assert_eq!(lines(Blocks::range(file_of(content.as_bytes()), 0, 10)), lines_of_stream);
    }

    #[test]
    fn lines_longer_than_the_buffer_stay_whole() {
        let content = [vec![b'x'; 3_000_000], vec![b'\n'], vec![b'y'; 700_000]].concat();
        assert_eq!(lines(of_stream(content.clone())), expected(&content));
    }

    #[test]
    fn a_line_over_the_limit_is_rejected_and_its_neighbours_are_read() {
        let long = MAX_RECORD + 1;
        let content = [b"a\n".as_slice(), &vec![b'x'; long], b"\nb\n"].concat();
        let expected = [(0, b"a\n".to_vec()), (2, vec![]), (3 + long as u64, b"b\n".to_vec())];
        assert_eq!(lines(of_stream(content.clone())), expected);
        let file = file_of(&content);
        let end = content.len() as u64;
        let halves = [lines(Blocks::range(Arc::clone(&file), 0, end / 2)), lines(Blocks::range(file, end / 2, end))];
        assert_eq!(halves.concat(), expected);
    }

    #[test]
    fn an_error_of_the_stream_comes_after_the_bytes_before_it() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut blocks = Blocks::new(Cursor::new(b"a\nb\nc").chain(Failing));
        assert_eq!(blocks.next_block().unwrap(), Some(Piece::Text { offset: 0, bytes: b"a\nb\n" }));
        assert_eq!(blocks.next_block().unwrap(), Some(Piece::Text { offset: 4, bytes: b"c" }));
        assert_eq!(blocks.next_block().unwrap_err().to_string(), "broken");
        assert_eq!(blocks.next_block().unwrap(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn the_lines_of_any_ranges_are_the_lines_of_the_file(
            content in "(\u{feff}|)[ab\n\r]{0,60}",
            mut cuts in prop::collection::vec(0..70_u64, 0..6),
        ) {
            let file = file_of(content.as_bytes());
            cuts.push(0);
            cuts.push(content.len() as u64);
            cuts.sort();
            let of_ranges: Vec<_> = cuts
                .windows(2)
                .flat_map(|range| lines(Blocks::range(Arc::clone(&file), range[0], range[1])))
                .collect();
            let whole = lines(of_stream(content.clone()));
            prop_assert_eq!(lines(Blocks::range(file, 0, u64::MAX)), whole.clone());
            prop_assert_eq!(of_ranges, whole);
        }
    }
}
