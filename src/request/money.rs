//! What the config says about money: the price book, what is not billed, shared costs, caps.

use std::path::PathBuf;

use jiff::civil::Date;

use super::{Mistake, Word};

/// The settings of money reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MoneySettings {
    /// Absolute.
    pub book: Option<PathBuf>,
    pub not_billed: Vec<NotBilled>,
    pub shared: Vec<SharedCost>,
    pub quotas: Vec<Quota>,
}

/// Calls upstream that nobody bills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBilled {
    pub name: String,
    /// SQL, not parsed yet.
    pub when: String,
}

/// A cost that no call causes. Amounts and percentages are in 10^-12.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCost {
    pub name: String,
    /// The first day of the month that it is for; None: it is owed in every month.
    pub month: Option<Date>,
    pub amount: i128,
    pub currency: String,
    pub method: Sharing,
    /// Of a fixed share: business lines with their percentages.
    pub percent: Vec<(String, i128)>,
}

/// How a shared cost is spread over those who share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// By what each of them costs directly.
    Proportional,
    Even,
    Fixed,
}

impl Word for Sharing {
    const KIND: &'static str = "way to share a cost";
    const WORDS: &'static [(&'static str, Self)] =
        &[("proportional", Sharing::Proportional), ("even", Sharing::Even), ("fixed", Sharing::Fixed)];
}

/// What a business line may use in a month, and its rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub line: String,
    pub tokens: Option<i64>,
    /// In 10^-12 of the currency.
    pub cost: Option<i128>,
    pub currency: Option<String>,
    pub tokens_per_minute: Option<i64>,
    pub tokens_per_hour: Option<i64>,
    pub requests_per_minute: Option<i64>,
}

/// The first day of a month written as `2025-06`.
pub fn month(text: &str) -> Result<Date, Mistake> {
    let not_a_month = || Mistake::NotAMonth { text: text.to_owned() };
    let text = text.trim();
    if text.len() != "2025-06".len() || text.contains(['T', 't', ' ', '[']) {
        return Err(not_a_month());
    }
    format!("{text}-01").parse().or(Err(not_a_month()))
}
