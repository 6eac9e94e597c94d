//! The flags that every report shares, under the headings of its help.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::choice;
use crate::request::{Color, Dimension, Format, Matching, THREADS, WeekStart};

/// How the rows of a report are grouped.
#[derive(Debug, Args)]
pub struct GroupFlags {
    /// Dimensions to group by: input-bucket, model, tenant, hour, ... or a column
    #[arg(long, value_name = "LIST", value_delimiter = ',', long_help = by_help(""))]
    pub by: Vec<String>,
}

pub(super) fn by_help(default: &str) -> String {
    let words: Vec<&str> = Dimension::words().collect();
    let without = if default.is_empty() { "one row over everything" } else { default };
    format!(
        "Dimensions to group by, separated by commas; without any, {without}\n\n\
         One of {}, or the name of a column, as in request_id",
        words.join(", ")
    )
}

/// Everything a report takes besides its own question.
#[derive(Debug, Args)]
pub struct ReportFlags {
    #[command(flatten)]
    pub input: InputFlags,
    #[command(flatten)]
    pub time: TimeFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub limits: LimitFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct InputFlags {
    /// Log files, folders or globs, or - for standard input
    ///
    /// Without any, those of the environment variable INFER_STATS_LOGS (separated as in PATH), else those of
    /// infer-stats.toml in this folder or the nearest above it.
    #[arg(value_name = "LOGS", value_hint = ValueHint::AnyPath, help_heading = None)]
    pub logs: Vec<PathBuf>,

    /// Keep only the records that this SQL predicate is true of
    #[arg(long = "where", value_name = "SQL", allow_hyphen_values = true)]
    pub predicate: Option<String>,

    /// Read all records by this profile, a name or the path of a file, instead of recognising them
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,

    /// Put records that share an id together and answer about whole requests instead of records
    #[arg(long)]
    pub requests: bool,

    /// Of whole requests: set the clocks of roles right by what their common requests show
    #[arg(long)]
    pub fix_skew: bool,

    /// What records of one request have in common: an id (id), or else arrival, model and tokens (asof)
    #[arg(long = "match", value_name = "HOW", value_parser = choice::<Matching>(), default_value = "id")]
    pub matching: Matching,

    /// Fill a canonical column from this path, as in ttft_ms=timing.ttft:s; can be repeated
    #[arg(long = "map", value_name = "CANONICAL=PATH[:UNIT]")]
    pub maps: Vec<String>,

    /// Add a column of type text, int, float, bool or timestamp; can be repeated
    #[arg(long = "column", value_name = "NAME=PATH[:TYPE]")]
    pub columns: Vec<String>,

    /// Inner edges of the input buckets, as in 500,2000,8000
    #[arg(long, value_name = "TOKENS,...")]
    pub input_buckets: Option<String>,

    /// Inner edges of the output buckets
    #[arg(long, value_name = "TOKENS,...")]
    pub output_buckets: Option<String>,

    /// Exit with 4 where a record was rejected or a file damaged
    #[arg(long)]
    pub strict: bool,

    /// Write rejected records to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rejects: Option<PathBuf>,

    /// A folder with queries of your own; can be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub queries: Vec<PathBuf>,

    /// The config to use, also from INFER_STATS_CONFIG, instead of the nearest infer-stats.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeFlags {
    /// Requests that arrived at this time or later: 2025-06-01, 2025-06-01T08:30:00Z, 7d (before now), today
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,

    /// Requests that arrived before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,

    /// Requests of one month, as in 2025-06
    #[arg(long, value_name = "YYYY-MM")]
    pub month: Option<String>,

    /// The time that 7d or today count from, instead of the clock
    #[arg(long, value_name = "TIME")]
    pub now: Option<String>,

    // Offsets west of Greenwich begin with a hyphen.
    /// Time zone of the report, as in Asia/Shanghai or +08:00 [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub tz: Option<String>,

    /// Time zone of times in the logs that name none [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub source_tz: Option<String>,

    /// When clocks of logs that count from some start, as in traces, stood at zero
    #[arg(long, value_name = "TIME")]
    pub clock_start: Option<String>,

    /// The day that weeks begin with [default: monday]
    #[arg(long, value_name = "DAY", value_parser = choice::<WeekStart>())]
    pub week_start: Option<WeekStart>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// How the answer is written
    #[arg(long, value_name = "FORMAT", value_parser = choice::<Format>(), default_value = "table")]
    pub format: Format,

    /// Write the answer to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Also write one file for each value of the first column (a business line, say) into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub explode: Option<PathBuf>,

    /// Only the first rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub top: Option<u64>,

    /// Order the rows by a column of the answer
    #[arg(long, value_name = "COLUMN[:asc|desc]")]
    pub sort: Option<String>,

    /// The answer as a heat table: the dimension of its rows, that of its columns, and the measure
    #[arg(long, value_name = "DOWN,ACROSS[,MEASURE]")]
    pub pivot: Option<String>,

    /// Colour the table
    #[arg(long, value_name = "WHEN", value_parser = choice::<Color>(), default_value = "auto")]
    pub color: Color,

    /// Print the SQL as it was run
    #[arg(long)]
    pub show_sql: bool,

    /// No progress, warnings or accounting
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Memory for the query, as in 2GiB; what does not fit is spilled to disk
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Threads to work with [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(THREADS))]
    pub threads: Option<u16>,
}
