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
use crate::request::Limits;
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
    /// So many ids are noted by each stream at most; None: all.
    most: Option<usize>,
    seen: Vec<u64>,
    /// Streams of which not all was noted: what else they would have seen is not known.
    cut_off: usize,
    known: Known,
}

/// The part of the memory that noted ids may take.
const SHARE: usize = 4;

/// What is known of the ids.
#[derive(Debug, Clone, Default)]
pub enum Known {
    /// Nobody has looked yet.
    #[default]
    Nothing,
    /// These are of several records, as hashes, and no others.
    Repeated(Arc<HashSet<u64>>),
    /// All records are to be sorted: not all were looked at, or nearly all have an id in common with another.
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
    pub fn forget(&self, limits: &Limits) {
        let bytes = limits.memory.and_then(|bytes| usize::try_from(bytes).ok());
        let most = bytes.map(|bytes| bytes / SHARE / limits.threads.max(1) / size_of::<u64>());
        *self.held() = State { most, ..State::default() };
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
        let is_sorted = state.cut_off > 0 || repeated.len() > seen.len() / SHARE;
        let again = is_sorted || !repeated.is_empty();
        state.known = if is_sorted { Known::TooLittle } else { Known::Repeated(Arc::new(repeated)) };
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
            Kept::Noted(sightings) => Some(Noted::new(sightings.clone())),
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
                if let Some(noted) = self.noted.as_mut().filter(|noted| noted.hashes.len() <= noted.most) {
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
            noted.is_whole = noted.hashes.len() <= noted.most;
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
    /// With more than this there is no room for all.
    most: usize,
    is_whole: bool,
    sightings: Arc<Sightings>,
}

impl Noted {
    fn new(sightings: Arc<Sightings>) -> Self {
        let most = sightings.held().most.unwrap_or(usize::MAX);
        Self { hashes: Vec::new(), most, is_whole: false, sightings }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // here, where streams end side by side; runs that are in order are sorted at once
        self.hashes.sort_unstable();
        self.sightings.add(std::mem::take(&mut self.hashes), self.is_whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(memory: Option<u64>, streams: [&[u64]; 2]) -> (bool, Known) {
        let sightings = Sightings::default();
        sightings.forget(&Limits { memory, threads: 2 });
        assert!(sightings.begin() && !sightings.begin());
        for stream in streams {
            let most = sightings.held().most.unwrap_or(usize::MAX);
            sightings.add(stream.to_vec(), stream.len() <= most);
        }
        (sightings.settle(), sightings.known())
    }

    #[test]
    fn an_id_that_two_streams_saw_is_repeated_and_the_question_asked_again() {
        let (again, known) = settled(None, [&[1, 2, 3, 9], &[4, 5, 6, 9]]);
        assert!(again && matches!(known, Known::Repeated(ids) if *ids == HashSet::from([9])));
        let (again, known) = settled(None, [&[1, 2], &[3]]);
        assert!(!again && matches!(known, Known::Repeated(ids) if ids.is_empty()));
    }

    #[test]
    fn all_is_sorted_where_most_ids_are_repeated_or_there_is_no_room_to_note_them() {
        let (again, known) = settled(None, [&[1, 2, 3], &[1, 2, 3]]);
        assert!(again && matches!(known, Known::TooLittle));
        // room for two ids a stream
        let (again, known) = settled(Some(128), [&[1, 2, 3], &[4]]);
        assert!(again && matches!(known, Known::TooLittle));
    }
}
