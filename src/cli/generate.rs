//! `infer-stats generate`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::choice;
use crate::request::LogFormat;

/// Write realistic logs, the same for the same seed, to try things out on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,

    /// Another seed gives other logs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How the logs are written
    #[arg(long, value_name = "FORMAT", value_parser = choice::<LogFormat>(), default_value = "ndjson")]
    pub format: LogFormat,

    /// The folder to write to
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,

    /// When the first day begins
    #[arg(long, value_name = "TIME", default_value = "2025-06-01")]
    pub start: String,

    /// How many days the requests spread over
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3660))]
    pub days: u32,

    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats generate -o demo/
  infer-stats generate --rows 2000000 --seed 7 --format parquet --days 30 -o demo/";
