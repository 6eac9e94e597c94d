//! Looking for ids in logs without reading them: the lines that may hold one are found as bytes, and only those are decoded.
//!
//! That goes where every line is a record of its own. Other logs (arrays, CSV, records that come in pieces or that are put
//! together from several) are read whole, and Parquet has its statistics.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;

use crate::source::LogFile;
use crate::source::blocks::Blocks;
use crate::source::compression::is_damage;
use crate::source::cuts;
use crate::source::format::Format;
use crate::source::logs::Logs;
use crate::source::needles::{Hit, Needles};
use crate::source::plan::ReadPlan;
use crate::source::window::Piece;

/// Bytes of one piece of a log.
const PIECE: u64 = 16 << 20;

/// Bytes of lines with an id that are kept: no request has that many.
const MOST_BYTES: u64 = 512 << 20;

/// Lines of a piece of a log that are kept although an id only begins there: enough to say what it may have meant.
const MOST_BEGINNINGS: usize = 256;

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte of the decoded file where it starts.
    pub offset: u64,
    /// With its newline.
    pub text: Vec<u8>,
    /// False where what was looked for is only the beginning of an id.
    pub is_whole: bool,
}

/// The lines that may hold an id, by the index of their log; a log that was not searched is not in it.
#[derive(Clone, Debug, Default)]
pub struct Found(BTreeMap<usize, Vec<Line>>);

impl Found {
    /// The lines of a log; None where it must be read whole.
    pub fn of(&self, file: &LogFile) -> Option<&[Line]> {
        self.0.get(&file.index).map(Vec::as_slice)
    }

    /// Only the lines with an id as a whole.
    pub fn whole(&self) -> Self {
        let whole = |lines: &Vec<Line>| lines.iter().filter(|line| line.is_whole).cloned().collect();
        Self(self.0.iter().map(|(file, lines)| (*file, whole(lines))).collect())
    }
}

impl Logs {
    /// Finds the lines that may hold one of the ids.
    ///
    /// # Errors
    /// A log cannot be read, or far too many lines hold an id.
    pub fn search(&self, needles: &Needles, threads: usize) -> anyhow::Result<Found> {
        let mut tasks = Vec::new();
        for file in self.texts.iter() {
            if self.is_of_lone_lines(file)? {
                tasks.extend(pieces(file));
            }
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
        for ((index, _), lines) in search.done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match lines {
                Some(lines) => found.0.entry(index).or_default().extend(lines),
                // what is damaged is read, so that it is counted
                None => _ = found.0.remove(&index),
            }
        }
        Ok(found)
    }

    /// Whether each line of a log is a record by itself.
    fn is_of_lone_lines(&self, file: &LogFile) -> anyhow::Result<bool> {
        let is_of_lines = matches!(file.input.format, Format::Ndjson | Format::Text) && file.rows.is_none();
        if !is_of_lines || !file.input.is_file() {
            return Ok(false);
        }
        let plan = Arc::new(ReadPlan::new(&self.schema, &[], &self.mappings[file.mapping])?);
        let head = cuts::head(file).with_context(|| format!("could not read {}", file.input.name))?;
        Ok(!cuts::Look::at(&head, file, &plan).is_of_parts())
    }
}

/// A log, and the bytes in which the lines of a piece of it start; all of a log that cannot be cut.
struct Task<'a> {
    file: &'a LogFile,
    range: Option<Range<u64>>,
}

fn pieces(file: &LogFile) -> Vec<Task<'_>> {
    match file.input.size.filter(|_| file.is_splittable()) {
        Some(size) => {
            let starts = (0..size).step_by(PIECE as usize);
            starts.map(|start| Task { file, range: Some(start..size.min(start + PIECE)) }).collect()
        }
        None => vec![Task { file, range: None }],
    }
}

/// One search, shared by its threads.
struct Search<'a> {
    needles: &'a Needles,
    /// The next task.
    next: AtomicUsize,
    /// Bytes of the lines so far.
    kept: AtomicU64,
    /// The lines of each piece, by the index of the log and the place of the piece; None where the log is damaged.
    done: Mutex<BTreeMap<(usize, usize), Option<Vec<Line>>>>,
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
            let bytes = lines.iter().flatten().map(|line| line.text.len() as u64).sum();
            let kept = self.kept.fetch_add(bytes, Ordering::Relaxed) + bytes;
            anyhow::ensure!(kept <= MOST_BYTES, "too many lines hold that id for one of a request: give the whole id");
            self.done.lock().unwrap_or_else(PoisonError::into_inner).insert((task.file.index, number), lines);
        }
    }

    fn lines(&self, task: &Task<'_>) -> io::Result<Vec<Line>> {
        let input = &task.file.input;
        let mut blocks = match (&task.range, input.plain_file()) {
            (Some(range), Some(path)) => Blocks::range(Arc::new(File::open(path)?), range.start, range.end),
            _ => Blocks::new(input.open()?),
        };
        let mut lines = Vec::new();
        let mut beginnings = 0;
        while let Some(piece) = blocks.next_block()? {
            // a line that is too long is no record, whatever it holds
            let Piece::Text { offset, bytes } = piece else { continue };
            self.needles.find(bytes, |Hit { line, is_whole }| {
                beginnings += usize::from(!is_whole);
                if is_whole || beginnings <= MOST_BEGINNINGS {
                    let offset = offset + line.start as u64;
                    lines.push(Line { offset, text: bytes[line].to_vec(), is_whole });
                }
            });
        }
        Ok(lines)
    }
}
