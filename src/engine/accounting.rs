//! Where the records went, read from the metrics of the operators that met them.

use datafusion::physical_plan::ExecutionPlan;

use crate::source::counts::Counts;
use crate::source::logs::LOGS_BEHIND;
use crate::source::tally::{Tally, TallyExec};

/// What the scans of one plan counted.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Whether the plan reads the logs at all.
    pub scanned: bool,
    /// Whether what it reads is steps of tokens.
    pub of_tokens: bool,
    pub counts: Counts,
    pub tally: Tally,
}

impl Counted {
    /// Reads a finished plan. A query that reads the table twice is counted once, by its first scan.
    pub fn of(plan: &dyn ExecutionPlan) -> Self {
        let mut counted = Self::default();
        let mut first = usize::MAX;
        walk(plan, &mut |node| {
            if let Some(tally) = node.downcast_ref::<TallyExec>() {
                first = first.min(tally.scan());
            }
        });
        counted.of_tokens = first < LOGS_BEHIND;
        walk(plan, &mut |node| {
            if let Some(tally) = node.downcast_ref::<TallyExec>()
                && tally.scan() == first
            {
                counted.scanned = true;
                counted.tally.collect(&node.metrics().unwrap_or_default());
                walk(node, &mut |below| {
                    let metrics = below.metrics().unwrap_or_default();
                    match tally.is_part() {
                        true => counted.counts.collect_merged(&metrics),
                        false => counted.counts.collect(&metrics),
                    }
                });
            }
        });
        counted
    }
}

/// Bytes on disk that the scans of a running plan have read.
pub fn bytes_read(plan: &dyn ExecutionPlan) -> u64 {
    let mut bytes = 0;
    walk(plan, &mut |node| {
        if !node.children().is_empty() {
            return;
        }
        if let Some(metrics) = node.metrics() {
            let sum = |name| metrics.sum_by_name(name).map_or(0, |value| value.as_usize() as u64);
            bytes += sum("bytes_read") + sum("bytes_scanned");
        }
    });
    bytes
}

fn walk(node: &dyn ExecutionPlan, visit: &mut dyn FnMut(&dyn ExecutionPlan)) {
    visit(node);
    for child in node.children() {
        walk(child.as_ref(), visit);
    }
}
