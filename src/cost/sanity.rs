//! Prices that cannot be meant: a price per token where one per million is due, a cached token dearer than a fresh one.

use std::collections::HashMap;

use super::book::Book;
use super::offer::Model;
use super::price::{Classes, Price, Tier};
use super::{Money, ONE};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    /// The word that reports use.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Something in a price book to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The model, or whatever it is about.
    pub subject: String,
    pub text: String,
}

/// All findings, in the order of the book.
pub fn findings(book: &Book) -> Vec<Finding> {
    let mut checking = Checking { found: Vec::new(), names: HashMap::new() };
    for model in &book.models {
        checking.names(model);
        model.prices.iter().for_each(|price| checking.price(model, price));
        model.prices.windows(2).for_each(|pair| checking.jump(model, &pair[0], &pair[1]));
        if model.source.is_none() {
            checking.note(Severity::Info, &model.name, "no source: nobody can check the price".to_owned());
        }
    }
    let currencies = book.models.iter().flat_map(|model| &model.prices).map(|price| &price.currency);
    let mut foreign: Vec<&String> = currencies.filter(|currency| **currency != book.currency).collect();
    foreign.sort_unstable();
    foreign.dedup();
    for currency in foreign {
        let is_known = book.rates.iter().any(|rate| rate.from == *currency && rate.to == book.currency);
        if !is_known {
            let text = format!("no [[rate]] to {}: its costs stand in rows of their own", book.currency);
            checking.note(Severity::Info, currency, text);
        }
    }
    checking.found
}

/// Findings that a new one is compared with.
const RECENT: usize = 32;

struct Checking<'a> {
    found: Vec<Finding>,
    /// The models of the names so far, by provider and name.
    names: HashMap<(Option<&'a str>, String), &'a str>,
}

impl<'a> Checking<'a> {
    fn note(&mut self, severity: Severity, subject: &str, text: String) {
        let finding = Finding { severity, subject: subject.to_owned(), text };
        // tiers and lengths of one price often say the same
        if !self.found.iter().rev().take(RECENT).any(|other| *other == finding) {
            self.found.push(finding);
        }
    }

    fn names(&mut self, model: &'a Model) {
        if model.patterns.iter().any(|(pattern, _)| pattern.chars().all(|letter| letter == '*')) {
            let text = "the pattern * fits every model: none will ever be unpriced".to_owned();
            self.note(Severity::Warning, &model.name, text);
        }
        let provider = model.provider.as_deref();
        for name in std::iter::once(&model.name).chain(&model.aliases).map(|name| name.to_lowercase()) {
            match self.names.get(&(provider, name.clone())) {
                Some(other) if *other != model.name => {
                    let text = format!("{name} is a name of {other} too, which stands before it and is taken");
                    self.note(Severity::Error, &model.name, text);
                }
                _ => {
                    self.names.insert((provider, name), &model.name);
                }
            }
        }
    }

    fn price(&mut self, model: &Model, price: &Price) {
        let day = price.since_text.as_deref().map(|day| format!(" from {day}")).unwrap_or_default();
        let subject = format!("{}{day}", model.name);
        for classes in price.all_classes() {
            self.sizes(&subject, &classes, &price.currency);
        }
        self.relations(&subject, &price.base);
        if price.base.total.is_some() && price.base.named().count() > 1 {
            let text = "the total is billed: the prices of single classes are never used".to_owned();
            self.note(Severity::Warning, &subject, text);
        }
        if price.base.cached.is_none() && price.base.total.is_none() {
            let text = "no price of cached tokens: they cost what other input tokens cost".to_owned();
            self.note(Severity::Info, &subject, text);
        }
        for (name, tier) in &price.tiers {
            match tier {
                Tier::Factor(factor) if name.eq_ignore_ascii_case("batch") && *factor > ONE => {
                    self.note(Severity::Warning, &subject, "a batch costs more than the base price".to_owned());
                }
                Tier::Factor(_) => {}
                Tier::Own { classes, .. } => {
                    self.relations(&format!("{subject}, tier {name}"), classes);
                    let said: Vec<&str> = classes.named().map(|(class, _)| class).collect();
                    let lacking: Vec<&str> =
                        price.base.named().map(|(class, _)| class).filter(|class| !said.contains(class)).collect();
                    if !lacking.is_empty() && classes.total.is_none() {
                        let text =
                            format!("tier {name} has no price of {}, which the base price has", lacking.join(", "));
                        self.note(Severity::Error, &subject, text);
                    }
                }
            }
        }
        for long in &price.long {
            if long.classes.input.zip(price.base.input).is_some_and(|(long, base)| long < base) {
                let text = format!("prompts above {} tokens are cheaper than short ones", long.above);
                self.note(Severity::Warning, &subject, text);
            }
        }
    }

    /// A new price that is another order than the one before.
    fn jump(&mut self, model: &Model, before: &Price, after: &Price) {
        for (name, price) in after.base.named() {
            let was = before.base.named().find(|(other, _)| *other == name).map(|(_, price)| price);
            let is_jump = was.is_some_and(|was| was > 0 && price > 0 && (price / was >= 20 || was / price >= 20));
            if is_jump && before.currency == after.currency {
                let day = after.since_text.as_deref().unwrap_or_default();
                let text = format!("{name} changes by a factor of 20 or more from {day} on");
                self.note(Severity::Warning, &model.name, text);
            }
        }
    }

    /// Prices far from any that a token has had.
    fn sizes(&mut self, subject: &str, classes: &Classes, currency: &str) {
        let most = match currency {
            "USD" | "EUR" | "GBP" | "CHF" => 1_000,
            "CNY" => 10_000,
            _ => 1_000_000,
        };
        for (name, price) in classes.named() {
            if price > most * ONE {
                let text = format!(
                    "{name} costs more than {most} {currency} per million tokens: is it the price of a million?"
                );
                self.note(Severity::Error, subject, text);
            } else if (1..ONE / 10_000).contains(&price) {
                let text =
                    format!("{name} costs less than 0.0001 {currency} per million tokens: is it that of one token?");
                self.note(Severity::Error, subject, text);
            } else if (1..ONE / 200).contains(&price) {
                let text =
                    format!("{name} costs less than 0.005 {currency} per million tokens: is it that of a thousand?");
                self.note(Severity::Warning, subject, text);
            }
        }
    }

    fn relations(&mut self, subject: &str, classes: &Classes) {
        let above = |one: Option<Money>, other: Option<Money>| one.zip(other).is_some_and(|(one, other)| one > other);
        if above(classes.cached, classes.input) {
            self.note(Severity::Error, subject, "a cached token costs more than one that is not".to_owned());
        }
        if above(classes.cache_write, classes.cache_write_1h) {
            self.note(
                Severity::Warning,
                subject,
                "a cache write of an hour costs less than one of five minutes".to_owned(),
            );
        }
        let far_above =
            classes.output.zip(classes.input).is_some_and(|(output, input)| input > 0 && output > 50 * input);
        if far_above {
            self.note(Severity::Warning, subject, "an output token costs more than 50 input tokens".to_owned());
        }
        if above(classes.input, classes.output) && classes.output.is_some_and(|output| output > 0) {
            self.note(Severity::Warning, subject, "an output token costs less than an input token".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(price: &str) -> Vec<String> {
        let text = format!("[[model]]\nname = \"m\"\nsource = \"s\"\n[[model.price]]\n{price}");
        let found = findings(&Book::parse("prices.toml", &text).unwrap());
        found.into_iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.text).collect()
    }

    #[test]
    fn usual_prices_are_no_finding_and_absurd_ones_are() {
        assert_eq!(errors("input = 2.5\ncached = 1.25\noutput = 10"), Vec::<String>::new());
        assert!(errors("input = 2.5\ncached = 3000\noutput = 10")[0].contains("is it the price of a million?"));
        assert!(errors("input = 0.0000025\noutput = 0.00001")[0].contains("is it that of one token?"));
        assert!(errors("input = 2.5\ncached = 2.6\noutput = 10")[0].contains("costs more than one that is not"));
    }

    #[test]
    fn a_name_that_two_models_have_is_told() {
        let text = "[[model]]\nname = \"a\"\naliases = [\"B\"]\n[[model.price]]\ninput = 1\n[[model]]\nname = \"b\"\n[[model.price]]\ninput = 2\n";
        let found = findings(&Book::parse("prices.toml", text).unwrap());
        assert!(
            found
                .iter()
                .any(|finding| finding.severity == Severity::Error && finding.text.starts_with("b is a name of a"))
        );
    }
}
