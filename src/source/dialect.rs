//! A profile, compiled against the columns that a query reads: what a reader asks of each record.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::profile::{Carries, Origin, Profile, Rule, UnitOf};
use crate::record::Column;
use crate::record::alias::Alias;
use crate::source::layout::{Candidates, PLAIN, Slot};
use crate::source::mapping::Mapping;
use crate::source::reader::{REQUEST, RawRecord};
use crate::source::reading::Reading;
use crate::source::schema::Rows;
use crate::source::slots::{Lookup, Slots, Test};
use crate::source::value::RawValue;

/// How records of one producer are told and read.
#[derive(Debug)]
pub struct Dialect {
    /// None: the well-known names that need no profile.
    pub profile: Option<Arc<Profile>>,
    pub recognise: Recognition,
    pub skips: Vec<(String, Test)>,
    /// Values that are opened where they are texts that hold JSON.
    pub embedded: Vec<Lookup>,
    /// Candidates by field: canonical columns, extra columns, error keys.
    pub fields: Vec<Candidates>,
    pub readings: Vec<Reading>,
    /// What an envelope says of the records inside for the columns that are asked for: texts and the time.
    pub labels: Vec<Column>,
    pub zone: TimeZone,
    /// Whether times without a zone are known to be in `zone`.
    pub zone_known: bool,
    /// When clocks without a date stood at zero.
    pub clock_start: Option<i64>,
    pub role: Option<String>,
    /// Whether its records are events rather than requests.
    pub is_of_events: bool,
    pub carries: Cargo,
}

/// What records of a dialect are known by: one of some tests holds.
#[derive(Debug)]
pub struct Recognition(pub Vec<Test>);

impl Recognition {
    /// That of every record.
    pub fn any() -> Self {
        Self(vec![Test::without([])])
    }

    /// Whether it is that of every record.
    fn is_any(&self) -> bool {
        self.by_presence(|_| false) == Some(true)
    }

    fn of(profile: &Profile, slots: &mut Slots) -> Self {
        Self(profile.recognise.iter().map(|condition| slots.test(condition, &profile.json)).collect())
    }

    pub fn holds<R: RawRecord>(&self, record: &R) -> bool {
        self.0.iter().any(|test| test.holds(record))
    }

    /// Whether it holds for every record with just these slots, or for none; None where that depends on their values.
    pub fn by_presence(&self, has: impl Fn(u32) -> bool) -> Option<bool> {
        let mut holds = Some(false);
        for test in &self.0 {
            match test.by_presence(&has) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => holds = None,
            }
        }
        holds
    }
}

/// What a record of a dialect is, compiled.
#[derive(Debug)]
pub enum Cargo {
    /// A row of the table.
    Row,
    /// A row of another table, and what it is there.
    Other(&'static str),
    Payload {
        payload: Vec<Lookup>,
        by: Vec<Lookup>,
        partial: Option<(Lookup, Vec<String>)>,
    },
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A row.
    Row,
    /// No request, for the reason at this position.
    Skipped(usize),
    /// A row of another table, and what it is there.
    Other(&'static str),
    /// Other records are inside.
    Opened,
}

impl Dialect {
    /// Compiles a profile for the columns `wanted`.
    pub fn of_profile(
        profile: &Arc<Profile>,
        mapping: &Mapping,
        wanted: &[Column],
        fields: usize,
        rows: Rows,
        slots: &mut Slots,
    ) -> Self {
        let mut dialect = Self {
            recognise: Recognition::of(profile, slots),
            skips: profile.skips.iter().map(|skip| (skip.reason.clone(), slots.test(&skip.when, &[]))).collect(),
            embedded: profile.json.iter().map(|path| slots.lookup(path)).collect(),
            fields: vec![Candidates::new(); fields],
            readings: Vec::new(),
            labels: Vec::new(),
            zone: mapping.zone.clone(),
            zone_known: false,
            clock_start: mapping.clock_start,
            role: mapping.role.clone().or(profile.role.map(|role| crate::request::Word::word(role).to_owned())),
            is_of_events: profile.carries == Carries::Event,
            carries: Cargo::new(&profile.carries, rows, slots),
            profile: Some(profile.clone()),
        };
        if let (Some(zone), false) = (&profile.zone, mapping.zone_is_own) {
            dialect.zone = zone.clone();
            dialect.zone_known = true;
        }
        for (column, rules) in profile.columns.iter().filter(|(column, _)| wanted.contains(column)) {
            for rule in rules {
                dialect.add(column.index(), rule, slots);
            }
        }
        if let Some(errors) = dialect.fields.len().checked_sub(1) {
            for path in &profile.errors {
                dialect.add(errors, &Rule::plain(path.clone()), slots);
            }
        }
        dialect
    }

    pub fn add(&mut self, field: usize, rule: &Rule, slots: &mut Slots) {
        if let Some(plain) = plain(rule, slots) {
            return self.fields[field].extend(plain);
        }
        let number = self.readings.len() as u16;
        let reading = Reading::new(rule, slots);
        // one candidate for each slot that can make it yield something; the reading itself looks at all of them
        let candidate = |slot| Slot { slot, unit: None, reading: number };
        match reading.needs() {
            Some(needs) => self.fields[field].extend(needs.into_iter().map(candidate)),
            None => self.fields[field].push(candidate(Slot::ANYWHERE)),
        }
        self.readings.push(reading);
    }

    /// The candidates of paths that are just there, for the field of a column.
    pub fn plain_candidates(
        aliases: Vec<Alias>,
        default: Option<crate::record::unit::Unit>,
        slots: &mut Slots,
    ) -> Candidates {
        let slot = |alias: Alias| Slot { slot: slots.of(alias.path), unit: alias.unit.or(default), reading: PLAIN };
        aliases.into_iter().map(slot).collect()
    }

    /// Whether its records are requests, which may tell of the steps of their tokens.
    pub fn recounts(&self) -> bool {
        match &self.profile {
            Some(profile) => profile.carries == Carries::Request,
            None => self.recognise.is_any(),
        }
    }

    /// Leaves out the requests that tell of no steps of tokens: the fields of the lists in which they would are given.
    pub fn skip_without_steps(&mut self, lists: &[usize]) {
        let slots = lists.iter().flat_map(|field| self.fields[*field].iter()).map(|candidate| candidate.slot);
        let none_is_there = Test::without(slots.collect::<Vec<_>>());
        self.skips.push((REQUEST.to_owned(), none_is_there));
    }

    /// Whether its lines say something themselves, beside what they carry.
    pub fn speaks(&self) -> bool {
        let carries = self.profile.as_ref().map(|profile| &profile.carries);
        matches!(carries, Some(Carries::Payload(envelope)) if envelope.speaks)
    }

    /// Whether every record becomes others before its columns are read.
    pub fn rewrites(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.rewrites())
    }

    /// What a record of this dialect is; a `part` was taken out of another already.
    pub fn fate<R: RawRecord>(&self, record: &R, part: bool) -> Fate {
        if !part && (self.rewrites() || self.embedded.iter().any(|lookup| holds_json(lookup.find(record)))) {
            return Fate::Opened;
        }
        match self.skips.iter().position(|(_, test)| test.holds(record)) {
            Some(reason) => Fate::Skipped(reason),
            None => self.cargo(),
        }
    }

    /// The same where the slots of the record alone decide.
    pub fn fate_by_presence(&self, has: impl Fn(u32) -> bool, part: bool) -> Option<Fate> {
        if !part && self.rewrites() {
            return Some(Fate::Opened);
        }
        if !part && self.embedded.iter().any(|lookup| lookup.slots.iter().any(|&slot| has(slot))) {
            return None;
        }
        for (reason, (_, test)) in self.skips.iter().enumerate() {
            match test.by_presence(&has) {
                Some(false) => {}
                Some(true) => return Some(Fate::Skipped(reason)),
                None => return None,
            }
        }
        Some(self.cargo())
    }

    /// What a record is that nothing is taken out of, and that is not skipped.
    pub fn cargo(&self) -> Fate {
        match self.carries {
            Cargo::Row => Fate::Row,
            Cargo::Other(what) => Fate::Other(what),
            Cargo::Payload { .. } => Fate::Opened,
        }
    }
}

impl Cargo {
    /// `rows` says which records are rows.
    pub fn new(carries: &Carries, rows: Rows, slots: &mut Slots) -> Self {
        match carries {
            Carries::Request if rows != Rows::Events => Cargo::Row,
            Carries::Event if matches!(rows, Rows::Events | Rows::Both) => Cargo::Row,
            Carries::Token if rows == Rows::Tokens => Cargo::Row,
            Carries::Request => Cargo::Other(REQUEST),
            Carries::Event => Cargo::Other("event"),
            Carries::Token => Cargo::Other("token step"),
            Carries::Payload(envelope) => Cargo::Payload {
                payload: envelope.payload.iter().map(|path| slots.lookup(path)).collect(),
                by: envelope.by.iter().map(|path| slots.lookup(path)).collect(),
                partial: envelope.partial.as_ref().map(|(path, marks)| (slots.lookup(path), marks.clone())),
            },
        }
    }
}

/// Whether a value is a text that may hold an object or a list.
pub fn holds_json(value: RawValue<'_>) -> bool {
    matches!(value, RawValue::Text { bytes, .. } if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')))
}

/// The candidates of a rule that takes values just as they stand.
fn plain(rule: &Rule, slots: &mut Slots) -> Option<Candidates> {
    let Origin::Paths(paths) = &rule.origin else { return None };
    let unit = match rule.unit {
        UnitOf::Unstated => None,
        UnitOf::Fixed(unit) => Some(unit),
        UnitOf::Text | UnitOf::At(_) => return None,
    };
    let plain = Rule { unit: rule.unit.clone(), ..Rule::of(rule.origin.clone()) };
    if *rule != plain || paths.iter().any(|path| !path.inner.is_empty()) {
        return None;
    }
    let keys = paths.iter().flat_map(|path| path.spellings().collect::<Vec<_>>());
    Some(keys.map(|keys| Slot { slot: slots.of(keys), unit, reading: PLAIN }).collect())
}
