//! Keys as they are written, and which of them repeat.

use std::borrow::Cow;

use super::record::Span;
use crate::source::json::unescape;

/// A key as written, without its quotes.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub name: Span,
    pub escaped: bool,
}

impl Key {
    pub fn unescaped(self, text: &[u8]) -> Cow<'_, [u8]> {
        let raw = self.name.of(text);
        if !self.escaped {
            return Cow::Borrowed(raw);
        }
        let mut name = Vec::with_capacity(raw.len());
        unescape(raw, &mut name);
        Cow::Owned(name)
    }
}

/// The keys of the objects that are open, to find those that repeat.
#[derive(Default)]
pub(super) struct Keys {
    names: Vec<(u64, Key)>,
}

impl Keys {
    pub fn clear(&mut self) {
        self.names.clear();
    }

    /// How many keys are held, all open objects together.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn push(&mut self, text: &[u8], key: Key) {
        let hash = if key.escaped { hash(&key.unescaped(text)) } else { hash(key.name.of(text)) };
        self.names.push((hash, key));
    }

    /// Forgets the keys from `first` on, which are those of one object. Returns how many of them
    /// repeat another.
    pub fn close_object(&mut self, text: &[u8], first: usize) -> u32 {
        let keys = &mut self.names[first..];
        keys.sort_unstable_by_key(|&(hash, _)| hash);
        let alike = keys.windows(2).any(|pair| pair[0].0 == pair[1].0);
        let duplicates = if alike { duplicates(text, keys) } else { 0 };
        self.names.truncate(first);
        duplicates
    }
}

/// How many keys repeat another, compared by their names: equal hashes are a hint only.
#[cold]
fn duplicates(text: &[u8], keys: &[(u64, Key)]) -> u32 {
    let mut names: Vec<_> = keys.iter().map(|(_, key)| key.unescaped(text)).collect();
    names.sort_unstable();
    names.windows(2).filter(|pair| pair[0] == pair[1]).count() as u32
}

fn hash(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, word: [u8; 8]| (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    mix(words.iter().fold(name.len() as u64, |hash, &word| mix(hash, word)), last)
}
