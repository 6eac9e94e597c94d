//! Cuts CSV text into records.
//!
//! The `csv` crate reads on to the end of the file when a quote is never closed, cannot say that it did, and does not tell
//! `""` from nothing. A log must lose one record to one bad quote, so the cutting is ours; the crate is the oracle of the tests.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};

use memchr::{memchr, memchr3};

use crate::source::value::Reject;
use crate::source::window::{MAX_RECORD, Window};

/// The most columns that a header may have.
const MAX_COLUMNS: usize = 10_000;

/// A column of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name as written, without blanks around it; empty where the header has none.
    pub name: String,
    /// A later column has the same name; the last wins, as it does for the keys of a JSON object.
    pub shadowed: bool,
}

/// One record, or why there is none.
#[derive(Debug)]
pub enum Row<'a> {
    Record { offset: u64, cells: Cells<'a> },
    Rejected { offset: u64, reject: Reject, detail: String },
}

/// The cells of one record, as many as the header has columns.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    text: &'a str,
    cells: &'a [Cell],
}

impl<'a> Cells<'a> {
    /// The text of each cell in order; `None` is null: an empty cell without quotes. `""` is empty text.
    pub fn iter(&self) -> impl Iterator<Item = Option<Cow<'a, str>>> + use<'a> {
        let text = self.text;
        self.cells.iter().map(move |cell| {
            let inner = &text[cell.start..cell.end];
            match cell.quoting {
                Quoting::None if inner.is_empty() => None,
                Quoting::Doubled => Some(Cow::Owned(inner.replace("\"\"", "\""))),
                _ => Some(Cow::Borrowed(inner)),
            }
        })
    }
}

/// Where a cell lies in its record, without the quotes around it.
#[derive(Debug, Clone, Copy)]
struct Cell {
    start: usize,
    end: usize,
    quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quoting {
    None,
    Plain,
    /// With doubled quotes inside, each of which stands for one.
    Doubled,
}

/// How the search for the end of a record ended.
enum Cut {
    /// The record takes `length` bytes with its line end; `terminated` is false where the input ended first.
    Record {
        length: usize,
        terminated: bool,
    },
    /// Other text follows a closing quote.
    StrayQuote,
    Unclosed,
    TooLong,
    End,
}

/// The records of one CSV input, in order.
pub struct CsvRecords {
    window: Window,
    delimiter: u8,
    header: Vec<Column>,
    cells: Vec<Cell>,
    /// Bytes at the front of the window that the last record lent out.
    lent: usize,
}

impl CsvRecords {
    /// Reads the header. An error when it cannot be read or has an unclosed quote; an empty input has an empty header.
    pub fn new(stream: impl Read + Send + 'static, delimiter: u8) -> io::Result<Self> {
        let mut window = Window::over_stream(stream);
        window.skip_byte_order_mark();
        let mut records = Self { window, delimiter, header: Vec::new(), cells: Vec::new(), lent: 0 };
        records.read_header()?;
        Ok(records)
    }

    /// The columns, in the order of the cells.
    pub fn header(&self) -> &[Column] {
        &self.header
    }

    /// The next record or reject; `None` at the end. An error of the stream comes after all records before it.
    pub fn next_row(&mut self) -> io::Result<Option<Row<'_>>> {
        self.window.consume(self.lent);
        self.lent = 0;
        self.skip_blank_lines();
        let offset = self.window.offset();
        let rejected = |reject, detail: &str| Ok(Some(Row::Rejected { offset, reject, detail: detail.to_owned() }));
        let (length, terminated) = match self.cut_record() {
            Cut::Record { length, terminated } => (length, terminated),
            // A quote that closes late or never says nothing about the lines it swallowed: each is read for itself.
            Cut::StrayQuote => {
                self.window.skip_line();
                return rejected(Reject::Malformed, "text after a closing quote");
            }
            Cut::Unclosed => {
                self.window.skip_line();
                return rejected(Reject::CutOff, "a quote is never closed");
            }
            Cut::TooLong => {
                self.window.skip_line();
                return rejected(Reject::TooLong, "over 64 MiB; perhaps a quote is never closed");
            }
            Cut::End => {
                self.window.finish()?;
                return Ok(None);
            }
        };
        self.lent = length;
        let (found, expected) = (self.cells.len(), self.header.len());
        if !terminated && (self.window.is_broken() || found < expected) {
            return rejected(Reject::CutOff, "the input ends inside the record");
        }
        if found != expected {
            let detail = format!("wrong number of cells: found {found}, header has {expected}");
            return Ok(Some(Row::Rejected { offset, reject: Reject::Malformed, detail }));
        }
        Ok(Some(match simdutf8::basic::from_utf8(&self.window.bytes()[..length]) {
            Ok(text) => Row::Record { offset, cells: Cells { text, cells: &self.cells } },
            Err(error) => Row::Rejected { offset, reject: Reject::BadUtf8, detail: error.to_string() },
        }))
    }

    fn read_header(&mut self) -> io::Result<()> {
        self.skip_blank_lines();
        let wrong = |why| Err(io::Error::new(ErrorKind::InvalidData, why));
        let length = match self.cut_record() {
            Cut::Record { length, .. } => length,
            Cut::End => return Ok(()),
            Cut::StrayQuote | Cut::Unclosed => return wrong("the CSV header has a quote that is not closed"),
            Cut::TooLong => return wrong("the CSV header is over 64 MiB"),
        };
        if self.cells.len() > MAX_COLUMNS {
            return wrong("the CSV header has over 10,000 columns");
        }
        let bytes = self.window.bytes();
        let name =
            |cell: &Cell| String::from_utf8_lossy(&bytes[cell.start..cell.end]).replace("\"\"", "\"").trim().to_owned();
        let names: Vec<String> = self.cells.iter().map(name).collect();
        self.header = names
            .iter()
            .enumerate()
            .map(|(at, name)| Column { name: name.clone(), shadowed: names[at + 1..].contains(name) })
            .collect();
        self.window.consume(length);
        Ok(())
    }

    /// Finds the cells and the end of the record at the front of the window.
    fn cut_record(&mut self) -> Cut {
        self.cells.clear();
        let mut at = 0;
        loop {
            let (cell, behind) = match self.cut_cell(at) {
                Ok(cut) => cut,
                Err(cut) => return cut,
            };
            // counted on, but not kept, where there are more than any record can have
            if self.cells.len() <= MAX_COLUMNS {
                self.cells.push(cell);
            }
            match self.window.byte(behind) {
                Some(byte) if byte == self.delimiter => at = behind + 1,
                Some(b'\r') if self.window.byte(behind + 1) == Some(b'\n') => {
                    return Cut::Record { length: behind + 2, terminated: true };
                }
                Some(_) => return Cut::Record { length: behind + 1, terminated: true },
                None if behind == 0 => return Cut::End,
                None => return Cut::Record { length: behind, terminated: false },
            }
        }
    }

    /// The cell that starts at `start`, and where the delimiter, line end or end of input behind it is.
    fn cut_cell(&mut self, start: usize) -> Result<(Cell, usize), Cut> {
        if self.window.byte(start) == Some(b'"') {
            return self.cut_quoted_cell(start + 1);
        }
        let delimiter = self.delimiter;
        let end = self.find(start, |bytes| memchr3(delimiter, b'\n', b'\r', bytes))?;
        let end = end.unwrap_or(self.window.bytes().len());
        Ok((Cell { start, end, quoting: Quoting::None }, end))
    }

    fn cut_quoted_cell(&mut self, start: usize) -> Result<(Cell, usize), Cut> {
        let mut quoting = Quoting::Plain;
        let mut from = start;
        loop {
            let end = self.find(from, |bytes| memchr(b'"', bytes))?.ok_or(Cut::Unclosed)?;
            match self.window.byte(end + 1) {
                Some(b'"') => {
                    quoting = Quoting::Doubled;
                    from = end + 2;
                }
                Some(byte) if byte != self.delimiter && byte != b'\n' && byte != b'\r' => return Err(Cut::StrayQuote),
                _ => return Ok((Cell { start, end, quoting }, end + 1)),
            }
        }
    }

    /// Where `search` finds something at or behind `from`, extending the window as needed; `None` at the end of the input.
    fn find(&mut self, mut from: usize, search: impl Fn(&[u8]) -> Option<usize>) -> Result<Option<usize>, Cut> {
        loop {
            let bytes = self.window.bytes();
            let found = search(bytes.get(from..).unwrap_or_default()).map(|found| from + found);
            if found.unwrap_or(bytes.len()) > MAX_RECORD {
                return Err(Cut::TooLong);
            }
            if found.is_some() {
                return Ok(found);
            }
            from = bytes.len().max(from);
            if !self.window.extend() {
                return Ok(None);
            }
        }
    }

    fn skip_blank_lines(&mut self) {
        while let Some(b'\n' | b'\r') = self.window.byte(0) {
            self.window.consume(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn records_of(content: impl Into<Vec<u8>>) -> CsvRecords {
        CsvRecords::new(Cursor::new(content.into()), b',').unwrap()
    }

    /// Each record as its cells joined by `|`, null as `-`; each reject as its reason and detail.
    fn rows(mut records: CsvRecords) -> Vec<String> {
        let mut rows = Vec::new();
        while let Some(row) = records.next_row().unwrap() {
            rows.push(match row {
                Row::Record { offset, cells } => {
                    let cells: Vec<_> = cells.iter().map(|cell| cell.unwrap_or("-".into()).into_owned()).collect();
                    format!("{offset}: {}", cells.join("|"))
                }
                Row::Rejected { offset, reject, detail } => format!("{offset}: {reject:?}, {detail}"),
            });
        }
        rows
    }

    fn rows_of(content: impl Into<Vec<u8>>) -> Vec<String> {
        rows(records_of(content))
    }

    #[test]
    fn records_come_with_their_offsets_whatever_ends_the_lines() {
        for (content, second) in [("a,b\n1,2\n3,4\n", 8), ("a,b\r\n1,2\r\n3,4", 10), ("a,b\n\n1,2\n3,4\n\n", 9)] {
            let rows = rows_of(content);
            assert_eq!(rows[1], format!("{second}: 3|4"), "{content:?}");
            assert_eq!(rows.len(), 2);
        }
    }

    #[test]
    fn the_header_is_trimmed_and_the_last_of_equal_names_wins() {
        let records = records_of("\u{feff} a ,\"b \"\"x\"\"\",a,\n");
        let columns: Vec<_> = records.header().iter().map(|column| (column.name.as_str(), column.shadowed)).collect();
        assert_eq!(columns, [("a", true), ("b \"x\"", false), ("a", false), ("", false)]);
        assert!(records_of("").header().is_empty());
        assert!(CsvRecords::new(Cursor::new("a,\"b\n1,2\n"), b',').is_err());
    }

    #[test]
    fn quoted_cells_hold_delimiters_newlines_and_quotes() {
        assert_eq!(rows_of("a,b\n\"1,\n\r\n\",\"say \"\"hi\"\"\"\n"), ["4: 1,\n\r\n|say \"hi\""]);
        assert_eq!(rows_of("a,b\n5\" disk,x\"\"y\n"), ["4: 5\" disk|x\"\"y"]);
    }

    #[test]
    fn an_empty_cell_is_null_and_an_empty_quoted_one_is_text() {
        assert_eq!(rows_of("a,b,c\n,\"\",\n"), ["6: -||-"]);
    }

    #[test]
    fn one_bad_record_costs_that_record_only() {
        let malformed = "4: Malformed, wrong number of cells: found";
        assert_eq!(rows_of("a,b\n1,2,3\n4,5\n"), [format!("{malformed} 3, header has 2"), "10: 4|5".into()]);
        assert_eq!(rows_of("a,b\n1\n4,5\n"), [format!("{malformed} 1, header has 2"), "6: 4|5".into()]);
        assert!(rows_of(b"a,b\n1,\xff\n4,5\n")[0].starts_with("4: BadUtf8, "));
        assert_eq!(rows_of(b"a,b\n1,\xff\n4,5\n")[1], "8: 4|5");
        assert_eq!(rows_of("a,b\n1,\"x\"y\n4,5\n"), ["4: Malformed, text after a closing quote", "11: 4|5"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_does_not_swallow_the_lines_behind_it() {
        assert_eq!(rows_of("a,b\n1,\"x\n4,5\n6,7"), ["4: CutOff, a quote is never closed", "9: 4|5", "13: 6|7"]);
        let closed_late = rows_of("a,b\n1,\"x\n4,5\n6,\"y\"\n");
        assert_eq!(closed_late, ["4: Malformed, text after a closing quote", "9: 4|5", "13: 6|y"]);
        let long = "1,2\n".repeat(MAX_RECORD / 4);
        let mut records = records_of(format!("a,b\n1,\"x\n{long}"));
        let first = records.next_row().unwrap();
        assert!(matches!(first, Some(Row::Rejected { offset: 4, reject: Reject::TooLong, .. })), "{first:?}");
        assert!(matches!(records.next_row().unwrap(), Some(Row::Record { offset: 9, .. })));
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_rejected() {
        assert_eq!(rows_of("a,b\n1,2\n3"), ["4: 1|2", "8: CutOff, the input ends inside the record"]);
    }

    #[test]
    fn behind_damage_even_a_full_number_of_cells_may_be_cut_off() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut records = CsvRecords::new(Cursor::new(b"a,b\n1,2\n3,45").chain(Failing), b',').unwrap();
        assert!(matches!(records.next_row().unwrap(), Some(Row::Record { offset: 4, .. })));
        let cut = records.next_row().unwrap();
        assert!(matches!(cut, Some(Row::Rejected { offset: 8, reject: Reject::CutOff, .. })), "{cut:?}");
        assert_eq!(records.next_row().unwrap_err().to_string(), "broken");
    }

    proptest! {
        #[test]
        fn every_line_of_any_text_is_accounted_for(content in "[a\",\né]{0,40}") {
            let header = "x,y\n";
            let rows = rows_of(format!("{header}{content}"));
            let lines = content.lines().filter(|line| !line.is_empty()).count();
            prop_assert!(rows.len() <= lines && (rows.is_empty() == (lines == 0)));
        }

        #[test]
        fn what_the_csv_crate_writes_is_read_back(
            table in prop::collection::vec(prop::collection::vec("[a\", ;\n\ré]{0,5}", 3), 1..6),
            crlf in any::<bool>(),
            delimiter in prop::sample::select(b",;\t|".to_vec()),
        ) {
            let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer =
                csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
            writer.write_record(["x", "y", "z"]).unwrap();
            for record in &table {
                writer.write_record(record).unwrap();
            }
            let mut records = CsvRecords::new(Cursor::new(writer.into_inner().unwrap()), delimiter).unwrap();
            for record in &table {
                let row = records.next_row().unwrap();
                let Some(Row::Record { cells, .. }) = row else { panic!("{row:?}") };
                let cells: Vec<_> = cells.iter().map(|cell| cell.unwrap_or_default().into_owned()).collect();
                prop_assert_eq!(&cells, record);
            }
            prop_assert!(records.next_row().unwrap().is_none());
        }
    }
}
