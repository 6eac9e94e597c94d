//! The records that were rejected: the first few to show, all of them for `--rejects FILE`.
//!
//! How many there are travels as metrics; this list only helps a person find them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;

use crate::source::value::Reject;
use crate::source::{LogFile, Place};

/// How many examples are shown.
const SHOWN: usize = 3;

/// Bytes of a rejected record that are kept.
const KEPT: usize = 4096;

/// Collects rejected records from all threads of a scan.
#[derive(Debug, Default)]
pub struct Rejects {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The first by file and offset, whatever thread met them first.
    first: Vec<(Place, Reject)>,
    damages: Vec<String>,
    all: Option<All>,
}

/// Every reject, its text in a temporary file.
#[derive(Debug)]
struct All {
    entries: Vec<(Place, Reject, u64, usize)>,
    texts: BufWriter<File>,
    length: u64,
}

impl Rejects {
    /// Also keeps every reject, for `--rejects`.
    pub fn keeping_all() -> anyhow::Result<Self> {
        let file = tempfile::tempfile().context("could not create a temporary file for the rejected records")?;
        let all = All { entries: Vec::new(), texts: BufWriter::new(file), length: 0 };
        Ok(Self { state: Mutex::new(State { all: Some(all), ..State::default() }) })
    }

    pub fn add(&self, place: Place, why: Reject, text: &[u8]) {
        let mut state = self.lock();
        let at = state.first.partition_point(|(other, _)| *other < place);
        // a report may read the logs twice
        let is_known = state.first.get(at).is_some_and(|(other, _)| *other == place);
        if at < SHOWN && !is_known {
            state.first.insert(at, (place, why));
            state.first.truncate(SHOWN);
        }
        if let Some(all) = &mut state.all {
            let text = &text[..text.len().min(KEPT)];
            // A full disk shows when the list is written out.
            if all.texts.write_all(text).is_ok() {
                all.entries.push((place, why, all.length, text.len()));
                all.length += text.len() as u64;
            }
        }
    }

    /// A file whose compressed bytes end or break in the middle.
    pub fn damage(&self, file: &LogFile, error: &dyn std::fmt::Display) {
        self.lock().damages.push(format!("{}: {error}", file.input.name));
    }

    /// Sentences about damaged files, in a fixed order.
    pub fn damages(&self) -> Vec<String> {
        let mut damages = self.lock().damages.clone();
        damages.sort();
        damages.dedup();
        damages
    }

    /// The first rejected records as `path:line: why`.
    pub fn examples(&self, files: &[Arc<LogFile>]) -> Vec<String> {
        let first = self.lock().first.clone();
        let places: Vec<Place> = first.iter().map(|(place, _)| *place).collect();
        let positions = positions(files, &places);
        first.iter().zip(positions).map(|((_, why), position)| format!("{position}: {why}")).collect()
    }

    /// Writes every reject as one JSON object a line, in the order of the files.
    pub fn write_all(&self, files: &[Arc<LogFile>], path: &Path) -> anyhow::Result<()> {
        let mut state = self.lock();
        let Some(all) = &mut state.all else { return Ok(()) };
        all.entries.sort_by_key(|(place, ..)| *place);
        all.entries.dedup_by_key(|(place, ..)| *place);
        all.texts.flush()?;
        let mut texts = all.texts.get_ref().try_clone()?;
        let places: Vec<Place> = all.entries.iter().map(|(place, ..)| *place).collect();
        let lines = lines(files, &places);
        let could_not = || format!("could not write the rejected records to {}", path.display());
        let mut out = BufWriter::new(File::create(path).with_context(could_not)?);
        for ((place, why, start, length), line) in all.entries.iter().zip(lines) {
            let mut text = vec![0; *length];
            texts.seek(SeekFrom::Start(*start))?;
            texts.read_exact(&mut text)?;
            let entry = serde_json::json!({
                "file": files[place.file].input.name, "line": line, "offset": place.offset, "reason": why.to_string(),
                "text": String::from_utf8_lossy(&text),
            });
            writeln!(out, "{entry}").with_context(could_not)?;
        }
        out.flush().with_context(could_not)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left at most one entry half done: the list is still good to show.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where records start, each as `path:line`; the places are sorted by file and offset.
pub fn positions(files: &[Arc<LogFile>], places: &[Place]) -> Vec<String> {
    places.iter().zip(lines(files, places)).map(|(place, line)| position(files, *place, line)).collect()
}

fn position(files: &[Arc<LogFile>], place: Place, line: Option<u64>) -> String {
    let file = &files[place.file].input.name;
    match line {
        Some(line) => format!("{file}:{line}"),
        None => format!("{file}, byte {}", place.offset),
    }
}

/// The line of each place (sorted by file and offset), counted only now that somebody wants to see it; None for a stream
/// that cannot be read again.
fn lines(files: &[Arc<LogFile>], places: &[Place]) -> Vec<Option<u64>> {
    let mut lines = Vec::with_capacity(places.len());
    let mut open: Option<(usize, LineCounter)> = None;
    for place in places {
        if open.as_ref().is_none_or(|(file, _)| *file != place.file) {
            open = LineCounter::open(&files[place.file]).map(|counter| (place.file, counter));
        }
        lines.push(open.as_mut().and_then(|(_, counter)| counter.line_at(place.offset).ok()));
    }
    lines
}

/// Counts the lines of a file up to growing offsets.
struct LineCounter {
    reader: BufReader<Box<dyn Read + Send>>,
    offset: u64,
    line: u64,
}

impl LineCounter {
    fn open(file: &LogFile) -> Option<Self> {
        if !file.input.is_file() {
            return None;
        }
        let reader = file.input.open().ok()?;
        Some(Self { reader: BufReader::with_capacity(1 << 18, Box::new(reader)), offset: 0, line: 1 })
    }

    fn line_at(&mut self, offset: u64) -> io::Result<u64> {
        while self.offset < offset {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let step = buffer.len().min((offset - self.offset) as usize);
            self.line += memchr::memchr_iter(b'\n', &buffer[..step]).count() as u64;
            self.reader.consume(step);
            self.offset += step as u64;
        }
        Ok(self.line)
    }
}
