//! Records sorted by id in, requests out: each column from the role that knows it best.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringViewArray,
    TimestampNanosecondArray, new_null_array,
};
use datafusion::arrow::compute::{interleave, interleave_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::error::Result;

use super::column::{is_of_the_whole, trust};
use super::skew::{Skew, Skews};
use super::{ATTEMPT_NUMBER, ATTEMPTS, MATCH_ID, RECORDS, Unit, VALUES};
use crate::record::Column;
use crate::record::merge::{Merged, Sighting, merge};
use crate::record::stored::{count, money, number, text, time};
use crate::request::{Role, Word};

/// Requests of one batch.
const BATCH: usize = 4096;

/// Batches of records that are held for the requests that wait, at most.
const HELD: usize = 64;

/// All roles, the gateway first.
pub(super) const ROLES: [Role; 3] = [Role::Gateway, Role::Engine, Role::App];

/// What says how a request ended.
const OUTCOMES: [Column; 4] = [Column::Status, Column::ErrorCode, Column::HttpStatus, Column::FinishReason];

/// What was found out about records on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    pub duplicates: u64,
    pub collisions: u64,
    pub unrelated: u64,
}

/// A row of a held batch.
type Row = (usize, usize);

/// A request by the rows it is made of.
type Request = Merged<Row>;

/// Merges records that come sorted by their id.
pub struct Merger {
    unit: Unit,
    output: SchemaRef,
    priorities: Arc<[(String, i64)]>,
    skews: Arc<Skews>,
    corrected: Vec<Skew>,
    held: Vec<Held>,
    /// Rows of the id in hand.
    open: Vec<Row>,
    requests: Vec<Request>,
    pub counts: MergeCounts,
}

/// A batch of records with a hash of what each says.
struct Held {
    batch: RecordBatch,
    hashes: Vec<u64>,
}

/// The schema of requests, or attempts, made of records of `input`.
pub fn schema(unit: Unit, input: &SchemaRef) -> SchemaRef {
    let kept = input.fields().iter().filter(|field| field.name() != MATCH_ID).cloned();
    let count = |name: &&str| Arc::new(Field::new(*name, DataType::Int64, true));
    Arc::new(Schema::new(kept.chain(unit.own_columns().iter().map(count)).collect::<Vec<_>>()))
}

/// A row in the making: a request, or one attempt of it.
struct Made<'a> {
    own: Cow<'a, Request>,
    /// The request that it is part of.
    whole: &'a Request,
    /// 1 for the first.
    number: usize,
}

impl Merger {
    pub fn new(unit: Unit, input: &SchemaRef, priorities: Arc<[(String, i64)]>, skews: Arc<Skews>) -> Self {
        Self {
            unit,
            output: schema(unit, input),
            priorities,
            corrected: skews.corrected(),
            skews,
            held: Vec::new(),
            open: Vec::new(),
            requests: Vec::new(),
            counts: MergeCounts::default(),
        }
    }

    /// Takes the next records; hands out requests when there are enough.
    pub fn push(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        let batch = self.with_right_clocks(batch)?;
        let arrays: Vec<ArrayRef> =
            VALUES.iter().filter_map(|column| batch.column_by_name(column.name()).cloned()).collect();
        let mut hashes = vec![0; batch.num_rows()];
        create_hashes(&arrays, &RandomState::with_seed(0), &mut hashes)?;
        let rows = batch.num_rows();
        self.held.push(Held { batch, hashes });
        let at = self.held.len() - 1;
        for row in 0..rows {
            let goes_on = self.open.last().is_some_and(|&last| {
                let id = self.id((at, row));
                id.is_some() && id == self.id(last)
            });
            if !goes_on {
                self.close();
            }
            self.open.push((at, row));
        }
        let is_full = self.requests.len() >= BATCH || self.held.len() >= HELD;
        if is_full { self.requests().map(Some) } else { Ok(None) }
    }

    /// The records with the times of clocks that are known to be wrong set right.
    fn with_right_clocks(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.corrected.is_empty() {
            return Ok(batch);
        }
        let (roles, hosts) = (batch.column_by_name(Column::Role.name()), batch.column_by_name(Column::Host.name()));
        let correction = |row: usize| {
            let (role, host) = (role(text(roles, row)), text(hosts, row).unwrap_or_default());
            Skew::correction_of(&self.corrected, role, host)
        };
        let corrections: Vec<i64> = (0..batch.num_rows()).map(correction).collect();
        let columns = batch.columns().iter().map(|array| match array.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                let times = array.as_primitive::<TimestampNanosecondType>().iter().zip(&corrections);
                let right = times.map(|(time, by)| time.map(|time| time.saturating_sub(*by)));
                let right = right.collect::<TimestampNanosecondArray>();
                Arc::new(right.with_data_type(array.data_type().clone())) as ArrayRef
            }
            _ => array.clone(),
        });
        Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
    }

    /// The requests of the last records.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        self.close();
        if self.requests.is_empty() { Ok(None) } else { self.requests().map(Some) }
    }

    fn id(&self, (batch, row): Row) -> Option<&str> {
        text(self.held[batch].batch.column_by_name(MATCH_ID), row)
    }

    /// Merges the records of the id in hand.
    fn close(&mut self) {
        let rows = std::mem::take(&mut self.open);
        let Some(&first) = rows.first() else { return };
        if let [_] = rows[..] {
            let role = role(text(self.column(first, Column::Role), first.1));
            return self.requests.push(Request { roles: vec![(role, vec![rows])] });
        }
        let sightings: Vec<Sighting<'_>> = rows.iter().map(|&row| self.sighting(row)).collect();
        let merging = merge(&sightings);
        let hash = self.id(first).map(hash_of);
        for merged in &merging.requests {
            self.compare_clocks(merged, &sightings, &rows, hash.unwrap_or_default());
        }
        self.counts.duplicates += merging.duplicates as u64;
        self.counts.collisions += merging.collisions as u64;
        self.counts.unrelated += merging.unrelated as u64;
        let placed = |attempts: Vec<Vec<usize>>| -> Vec<Vec<Row>> {
            attempts.into_iter().map(|attempt| attempt.into_iter().map(|index| rows[index]).collect()).collect()
        };
        let requests = merging.requests.into_iter().map(|merged| Request {
            roles: merged.roles.into_iter().map(|(role, attempts)| (role, placed(attempts))).collect(),
        });
        self.requests.extend(requests);
    }

    fn column(&self, (batch, _): Row, column: Column) -> Option<&ArrayRef> {
        self.held[batch].batch.column_by_name(column.name())
    }

    fn start(&self, row: Row) -> Option<i64> {
        time(self.column(row, Column::Timestamp), row.1)
    }

    /// The end as logged, else as the latency tells.
    fn end(&self, row: Row) -> Option<i64> {
        time(self.column(row, Column::CompletedAt), row.1).or_else(|| {
            let total = number(self.column(row, Column::TotalLatencyMs), row.1)?;
            Some(self.start(row)? + (total * 1e6).round() as i64)
        })
    }

    fn sighting(&self, row: Row) -> Sighting<'_> {
        let column = |column: Column| self.column(row, column);
        let file = text(column(Column::SourceFile), row.1).unwrap_or_default();
        Sighting {
            role: role(text(column(Column::Role), row.1)),
            file,
            start: self.start(row),
            end: self.end(row),
            attempt: count(column(Column::Attempt), row.1),
            model: text(column(Column::ModelName), row.1),
            tenant: text(column(Column::Tenant), row.1),
            prompt_hash: text(column(Column::PromptHash), row.1),
            output_tokens: count(column(Column::OutputTokens), row.1),
            is_answer: text(column(Column::RequestId), row.1).is_some_and(is_of_an_answer),
            has_outcome: OUTCOMES.iter().any(|outcome| column(*outcome).is_some_and(|array| array.is_valid(row.1))),
            values: self.held[row.0].hashes[row.1],
            priority: self.priorities.iter().find(|(name, _)| name == file).map_or(0, |(_, priority)| *priority),
        }
    }

    /// Notes how far the clocks of the roles that saw a request are apart.
    fn compare_clocks(&self, merged: &Merged, sightings: &[Sighting<'_>], rows: &[Row], hash: u64) {
        let first = |role: Role| {
            let index = *merged.attempts_of(Some(role)).first()?.first()?;
            Some((role, sightings[index].start?, rows[index]))
        };
        let seen: Vec<(Role, i64, Row)> = ROLES.into_iter().filter_map(first).collect();
        let Some((&(base, here, _), others)) = seen.split_first() else { return };
        for &(other, there, row) in others {
            let host = text(self.column(row, Column::Host), row.1).unwrap_or_default();
            self.skews.add((base, here), (other, there), host, hash);
        }
    }

    /// The requests that wait, as a batch; only the records of the id in hand are held on.
    fn requests(&mut self) -> Result<RecordBatch> {
        let requests = std::mem::take(&mut self.requests);
        let made: Vec<Made<'_>> = requests.iter().flat_map(|request| self.made(request)).collect();
        let columns = self.output.fields().iter().map(|field| self.column_of(&made, field));
        let batch = RecordBatch::try_new(self.output.clone(), columns.collect::<Result<_>>()?)?;
        let open = std::mem::take(&mut self.open);
        let hashes = open.iter().map(|&(batch, row)| self.held[batch].hashes[row]).collect();
        let batches: Vec<&RecordBatch> = self.held.iter().map(|held| &held.batch).collect();
        let rows = interleave_record_batch(&batches, &open)?;
        self.held.clear();
        if rows.num_rows() > 0 {
            self.held.push(Held { batch: rows, hashes });
        }
        self.open = (0..open.len()).map(|row| (0, row)).collect();
        Ok(batch)
    }

    /// The rows that a request becomes.
    fn made<'a>(&self, request: &'a Request) -> Vec<Made<'a>> {
        if self.unit == Unit::Request || request.attempts() < 2 {
            return vec![Made { own: Cow::Borrowed(request), whole: request, number: 1 }];
        }
        let attempts = request.by_attempt(ROLES, |row| self.start(*row));
        let row = |(at, own)| Made { own: Cow::Owned(own), whole: request, number: at + 1 };
        attempts.into_iter().enumerate().map(row).collect()
    }

    /// One column of the rows.
    fn column_of(&self, made: &[Made<'_>], field: &Field) -> Result<ArrayRef> {
        let counted = |count: fn(&Made<'_>) -> usize| -> ArrayRef {
            Arc::new(made.iter().map(|row| Some(count(row) as i64)).collect::<Int64Array>())
        };
        match (field.name().as_str(), Column::named(field.name())) {
            (ATTEMPTS, _) => Ok(counted(|row| row.whole.attempts())),
            (ATTEMPT_NUMBER, _) => Ok(counted(|row| row.number)),
            (RECORDS, _) => Ok(counted(|row| row.own.records())),
            (_, Some(Column::Timestamp)) => {
                let times = made.iter().map(|row| self.arrival(&row.own));
                let times = times.collect::<TimestampNanosecondArray>();
                Ok(Arc::new(times.with_data_type(field.data_type().clone())))
            }
            (_, Some(Column::TotalLatencyMs)) => {
                Ok(Arc::new(made.iter().map(|row| self.total(&row.own)).collect::<Float64Array>()))
            }
            (_, Some(Column::TtftMs)) => {
                Ok(Arc::new(made.iter().map(|row| self.ttft(&row.own)).collect::<Float64Array>()))
            }
            (_, Some(Column::CostLogged)) => {
                let costs = made.iter().map(|row| self.cost(&row.own)).collect::<Decimal128Array>();
                Ok(Arc::new(costs.with_precision_and_scale(38, 12)?))
            }
            (_, Some(Column::Role)) => {
                Ok(Arc::new(made.iter().map(|row| roles_in_words(&row.own)).collect::<StringViewArray>()))
            }
            (_, column) => {
                let of_whole = column.is_some_and(is_of_the_whole);
                let requests: Vec<&Request> =
                    made.iter().map(|row| if of_whole { row.whole } else { row.own.as_ref() }).collect();
                let trust = match column {
                    // an engine may call a model by its path; what was called is what is billed
                    Some(Column::ModelName) if self.unit == Unit::Attempt => ROLES,
                    Some(column) => trust(column),
                    None => ROLES,
                };
                self.picked(&requests, field, trust)
            }
        }
    }

    /// For each request the first known value in the order of trust, of a role that of its last attempt.
    fn picked(&self, requests: &[&Request], field: &Field, trust: [Role; 3]) -> Result<ArrayRef> {
        let arrays: Vec<&ArrayRef> =
            self.held.iter().filter_map(|held| held.batch.column_by_name(field.name())).collect();
        let nothing = new_null_array(field.data_type(), 1);
        let places: Vec<Row> = requests
            .iter()
            .map(|request| {
                let mut rows = request.by_trust(trust);
                rows.find(|&&(batch, row)| arrays[batch].is_valid(row)).copied().unwrap_or((arrays.len(), 0))
            })
            .collect();
        let mut sources: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        sources.push(&nothing);
        Ok(interleave(&sources, &places)?)
    }

    /// The first arrival by the clock that is trusted most.
    fn arrival(&self, request: &Request) -> Option<i64> {
        let start = |&row: &Row| self.start(row);
        request.by_role(trust(Column::Timestamp)).find_map(|attempts| attempts.iter().flatten().filter_map(start).min())
    }

    /// From the first arrival to the last end; of one attempt the latency as that was logged or derived.
    fn total(&self, request: &Request) -> Option<f64> {
        let logged = |&row: &Row| number(self.column(row, Column::TotalLatencyMs), row.1);
        request.by_role(trust(Column::TotalLatencyMs)).find_map(|attempts| match attempts {
            [attempt] => attempt.iter().find_map(logged),
            attempts => {
                let starts = attempts.iter().flatten().filter_map(|&row| self.start(row));
                let ends = attempts.iter().flatten().filter_map(|&row| self.end(row));
                Some((ends.max()? - starts.min()?) as f64 / 1e6)
            }
        })
    }

    /// From the first arrival to the first token of the attempt that gave the answer.
    fn ttft(&self, request: &Request) -> Option<f64> {
        let logged = |&row: &Row| number(self.column(row, Column::TtftMs), row.1);
        request.by_role(trust(Column::TtftMs)).find_map(|attempts| {
            let last = attempts.last()?;
            let ttft = last.iter().find_map(logged)?;
            let start = |attempt: &Vec<Row>| attempt.iter().find_map(|&row| self.start(row));
            match attempts {
                [_] => Some(ttft),
                [first, ..] => Some(ttft + (start(last)? - start(first)?) as f64 / 1e6),
                [] => None,
            }
        })
    }

    /// What all attempts cost, by the role that knows most about money.
    fn cost(&self, request: &Request) -> Option<i128> {
        let logged = |&row: &Row| money(self.column(row, Column::CostLogged), row.1);
        request.by_role(trust(Column::CostLogged)).find_map(|attempts| {
            let known = attempts.iter().filter_map(|attempt| attempt.iter().find_map(logged));
            known.reduce(i128::saturating_add)
        })
    }
}

fn roles_in_words(request: &Request) -> Option<String> {
    let seen = ROLES.into_iter().filter(|role| !request.attempts_of(Some(*role)).is_empty());
    let words: Vec<&str> = seen.map(Word::word).collect();
    (!words.is_empty()).then(|| words.join("+"))
}

pub(super) fn role(text: Option<&str>) -> Option<Role> {
    ROLES.into_iter().find(|role| Some(role.word()) == text)
}

/// Ids that a provider gives to an answer rather than to a request: whatever is logged under one is that answer.
fn is_of_an_answer(id: &str) -> bool {
    ["msg_", "resp_"].iter().any(|prefix| id.starts_with(prefix))
}

fn hash_of(id: &str) -> u64 {
    use std::hash::BuildHasher;
    RandomState::with_seed(0).hash_one(id)
}
