//! What happened to values while reading: kept beside the rows, so that a note can say it.

use std::ops::{Deref, DerefMut};

use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};

use crate::record::Column;
use crate::record::number::Unfit;
use crate::source::value::Reject;

/// Counts of one reader. They travel as metrics of the scan, not as shared state, so that a scan may run anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub records: u64,
    pub rejected: [u64; Reject::ALL.len()],
    /// Well formed, but no requests: by the reason, sparse.
    pub skipped: Vec<(String, u64)>,
    pub damaged_files: u64,
    pub duplicate_keys: u64,
    pub zone_assumed: u64,
    /// Records without a timestamp.
    pub undated: u64,
    /// Records whose timestamp is that of the envelope around them.
    pub envelope_time: u64,
    /// Records whose input tokens leave the cached ones out.
    pub disjoint: u64,
    /// Records of a request that say nothing new.
    pub duplicates: u64,
    /// Requests that have the id of another.
    pub collisions: u64,
    /// Logs without a role that have the id of another such log.
    pub unrelated: u64,
    /// By the name of a column, sparse.
    pub unfit: Vec<(String, Unfit, u64)>,
    pub derived: Vec<(Column, u64)>,
}

impl Counts {
    pub fn reject(&mut self, why: Reject) {
        self.records += 1;
        self.rejected[why as usize] += 1;
    }

    /// One more record that is no request.
    pub fn skip(&mut self, reason: &str) {
        self.records += 1;
        self.skipped(reason, 1);
    }

    /// `count` more records, counted already, are no requests.
    fn skipped(&mut self, reason: &str, count: u64) {
        match self.skipped.iter_mut().find(|(other, _)| other == reason) {
            Some((_, sum)) => *sum += count,
            None => self.skipped.push((reason.to_owned(), count)),
        }
    }

    /// `count` more values of `column` did not fit it.
    pub fn unfit(&mut self, column: &str, why: Unfit, count: u64) {
        match self.unfit.iter_mut().find(|(other, reason, _)| *reason == why && other == column) {
            Some((_, _, sum)) => *sum += count,
            None => self.unfit.push((column.to_owned(), why, count)),
        }
    }

    /// `count` more values of `column` were derived from others.
    pub fn derived(&mut self, column: Column, count: u64) {
        match self.derived.iter_mut().find(|(c, _)| *c == column) {
            Some((_, sum)) => *sum += count,
            None => self.derived.push((column, count)),
        }
    }

    /// Adds the counts of another reader.
    pub fn add(&mut self, other: &Counts) {
        self.records += other.records;
        self.rejected.iter_mut().zip(other.rejected).for_each(|(sum, count)| *sum += count);
        self.damaged_files += other.damaged_files;
        self.duplicate_keys += other.duplicate_keys;
        self.zone_assumed += other.zone_assumed;
        self.undated += other.undated;
        self.envelope_time += other.envelope_time;
        self.disjoint += other.disjoint;
        self.duplicates += other.duplicates;
        self.collisions += other.collisions;
        self.unrelated += other.unrelated;
        other.skipped.iter().for_each(|(reason, count)| self.skipped(reason, *count));
        other.unfit.iter().for_each(|(column, why, count)| self.unfit(column, *why, *count));
        other.derived.iter().for_each(|(column, count)| self.derived(*column, *count));
    }

    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().sum()
    }

    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().map(|(_, count)| count).sum()
    }

    /// Adds the counts to a scan's metrics.
    pub fn publish(&self, metrics: &ExecutionPlanMetricsSet, partition: usize) {
        let add = |name: String, count: u64| {
            if count > 0 {
                MetricBuilder::new(metrics).counter(name, partition).add(count as usize);
            }
        };
        add("records".into(), self.records);
        for why in Reject::ALL {
            add(format!("rejected:{}", why.code()), self.rejected[why as usize]);
        }
        add("damaged_files".into(), self.damaged_files);
        add("duplicate_keys".into(), self.duplicate_keys);
        add("zone_assumed".into(), self.zone_assumed);
        add("undated".into(), self.undated);
        add("envelope_time".into(), self.envelope_time);
        add("disjoint".into(), self.disjoint);
        add("duplicates".into(), self.duplicates);
        add("collisions".into(), self.collisions);
        add("unrelated".into(), self.unrelated);
        for (reason, count) in &self.skipped {
            add(format!("skipped:{reason}"), *count);
        }
        for (column, why, count) in &self.unfit {
            add(format!("unfit:{}:{column}", why.code()), *count);
        }
        for (column, count) in &self.derived {
            add(format!("derived:{}", column.name()), *count);
        }
    }

    /// Reads back what was found out about records of one request, and nothing of how they were read.
    pub fn collect_merged(&mut self, metrics: &MetricsSet) {
        let mut all = Counts::default();
        all.collect(metrics);
        let Counts { duplicates, collisions, unrelated, .. } = all;
        self.add(&Counts { duplicates, collisions, unrelated, ..Counts::default() });
    }

    /// Reads back what [`Counts::publish`] added.
    pub fn collect(&mut self, metrics: &MetricsSet) {
        for metric in metrics.iter() {
            let count = metric.value().as_usize() as u64;
            let mut parts = metric.value().name().splitn(3, ':');
            match (parts.next(), parts.next(), parts.next()) {
                (Some("records"), None, _) => self.records += count,
                (Some("damaged_files"), None, _) => self.damaged_files += count,
                (Some("duplicate_keys"), None, _) => self.duplicate_keys += count,
                (Some("zone_assumed"), None, _) => self.zone_assumed += count,
                (Some("undated"), None, _) => self.undated += count,
                (Some("envelope_time"), None, _) => self.envelope_time += count,
                (Some("disjoint"), None, _) => self.disjoint += count,
                (Some("duplicates"), None, _) => self.duplicates += count,
                (Some("collisions"), None, _) => self.collisions += count,
                (Some("unrelated"), None, _) => self.unrelated += count,
                (Some("skipped"), Some(reason), None) => self.skipped(reason, count),
                (Some("rejected"), Some(code), _) => {
                    if let Some(why) = Reject::ALL.into_iter().find(|why| why.code() == code) {
                        self.rejected[why as usize] += count;
                    }
                }
                (Some("unfit"), Some(code), Some(column)) => {
                    if let Some(why) = Unfit::ALL.into_iter().find(|why| why.code() == code) {
                        self.unfit(column, why, count);
                    }
                }
                (Some("derived"), Some(name), _) => {
                    if let Some(column) = Column::named(name) {
                        self.derived(column, count);
                    }
                }
                _ => {}
            }
        }
        self.unfit.sort();
        self.skipped.sort();
        self.derived.sort();
    }
}

/// Counts that become metrics when they are dropped: at the end of a stream, however it ends.
pub struct PublishedCounts {
    counts: Counts,
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
}

impl PublishedCounts {
    pub fn new(metrics: ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self { counts: Counts::default(), metrics, partition }
    }
}

impl Deref for PublishedCounts {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl DerefMut for PublishedCounts {
    fn deref_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl Drop for PublishedCounts {
    fn drop(&mut self) {
        self.counts.publish(&self.metrics, self.partition);
    }
}
