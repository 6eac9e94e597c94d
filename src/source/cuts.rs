//! Where a long log may be cut, so that several threads read it at once.
//!
//! Any line will do: what a piece cannot settle alone it hands over, to be settled behind the last piece. A log of little
//! else than that (spans and their parents) is read in one piece.

use std::io::{self, Read};
use std::sync::Arc;

use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use crate::source::LogFile;
use crate::source::compression::is_damage;
use crate::source::counts::PublishedCounts;
use crate::source::json::{LineDecoder, Writing};
use crate::source::nest::Nest;
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, Provenance, RecordReader};
use crate::source::rejects::Rejects;
use crate::source::sink::{Desk, RecordSink, TopLevel, Watcher};

/// Bytes of one piece: small enough that the last pieces of a scan end together, large enough that opening one costs
/// nothing beside reading it.
const PIECE: u64 = 16 << 20;

/// Bytes at the start of a log that tell what it holds.
const LOOK: usize = 256 << 10;

/// A piece of a log: the bytes in which its lines start, or the whole log.
pub type Piece = Option<(u64, u64)>;

/// The pieces that a log is read in. The plan is asked for where the log is a long one.
///
/// # Errors
/// The log cannot be read.
pub fn pieces<E: From<io::Error>>(
    log: &LogFile,
    plan: impl FnOnce() -> Result<Arc<ReadPlan>, E>,
) -> Result<Vec<Piece>, E> {
    let size = log.input.size.unwrap_or(0);
    if !log.is_splittable() || size <= PIECE {
        return Ok(vec![None]);
    }
    let look = Look::at(&head(log)?, log, &plan()?);
    if look.depending > look.others {
        return Ok(vec![None]);
    }
    let starts = (0..size).step_by(PIECE as usize);
    Ok(starts.map(|start| Some((start, size.min(start + PIECE)))).collect())
}

/// The first bytes of a log, decompressed.
///
/// # Errors
/// The log cannot be read; damage is no error here.
pub fn head(log: &LogFile) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(LOOK);
    match log.input.open()?.take(LOOK as u64).read_to_end(&mut head) {
        Err(error) if !is_damage(&error) => Err(error),
        _ => Ok(head),
    }
}

/// What the records at the start of a log are like.
pub struct Look {
    plan: Arc<ReadPlan>,
    /// Records whose meaning depends on others.
    depending: u64,
    others: u64,
    /// Whether lines may come in pieces.
    has_pieces: bool,
    /// Lines that were no records, or only parts of one.
    unread: u64,
}

/// What the lines of a log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Each is a record by itself.
    Records,
    /// Each is one unless it is very long.
    Pieces,
    /// Several may tell of one request.
    Parts,
}

impl Look {
    pub fn at(head: &[u8], log: &LogFile, plan: &Arc<ReadPlan>) -> Self {
        let mut look = Self { plan: plan.clone(), depending: 0, others: 0, has_pieces: false, unread: 0 };
        let counts = PublishedCounts::new(ExecutionPlanMetricsSet::new(), 0);
        let mut reader = RecordReader::new(plan.clone(), Provenance::default(), 0, counts);
        let (mut nest, rejects) = (Nest::default(), Rejects::default());
        let desk = Desk { reader: &mut reader, rejects: &rejects, file: log, watcher: Some(&mut look) };
        let (level, layouts) = (TopLevel { base: 0 }, &mut Layouts::default());
        let mut sink = RecordSink { desk, level, layouts, nest: &mut nest };
        LineDecoder::new(plan.wanted.clone(), Writing::Plain).decode(head, &mut sink);
        sink.nest.finish(&mut sink.desk);
        look.has_pieces = nest.takes_pieces();
        look.unread = reader.counts.rejected_total() + reader.counts.skipped_total();
        look
    }

    pub fn lines(&self) -> Lines {
        match () {
            () if self.depending > 0 => Lines::Parts,
            () if self.has_pieces => Lines::Pieces,
            () => Lines::Records,
        }
    }

    /// Whether every line was read as a record.
    pub fn is_all_read(&self) -> bool {
        self.unread == 0 && self.others > 0
    }
}

impl Watcher for Look {
    fn record(&mut self, _: &[u8], dialect: usize, _: bool, _: u64) {
        let profile = &self.plan.dialects[dialect].profile;
        let step = profile.as_ref().and_then(|profile| profile.restructure);
        match step.is_some_and(|step| step.spans_records()) {
            true => self.depending += 1,
            false => self.others += 1,
        }
    }
}
