//! One request, many records: which records of one id are duplicates, states of a stream, attempts, or another request.
//!
//! Records come from roles (gateway, engine, app), each with its own clock and its own part of the truth. Within a role
//! a record that says the same again is a duplicate; one with the same start and attempt is a later state of the same
//! answer; another start within the hour is another attempt; another tenant or prompt, or a start further away, is
//! another request that happens to have the id. The requests of several roles are then put side by side.

use std::collections::{HashMap, HashSet};

use crate::request::Role;

/// Nanoseconds within which attempts of one request follow each other.
const HOUR: i64 = 3_600_000_000_000;

/// What one record says about which request it belongs to. Times are nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sighting<'a> {
    pub role: Option<Role>,
    /// Its log, as some text.
    pub file: &'a str,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub attempt: Option<i64>,
    pub model: Option<&'a str>,
    pub tenant: Option<&'a str>,
    pub prompt_hash: Option<&'a str>,
    pub output_tokens: Option<i64>,
    /// Its id is that of an answer: it can only be a state of that.
    pub is_answer: bool,
    /// It says how the request ended.
    pub has_outcome: bool,
    /// A hash of all that it says.
    pub values: u64,
    /// Of sources of one role the higher is believed.
    pub priority: i64,
}

/// A request put together: for each role its attempts in order, and of each attempt the records, the best first. The
/// records are known by their index, or by whatever says where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged<R = usize> {
    pub roles: Vec<(Option<Role>, Vec<Vec<R>>)>,
}

impl<R> Merged<R> {
    /// Its records, each once.
    pub fn records(&self) -> usize {
        self.roles.iter().flat_map(|(_, attempts)| attempts).map(Vec::len).sum()
    }

    /// The attempts of a role.
    pub fn attempts_of(&self, role: Option<Role>) -> &[Vec<R>] {
        self.roles.iter().find(|(other, _)| *other == role).map_or(&[], |(_, attempts)| attempts)
    }

    /// The attempts of each role in an order of trust, those without a role last.
    pub fn by_role(&self, trust: [Role; 3]) -> impl Iterator<Item = &[Vec<R>]> {
        trust.into_iter().map(Some).chain([None]).map(|role| self.attempts_of(role))
    }

    /// All records, the most trusted first: of each role those of its last attempt.
    pub fn by_trust(&self, trust: [Role; 3]) -> impl Iterator<Item = &R> {
        self.by_role(trust).flat_map(|attempts| attempts.iter().rev().flatten())
    }

    /// The request attempt by attempt, as the role that saw most of them tells, of equals the first of `roles`. What other
    /// roles saw goes to the attempt that began nearest, in order, and no two of them to the same.
    pub fn by_attempt(&self, roles: [Role; 3], start: impl Fn(&R) -> Option<i64>) -> Vec<Self>
    where
        R: Clone,
    {
        let order = roles.into_iter().map(Some).chain([None]);
        let leading = order.rev().max_by_key(|role| self.attempts_of(*role).len()).flatten();
        let attempts = self.attempts_of(leading);
        let mut parts: Vec<Self> =
            attempts.iter().map(|attempt| Merged { roles: vec![(leading, vec![attempt.clone()])] }).collect();
        let began = |attempt: &[R]| attempt.iter().find_map(&start);
        for (role, others) in self.roles.iter().filter(|(role, _)| *role != leading) {
            // each call of the one is another call of the other, in the same order
            let mut free = 0;
            for (number, other) in others.iter().enumerate() {
                let last = attempts.len() - (others.len() - number);
                let nearest =
                    (free..=last).min_by_key(|&at| (distance(began(&attempts[at]), began(other)), at)).unwrap_or(free);
                free = nearest + 1;
                parts[nearest].roles.push((*role, vec![other.clone()]));
            }
        }
        parts
    }

    /// The most attempts that any role saw.
    pub fn attempts(&self) -> usize {
        self.roles.iter().map(|(_, attempts)| attempts.len()).max().unwrap_or(0)
    }
}

/// What became of the records of one id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merging {
    pub requests: Vec<Merged>,
    pub duplicates: usize,
    /// Requests beyond the first that have the id.
    pub collisions: usize,
    /// Logs without a role beyond the first that have the id: what they are to each other is not known.
    pub unrelated: usize,
}

/// The requests of the records of one id.
pub fn merge(records: &[Sighting<'_>]) -> Merging {
    let mut merging = Merging::default();
    let kept = without_duplicates(records, &mut merging.duplicates);
    // what a role, or a log without one, knows of the id, in the order in which they come
    let mut views: Vec<(Option<Role>, Vec<usize>)> = Vec::new();
    let mut known: HashMap<(Option<Role>, &str), usize> = HashMap::new();
    for index in kept {
        let record = &records[index];
        let view = *known.entry((record.role, record.file_without_role())).or_insert_with(|| {
            views.push((record.role, Vec::new()));
            views.len() - 1
        });
        views[view].1.push(index);
    }
    let mut of_roles: Vec<(Role, Vec<Together>)> = Vec::new();
    let mut without_role = 0;
    for (role, members) in views {
        let requests = apart(records, members);
        match role {
            Some(role) => of_roles.push((role, requests)),
            None => {
                merging.unrelated += usize::from(without_role > 0);
                without_role += 1;
                merging.collisions += requests.len() - 1;
                let alone = |request: Together| Merged { roles: vec![(None, attempts(records, request.members))] };
                merging.requests.extend(requests.into_iter().map(alone));
            }
        }
    }
    let together = side_by_side(records, of_roles);
    merging.collisions += together.len().saturating_sub(1);
    merging.requests.extend(together);
    merging
}

impl<'a> Sighting<'a> {
    /// Logs without a role are not compared: what they are to each other is not known.
    fn file_without_role(&self) -> &'a str {
        if self.role.is_none() { self.file } else { "" }
    }
}

/// The records without those that say the same as one before.
fn without_duplicates(records: &[Sighting<'_>], duplicates: &mut usize) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(records.len());
    let is_new = |index: &usize| {
        let record = &records[*index];
        // a copy of a log says the same again, whatever the role; without a time equal records of two logs may be two views
        let file = if record.start.is_some() { "" } else { record.file_without_role() };
        seen.insert((record.values, record.role, record.start, record.attempt, record.model, file))
    };
    let kept: Vec<usize> = (0..records.len()).filter(is_new).collect();
    *duplicates += records.len() - kept.len();
    kept
}

/// The records of one role that are of one request.
struct Together<'a> {
    members: Vec<usize>,
    tenant: Option<&'a str>,
    prompt_hash: Option<&'a str>,
    /// The last start; None as long as one of them is not known, which is near to any.
    last: Option<i64>,
}

impl<'a> Together<'a> {
    fn of(index: usize, record: &Sighting<'a>) -> Self {
        let (tenant, prompt_hash, last) = (record.tenant, record.prompt_hash, record.start);
        Self { members: vec![index], tenant, prompt_hash, last }
    }

    /// Adds a record that starts no earlier than those before.
    fn push(&mut self, index: usize, record: &Sighting<'a>) {
        self.members.push(index);
        self.tenant = self.tenant.or(record.tenant);
        self.prompt_hash = self.prompt_hash.or(record.prompt_hash);
        self.last = self.last.and(record.start);
    }

    /// Whether nothing says that these are of different requests.
    fn agrees(&self, tenant: Option<&str>, prompt_hash: Option<&str>) -> bool {
        let agree = |one: Option<&str>, other: Option<&str>| one.zip(other).is_none_or(|(one, other)| one == other);
        agree(self.tenant, tenant) && agree(self.prompt_hash, prompt_hash)
    }
}

/// The records of one role by the request that they belong to.
fn apart<'a>(records: &[Sighting<'a>], mut members: Vec<usize>) -> Vec<Together<'a>> {
    members.sort_by_key(|&index| (records[index].start, index));
    let mut requests: Vec<Together> = Vec::new();
    for index in members {
        let record = &records[index];
        let near = |request: &&mut Together| distance(request.last, record.start) <= HOUR;
        let fits = |request: &&mut Together| request.agrees(record.tenant, record.prompt_hash);
        match requests.iter_mut().rev().filter(near).find(fits) {
            Some(request) => request.push(index, record),
            None => requests.push(Together::of(index, record)),
        }
    }
    requests
}

/// How far two times are apart; 0 where either is not known.
fn distance(one: Option<i64>, other: Option<i64>) -> i64 {
    one.zip(other).map_or(0, |(one, other)| one.saturating_sub(other).saturating_abs())
}

/// The records of one request in one role as attempts in order, of each the best record first: that of the better source,
/// and of a stream the last state.
fn attempts(records: &[Sighting<'_>], members: Vec<usize>) -> Vec<Vec<usize>> {
    let says_more = |index: &usize| {
        let record = &records[*index];
        record.end.is_some() || record.output_tokens.is_some() || record.attempt.is_some() || record.has_outcome
    };
    // a line that only says that a request began is no attempt of its own
    let (mut whole, mut beginnings): (Vec<usize>, Vec<usize>) = members.into_iter().partition(says_more);
    if whole.is_empty() {
        std::mem::swap(&mut whole, &mut beginnings);
    }
    let mut attempts: HashMap<_, Vec<usize>> = HashMap::new();
    for index in whole {
        let record = &records[index];
        let call = (!record.is_answer).then_some((record.start, record.attempt, record.model));
        attempts.entry(call).or_default().push(index);
    }
    let mut attempts: Vec<Vec<usize>> = attempts.into_values().collect();
    for index in beginnings {
        let start = records[index].start;
        let next = |attempt: &&mut Vec<usize>| {
            let behind = records[attempt[0]].start;
            (behind < start, behind)
        };
        attempts.iter_mut().min_by_key(next).into_iter().for_each(|attempt| attempt.push(index));
    }
    for attempt in &mut attempts {
        attempt.sort_by_key(|&index| {
            let record = &records[index];
            std::cmp::Reverse((record.priority, record.output_tokens, record.end, index))
        });
    }
    attempts.sort_by_key(|attempt| (records[attempt[0]].attempt, records[attempt[0]].start, attempt[0]));
    attempts
}

/// Puts what the roles know of an id side by side. A role that saw as many requests as another saw the same ones in the
/// same order, whatever its clock; else each goes to the nearest that it does not contradict.
fn side_by_side(records: &[Sighting<'_>], mut of_roles: Vec<(Role, Vec<Together>)>) -> Vec<Merged> {
    of_roles.sort_by_key(|(role, requests)| (std::cmp::Reverse(requests.len()), *role as u8));
    let mut of_roles = of_roles.into_iter();
    let Some((role, requests)) = of_roles.next() else { return Vec::new() };
    let first = |request: &Together| Merged { roles: vec![(Some(role), attempts(records, request.members.clone()))] };
    let mut merged: Vec<Merged> = requests.iter().map(first).collect();
    for (role, others) in of_roles {
        let in_order = others.len() == requests.len();
        for (number, other) in others.into_iter().enumerate() {
            let start = records[other.members[0]].start;
            let fits = |at: &usize| requests[*at].agrees(other.tenant, other.prompt_hash);
            let same = Some(number).filter(|_| in_order).filter(fits);
            let nearest = same.or_else(|| {
                let distance = |&at: &usize| (distance(records[requests[at].members[0]].start, start), at);
                (0..requests.len()).filter(fits).min_by_key(distance)
            });
            let attempts = attempts(records, other.members);
            match nearest {
                Some(at) if merged[at].attempts_of(Some(role)).is_empty() => {
                    merged[at].roles.push((Some(role), attempts))
                }
                _ => merged.push(Merged { roles: vec![(Some(role), attempts)] }),
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(role: Role, second: i64) -> Sighting<'static> {
        let values = (second as u64) << 8 | role as u64;
        Sighting { role: Some(role), start: Some(second * SECOND), values, ..Sighting::default() }
    }

    use Role::{App, Engine, Gateway};

    #[test]
    fn a_record_that_says_the_same_again_is_a_duplicate() {
        let merging = merge(&[at(Engine, 1), at(Engine, 1), at(Gateway, 1)]);
        assert_eq!((merging.duplicates, merging.requests.len(), merging.requests[0].records()), (1, 1, 2));
    }

    #[test]
    fn of_the_states_of_a_stream_the_last_counts() {
        let state = |tokens| Sighting { output_tokens: Some(tokens), values: tokens as u64, ..at(Engine, 1) };
        let merging = merge(&[state(5), state(80), state(40)]);
        assert_eq!(merging.requests[0].attempts_of(Some(Engine)), [vec![1, 2, 0]]);
    }

    #[test]
    fn another_start_within_the_hour_is_another_attempt_and_a_later_one_another_request() {
        let merging = merge(&[at(Engine, 1), at(Engine, 1800), at(Engine, 9000)]);
        assert_eq!((merging.requests.len(), merging.collisions), (2, 1));
        assert_eq!(merging.requests[0].attempts(), 2);
    }

    #[test]
    fn another_tenant_or_prompt_is_another_request() {
        let of = |tenant, second| Sighting { tenant: Some(tenant), ..at(Gateway, second) };
        let merging = merge(&[of("a", 1), of("b", 2), of("a", 3)]);
        assert_eq!((merging.requests.len(), merging.collisions), (2, 1));
        assert_eq!(merging.requests[0].attempts_of(Some(Gateway)), [vec![0], vec![2]]);
    }

    #[test]
    fn roles_are_put_side_by_side_also_where_one_clock_is_hours_wrong() {
        let hours = 8 * 3600;
        let records = [
            at(Gateway, 0),
            at(Engine, hours),
            at(App, 0),
            at(Gateway, 2 * hours),
            at(Engine, 3 * hours),
            at(App, 2 * hours),
        ];
        let merging = merge(&records);
        assert_eq!(merging.requests.len(), 2);
        for merged in &merging.requests {
            assert_eq!(merged.roles.len(), 3, "{merged:?}");
            assert_eq!(merged.records(), 3);
        }
        assert_eq!(merging.requests[0].attempts_of(Some(Engine)), [vec![1]]);
    }

    #[test]
    fn logs_without_a_role_are_not_merged_with_each_other() {
        let of = |file, values| Sighting { file, start: Some(1), values, ..Sighting::default() };
        let merging = merge(&[of("a", 1), of("b", 2), at(Engine, 1)]);
        assert_eq!((merging.requests.len(), merging.unrelated, merging.duplicates), (3, 1, 0));
    }

    #[test]
    fn a_copy_of_a_log_says_nothing_new() {
        let of = |file| Sighting { file, start: Some(1), values: 7, ..Sighting::default() };
        let merging = merge(&[of("a"), of("copy of a")]);
        assert_eq!((merging.requests.len(), merging.duplicates), (1, 1));
    }

    #[test]
    fn what_is_logged_under_the_id_of_an_answer_is_that_answer() {
        let state = |second, tokens| Sighting {
            is_answer: true,
            output_tokens: Some(tokens),
            values: tokens as u64,
            ..at(App, second)
        };
        let merging = merge(&[state(1, 5), state(2, 80), state(9, 80)]);
        assert_eq!(merging.requests[0].attempts(), 1);
        assert_eq!(merging.requests[0].attempts_of(Some(App))[0][0], 2);
    }

    #[test]
    fn attempts_are_those_of_the_role_that_saw_most_and_others_join_the_nearest() {
        let seen = [at(Gateway, 0), at(Gateway, 60), at(Gateway, 120), at(Engine, 61), at(App, 0)];
        let merging = merge(&seen);
        let attempts = merging.requests[0].by_attempt([Gateway, Engine, App], |&index| seen[index].start);
        let members = |merged: &Merged| merged.roles.iter().map(|(_, attempts)| attempts.concat()).collect::<Vec<_>>();
        assert_eq!(
            attempts.iter().map(members).collect::<Vec<_>>(),
            [vec![vec![0], vec![4]], vec![vec![1], vec![3]], vec![vec![2]]]
        );
    }

    #[test]
    fn a_better_source_is_believed_before_a_later_state() {
        let of = |priority, tokens| Sighting {
            priority,
            output_tokens: Some(tokens),
            values: tokens as u64,
            ..at(Engine, 1)
        };
        assert_eq!(merge(&[of(0, 90), of(1, 80)]).requests[0].attempts_of(Some(Engine)), [vec![1, 0]]);
    }
}
