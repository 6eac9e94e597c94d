//! Ids from a stream, one a line, in bounded memory whatever the stream holds.

use std::io::{self, BufRead};

/// Of a longer line only so many bytes are kept.
const LONGEST_LINE: usize = 4096;

/// The lines of a stream that are not blank, without the blanks around them.
///
/// What is no UTF-8 is replaced, and a line that is too long ends with an ellipsis: such are no ids, but their rows
/// stand.
#[derive(Debug)]
pub struct Lines<R> {
    stream: R,
}

impl<R: BufRead> Lines<R> {
    pub fn new(stream: R) -> Self {
        Lines { stream }
    }

    /// None at the end of the stream.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut kept = Vec::new();
        let mut length = 0;
        loop {
            let held = match self.stream.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                held => held?,
            };
            if held.is_empty() && length == 0 {
                return Ok(None);
            }
            let end = held.iter().position(|byte| *byte == b'\n');
            let more = &held[..end.unwrap_or(held.len())];
            kept.extend(more.iter().take(LONGEST_LINE - kept.len()));
            let read = more.len() + usize::from(end.is_some());
            length += read;
            let is_last = end.is_some() || held.is_empty();
            self.stream.consume(read);
            if is_last {
                let mut line = String::from_utf8_lossy(&kept).into_owned();
                if length > LONGEST_LINE + 1 {
                    line.push('…');
                }
                return Ok(Some(line));
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.line().transpose()? {
                Ok(line) => {
                    let id = line.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
                    if !id.is_empty() {
                        return Some(Ok(id.to_owned()));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stream: impl BufRead) -> Vec<String> {
        Lines::new(stream).map(Result::unwrap).collect()
    }

    #[test]
    fn blank_lines_and_line_ends_of_any_kind_are_no_ids() {
        assert_eq!(lines(&b"\xef\xbb\xbfa\r\n\r\n \t\n  b c \n\nd"[..]), ["a", "b c", "d"]);
        assert!(lines(&b""[..]).is_empty());
        assert!(lines(&b"\n\n"[..]).is_empty());
    }

    #[test]
    fn what_is_no_text_is_a_line_all_the_same() {
        assert_eq!(lines(&b"a\xff\nb\0"[..]), ["a\u{fffd}", "b\0"]);
    }

    #[test]
    fn a_line_of_any_length_costs_no_more_than_the_longest() {
        let (longest, longer) = ("x".repeat(LONGEST_LINE), "y".repeat(10 * LONGEST_LINE));
        let stream = format!("{longest}\n{longer}\nz");
        let read = lines(io::BufReader::with_capacity(100, stream.as_bytes()));
        assert_eq!(read[0], longest);
        assert_eq!(read[1], format!("{}…", "y".repeat(LONGEST_LINE)));
        assert_eq!(read[2], "z");
    }

    #[test]
    fn a_stream_that_fails_says_so() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut lines = Lines::new(io::BufReader::new(Broken));
        assert!(lines.next().unwrap().is_err());
    }
}
