//! The price book: `prices.toml`, read with the line of every mistake.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use regex::Regex;

use super::lock;
use super::offer::Model;
use super::price::{Classes, Long, LongMode, Price, Tier};
use super::{FACTOR_SCALE, Money, ONE, first_moment, times};
use crate::config::table::{Document, Table, Value};
use crate::request::{Mistake, Word, Zone};

/// All prices that a run knows.
#[derive(Debug, Clone, Default)]
pub struct Book {
    pub name: String,
    /// Of every price that names no other.
    pub currency: String,
    pub models: Vec<Model>,
    /// In the order of their days.
    pub rates: Vec<ExchangeRate>,
    pub pools: Vec<Pool>,
    /// A digest of the file, of 16 letters: two books of one digest are the same.
    pub digest: String,
}

/// What one unit of a currency is worth in another from some day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeRate {
    pub from: String,
    pub to: String,
    /// Nanoseconds since 1970.
    pub since: Option<i64>,
    pub factor: i128,
}

/// GPUs that are paid whether they work or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub gpus: Option<i64>,
    /// Of one GPU, in 10^-12 of the currency.
    pub gpu_hour: Option<i128>,
    pub since: Option<i64>,
    pub currency: String,
    /// What was paid for a month, as in `2025-06`, in 10^-12 of the currency.
    pub bills: Vec<(Date, i128)>,
}

impl Word for LongMode {
    const KIND: &'static str = "mode of long prompts";
    const WORDS: &'static [(&'static str, Self)] = &[("whole", LongMode::Whole), ("marginal", LongMode::Marginal)];
}

impl Book {
    /// Reads a price book.
    ///
    /// # Errors
    /// It cannot be read, it differs from its lock, or something in it is wrong; the mistake names the line.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        let text =
            fs::read_to_string(path).map_err(|reason| Mistake::UnreadablePrices { path: path.to_owned(), reason })?;
        let book = Self::parse(&path.display().to_string(), &text)?;
        lock::check(path, &text)?;
        Ok(book)
    }

    /// Reads the text of a price book.
    ///
    /// # Errors
    /// As [`Book::read`].
    pub fn parse(path: &str, text: &str) -> Result<Self, Mistake> {
        let document = Document { path, text };
        let mut table = document.parse()?;
        let currency = currency(&mut table)?.unwrap_or_else(|| "USD".to_owned());
        let zone = table.read("tz", Zone::parse)?.map_or(TimeZone::UTC, |zone| zone.rules);
        let reading = Reading { currency: &currency, zone };
        let name = table.text("name")?.unwrap_or_default();
        let models = table.tables("model")?.into_iter().map(|model| reading.model(model)).collect::<Result<_, _>>()?;
        let mut rates: Vec<ExchangeRate> =
            table.tables("rate")?.into_iter().map(|rate| reading.rate(rate)).collect::<Result<_, _>>()?;
        rates.sort_by_key(|rate| rate.since);
        let is_twice = |(number, rate): (usize, &ExchangeRate)| {
            rates[..number]
                .iter()
                .any(|other| (&other.from, &other.to, other.since) == (&rate.from, &rate.to, rate.since))
        };
        if let Some((_, rate)) = rates.iter().enumerate().find(|(number, rate)| is_twice((*number, rate))) {
            return Err(table.mistake(&format!("two rates from {} to {} begin on the same day", rate.from, rate.to)));
        }
        let pools: Vec<Pool> =
            table.tables("pool")?.into_iter().map(|pool| reading.pool(pool)).collect::<Result<_, _>>()?;
        let is_twice = |(number, pool): &(usize, &Pool)| {
            pools[..*number].iter().any(|other| (&other.name, other.since) == (&pool.name, pool.since))
        };
        if let Some((_, pool)) = pools.iter().enumerate().find(is_twice) {
            return Err(table.mistake(&format!("two pools `{}` begin on the same day", pool.name)));
        }
        table.finish()?;
        let digest = lock::digest(text)[..16].to_owned();
        Ok(Book { name, models, rates, pools, digest, currency })
    }

    /// The book as a report names it.
    pub fn label(&self) -> String {
        if self.name.is_empty() { self.digest.clone() } else { format!("{} ({})", self.name, self.digest) }
    }

    /// An amount in another currency by the rate of a day.
    ///
    /// # Errors
    /// A reason, where the book has no rate for that day.
    pub fn exchange(&self, amount: Money, from: &str, to: &str, at: Option<i64>) -> Result<Money, String> {
        if from.eq_ignore_ascii_case(to) {
            return Ok(amount);
        }
        let rate = self.rate(from, to, at).ok_or_else(|| format!("no rate from {from} to {to}"))?;
        times(amount, rate).ok_or_else(|| "more than any money".to_owned())
    }

    fn rate(&self, from: &str, to: &str, at: Option<i64>) -> Option<i128> {
        let at = at?;
        let holds = |rate: &&ExchangeRate| {
            rate.from.eq_ignore_ascii_case(from)
                && rate.to.eq_ignore_ascii_case(to)
                && rate.since.is_none_or(|since| since <= at)
        };
        self.rates.iter().rev().find(holds).map(|rate| rate.factor)
    }

    /// The least and the most that a token of each class costs in the book's own currency, whatever the model.
    pub fn extremes(&self) -> Option<(Classes, Classes)> {
        let prices = self.models.iter().flat_map(|model| &model.prices);
        let own = prices.filter(|price| price.currency.eq_ignore_ascii_case(&self.currency));
        let classes: Vec<Classes> = own.flat_map(Price::all_classes).collect();
        let of = |class: fn(&Classes) -> Money, pick: fn(Money, Money) -> Money| classes.iter().map(class).reduce(pick);
        let all = |pick: fn(Money, Money) -> Money| {
            Some(Classes {
                input: of(|one| one.total.or(one.input).unwrap_or(0), pick),
                cached: of(|one| one.total.unwrap_or_else(|| one.cached()), pick),
                cache_write: of(|one| one.total.unwrap_or_else(|| one.cache_write()), pick),
                cache_write_1h: of(|one| one.total.unwrap_or_else(|| one.cache_write_1h()), pick),
                output: of(|one| one.total.or(one.output).unwrap_or(0), pick),
                reasoning: of(|one| one.total.or(one.reasoning).or(one.output).unwrap_or(0), pick),
                request: of(|one| one.request.unwrap_or(0), pick),
                total: None,
            })
            .filter(|_| !classes.is_empty())
        };
        all(Money::min).zip(all(Money::max))
    }
}

/// What holds for a whole book while it is read.
struct Reading<'a> {
    currency: &'a str,
    zone: TimeZone,
}

impl Reading<'_> {
    fn model(&self, mut table: Table) -> Result<Model, Mistake> {
        let name = table.text("name")?;
        let provider = table.text("provider")?;
        let aliases = table.list("aliases", |alias| Ok(alias.to_owned()))?;
        let patterns = table.list("patterns", |pattern| Ok((pattern.to_owned(), pattern_regex(pattern)?)))?;
        let source = table.text("source")?;
        let tables = table.tables("price")?;
        table.finish()?;
        let Some(name) = name else {
            return Err(table.mistake("a [[model]] needs a name, as in name = \"gpt-4o\""));
        };
        if tables.is_empty() {
            return Err(table.mistake(&format!("[[model]] `{name}` needs a [[model.price]]")));
        }
        let mut prices = tables.into_iter().map(|price| self.price(price)).collect::<Result<Vec<_>, _>>()?;
        prices.sort_by_key(|price| price.since);
        if let Some(twice) = prices.windows(2).find(|pair| pair[0].since == pair[1].since) {
            let day = twice[0].since_text.as_deref().unwrap_or("always");
            return Err(table.mistake(&format!("[[model]] `{name}` has two prices from the same day ({day})")));
        }
        Ok(Model { name, provider, aliases, patterns, source, prices })
    }

    fn price(&self, mut table: Table) -> Result<Price, Mistake> {
        let (since, since_text) = self.day(&mut table, "from")?;
        let currency = currency(&mut table)?.unwrap_or_else(|| self.currency.to_owned());
        let base = classes(&mut table)?;
        let long = long(&mut table)?;
        let mut tiers = Vec::new();
        if let Some(mut named) = table.table("tiers")? {
            for name in named.keys() {
                if let Some(tier) = named.table(&name)? {
                    tiers.push((name, self::tier(tier)?));
                }
            }
        }
        table.finish()?;
        if base.input.is_none() && base.total.is_none() {
            return Err(table.mistake(
                "a [[model.price]] needs a price of input tokens per 1M, \"0\" where they are free, or of the total",
            ));
        }
        Ok(Price { since, since_text, currency, base, long, tiers })
    }

    fn rate(&self, mut table: Table) -> Result<ExchangeRate, Mistake> {
        let from = table.read("from", currency_code)?;
        let to = table.read("to", currency_code)?;
        let (since, _) = self.day(&mut table, "since")?;
        let factor = table.take("rate").map(|value| positive(&value)).transpose()?;
        table.finish()?;
        match (from, to, factor) {
            (Some(from), Some(to), Some(factor)) => Ok(ExchangeRate { from, to, since, factor }),
            _ => Err(table.mistake(
                "a [[rate]] needs from, to, since and rate, as in from = \"CNY\", to = \"USD\", since = \"2025-06-01\", rate = \"0.1391\"",
            )),
        }
    }

    fn pool(&self, mut table: Table) -> Result<Pool, Mistake> {
        let name = table.text("name")?;
        let gpus = table.take("gpus").map(|value| gpus(&value)).transpose()?;
        let gpu_hour = table.take("gpu_hour").map(|value| positive(&value)).transpose()?;
        let (since, _) = self.day(&mut table, "from")?;
        let currency = currency(&mut table)?.unwrap_or_else(|| self.currency.to_owned());
        let mut bills = Vec::new();
        if let Some(mut by_month) = table.table("bills")? {
            for month in by_month.keys() {
                let Some(value) = by_month.take(&month) else { continue };
                let first: Date = format!("{month}-01")
                    .parse()
                    .or(Err(value.mistake(&format!("`{month}` is no month: write it as in \"2025-06\""))))?;
                bills.push((first, value.decimal(FACTOR_SCALE)?));
            }
        }
        table.finish()?;
        bills.sort();
        let Some(name) = name else {
            return Err(table.mistake("a [[pool]] needs a name, as in name = \"a100\""));
        };
        Ok(Pool { name, gpus, gpu_hour, since, currency, bills })
    }

    /// The first moment of a day, or a moment, and how it was written.
    fn day(&self, table: &mut Table, key: &str) -> Result<(Option<i64>, Option<String>), Mistake> {
        let Some(value) = table.take(key) else { return Ok((None, None)) };
        let text = value.date_text()?;
        let is_day = text.len() == "2025-06-01".len();
        let nanoseconds = match is_day {
            true => text.parse::<Date>().ok().and_then(|day| first_moment(day, &self.zone)),
            false => text.parse::<Timestamp>().ok().and_then(|moment| i64::try_from(moment.as_nanosecond()).ok()),
        };
        match nanoseconds {
            Some(nanoseconds) => Ok((Some(nanoseconds), Some(text))),
            None => Err(value.mistake(&format!(
                "`{text}` is no date: write it as in \"2025-06-01\", or a moment as in \"2025-06-01T16:00:00Z\""
            ))),
        }
    }
}

fn gpus(value: &Value) -> Result<i64, Mistake> {
    match value.integer()? {
        gpus @ 1..=1_000_000 => Ok(gpus),
        _ => Err(value.mistake("a pool has 1 to 1,000,000 GPUs")),
    }
}

fn tier(mut table: Table) -> Result<Tier, Mistake> {
    let factor = table.take("factor").map(|value| factor(&value)).transpose()?;
    let classes = classes(&mut table)?;
    let long = long(&mut table)?;
    table.finish()?;
    match (factor, classes == Classes::default() && long.is_empty()) {
        (Some(factor), true) => Ok(Tier::Factor(factor)),
        (None, false) => Ok(Tier::Own { classes: Box::new(classes), long }),
        _ => Err(table.mistake("a tier has either a factor, as in { factor = \"0.5\" }, or prices of its own")),
    }
}

/// A tier may be free, and is not a thousand times as dear.
fn factor(value: &Value) -> Result<i128, Mistake> {
    let factor = value.decimal(FACTOR_SCALE)?;
    if (0..=1_000 * ONE).contains(&factor) { Ok(factor) } else { Err(value.mistake("a factor is from 0 to 1000")) }
}

fn long(table: &mut Table) -> Result<Vec<Long>, Mistake> {
    let mut all = Vec::new();
    for mut entry in table.tables("long")? {
        let above = entry.take("above").map(|value| value.integer()).transpose()?;
        let mode = entry.read("mode", LongMode::from_word)?;
        let classes = classes(&mut entry)?;
        entry.finish()?;
        let (Some(above), Some(mode)) = (above, mode) else {
            return Err(entry
                .mistake("a price of long prompts needs above (input tokens) and mode (\"whole\" or \"marginal\")"));
        };
        if above < 1 || all.iter().any(|other: &Long| other.above == above) {
            return Err(entry.mistake("the thresholds of long prompts are above 0, and each stands once"));
        }
        all.push(Long { above, mode, classes });
    }
    all.sort_by_key(|long| long.above);
    Ok(all)
}

fn classes(table: &mut Table) -> Result<Classes, Mistake> {
    let mut price = |key: &str| table.take(key).map(|value| not_negative(&value)).transpose();
    Ok(Classes {
        input: price("input")?,
        cached: price("cached")?,
        cache_write: price("cache_write")?,
        cache_write_1h: price("cache_write_1h")?,
        output: price("output")?,
        reasoning: price("reasoning")?,
        total: price("total")?,
        // a fee is money itself, and not the price of a million
        request: price("request")?.map(|fee| fee.saturating_mul(1_000_000)),
    })
}

/// So much for a million tokens is no price, in any currency.
const DEAREST: i128 = 1_000_000_000 * ONE;

fn not_negative(value: &Value) -> Result<i128, Mistake> {
    let number = value.decimal(FACTOR_SCALE)?;
    match number {
        ..0 => Err(value.mistake("a price must not be below 0")),
        0..=DEAREST => Ok(number),
        _ => Err(value.mistake("no million tokens cost more than 1,000,000,000")),
    }
}

fn positive(value: &Value) -> Result<i128, Mistake> {
    let number = value.decimal(FACTOR_SCALE)?;
    if number > 0 { Ok(number) } else { Err(value.mistake("it must be above 0")) }
}

fn currency(table: &mut Table) -> Result<Option<String>, Mistake> {
    table.read("currency", currency_code)
}

/// A currency as reports write it.
pub fn currency_code(text: &str) -> Result<String, Mistake> {
    let code = text.trim().to_uppercase();
    let is_code = code.len() == 3 && code.bytes().all(|letter| letter.is_ascii_uppercase());
    if is_code { Ok(code) } else { Err(Mistake::NotACurrency { text: text.to_owned() }) }
}

/// A pattern in which `*` stands for any letters.
fn pattern_regex(pattern: &str) -> Result<Regex, Mistake> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    Regex::new(&format!("(?is)^{}$", parts.join(".*"))).or(Err(Mistake::NotAPattern { text: pattern.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(text: &str) -> String {
        Book::parse("prices.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_in_a_book_names_its_line() {
        for (text, expected) in [
            ("[[model]]\nprice = []", "prices.toml:1: a [[model]] needs a name"),
            (
                "[[model]]\nname = \"m\"\n[[model.price]]\ninputs = 1",
                "prices.toml:4: unknown key `inputs`; did you mean `input`?",
            ),
            (
                "[[model]]\nname = \"m\"\n[[model.price]]\ninput = \"2,50\"",
                "prices.toml:4: `input` must be a decimal number",
            ),
            ("[[model]]\nname = \"m\"\n[[model.price]]\ninput = -1", "prices.toml:4: a price must not be below 0"),
            (
                "[[model]]\nname = \"m\"\n[[model.price]]\nfrom = \"June\"\ninput = 1",
                "prices.toml:4: `June` is no date",
            ),
            (
                "[[model]]\nname = \"m\"\n[[model.price]]\ninput = 1\ntiers = { batch = {} }",
                "prices.toml:5: a tier has either",
            ),
            ("currency = \"dollars\"", "prices.toml:1: `dollars` is no currency"),
        ] {
            let sentence = sentence(text);
            assert!(sentence.starts_with(expected), "{sentence}");
        }
    }

    #[test]
    fn an_amount_is_exchanged_at_the_rate_of_its_day() {
        let text = "[[rate]]\nfrom = \"CNY\"\nto = \"USD\"\nsince = \"2025-06-01\"\nrate = 0.14\n[[rate]]\nfrom = \"cny\"\nto = \"usd\"\nsince = \"2025-01-01\"\nrate = 0.1";
        let book = Book::parse("prices.toml", text).unwrap();
        let at =
            |day: &str| i64::try_from(format!("{day}T00:00:00Z").parse::<Timestamp>().unwrap().as_nanosecond()).ok();
        let exchanged = |day| book.exchange(1_000, "CNY", "USD", at(day));
        assert_eq!(exchanged("2025-05-31"), Ok(100));
        assert_eq!(exchanged("2025-06-01"), Ok(140));
        assert_eq!(exchanged("2024-12-31"), Err("no rate from CNY to USD".to_owned()));
    }
}
