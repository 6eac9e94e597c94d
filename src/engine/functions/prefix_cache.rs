//! A prefix cache as an engine keeps it: blocks by their hash, the least recently used evicted first.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// What a cache is limited to; None is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub blocks: Option<usize>,
    /// Nanoseconds that a block stays without being used.
    pub ttl: Option<i64>,
}

/// The hash of a block, as logged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Text(Box<str>),
}

/// The blocks in the cache.
#[derive(Debug, Default)]
pub struct PrefixCache {
    limits: Limits,
    /// When each was last used: by the clock, and in the order of uses.
    used: HashMap<Key, (i64, u64)>,
    order: BTreeMap<u64, Key>,
    uses: u64,
}

/// What a request had of its prompt's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    pub blocks: i64,
    /// Those at the front that were in the cache without a gap; what follows a gap cannot be used.
    pub reused: i64,
}

impl PrefixCache {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Looks a request up that came at `now`, and keeps its blocks. `hashes` is a JSON list, from the front of the prompt
    /// on. None if it is no list of numbers and texts.
    pub fn request(&mut self, hashes: &str, now: i64) -> Option<Reuse> {
        let items: Vec<Value> = serde_json::from_str(hashes).ok()?;
        let keys: Vec<Key> = items.into_iter().map(key).collect::<Option<_>>()?;
        let reused = keys.iter().take_while(|key| self.holds(key, now)).count();
        // from the end on, so that what is furthest from the front is evicted first
        keys.iter().rev().for_each(|key| self.keep(key, now));
        Some(Reuse { blocks: keys.len() as i64, reused: reused as i64 })
    }

    fn holds(&self, key: &Key, now: i64) -> bool {
        let is_fresh = |&(last, _): &(i64, u64)| self.limits.ttl.is_none_or(|ttl| now.saturating_sub(last) <= ttl);
        self.used.get(key).is_some_and(is_fresh)
    }

    fn keep(&mut self, key: &Key, now: i64) {
        let Some(blocks) = self.limits.blocks else {
            self.used.insert(key.clone(), (now, 0));
            return;
        };
        self.uses += 1;
        if let Some((_, before)) = self.used.insert(key.clone(), (now, self.uses)) {
            self.order.remove(&before);
        }
        self.order.insert(self.uses, key.clone());
        while self.used.len() > blocks {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.used.remove(&oldest);
        }
    }
}

/// None for what is no hash, and for numbers of more than 64 bits, which would not be told apart.
fn key(item: Value) -> Option<Key> {
    match item {
        Value::String(text) => Some(Key::Text(text.into())),
        Value::Number(number) => match number.as_u64() {
            Some(number) => Some(Key::Number(number)),
            None => number.as_i64().map(|number| Key::Text(number.to_string().into())),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reused(limits: Limits, requests: &[(&str, i64)]) -> Vec<i64> {
        let mut cache = PrefixCache::new(limits);
        requests.iter().map(|(hashes, now)| cache.request(hashes, *now).unwrap().reused).collect()
    }

    #[test]
    fn the_front_of_a_prompt_is_reused_up_to_the_first_block_that_is_not_there() {
        let requests =
            [("[1,2,3]", 0), ("[1,2,4]", 1), ("[9,2,3]", 2), ("[]", 3), (r#"["a","b"]"#, 4), (r#"["a"]"#, 5)];
        assert_eq!(reused(Limits::default(), &requests), [0, 2, 0, 0, 0, 1]);
    }

    #[test]
    fn blocks_that_were_not_used_for_longer_than_the_ttl_are_gone() {
        let limits = Limits { ttl: Some(10), blocks: None };
        assert_eq!(reused(limits, &[("[1]", 0), ("[1]", 10), ("[1]", 20), ("[1]", 31)]), [0, 1, 1, 0]);
    }

    #[test]
    fn the_least_recently_used_block_goes_first_and_of_one_prompt_the_last() {
        let limits = Limits { blocks: Some(3), ttl: None };
        // 4 evicts 2, the end of the first prompt
        assert_eq!(reused(limits, &[("[1,2]", 0), ("[3]", 1), ("[4]", 2), ("[1,2]", 3)]), [0, 0, 0, 1]);
        assert_eq!(reused(Limits { blocks: Some(0), ttl: None }, &[("[1]", 0), ("[1]", 1)]), [0, 0]);
    }

    #[test]
    fn what_is_no_list_of_hashes_is_no_request() {
        for other in ["", "7", "{}", "[[1]]", "[1", "[1.5]", "[99999999999999999999]"] {
            assert_eq!(PrefixCache::default().request(other, 0), None, "{other}");
        }
    }
}
