//! All keys of a log, found by name as records go by.
//!
//! Every value of every record passes here, so the common case is made cheap: records of one program have their keys
//! in one order, and the key that stood at this place in the last record is tried first.

use std::collections::HashMap;

use super::key::{Key, SEPARATOR};
use super::kind::Look;

/// Distinct keys that are counted; a log with more has values where keys should be.
const COUNTED: usize = 10_000;

/// Bytes of the longest name that is counted.
const LONGEST_NAME: usize = 1024;

/// The keys of a log or of a part of one.
#[derive(Debug, Default)]
pub struct Keys {
    keys: Vec<Key>,
    by_name: HashMap<Box<str>, usize>,
    /// Values under keys beyond those that are counted.
    uncounted: u64,
    /// The key at each place of the last record.
    order: Vec<usize>,
    /// The values of the record in hand, with the index of their key.
    record: Vec<(usize, Option<Look>)>,
    /// By key: the number of the last record that had it.
    last: Vec<u64>,
    records: u64,
    name: String,
}

impl Keys {
    /// Takes a value of the record in hand; None is null.
    pub fn take<S: AsRef<str>>(&mut self, path: &[S], look: Option<Look>) {
        self.name.clear();
        for (depth, key) in path.iter().enumerate() {
            if depth > 0 {
                self.name.push(SEPARATOR);
            }
            self.name.push_str(key.as_ref());
        }
        let place = self.record.len();
        let expected = self.order.get(place).copied().filter(|&index| *self.keys[index].name == *self.name);
        let Some(index) = expected.or_else(|| self.find()) else {
            self.uncounted += 1;
            return;
        };
        match self.order.get_mut(place) {
            Some(known) => *known = index,
            None => self.order.push(index),
        }
        self.record.push((index, look));
    }

    /// Counts the values taken as those of the record at `offset`; of a repeated key the last counts.
    pub fn end_record(&mut self, offset: u64) {
        self.records += 1;
        for (place, (index, look)) in self.record.drain(..).enumerate().rev() {
            if self.last[index] != self.records {
                self.last[index] = self.records;
                self.keys[index].see(look, offset, place as u32);
            }
        }
    }

    /// Forgets the values taken: the record turned out to be none.
    pub fn drop_record(&mut self) {
        self.record.clear();
    }

    /// Adds the keys of a later part of the same log.
    pub fn merge(&mut self, other: Keys) {
        self.uncounted += other.uncounted;
        self.records += other.records;
        for key in other.keys {
            self.name.clear();
            self.name.push_str(&key.name);
            match self.find() {
                Some(index) => self.keys[index].merge(&key),
                None => self.uncounted += key.present.unwrap_or(0) + key.nulls,
            }
        }
    }

    /// The keys as they stand in the log, and how many values had a key that was not counted.
    pub fn finish(self) -> (Vec<Key>, u64) {
        let mut keys = self.keys;
        keys.retain(Key::is_seen);
        keys.sort_by_key(Key::place);
        (keys, self.uncounted)
    }

    /// The index of the key `self.name`, a new one where there is room.
    fn find(&mut self) -> Option<usize> {
        if let Some(&index) = self.by_name.get(self.name.as_str()) {
            return Some(index);
        }
        if self.keys.len() == COUNTED || self.name.len() > LONGEST_NAME {
            return None;
        }
        let index = self.keys.len();
        self.keys.push(Key::new(&self.name));
        self.last.push(0);
        self.by_name.insert(self.name.as_str().into(), index);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::value::RawValue;

    fn take(keys: &mut Keys, name: &str, number: &str) {
        keys.take(&[name], Look::at(RawValue::Number(number.as_bytes())));
    }

    #[test]
    fn the_last_of_a_repeated_key_counts_once() {
        let mut keys = Keys::default();
        take(&mut keys, "a", "1");
        take(&mut keys, "b", "2");
        take(&mut keys, "a", "3");
        keys.end_record(0);
        let (keys, _) = keys.finish();
        let a = keys.iter().find(|key| &*key.name == "a").unwrap();
        assert_eq!((a.present, a.range.unwrap().0.value), (Some(1), 3.0));
    }

    #[test]
    fn keys_are_found_in_any_order_and_listed_as_they_first_came() {
        let mut keys = Keys::default();
        for (offset, names) in [["a", "b"], ["b", "a"], ["a", "c"]].iter().enumerate() {
            names.iter().for_each(|name| take(&mut keys, name, "1"));
            keys.end_record(offset as u64);
        }
        let (keys, uncounted) = keys.finish();
        let seen: Vec<_> = keys.iter().map(|key| (&*key.name, key.present.unwrap())).collect();
        assert_eq!(seen, [("a", 3), ("b", 2), ("c", 1)]);
        assert_eq!(uncounted, 0);
    }

    #[test]
    fn keys_beyond_those_that_are_counted_cost_no_memory() {
        let mut keys = Keys::default();
        for number in 0..COUNTED + 5 {
            take(&mut keys, &number.to_string(), "1");
        }
        take(&mut keys, &"x".repeat(LONGEST_NAME + 1), "1");
        keys.end_record(0);
        let mut whole = Keys::default();
        whole.merge(keys);
        let (keys, uncounted) = whole.finish();
        assert_eq!((keys.len(), uncounted), (COUNTED, 6));
    }
}
