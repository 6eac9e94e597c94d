//! `infer-stats latency`

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::{GroupFlags, ReportFlags, choice};
use crate::request::{ALL_METRICS, Method, Metric, Word};

/// How long requests take: percentiles by prompt length, model, hour, ...
///
/// Failed requests are counted beside the percentiles and not measured.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LatencyArgs {
    #[command(flatten)]
    pub group: GroupFlags,

    /// Durations to measure
    #[arg(
        long = "metric",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "total",
        value_parser = PossibleValuesParser::new(Metric::words().chain([ALL_METRICS]))
    )]
    pub metrics: Vec<String>,

    /// Show each stage with its share of the total time
    #[arg(long)]
    pub stages: bool,

    /// Percentiles to show, from 0 to 100
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "50,95,99")]
    pub percentiles: Vec<String>,

    /// Between two values: interpolate (cont) or take the nearest rank (nearest)
    #[arg(long, value_name = "METHOD", value_parser = choice::<Method>(), default_value = "cont")]
    pub method: Method,

    /// Leave out groups with fewer measured requests
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_count: u64,

    /// Measure failed requests too
    #[arg(long)]
    pub include_failed: bool,

    #[command(flatten)]
    pub report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats latency --by input-bucket logs/*.ndjson
  infer-stats latency --by model,hour --metric ttft,tpot --since 24h --tz Asia/Shanghai logs/
  infer-stats latency --stages --where \"tenant = 'acme'\" --format markdown logs/";
