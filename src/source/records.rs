//! The records of one file or a piece of one, whatever form they stand in.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::record::excerpt::Excerpt;
use crate::source::LogFile;
use crate::source::blocks::Blocks;
use crate::source::csv::{self, CsvRecords, Row};
use crate::source::document::Documents;
use crate::source::format::Format;
use crate::source::json::{LineDecoder, ObjectWriter, RecordParser, Writing, write_text};
use crate::source::plan::ReadPlan;
use crate::source::reader::RawRecord;
use crate::source::rows::Rows;
use crate::source::search::Line;
use crate::source::sink::{RecordSink, TopLevel};
use crate::source::value::{RawValue, Reject};
use crate::source::window::Piece;

/// The records of one piece, by the form they stand in.
pub enum Records {
    /// Rows of Parquet, read as the JSON that they say.
    Rows {
        rows: Rows,
        decoder: Box<LineDecoder>,
    },
    Lines {
        blocks: Blocks,
        decoder: Box<LineDecoder>,
    },
    /// Lines that were found already.
    Found {
        lines: VecDeque<Line>,
        decoder: Box<LineDecoder>,
    },
    Documents {
        documents: Documents,
        parser: Box<RecordParser>,
    },
    Csv {
        records: CsvRecords,
        slots: Vec<Option<u32>>,
        present: Vec<u32>,
    },
}

/// Opens a file, or a range of it; the counter tells how many bytes on disk a compressed one has used.
pub fn open(
    file: &LogFile,
    plan: &ReadPlan,
    range: Option<(u64, u64)>,
) -> io::Result<(Records, Option<Arc<AtomicU64>>)> {
    let decoder = || Box::new(LineDecoder::new(plan.wanted.clone(), Writing::Plain));
    if let Some(path) = &file.rows {
        let rows = Rows::open(path)?;
        return Ok((Records::Rows { rows, decoder: decoder() }, None));
    }
    let lines = |blocks| Records::Lines { blocks, decoder: decoder() };
    if let (true, Some(path)) = (file.is_splittable(), file.input.plain_file()) {
        let opened = Arc::new(File::open(path)?);
        let (start, end) = range.unwrap_or((0, u64::MAX));
        return Ok((lines(Blocks::range(opened, start, end)), None));
    }
    let stream = file.input.open()?;
    let packed = stream.consumed();
    let records = match file.input.format {
        Format::Csv { delimiter } => {
            let records = CsvRecords::new(stream, delimiter)?;
            let slots = plan.slots_of_header(records.header().iter().map(|column| column.name.as_str()));
            let present = slots.iter().flatten().copied().collect();
            Records::Csv { records, slots, present }
        }
        Format::JsonArray | Format::JsonObjects => Records::Documents {
            documents: Documents::new(stream),
            parser: Box::new(RecordParser::new(plan.wanted.clone())),
        },
        _ => lines(Blocks::new(stream)),
    };
    Ok((records, Some(packed)))
}

impl Records {
    pub fn found(lines: &[Line], plan: &ReadPlan) -> Self {
        let decoder = Box::new(LineDecoder::new(plan.wanted.clone(), Writing::Plain));
        Records::Found { lines: lines.iter().cloned().collect(), decoder }
    }

    /// Reads a stretch of records into the sink and returns its length in bytes; None at the end.
    pub fn advance(&mut self, sink: &mut RecordSink<'_, TopLevel>) -> io::Result<Option<usize>> {
        match self {
            Records::Rows { rows, decoder } => match rows.next_lines()? {
                Some(lines) => {
                    // a row has no place in bytes
                    sink.level.base = u64::MAX >> 1;
                    decoder.decode(lines, sink);
                    Ok(Some(lines.len()))
                }
                None => Ok(None),
            },
            Records::Lines { blocks, decoder } => match blocks.next_block()? {
                Some(Piece::Text { offset, bytes }) => {
                    sink.level.base = offset;
                    decoder.decode(bytes, sink);
                    Ok(Some(bytes.len()))
                }
                Some(Piece::Rejected { offset, reject }) => Ok(Some(sink.reject_at(offset, reject))),
                Some(Piece::Line { .. }) | None => Ok(None),
            },
            Records::Found { lines, decoder } => Ok(lines.pop_front().map(|line| {
                sink.level.base = line.offset;
                decoder.decode(&line.text, sink);
                line.text.len()
            })),
            Records::Documents { documents, parser } => match documents.next_object()? {
                Some(Piece::Text { offset, bytes }) => {
                    sink.level.base = offset;
                    match parser.parse(bytes) {
                        Ok(record) => sink.take(&record, 0, || Cow::Borrowed(bytes)),
                        Err(reject) => sink.desk.rejected(offset, bytes, reject),
                    }
                    Ok(Some(bytes.len()))
                }
                Some(Piece::Rejected { offset, reject }) => Ok(Some(sink.reject_at(offset, reject))),
                Some(Piece::Line { .. }) => {
                    sink.desk.reader.counts.skip("text");
                    Ok(Some(0))
                }
                None => Ok(None),
            },
            Records::Csv { records, slots, present } => {
                let duplicates = records.header().iter().filter(|column| column.shadowed).count() as u32;
                let header = records.header().to_vec();
                match records.next_row()? {
                    Some(Row::Record { offset, cells }) => {
                        sink.level.base = offset;
                        let cells = cells.iter().collect();
                        let record = CsvRecord { slots, present, cells, duplicates };
                        sink.take(&record, 0, || Cow::Owned(record.json(&header)));
                        Ok(Some(0))
                    }
                    Some(Row::Rejected { offset, reject, detail }) => {
                        sink.desk.rejected(offset, detail.as_bytes(), reject);
                        Ok(Some(0))
                    }
                    None => Ok(None),
                }
            }
        }
    }
}

impl RecordSink<'_, TopLevel> {
    /// A record that no parser saw; counts as no bytes, since its length is not known.
    fn reject_at(&mut self, offset: u64, why: Reject) -> usize {
        self.desk.rejected(offset, b"", why);
        0
    }
}

/// A CSV record seen by slots: all its values are text, an empty cell is null.
struct CsvRecord<'a> {
    /// The slot of each column of the header.
    pub slots: &'a [Option<u32>],
    /// The slots of all columns.
    pub present: &'a [u32],
    pub cells: Vec<Option<Cow<'a, str>>>,
    pub duplicates: u32,
}

impl CsvRecord<'_> {
    /// The record as a JSON object, for what takes records apart.
    fn json(&self, header: &[csv::Column]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut object = ObjectWriter::new(&mut text);
        for (column, cell) in header.iter().zip(&self.cells).filter(|(column, _)| !column.shadowed) {
            let out = object.key(&column.name);
            match cell {
                Some(cell) => write_text(cell, out),
                None => out.extend_from_slice(b"null"),
            }
        }
        object.end();
        text
    }
}

impl RawRecord for CsvRecord<'_> {
    fn raw(&self, slot: usize) -> RawValue<'_> {
        // the last of columns with one name wins, as with duplicate keys
        let column = self.slots.iter().rposition(|candidate| *candidate == Some(slot as u32));
        match column.and_then(|column| self.cells.get(column)) {
            None => RawValue::Missing,
            Some(None) => RawValue::Null,
            Some(Some(text)) => RawValue::Text { bytes: text.as_bytes(), escaped: false },
        }
    }

    fn excerpt(&self, _: usize) -> Option<Excerpt<'_>> {
        None
    }

    /// The rows of a file all have its columns.
    fn layout(&self) -> Option<usize> {
        Some(0)
    }

    fn present(&self) -> &[u32] {
        self.present
    }

    fn duplicate_keys(&self) -> u32 {
        self.duplicates
    }
}
