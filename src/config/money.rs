//! `[prices]`, `[allocation]` and `[[quota]]`: what the config says about money.

use std::path::Path;

use super::table::{Table, Value};
use crate::cost::book::currency_code;
use crate::cost::{FACTOR_SCALE, ONE};
use crate::request::{Mistake, MoneySettings, NotBilled, Quota, SharedCost, Sharing, Word, month};

/// Takes the settings of money out of a config.
pub(super) fn money(table: &mut Table, folder: &Path) -> Result<MoneySettings, Mistake> {
    let mut settings = MoneySettings::default();
    if let Some(mut prices) = table.table("prices")? {
        settings.book = prices.text("book")?.map(|path| folder.join(path));
        for mut rule in prices.tables("not_billed")? {
            let (name, when) = (rule.text("name")?, rule.text("when")?);
            rule.finish()?;
            let (Some(name), Some(when)) = (name, when) else {
                return Err(rule.mistake(
                    "what is not billed needs a name and a condition, as in { name = \"refused\", when = \"http_status = 429\" }",
                ));
            };
            settings.not_billed.push(NotBilled { name, when });
        }
        prices.finish()?;
    }
    if let Some(mut allocation) = table.table("allocation")? {
        settings.shared = allocation.tables("shared")?.into_iter().map(shared).collect::<Result<_, _>>()?;
        allocation.finish()?;
    }
    for entry in table.tables("quota")? {
        let span = entry.mistake("a second [[quota]] of this business line: put its caps into one");
        let quota = quota(entry)?;
        if settings.quotas.iter().any(|other| other.line == quota.line) {
            return Err(span);
        }
        settings.quotas.push(quota);
    }
    Ok(settings)
}

fn shared(mut table: Table) -> Result<SharedCost, Mistake> {
    let name = table.text("name")?;
    let month = table.read("month", month)?;
    let amount = table.take("amount").map(|value| value.decimal(FACTOR_SCALE)).transpose()?;
    let currency = table.read("currency", currency_code)?;
    let method = table.read("method", Sharing::from_word)?;
    let mut percent = Vec::new();
    if let Some(mut shares) = table.table("percent")? {
        for line in shares.keys() {
            if let Some(value) = shares.take(&line) {
                percent.push((line, value.decimal(FACTOR_SCALE)?));
            }
        }
    }
    table.finish()?;
    let (Some(name), Some(amount)) = (name, amount) else {
        return Err(
            table.mistake("a shared cost needs a name and an amount, as in name = \"platform\", amount = \"500.00\"")
        );
    };
    let method = method.unwrap_or(if percent.is_empty() { Sharing::Proportional } else { Sharing::Fixed });
    if (method == Sharing::Fixed) == percent.is_empty() {
        return Err(table.mistake("fixed shares, and only they, need percent = { LINE = \"60\", ... }"));
    }
    let whole: i128 = percent.iter().map(|(_, share)| share).sum();
    if percent.iter().any(|(_, share)| *share < 0) || whole > 100 * ONE {
        return Err(table.mistake("percentages must not be below 0, nor more than 100 together"));
    }
    Ok(SharedCost { name, month, amount, currency: currency.unwrap_or_else(|| "USD".to_owned()), method, percent })
}

fn quota(mut table: Table) -> Result<Quota, Mistake> {
    let line = table.text("business_line")?;
    let mut cap = |key: &str| table.take(key).map(|value| above_zero(&value)).transpose();
    let (tokens, tokens_per_minute) = (cap("tokens")?, cap("tokens_per_minute")?);
    let (tokens_per_hour, requests_per_minute) = (cap("tokens_per_hour")?, cap("requests_per_minute")?);
    let cost = table.take("cost").map(|value| value.decimal(FACTOR_SCALE)).transpose()?;
    let currency = table.read("currency", currency_code)?;
    table.finish()?;
    let Some(line) = line else {
        return Err(table.mistake("a [[quota]] needs a business_line"));
    };
    let caps = [tokens, tokens_per_minute, tokens_per_hour, requests_per_minute];
    if caps.iter().all(Option::is_none) && cost.is_none() {
        return Err(table.mistake("a [[quota]] needs a cap: tokens or cost of a month, tokens_per_minute, tokens_per_hour or requests_per_minute"));
    }
    let currency = cost.map(|_| currency.unwrap_or_else(|| "USD".to_owned()));
    Ok(Quota { line, tokens, cost, currency, tokens_per_minute, tokens_per_hour, requests_per_minute })
}

fn above_zero(value: &Value) -> Result<i64, Mistake> {
    match value.integer()? {
        cap if cap > 0 => Ok(cap),
        _ => Err(value.mistake("a cap must be above 0")),
    }
}
