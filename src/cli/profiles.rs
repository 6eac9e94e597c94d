//! `infer-stats profiles`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// List the producers whose logs are known, show a profile, or propose one for a log
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct ProfilesArgs {
    /// The profile to show
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// The config to use, also from INFER_STATS_CONFIG, instead of the nearest infer-stats.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    #[command(subcommand)]
    pub action: Option<ProfilesAction>,
}

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// Propose a profile for the records of a log
    Init {
        /// A log with records of one producer
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        log: PathBuf,
    },
}

const EXAMPLES: &str = "\
Examples:
  infer-stats profiles
  infer-stats profiles litellm
  infer-stats profiles init sample.ndjson > mine.toml";
