//! Looking for ids in logs without reading them: the lines that may hold one are found as bytes, and only those are decoded.
//!
//! That goes where every line is a record of its own. Other logs (arrays, CSV, records that come in pieces or that are put
//! together from several) are read whole, and Parquet has its statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use memchr::{memchr, memchr_iter};

use crate::source::LogFile;
use crate::source::blocks::Blocks;
use crate::source::compression::is_damage;
use crate::source::cuts::{self, Lines, Look};
use crate::source::format::Format;
use crate::source::logs::Logs;
use crate::source::mapped::Mapped;
use crate::source::needles::{Hit, Needles};
use crate::source::plan::ReadPlan;
use crate::source::window::{BYTE_ORDER_MARK, Piece};

/// Bytes of one piece of a log.
const PIECE: u64 = 16 << 20;

/// Bytes that are looked through at once: they stay in the cache of a core while they are looked through for each thing.
const BLOCK: usize = 256 << 10;

/// Bytes of lines with an id that are kept: where more hold it (an id may be a small number), the logs are read whole.
const MOST_BYTES: u64 = 64 << 20;

/// Lines of a piece of a log that are kept although an id only begins there: enough to say what it may have meant.
const MOST_BEGINNINGS: usize = 256;

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte of the decoded file where it starts.
    pub offset: u64,
    /// Counted from 1.
    pub number: u64,
    /// With its newline.
    pub text: Vec<u8>,
    /// False where what was looked for is only the beginning of an id.
    pub is_whole: bool,
}

/// The lines that may hold an id, by the index of their log; a log that was not searched is not in it.
#[derive(Clone, Debug, Default)]
pub struct Found {
    lines: BTreeMap<usize, Vec<Line>>,
    /// Logs whose lines may come in pieces.
    pieced: BTreeSet<usize>,
}

impl Found {
    /// The lines of a log; None where it must be read whole.
    pub fn of(&self, file: &LogFile) -> Option<&[Line]> {
        self.lines.get(&file.index).map(Vec::as_slice)
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.lines.values().map(Vec::len).sum()
    }

    /// The number of the line at a byte of a log, where that was searched.
    pub fn number(&self, file: usize, offset: u64) -> Option<u64> {
        let lines = self.lines.get(&file)?;
        Some(lines[lines.binary_search_by_key(&offset, |line| line.offset).ok()?].number)
    }

    /// Only the lines with an id as a whole.
    pub fn whole(&self) -> Self {
        let whole = |lines: &Vec<Line>| lines.iter().filter(|line| line.is_whole).cloned().collect();
        let lines = self.lines.iter().map(|(file, lines)| (*file, whole(lines))).collect();
        Self { lines, pieced: self.pieced.clone() }
    }

    /// The same without the logs whose lines may come in pieces; None where there are none.
    pub fn without_pieces(&self) -> Option<Self> {
        let lines = self.lines.iter().filter(|(file, _)| !self.pieced.contains(file));
        let lines = lines.map(|(file, lines)| (*file, lines.clone())).collect();
        (!self.pieced.is_empty()).then(|| Self { lines, pieced: BTreeSet::new() })
    }
}

impl Logs {
    /// Finds the lines that may hold one of the ids.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn search(&self, needles: &Needles, threads: usize) -> anyhow::Result<Found> {
        let (mut tasks, mut pieced) = (Vec::new(), Vec::new());
        for file in self.texts.iter() {
            match self.lines_of(file)? {
                Lines::Parts => continue,
                Lines::Pieces => pieced.push(file),
                Lines::Records => {}
            }
            tasks.extend(pieces(file));
        }
        let search = Search { needles, next: AtomicUsize::new(0), kept: AtomicU64::new(0), done: Mutex::default() };
        let workers = threads.min(tasks.len());
        thread::scope(|scope| -> anyhow::Result<()> {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| search.work(&tasks))).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        let mut found = Found::default();
        if search.kept.into_inner() > MOST_BYTES {
            return Ok(Found::default());
        }
        let done = search.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        // what is damaged is read whole, so that it is counted
        let damaged: BTreeSet<usize> =
            done.iter().filter(|(_, lines)| lines.is_none()).map(|((index, _), _)| *index).collect();
        let mut before: BTreeMap<usize, u64> = BTreeMap::new();
        for ((index, _), lines) in done {
            let Some(Stretch { mut lines, count, .. }) = lines.filter(|_| !damaged.contains(&index)) else { continue };
            let before = before.entry(index).or_default();
            lines.iter_mut().for_each(|line| line.number += *before);
            *before += count;
            found.lines.entry(index).or_default().extend(lines);
        }
        for file in pieced {
            let lines = found.lines.get(&file.index).map(Vec::as_slice).unwrap_or_default();
            if self.are_whole(file, lines)? {
                found.pieced.insert(file.index);
            } else {
                found.lines.remove(&file.index);
            }
        }
        Ok(found)
    }

    /// What the lines of a log are: its start tells, which is read for the first search only.
    fn lines_of(&self, file: &LogFile) -> anyhow::Result<Lines> {
        if let Some(lines) = file.lines.get() {
            return Ok(*lines);
        }
        let is_of_lines = matches!(file.input.format, Format::Ndjson | Format::Text) && file.rows.is_none();
        if !is_of_lines || !file.input.is_file() {
            return Ok(Lines::Parts);
        }
        let plan = Arc::new(ReadPlan::new(&self.schema, &[], &self.mappings[file.mapping])?);
        let head = cuts::head(file).with_context(|| format!("could not read {}", file.input.name))?;
        Ok(*file.lines.get_or_init(|| Look::at(&head, file, &plan).lines()))
    }

    /// Whether all of some lines are whole records, of a log whose lines may come in pieces.
    fn are_whole(&self, file: &LogFile, lines: &[Line]) -> anyhow::Result<bool> {
        let plan = Arc::new(ReadPlan::new(&self.schema, &[], &self.mappings[file.mapping])?);
        let is_whole = |line: &Line| Look::at(&line.text, file, &plan).is_all_read();
        Ok(lines.iter().all(is_whole))
    }
}

/// A log, and the bytes in which the lines of a piece of it start; all of a log that cannot be cut.
struct Task<'a> {
    file: &'a LogFile,
    range: Option<Range<u64>>,
    /// The log in memory, where it can be.
    mapped: Option<Arc<Mapped>>,
}

fn pieces(file: &LogFile) -> Vec<Task<'_>> {
    let Some(size) = file.input.size.filter(|_| file.is_splittable()) else {
        return vec![Task { file, range: None, mapped: None }];
    };
    let mapped = file.input.plain_file().and_then(Mapped::open).map(Arc::new);
    let starts = (0..size).step_by(PIECE as usize);
    let task = |start: u64| Task { file, range: Some(start..size.min(start + PIECE)), mapped: mapped.clone() };
    starts.map(task).collect()
}

/// One search, shared by its threads.
struct Search<'a> {
    needles: &'a Needles,
    /// The next task.
    next: AtomicUsize,
    /// Bytes of the lines so far.
    kept: AtomicU64,
    /// The lines of each piece, by the index of the log and the place of the piece; None where the log is damaged.
    done: Mutex<BTreeMap<(usize, usize), Option<Stretch>>>,
}

/// The lines that were found in a piece of a log, numbered within it, and how many lines it has.
#[derive(Default)]
struct Stretch {
    lines: Vec<Line>,
    count: u64,
    /// How many of them only begin with an id.
    beginnings: usize,
}

impl Search<'_> {
    fn work(&self, tasks: &[Task<'_>]) -> anyhow::Result<()> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(number) else { return Ok(()) };
            let lines = match self.lines(task) {
                Ok(lines) => Some(lines),
                Err(error) if is_damage(&error) => None,
                Err(error) => return Err(error).with_context(|| format!("could not read {}", task.file.input.name)),
            };
            let found = lines.iter().flat_map(|stretch| &stretch.lines);
            let bytes = found.map(|line| line.text.len() as u64).sum();
            if self.kept.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_BYTES {
                return Ok(());
            }
            self.done.lock().unwrap_or_else(PoisonError::into_inner).insert((task.file.index, number), lines);
        }
    }

    fn lines(&self, task: &Task<'_>) -> io::Result<Stretch> {
        let input = &task.file.input;
        let mut found = Stretch::default();
        if let (Some(range), Some(mapped)) = (&task.range, task.mapped.as_deref()) {
            let bytes = mapped.bytes();
            let mut at = line_start(bytes, range.start as usize);
            let end = line_start(bytes, range.end as usize);
            while at < end {
                let behind = line_start(bytes, (at + BLOCK).min(end));
                self.search(&bytes[at..behind], at as u64, &mut found);
                at = behind;
            }
            return Ok(found);
        }
        let mut blocks = match (&task.range, input.plain_file()) {
            (Some(range), Some(path)) => Blocks::range(Arc::new(File::open(path)?), range.start, range.end),
            _ => Blocks::new(input.open()?),
        };
        while let Some(piece) = blocks.next_block()? {
            let Piece::Text { offset, bytes } = piece else {
                // a line that is too long is no record, whatever it holds
                found.count += 1;
                continue;
            };
            self.search(bytes, offset, &mut found);
        }
        Ok(found)
    }

    /// Looks through whole lines that begin at a byte of the log.
    fn search(&self, bytes: &[u8], offset: u64, found: &mut Stretch) {
        let (mut counted, mut number) = (0, found.count);
        self.needles.find(bytes, |Hit { line, is_whole }| {
            found.beginnings += usize::from(!is_whole);
            number += newlines(&bytes[counted..line.start]);
            counted = line.start;
            if is_whole || found.beginnings <= MOST_BEGINNINGS {
                let offset = offset + line.start as u64;
                found.lines.push(Line { offset, number: number + 1, text: bytes[line].to_vec(), is_whole });
            }
        });
        found.count = number + newlines(&bytes[counted..]);
    }
}

/// Where the first line begins that starts at a byte or behind it.
fn line_start(bytes: &[u8], at: usize) -> usize {
    match at {
        // a mark of the byte order is no part of the first line
        0 => {
            if bytes.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            }
        }
        at if at >= bytes.len() => bytes.len(),
        at => memchr(b'\n', &bytes[at - 1..]).map_or(bytes.len(), |newline| at + newline),
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_line_begins_in_one_of_the_pieces_that_a_text_is_cut_into(
            text in "(\u{feff}|)[ab\n]{0,40}",
            mut cuts in prop::collection::vec(0..45_usize, 0..5),
        ) {
            let bytes = text.as_bytes();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| line_start(bytes, cut[0])..line_start(bytes, cut[1]));
            let joined: Vec<u8> = pieces.clone().flat_map(|piece| bytes[piece].to_vec()).collect();
            prop_assert_eq!(joined, text.trim_start_matches('\u{feff}').as_bytes().to_vec());
            for piece in pieces.filter(|piece| !piece.is_empty()) {
                prop_assert!(piece.end == bytes.len() || bytes[piece.end - 1] == b'\n');
            }
        }
    }
}
