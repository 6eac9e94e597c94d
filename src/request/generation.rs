//! What `generate` is to write.

use std::path::PathBuf;

use jiff::Timestamp;

use super::Word;

/// Made-up logs: how many, from which seed, over which days, where.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Requests, at least 1.
    pub rows: u64,
    pub seed: u64,
    pub format: LogFormat,
    pub folder: PathBuf,
    pub start: Timestamp,
    /// Days from `start` that the requests spread over, at least 1.
    pub days: u32,
    /// Overwrite files that are there already.
    pub force: bool,
}

/// How made-up logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Ndjson,
    Parquet,
}

impl Word for LogFormat {
    const KIND: &'static str = "log format";
    const WORDS: &'static [(&'static str, Self)] = &[("ndjson", LogFormat::Ndjson), ("parquet", LogFormat::Parquet)];
}
