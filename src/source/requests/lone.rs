//! Ids that stand in one record alone, which are nearly all: such a record is its request as it is, and needs no sorting.
//!
//! A question is first asked as if all were so, while the ids of the records are noted as numbers. Where some came twice the
//! answer is thrown away and the question asked again: then the records of these ids are read apart and put together.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::hash_utils::RandomState;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::StreamExt;

use crate::profile::IdRule;
use crate::record::Column;

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
pub struct LoneExec {
    input: Arc<dyn ExecutionPlan>,
    ids: Arc<IdRule>,
    kept: Kept,
}

impl LoneExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, ids: Arc<IdRule>, kept: Kept) -> Self {
        Self { input, ids, kept }
    }
}

/// The hashes of the ids of a batch; None where a record has no id.
fn hashes<'a>(batch: &'a RecordBatch, rule: &'a IdRule) -> impl Iterator<Item = Option<u64>> + 'a {
    use std::hash::BuildHasher;
    let state = RandomState::with_seed(0);
    let ids = batch.column_by_name(Column::RequestId.name()).map(|ids| ids.as_string_view().iter());
    let hash = move |id: Option<&str>| id.map(|id| state.hash_one(rule.bare(id)));
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

impl DisplayAs for LoneExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = match self.kept {
            Kept::Noted(_) | Kept::All => "all",
            Kept::Lone(_) => "lone",
            Kept::Repeated(_) => "repeated",
        };
        write!(f, "LoneExec: {kept}")
    }
}

impl ExecutionPlan for LoneExec {
    fn name(&self) -> &str {
        "LoneExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(children.swap_remove(0), self.ids.clone(), self.kept.clone())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.input.execute(partition, context)?;
        let (schema, ids) = (stream.schema(), self.ids.clone());
        let kept: SendableRecordBatchStream = match self.kept.clone() {
            Kept::All => return Ok(stream),
            Kept::Noted(sightings) => {
                let mut noted = Noted { hashes: Vec::new(), is_whole: false, sightings };
                // the end of the stream is a step of its own
                let steps = stream.map(Some).chain(futures::stream::iter([None]));
                let passed = steps.filter_map(move |step| {
                    match &step {
                        Some(Ok(batch)) => noted.hashes.extend(hashes(batch, &ids).flatten()),
                        Some(Err(_)) => {}
                        None => noted.is_whole = true,
                    }
                    futures::future::ready(step)
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, passed))
            }
            Kept::Lone(repeated) => Box::pin(RecordBatchStreamAdapter::new(
                schema,
                stream.map(move |batch| split(batch?, &ids, |hash| hash.is_none_or(|hash| !repeated.contains(&hash)))),
            )),
            Kept::Repeated(repeated) => Box::pin(RecordBatchStreamAdapter::new(
                schema,
                stream.map(move |batch| split(batch?, &ids, |hash| hash.is_some_and(|hash| repeated.contains(&hash)))),
            )),
        };
        Ok(kept)
    }
}

fn split(batch: RecordBatch, ids: &IdRule, is_kept: impl Fn(Option<u64>) -> bool) -> Result<RecordBatch> {
    let kept: BooleanArray = hashes(&batch, ids).map(|hash| Some(is_kept(hash))).collect();
    if kept.true_count() == batch.num_rows() {
        return Ok(batch);
    }
    Ok(filter_record_batch(&batch, &kept)?)
}
