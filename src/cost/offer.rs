//! Which price of the book holds for a call: by the model's name, the provider and the day.

use std::fmt;

use regex::Regex;

use super::book::Book;
use super::price::Price;

/// A model of the book with all names that it goes by.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    /// Only for records that name this provider, or none.
    pub provider: Option<String>,
    pub aliases: Vec<String>,
    /// As written, and as they are searched for.
    pub patterns: Vec<(String, Regex)>,
    /// Where the prices come from.
    pub source: Option<String>,
    /// In the order of their days.
    pub prices: Vec<Price>,
}

/// How a model was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match<'a> {
    Name,
    Alias(&'a str),
    Pattern(&'a str),
}

/// A price that holds for a call, and how it was found.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    pub model: &'a Model,
    pub price: &'a Price,
    found: Match<'a>,
}

/// Why the book has no price for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoOffer {
    pub reason: String,
    /// Until when that holds, nanoseconds since 1970.
    pub until: i64,
}

impl NoOffer {
    fn ever(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), until: i64::MAX }
    }
}

impl fmt::Display for Offer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.model.name)?;
        if let Some(since) = &self.price.since_text {
            write!(f, " from {since}")?;
        }
        match self.found {
            Match::Name => Ok(()),
            Match::Alias(alias) => write!(f, " (alias {alias})"),
            Match::Pattern(pattern) => write!(f, " (pattern {pattern})"),
        }
    }
}

impl Model {
    /// How a record's model is this one, and how surely: the name itself before an alias, an alias before a pattern, of
    /// patterns the one that says most.
    fn matches(&self, name: &str) -> Option<(Match<'_>, usize)> {
        if self.name.eq_ignore_ascii_case(name) {
            return Some((Match::Name, usize::MAX));
        }
        if let Some(alias) = self.aliases.iter().find(|alias| alias.eq_ignore_ascii_case(name)) {
            return Some((Match::Alias(alias), usize::MAX - 1));
        }
        let letters = |pattern: &str| pattern.chars().filter(|letter| *letter != '*').count();
        let fitting = self.patterns.iter().filter(|(_, regex)| regex.is_match(name));
        let (pattern, _) = fitting.max_by_key(|(pattern, _)| letters(pattern))?;
        Some((Match::Pattern(pattern), letters(pattern)))
    }
}

impl Book {
    /// The price of a model at a time.
    ///
    /// # Errors
    /// A reason, where the book has none.
    pub fn offer(&self, model: Option<&str>, provider: Option<&str>, at: Option<i64>) -> Result<Offer<'_>, NoOffer> {
        let Some(name) = model else { return Err(NoOffer::ever("no model")) };
        let is_of = |model: &Model| match (&model.provider, provider) {
            (Some(own), Some(provider)) => own.eq_ignore_ascii_case(provider),
            _ => true,
        };
        let candidates = self.models.iter().filter(|model| is_of(model));
        let best = candidates
            .filter_map(|model| {
                let (found, sureness) = model.matches(name)?;
                let is_named = provider.is_some() && model.provider.is_some();
                Some((model, found, (sureness, is_named)))
            })
            // of equals the first of the book
            .rev()
            .max_by_key(|(_, _, sureness)| *sureness);
        let Some((model, found, _)) = best else { return Err(NoOffer::ever("no price for this model")) };
        let price = match at {
            Some(at) => model.prices.iter().rev().find(|price| price.since.is_none_or(|since| since <= at)),
            None => match model.prices.as_slice() {
                [price] if price.since.is_none() => Some(price),
                _ => return Err(NoOffer::ever("no time")),
            },
        };
        match (price, model.prices.first()) {
            (Some(price), _) => Ok(Offer { model, price, found }),
            (None, Some(first)) => {
                let day = first.since_text.as_deref().unwrap_or_default();
                let reason = format!("no price of {} before {day}", model.name);
                Err(NoOffer { reason, until: first.since.unwrap_or(i64::MAX) })
            }
            (None, None) => Err(NoOffer::ever(format!("no price of {}", model.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str = r#"
        [[model]]
        name = "gpt-4o"
        provider = "openai"
        aliases = ["gpt-4o-2024-08-06"]
        patterns = ["azure/gpt-4o*", "azure/*"]
        [[model.price]]
        from = "2024-05-13"
        input = 5
        [[model.price]]
        from = "2024-10-02T16:00:00Z"
        input = 2.5
        [[model]]
        name = "anything"
        patterns = ["azure/gpt-4o-mini*"]
        [[model.price]]
        input = 1
    "#;

    fn offer(model: &str, provider: Option<&str>, at: &str) -> String {
        let book = Book::parse("prices.toml", BOOK).unwrap();
        let at = i64::try_from(at.parse::<jiff::Timestamp>().unwrap().as_nanosecond()).unwrap();
        match book.offer(Some(model), provider, Some(at)) {
            Ok(offer) => offer.to_string(),
            Err(none) => none.reason,
        }
    }

    #[test]
    fn a_name_comes_before_an_alias_and_an_alias_before_the_pattern_that_says_most() {
        let at = "2025-01-01T00:00:00Z";
        assert_eq!(offer("GPT-4o", None, at), "gpt-4o from 2024-10-02T16:00:00Z");
        assert_eq!(offer("gpt-4o-2024-08-06", None, at), "gpt-4o from 2024-10-02T16:00:00Z (alias gpt-4o-2024-08-06)");
        assert_eq!(offer("azure/gpt-4o-x", None, at), "gpt-4o from 2024-10-02T16:00:00Z (pattern azure/gpt-4o*)");
        assert_eq!(offer("azure/gpt-4o-mini-x", None, at), "anything (pattern azure/gpt-4o-mini*)");
        assert_eq!(offer("azure/gpt-4o-x", Some("mistral"), at), "no price for this model");
    }

    #[test]
    fn a_price_holds_from_its_first_moment_on() {
        assert_eq!(offer("gpt-4o", None, "2024-10-02T15:59:59.999999999Z"), "gpt-4o from 2024-05-13");
        assert_eq!(offer("gpt-4o", None, "2024-10-02T16:00:00Z"), "gpt-4o from 2024-10-02T16:00:00Z");
        assert_eq!(offer("gpt-4o", None, "2024-05-12T23:59:59Z"), "no price of gpt-4o before 2024-05-13");
    }
}
