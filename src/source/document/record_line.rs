//! Where the lines inside a record cannot be its own, so that a broken record does not take the next ones along.
//!
//! Printers put a record's first and last line at one column and indent what is between. A brace at that column therefore
//! belongs to this record's end or to the next record, however many braces seem to be open.

use memchr::memchr_iter;

/// How the line looks on which a record starts, to tell where a line inside the record cannot be its own.
pub(super) struct RecordLine {
    /// Blanks in front of it.
    pub indent: usize,
    /// The opening brace is the last thing on it.
    pub opens_block: bool,
    /// Every line inside the record is indented deeper; found out when it first matters.
    pub indented: Option<bool>,
}

impl RecordLine {
    /// Whether the byte at `at` is the first of its line and as far in as the record.
    pub fn starts_at(&self, bytes: &[u8], at: usize) -> bool {
        at > self.indent
            && bytes[at - self.indent - 1] == b'\n'
            && bytes[at - self.indent..at].iter().all(|&byte| is_blank(byte))
    }

    /// Whether the closing brace at `at` ends the record whatever its depth, since it stands where the record's own does.
    pub fn ends_at(&mut self, bytes: &[u8], at: usize) -> bool {
        self.opens_block && self.starts_at(bytes, at) && self.is_indented(bytes, at - self.indent)
    }

    /// Whether the opening brace at `at` starts the next record, although this one is still open. Where the lines of a record
    /// are not indented, it does only if nothing in front of it asks for a value.
    pub fn restarts_at(&mut self, bytes: &[u8], at: usize) -> bool {
        self.starts_at(bytes, at)
            && (self.is_indented(bytes, at - self.indent)
                || !bytes[..at].trim_ascii_end().ends_with(b":")
                    && !bytes[..at].trim_ascii_end().ends_with(b"[")
                    && !bytes[..at].trim_ascii_end().ends_with(b","))
    }

    pub fn is_indented(&mut self, bytes: &[u8], end: usize) -> bool {
        let indent = self.indent;
        *self.indented.get_or_insert_with(|| {
            memchr_iter(b'\n', &bytes[..end]).all(|newline| {
                let line = bytes[newline + 1..end].split(|&byte| byte == b'\n').next().unwrap_or_default();
                // a comma in front of the next record is no part of this one
                line.iter().take(indent + 1).all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b','))
            })
        })
    }
}

/// Whether a byte indents a line.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
