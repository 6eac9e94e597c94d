//! Where a duration stands among others of its kind, in words.

use crate::output::legible;
use crate::trace::life::{Stage, Standing};

use super::fact;

/// In a column: `> P99`.
pub fn short(stage: &Stage, standing: &Standing) -> &'static str {
    match stage.duration_ms {
        took if took > standing.p99_ms => "> P99",
        took if took > standing.p95_ms => "> P95",
        took if took > standing.p50_ms => "> P50",
        _ => "≤ P50",
    }
}

/// In a line: `> P99 of 12,345 like it: P50 35, P95 210, P99 400 ms`.
pub fn long(stage: &Stage, standing: &Standing) -> String {
    let [p50, p95, p99] = [standing.p50_ms, standing.p95_ms, standing.p99_ms].map(fact::amount);
    let count = legible::grouped(&standing.count.to_string());
    format!("{} of {count} like it: P50 {p50}, P95 {p95}, P99 {p99} ms", short(stage, standing))
}

/// Whether it is worth a line of its own.
pub fn stands_out(stage: &Stage, standing: &Standing) -> bool {
    stage.dominant || stage.duration_ms > standing.p99_ms
}
