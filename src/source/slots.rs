//! The key paths that a plan reads, each with a number, and how a profile's paths become lookups by number.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::profile::{Condition, Step, ValuePath};
use crate::source::json::unescape;
use crate::source::json::walk;
use crate::source::reader::RawRecord;
use crate::source::value::RawValue;

/// Key paths, numbered as they come. Equal paths share a slot.
#[derive(Debug, Default)]
pub struct Slots {
    numbers: HashMap<Vec<String>, u32>,
    /// The well-known keys of what is measured of requests.
    pub measures: Vec<u32>,
}

impl Slots {
    pub fn of(&mut self, path: Vec<String>) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(path).or_insert(next)
    }

    pub fn lookup(&mut self, path: &ValuePath) -> Lookup {
        let slots = path.spellings().map(|keys| self.of(keys));
        Lookup { inner: path.inner.clone().into(), ..Lookup::of(slots) }
    }

    /// The lookup of a path that may lead through one of the texts at `json`, in a record where they are not opened yet.
    fn lookup_through(&mut self, path: &ValuePath, json: &[ValuePath]) -> Lookup {
        let through = json.iter().find(|text| path.keys.len() > text.keys.len() && path.keys.starts_with(&text.keys));
        let Some(text) = through else { return self.lookup(path) };
        let steps = path.keys[text.keys.len()..].iter().cloned().map(Step::Key);
        let inner = steps.chain(path.inner.iter().cloned()).collect();
        Lookup { inner, in_text: true, ..self.lookup(text) }
    }

    pub fn test(&mut self, condition: &Condition, json: &[ValuePath]) -> Test {
        let mut lookups =
            |paths: &[ValuePath]| -> Vec<Lookup> { paths.iter().map(|path| self.lookup_through(path, json)).collect() };
        let (keys, any, mut without) = (lookups(&condition.keys), lookups(&condition.any), lookups(&condition.without));
        if condition.bare {
            without.push(Lookup::of(self.measures.iter().copied()));
        }
        let mut valued = |values: &[(ValuePath, Vec<String>)]| -> Vec<(Lookup, Box<[String]>)> {
            values.iter().map(|(path, texts)| (self.lookup_through(path, json), texts.clone().into())).collect()
        };
        let (is, not, starts) = (valued(&condition.is), valued(&condition.not), valued(&condition.starts));
        Test { keys, any, without, is, not, starts }
    }

    /// The paths in the order of their numbers.
    pub fn into_paths(self) -> Vec<Vec<String>> {
        let mut paths: Vec<(Vec<String>, u32)> = self.numbers.into_iter().collect();
        paths.sort_unstable_by_key(|(_, number)| *number);
        paths.into_iter().map(|(path, _)| path).collect()
    }
}

/// A value's place in a record: the slots that may hold it, and the way inside.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub slots: SmallVec<[u32; 2]>,
    pub inner: Box<[Step]>,
    /// The way may lead through a text that holds JSON.
    pub in_text: bool,
}

impl Lookup {
    /// That of what stands in the slots themselves.
    pub fn of(slots: impl IntoIterator<Item = u32>) -> Self {
        Self { slots: slots.into_iter().collect(), inner: [].into(), in_text: false }
    }

    /// The first value that is there; null where there is only null.
    #[inline]
    pub fn find<'a, R: RawRecord>(&self, record: &'a R) -> RawValue<'a> {
        let mut found = RawValue::Missing;
        for &slot in &self.slots {
            match inside(record.raw(slot as usize), &self.inner) {
                RawValue::Missing => {}
                RawValue::Null => found = RawValue::Null,
                value => return value,
            }
        }
        found
    }

    /// What `ask` says about the value.
    #[inline]
    fn ask<R: RawRecord>(&self, record: &R, ask: impl Fn(RawValue<'_>) -> bool) -> bool {
        if self.in_text {
            for &slot in &self.slots {
                if let RawValue::Text { bytes, .. } = record.raw(slot as usize) {
                    let mut json = Vec::with_capacity(bytes.len());
                    unescape(bytes, &mut json);
                    return ask(walk(&json, &self.inner));
                }
            }
        }
        ask(self.find(record))
    }

    /// Whether it is there in records with these slots; None where that takes a look inside.
    fn is_present(&self, has: &impl Fn(u32) -> bool) -> Option<bool> {
        match self.slots.iter().any(|&slot| has(slot)) {
            true if !self.inner.is_empty() => None,
            present => Some(present),
        }
    }
}

/// The value that steps lead to inside another.
#[inline]
pub fn inside<'a>(value: RawValue<'a>, steps: &[Step]) -> RawValue<'a> {
    match value {
        _ if steps.is_empty() => value,
        RawValue::Nested(json) => walk(json, steps),
        _ => RawValue::Missing,
    }
}

/// A condition on the values at slots.
#[derive(Clone, Debug)]
pub struct Test {
    keys: Vec<Lookup>,
    any: Vec<Lookup>,
    without: Vec<Lookup>,
    is: Vec<(Lookup, Box<[String]>)>,
    not: Vec<(Lookup, Box<[String]>)>,
    starts: Vec<(Lookup, Box<[String]>)>,
}

impl Test {
    /// The test that none of these slots is filled.
    pub fn without(slots: impl IntoIterator<Item = u32>) -> Self {
        let without = slots.into_iter().map(|slot| Lookup::of([slot])).collect();
        Self { keys: Vec::new(), any: Vec::new(), without, is: Vec::new(), not: Vec::new(), starts: Vec::new() }
    }

    /// The same test, and each of these is filled too.
    pub fn with(self, keys: Vec<Lookup>) -> Self {
        Self { keys, ..self }
    }

    /// Whether it holds for every record that has just the slots that `has` tells, or for none of them; None where that
    /// depends on their values.
    pub fn by_presence(&self, has: impl Fn(u32) -> bool) -> Option<bool> {
        let mut certain = true;
        let mut part = |holds: Option<bool>| {
            certain &= holds.is_some();
            holds == Some(false)
        };
        let mut fails = false;
        for lookup in &self.keys {
            fails |= part(lookup.is_present(&has));
        }
        for lookup in &self.without {
            fails |= part(lookup.is_present(&has).map(|present| !present));
        }
        if !self.any.is_empty() {
            let present: Vec<Option<bool>> = self.any.iter().map(|lookup| lookup.is_present(&has)).collect();
            fails |= part(match () {
                () if present.contains(&Some(true)) => Some(true),
                () if present.contains(&None) => None,
                () => Some(false),
            });
        }
        for (lookup, _) in self.is.iter().chain(&self.starts) {
            fails |= part(if lookup.is_present(&has) == Some(false) { Some(false) } else { None });
        }
        for (lookup, _) in &self.not {
            fails |= part(if lookup.is_present(&has) == Some(false) { Some(true) } else { None });
        }
        match (fails, certain) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    /// A slot and the texts of which it must hold one for the test to hold, where there is such a slot.
    pub fn one_value(&self) -> Option<(u32, &[String])> {
        let simple = |(lookup, texts): &&(Lookup, Box<[String]>)| {
            lookup.slots.len() == 1 && lookup.inner.is_empty() && !lookup.in_text && !texts.is_empty()
        };
        let (lookup, texts) = self.is.iter().find(simple)?;
        Some((lookup.slots[0], texts))
    }

    /// The same test for records that have just the slots that `has` tells.
    pub fn among(&self, has: impl Fn(u32) -> bool) -> Self {
        let mut test = self.clone();
        let lookups = test.keys.iter_mut().chain(&mut test.any).chain(&mut test.without);
        let valued = [&mut test.is, &mut test.not, &mut test.starts].into_iter().flatten().map(|(lookup, _)| lookup);
        for lookup in lookups.chain(valued) {
            lookup.slots.retain(|slot| has(*slot));
        }
        test
    }

    pub fn holds<R: RawRecord>(&self, record: &R) -> bool {
        let present = |lookup: &Lookup| lookup.ask(record, |value| value != RawValue::Missing);
        let says = |(lookup, texts): &(Lookup, Box<[String]>)| {
            let is_one = |said: &[u8]| texts.iter().any(|text| text.as_bytes() == said);
            lookup.ask(record, |value| is_one_of(value, is_one))
        };
        let begins = |(lookup, texts): &(Lookup, Box<[String]>)| {
            let is_one = |said: &[u8]| texts.iter().any(|text| said.starts_with(text.as_bytes()));
            lookup.ask(record, |value| is_one_of(value, is_one))
        };
        self.keys.iter().all(present)
            && (self.any.is_empty() || self.any.iter().any(present))
            && !self.without.iter().any(present)
            && self.is.iter().all(says)
            && !self.not.iter().any(says)
            && self.starts.iter().all(begins)
    }
}

#[inline]
fn is_one_of(value: RawValue<'_>, is: impl Fn(&[u8]) -> bool) -> bool {
    match value {
        RawValue::Missing | RawValue::Null | RawValue::Nested(_) => false,
        RawValue::Bool(true) => is(b"true"),
        RawValue::Bool(false) => is(b"false"),
        RawValue::Number(text) | RawValue::Text { bytes: text, escaped: false } => is(text),
        RawValue::Text { bytes, escaped: true } => {
            let mut text = Vec::with_capacity(bytes.len());
            unescape(bytes, &mut text);
            is(&text)
        }
    }
}
