//! Which records are of one request although they have no id in common, and how far that can be trusted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;

use super::merger::{ROLES, role};
use super::skew::{Skew, Skews};
use crate::profile::IdRule;
use crate::record::Column;
use crate::record::asof::{Compared, Trace, matched};
use crate::record::stored::{count, text, time};
use crate::request::{Role, Word};

/// The columns that matches are found by.
pub const COMPARED: [Column; 9] = [
    Column::RequestId,
    Column::Role,
    Column::Host,
    Column::ModelName,
    Column::Timestamp,
    Column::InputTokens,
    Column::OutputTokens,
    Column::SourceFile,
    Column::SourceOffset,
];

/// Where a record stands: its log and the byte in it.
type Place = (String, i64);

/// The ids by which records are put together instead of their own.
#[derive(Debug, Default)]
pub struct Assigned {
    by_id: HashMap<String, String>,
    /// Of records without an id.
    by_place: HashMap<Place, String>,
}

impl Assigned {
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.by_place.is_empty()
    }

    /// The id of another record that this one is matched with.
    pub fn get(&self, bare: Option<&str>, file: &str, offset: i64) -> Option<&str> {
        match bare {
            Some(id) => self.by_id.get(id),
            None => self.by_place.get(&(file.to_owned(), offset)),
        }
        .map(String::as_str)
    }
}

/// What a search found between two roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    roles: (Role, Role),
    by: Compared,
    /// Requests of the second role without an id that the first has.
    alone: u64,
    /// How many of them were matched.
    pub matched: u64,
    /// Matches of requests whose ids tell whether they are right, found without looking at the ids.
    checked: u64,
    right: u64,
}

/// Matches of one run, found once and used by every plan after that.
#[derive(Debug, Default)]
pub struct Matches {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    assigned: Arc<Assigned>,
    found: Vec<Found>,
}

/// A request as one role saw it.
struct Seen<'a> {
    id: Option<&'a str>,
    place: (&'a str, i64),
    trace: Trace<'a>,
}

impl Matches {
    /// Looks through all records of [`COMPARED`] columns.
    pub fn search(&self, records: &[RecordBatch], ids: &IdRule, skews: &Skews) {
        let corrected = skews.corrected();
        let seen = ROLES.map(|role| seen_by(role, records, ids, &corrected));
        let mut assigned = Assigned::default();
        let mut found = Vec::new();
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            let (one, other) = (&seen[first], &seen[second]);
            if one.is_empty() || other.is_empty() {
                continue;
            }
            let (ours, theirs) = (traces(one.iter()), traces(other.iter()));
            let by = Compared::of(&ours, &theirs);
            let known = |seen: &[Seen<'_>]| -> HashSet<String> {
                seen.iter().filter_map(|seen| seen.id).map(str::to_owned).collect()
            };
            let (our_ids, their_ids) = (known(one), known(other));
            let is_common = |seen: &Seen<'_>| seen.id.is_some_and(|id| our_ids.contains(id) && their_ids.contains(id));
            let judged: Vec<bool> = matched(&ours, &theirs, by)
                .into_iter()
                .filter(|(one_at, other_at)| is_common(&one[*one_at]) || is_common(&other[*other_at]))
                .map(|(one_at, other_at)| one[one_at].id == other[other_at].id)
                .collect();
            let is_alone = |seen: &&Seen<'_>| {
                let (file, offset) = seen.place;
                !is_common(seen) && assigned.get(seen.id, file, offset).is_none()
            };
            let ours: Vec<&Seen<'_>> = one.iter().filter(is_alone).collect();
            let theirs: Vec<&Seen<'_>> = other.iter().filter(is_alone).collect();
            let pairs = matched(&traces(ours.iter().copied()), &traces(theirs.iter().copied()), by);
            found.push(Found {
                roles: (ROLES[first], ROLES[second]),
                by,
                alone: theirs.len() as u64,
                matched: pairs.len() as u64,
                checked: judged.len() as u64,
                right: judged.iter().filter(|right| **right).count() as u64,
            });
            for (our, their) in pairs {
                assigned.put_together(ours[our], theirs[their]);
            }
        }
        let assigned = Arc::new(assigned);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State { assigned, found };
    }

    pub fn assigned(&self) -> Arc<Assigned> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).assigned.clone()
    }

    pub fn found(&self) -> Vec<Found> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }
}

impl Assigned {
    fn put_together(&mut self, one: &Seen<'_>, other: &Seen<'_>) {
        let place = |seen: &Seen<'_>| (seen.place.0.to_owned(), seen.place.1);
        let id = match one.id {
            Some(id) => id.to_owned(),
            None => {
                let id = format!("{}:{}", one.place.0, one.place.1);
                self.by_place.insert(place(one), id.clone());
                id
            }
        };
        match other.id {
            Some(theirs) => self.by_id.insert(theirs.to_owned(), id),
            None => self.by_place.insert(place(other), id),
        };
    }
}

impl Found {
    /// A sentence about it.
    pub fn sentence(&self) -> String {
        let (one, other) = (self.roles.0.word(), self.roles.1.word());
        let parts = [
            (true, "time"),
            (self.by.model, "model"),
            (self.by.input_tokens, "input tokens"),
            (self.by.output_tokens, "output tokens"),
        ];
        let by: Vec<&str> = parts.into_iter().filter(|(is_used, _)| *is_used).map(|(_, part)| part).collect();
        if !self.by.suffices() {
            return format!(
                "the {other}'s requests cannot be matched with the {one}'s: they have no token counts in common"
            );
        }
        let precision = match self.checked {
            0 => "how many of the matches are right is not known: no request has an id that both saw".to_owned(),
            checked => format!(
                "of {checked} matches made so of requests that both know by id, {} are right ({:.1} %)",
                self.right,
                self.right as f64 * 100.0 / checked as f64
            ),
        };
        format!(
            "{} of the {other}'s {} requests without an id that the {one} has are matched with the {one}'s by {}; {precision}",
            self.matched,
            self.alone,
            by.join(", ")
        )
    }
}

fn traces<'s, 'a: 's>(seen: impl Iterator<Item = &'s Seen<'a>>) -> Vec<Trace<'a>> {
    seen.map(|seen| seen.trace.clone()).collect()
}

/// The requests of a role: of records of one id the first arrival and the last token count.
fn seen_by<'a>(role: Role, records: &'a [RecordBatch], ids: &IdRule, corrected: &[Skew]) -> Vec<Seen<'a>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    let mut known: HashMap<&'a str, usize> = HashMap::new();
    for batch in records {
        let column = |column: Column| batch.column_by_name(column.name());
        for row in (0..batch.num_rows()).filter(|&row| self::role(text(column(Column::Role), row)) == Some(role)) {
            let Some(at) = time(column(Column::Timestamp), row) else { continue };
            let host = text(column(Column::Host), row).unwrap_or_default();
            let skew = Skew::correction_of(corrected, Some(role), host);
            let trace = Trace {
                at: at.saturating_sub(skew),
                model: text(column(Column::ModelName), row),
                input_tokens: count(column(Column::InputTokens), row),
                output_tokens: count(column(Column::OutputTokens), row),
            };
            let id = text(column(Column::RequestId), row).map(|id| ids.bare(id));
            match id.and_then(|id| known.get(id)) {
                Some(&index) => {
                    let first = &mut seen[index].trace;
                    first.at = first.at.min(trace.at);
                    first.model = first.model.or(trace.model);
                    first.input_tokens = first.input_tokens.or(trace.input_tokens);
                    first.output_tokens = first.output_tokens.max(trace.output_tokens);
                }
                None => {
                    known.extend(id.map(|id| (id, seen.len())));
                    let file = text(column(Column::SourceFile), row).unwrap_or_default();
                    let offset = count(column(Column::SourceOffset), row).unwrap_or_default();
                    seen.push(Seen { id, place: (file, offset), trace });
                }
            }
        }
    }
    seen
}
