//! `infer-stats trace`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{ReportFlags, choice};
use crate::request::Role;

/// Everything the logs say about one request, on one time axis: what was slow, what is missing, who was beside it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// The request's id, its beginning, or the id of its trace or batch; several separated by commas
    ///
    /// With --ids-from this is the first of the LOGS.
    #[arg(value_name = "ID", required_unless_present = "ids_from")]
    pub id: Option<String>,

    /// Take the ids from this file, or - for standard input, one a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ids_from: Option<PathBuf>,

    /// Only the request itself: no neighbours, and no comparison with others of its kind
    #[arg(long)]
    pub alone: bool,

    /// Print each step of its tokens
    #[arg(long)]
    pub tokens: bool,

    /// Look so much longer before and after it for what ran on its GPU, as in 30s
    #[arg(long, value_name = "SPAN")]
    pub context: Option<String>,

    /// Exit with 3 where one of these roles has no record of it
    #[arg(long, value_name = "ROLES", value_delimiter = ',', value_parser = choice::<Role>())]
    pub require: Vec<Role>,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats trace req-slowqueue-01 logs/
  infer-stats trace req-slow,req-fast --format html -o compare.html logs/
  infer-stats trace req-canary --require gateway,engine,app logs/      did it pass through the whole chain?
  infer-stats trace req-slow --alone --format json logs/               only its own records, at the speed of grep";
