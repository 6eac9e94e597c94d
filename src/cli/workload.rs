//! `infer-stats workload`

use clap::Args;

use super::{GroupFlags, ReportFlags};

/// What the traffic looks like: requests and their tokens, by any dimension
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkloadArgs {
    #[command(flatten)]
    pub group: GroupFlags,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats workload --by input-bucket logs/*.ndjson
  infer-stats workload --by business-line --month 2025-06 --tz Asia/Shanghai --format csv logs/";
