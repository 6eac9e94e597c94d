//! `infer-stats run`

use clap::Args;

use super::ReportFlags;

/// Run a query by its name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// A name that `infer-stats queries` lists
    #[arg(value_name = "NAME")]
    pub name: String,

    /// A parameter of the query; can be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats run latency logs/
  infer-stats run slow-tenants --queries my-reports/ --param limit_ms=2000 logs/*.ndjson";
