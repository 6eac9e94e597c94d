//! `infer-stats check`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::ReportFlags;

/// Check the rules of a policy: budgets, objectives, rates, baselines, findings; exit with 3 where one is broken
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// The policy: rules in TOML
    #[arg(value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub policy: PathBuf,

    /// The price book of rules about money; without one that of the config
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prices: Option<PathBuf>,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats check policy.toml logs/
  infer-stats check policy.toml --month 2025-06 --format markdown logs/
  infer-stats check policy.toml --since 24h --format junit -o verdicts.xml logs/";
