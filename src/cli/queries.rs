//! `infer-stats queries`

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// List the queries that `run` knows, or show one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct QueriesArgs {
    /// The query to show
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// A folder with queries of your own; can be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub queries: Vec<PathBuf>,

    /// The config to use, also from INFER_STATS_CONFIG, instead of the nearest infer-stats.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats queries
  infer-stats queries latency
  infer-stats queries --queries my-reports/";
