//! One log file while it is written: lines put in order, a temporary name until all is done.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempPath;

use super::GeneratedFile;
use super::line::Line;
use super::ndjson::NdjsonWriter;
use super::parquet::ParquetWriter;
use crate::request::{LogFormat, Word};

/// A log file that is not finished.
pub struct LogFile<L> {
    target: PathBuf,
    /// Removed when dropped, unless it was renamed.
    partial: TempPath,
    writer: Writer,
    /// Lines that an earlier one may still come before. The second number keeps lines of one moment
    /// in order.
    waiting: BTreeMap<(i64, u64), L>,
    pushed: u64,
}

/// A log file that is complete, under its temporary name.
pub struct CompleteFile {
    target: PathBuf,
    partial: TempPath,
    rows: u64,
}

enum Writer {
    Ndjson(NdjsonWriter),
    Parquet(Box<ParquetWriter>),
}

/// Where a file stands until it is complete.
pub fn partial_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.partial"))
}

impl<L: Line> LogFile<L> {
    /// Starts the file in `folder`. An error where a file with content stands in its place and
    /// `force` is not given.
    pub fn create(folder: &Path, format: LogFormat, force: bool) -> Result<Self> {
        let name = format!("{}.{}", L::LOG, format.word());
        let target = folder.join(&name);
        if !force && fs::metadata(&target).is_ok_and(|file| file.len() > 0) {
            bail!("{} is there already: choose another folder, or replace it with --force", target.display());
        }
        let partial = partial_path(folder, &name);
        let file = File::create(&partial)
            .with_context(|| format!("cannot write {}: check the folder and its permissions", partial.display()))?;
        let partial = TempPath::try_from_path(partial).context("cannot name the temporary file")?;
        let writer = match format {
            LogFormat::Ndjson => Writer::Ndjson(NdjsonWriter::new(file)),
            LogFormat::Parquet => Writer::Parquet(Box::new(ParquetWriter::new::<L>(file)?)),
        };
        Ok(LogFile { target, partial, writer, waiting: BTreeMap::new(), pushed: 0 })
    }

    /// Takes a line that is written in its turn.
    pub fn push(&mut self, line: L) {
        self.waiting.insert((line.at_us(), self.pushed), line);
        self.pushed += 1;
    }

    /// Writes the lines up to a moment that no later line comes before.
    pub fn write_before(&mut self, at_us: i64) -> Result<()> {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 >= at_us {
                break;
            }
            let line = first.remove();
            self.write(&line)?;
        }
        Ok(())
    }

    /// Writes what is left and closes the file.
    pub fn complete(mut self) -> Result<CompleteFile> {
        self.write_before(i64::MAX)?;
        let closed = match self.writer {
            Writer::Ndjson(writer) => writer.close(),
            Writer::Parquet(writer) => writer.close(),
        };
        closed.with_context(|| cannot_write(&self.target))?;
        Ok(CompleteFile { target: self.target, partial: self.partial, rows: self.pushed })
    }

    fn write(&mut self, line: &L) -> Result<()> {
        let written = match &mut self.writer {
            Writer::Ndjson(writer) => writer.write(line),
            Writer::Parquet(writer) => writer.write(line),
        };
        written.with_context(|| cannot_write(&self.target))
    }
}

impl CompleteFile {
    /// Gives the file its name.
    pub fn publish(self) -> Result<GeneratedFile> {
        self.partial.persist(&self.target).with_context(|| cannot_write(&self.target))?;
        let bytes = fs::metadata(&self.target).with_context(|| cannot_write(&self.target))?.len();
        Ok(GeneratedFile { path: self.target, rows: self.rows, bytes })
    }
}

fn cannot_write(target: &Path) -> String {
    format!("cannot write {}: check the free space and the folder's permissions", target.display())
}
