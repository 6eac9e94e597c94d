//! `infer-stats sql`

use clap::Args;

use super::ReportFlags;

/// Ask anything: one read-only SQL query over the table logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SqlArgs {
    /// A SELECT over logs, or over inference_logs with its time in ts
    #[arg(value_name = "QUERY")]
    pub query: String,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats sql \"SELECT model_name, count(*) FROM logs GROUP BY 1\" logs/
  infer-stats sql \"SELECT * FROM logs WHERE request_id = 'req-1'\" --format json logs/*.ndjson";
