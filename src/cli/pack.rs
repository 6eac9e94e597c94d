//! `infer-stats report`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::ReportFlags;

/// Write the monthly pack: cost, quota, latency by prompt length, errors, cache and audit, as Markdown
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PackArgs {
    /// The price book; without one that of the config
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prices: Option<PathBuf>,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats report --month 2025-06 logs/
  infer-stats report --month 2025-06 --tz Asia/Shanghai -o june.md logs/";
