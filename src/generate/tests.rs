//! The generated logs as a whole.

mod files;
mod truth;

use std::fs;
use std::path::Path;

use serde_json::Value;

use jiff::Timestamp;

use super::*;
use crate::request::LogFormat;

/// Sunday, 1 June 2025.
const START: Timestamp = Timestamp::constant(1_748_736_000, 0);

const DAYS: u32 = 30;

/// Three generated logs in a folder of their own.
struct Logs {
    folder: tempfile::TempDir,
    generated: Generated,
}

fn plan(folder: &Path, rows: u64, format: LogFormat) -> Generation {
    Generation { rows, seed: 42, format, folder: folder.to_path_buf(), start: START, days: DAYS, force: false }
}

fn logs(rows: u64, format: LogFormat) -> Logs {
    let folder = tempfile::tempdir().unwrap();
    let generated = generate(&plan(folder.path(), rows, format)).unwrap();
    Logs { folder, generated }
}

impl Logs {
    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    fn lines(&self, log: &str) -> Vec<Value> {
        let text = String::from_utf8(self.bytes(&format!("{log}.ndjson"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap()
}
