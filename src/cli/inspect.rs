//! `infer-stats inspect`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::ReportFlags;

/// What is in these logs, and how each key of them is read
///
/// Formats, rejects, time range, and the column and unit that each key maps to: the first thing to run on a new log.
/// With --format jsonl it prints the records as they were read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// Check the logs against the fields, types and units in this file; exit with 3 where they differ
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub expect: Option<PathBuf>,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats inspect logs/
  infer-stats inspect --format jsonl --top 10 gateway.ndjson.gz
  infer-stats inspect --expect fields.toml sample.ndjson";
