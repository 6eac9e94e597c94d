//! Closed lists of words: formats, metrics, units and the like, where every other word is a mistake.

use super::Mistake;
use crate::nearest::suggestion;

/// A choice from a closed list, each member with the word that people type for it.
pub trait Word: Copy + PartialEq + Send + Sync + 'static {
    /// What the list is of, as an error names it: `output format`.
    const KIND: &'static str;
    /// Every word with its meaning. The first word of a meaning is the one that is shown.
    const WORDS: &'static [(&'static str, Self)];

    /// All words, in the order of the list.
    fn words() -> impl Iterator<Item = &'static str> {
        Self::WORDS.iter().map(|(word, _)| *word)
    }

    /// The meaning of a word, or a mistake that lists the words and names the nearest.
    fn from_word(text: &str) -> Result<Self, Mistake> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
            Mistake::UnknownWord {
                kind: Self::KIND,
                word: text.to_owned(),
                words: Self::words().collect::<Vec<_>>().join(", "),
                hint: suggestion(text, Self::words()),
            }
        })
    }

    /// The word that this choice is shown as.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, meaning)| *meaning == self).map_or("", |(word, _)| *word)
    }
}
