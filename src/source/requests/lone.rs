//! Ids that stand in one record alone, which are nearly all: such a record is its request as it is, and needs no sorting.
//!
//! A question is first asked as if all were so, while the ids of the records are noted as numbers. Where some came twice the
//! answer is thrown away and the question asked again: then the records of these ids are read apart and put together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::common::hash_utils::RandomState;
use datafusion::error::Result;

use super::id::is_placeholder;
use crate::profile::IdRule;
use crate::record::Column;
use crate::source::sieve::{Mesh, Sift, kept};

/// The ids of one run, as far as they are known.
#[derive(Debug, Default)]
pub struct Sightings {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Some scan notes the ids; a second one would see each of them again.
    noting: bool,
    seen: Vec<u64>,
    /// Streams that were not read to their end: what they would have seen is not known.
    cut_off: usize,
    known: Known,
}

/// What is known of the ids.
#[derive(Debug, Clone, Default)]
pub enum Known {
    /// Nobody has looked yet.
    #[default]
    Nothing,
    /// These are of several records, as hashes, and no others.
    Repeated(Arc<HashSet<u64>>),
    /// Not all records were looked at.
    TooLittle,
}

impl Sightings {
    pub fn known(&self) -> Known {
        self.held().known.clone()
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is known of the ids in another stretch of time.
    pub fn forget(&self) {
        *self.held() = State::default();
    }

    /// Whether the caller is the one to note the ids.
    pub fn begin(&self) -> bool {
        !std::mem::replace(&mut self.held().noting, true)
    }

    fn add(&self, mut seen: Vec<u64>, is_whole: bool) {
        let mut state = self.held();
        state.seen.append(&mut seen);
        state.cut_off += usize::from(!is_whole);
    }

    /// To be called when a question was answered: whether it must be asked again, because ids came twice.
    pub fn settle(&self) -> bool {
        let mut state = self.held();
        if !state.noting || !matches!(state.known, Known::Nothing) {
            return false;
        }
        let mut seen = std::mem::take(&mut state.seen);
        seen.sort();
        let repeated: HashSet<u64> = seen.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        let again = !repeated.is_empty() || state.cut_off > 0;
        state.known = if state.cut_off > 0 { Known::TooLittle } else { Known::Repeated(Arc::new(repeated)) };
        again
    }
}

/// What becomes of the records.
#[derive(Debug, Clone)]
pub enum Kept {
    /// All pass, and their ids are noted.
    Noted(Arc<Sightings>),
    All,
    /// Those whose id no other record has.
    Lone(Arc<HashSet<u64>>),
    /// The others.
    Repeated(Arc<HashSet<u64>>),
}

/// Passes records on by how often their id stands in the logs. One without an id stands alone.
#[derive(Debug)]
pub struct ById {
    pub ids: Arc<IdRule>,
    pub kept: Kept,
}

impl Mesh for ById {
    fn describe(&self) -> String {
        let kept = match self.kept {
            Kept::Noted(_) | Kept::All => "all",
            Kept::Lone(_) => "lone",
            Kept::Repeated(_) => "repeated",
        };
        format!("ids, {kept}")
    }

    fn sift(&self) -> Box<dyn Sift> {
        let noted = match &self.kept {
            Kept::Noted(sightings) => Some(Noted { hashes: Vec::new(), is_whole: false, sightings: sightings.clone() }),
            _ => None,
        };
        Box::new(Sifted { ids: self.ids.clone(), kept: self.kept.clone(), noted })
    }
}

/// The ids of one stream.
struct Sifted {
    ids: Arc<IdRule>,
    kept: Kept,
    noted: Option<Noted>,
}

impl Sift for Sifted {
    fn pass(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let (repeated, wanted) = match &self.kept {
            Kept::Lone(repeated) => (repeated, false),
            Kept::Repeated(repeated) => (repeated, true),
            Kept::Noted(_) | Kept::All => {
                if let Some(noted) = &mut self.noted {
                    noted.hashes.extend(hashes(&batch, &self.ids).flatten());
                }
                return Ok(batch);
            }
        };
        let is_kept = |hash: Option<u64>| Some(hash.is_some_and(|hash| repeated.contains(&hash)) == wanted);
        let rows: BooleanArray = hashes(&batch, &self.ids).map(is_kept).collect();
        kept(batch, &rows)
    }

    fn end(&mut self) {
        if let Some(noted) = &mut self.noted {
            noted.is_whole = true;
        }
    }
}

/// The hashes of the ids of a batch; None where a record has no id.
fn hashes<'a>(batch: &'a RecordBatch, rule: &'a IdRule) -> impl Iterator<Item = Option<u64>> + 'a {
    use std::hash::BuildHasher;
    let state = RandomState::with_seed(0);
    let ids = batch.column_by_name(Column::RequestId.name()).map(|ids| ids.as_string_view().iter());
    let hash = move |id: Option<&str>| id.filter(|id| !is_placeholder(id)).map(|id| state.hash_one(rule.bare(id)));
    let without = if ids.is_none() { batch.num_rows() } else { 0 };
    ids.into_iter().flatten().map(hash).chain(std::iter::repeat_n(None, without))
}

/// The hashes of the ids that one stream saw, handed over at its end.
struct Noted {
    hashes: Vec<u64>,
    is_whole: bool,
    sightings: Arc<Sightings>,
}

impl Drop for Noted {
    fn drop(&mut self) {
        // here, where streams end side by side; runs that are in order are sorted at once
        self.hashes.sort_unstable();
        self.sightings.add(std::mem::take(&mut self.hashes), self.is_whole);
    }
}
