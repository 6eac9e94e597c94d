//! `infer-stats id`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::choice;
use crate::request::Format;

/// What request ids say of themselves: when they were made, where, and what they do not hold
///
/// Reads UUIDs, ULIDs, snowflakes, trace ids and headers, ids with a date or a Unix time, and others. An id of no known
/// form is a row that says so; exit with 5 where no id has one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct IdArgs {
    /// Ids, or - for standard input with one a line, as without any
    #[arg(value_name = "ID")]
    pub ids: Vec<OsString>,

    /// Where snowflakes count from [default: guessed, and said]
    #[arg(long, value_name = "TIME")]
    pub epoch: Option<String>,

    /// The time that tells which times are plausible, instead of the clock
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,

    // Offsets west of Greenwich begin with a hyphen.
    /// Time zone of the times shown, as in Asia/Shanghai or +08:00 [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub tz: Option<String>,

    /// Time zone of dates in ids [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub source_tz: Option<String>,

    /// How the answer is written
    #[arg(long, value_name = "FORMAT", value_parser = choice::<Format>(), default_value = "table")]
    pub format: Format,

    /// Write the answer to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// The config to use, also from INFER_STATS_CONFIG, instead of the nearest infer-stats.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats id 0197a3f2-c1d0-7cc3-98c4-dc0c0c07398f req_20250601_00042
  infer-stats id --epoch 2024-01-01 175928847299117063
  infer-stats id --format csv - > ids.csv";
