//! What a line of plain text must look like to be a record: a regular expression whose named parts are its keys.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// A pattern that is compiled when a line is first compared with it: most logs hold no text, and compiling takes longer
/// than reading a small log.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    names: Vec<String>,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Reads a pattern of the program's own, which a test compiles.
    pub fn trusted(text: &str) -> Self {
        let names = text.split("(?<").skip(1).filter_map(|rest| rest.split_once('>')).map(|(name, _)| name.to_owned());
        Self { text: text.to_owned(), names: names.collect(), compiled: OnceLock::new() }
    }

    /// Reads a pattern of a user.
    ///
    /// # Errors
    /// It is no regular expression.
    pub fn parse(text: &str) -> Result<Self, regex::Error> {
        let compiled = RegexBuilder::new(text).build()?;
        let names = compiled.capture_names().flatten().map(str::to_owned).collect();
        Ok(Self { text: text.to_owned(), names, compiled: OnceLock::from(Some(compiled)) })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of its parts.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn captures<'l>(&self, line: &'l [u8]) -> Option<Captures<'l>> {
        self.compiled()?.captures(line)
    }

    pub fn is_match(&self, line: &[u8]) -> bool {
        self.compiled().is_some_and(|compiled| compiled.is_match(line))
    }

    fn compiled(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(&self.text).ok()).as_ref()
    }
}

/// Patterns of one text are one pattern.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Catalog;

    #[test]
    fn the_patterns_of_the_program_are_valid_and_have_the_parts_that_they_name() {
        for pattern in Catalog::embedded().all().iter().filter_map(|profile| profile.pattern.as_ref()) {
            assert_eq!(Pattern::parse(pattern.text()).unwrap().names(), pattern.names(), "{}", pattern.text());
        }
    }
}
