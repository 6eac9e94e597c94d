//! The price book and the settings of money as tables, for reports to join with.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use datafusion::arrow::error::ArrowError;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::book::Book;
use super::first_moment;
use super::price::{Classes, LongMode, Price, Tier};
use crate::record::Kind;
use crate::request::{MoneySettings, Sharing, Word};

/// A table's name and its rows.
pub type Named = (&'static str, RecordBatch);

/// All tables, some of them empty. Months begin at midnight in `zone`.
///
/// # Errors
/// An amount is beyond 38 digits.
pub fn tables(book: &Book, settings: &MoneySettings, zone: &TimeZone) -> Result<Vec<Named>, ArrowError> {
    Ok(vec![
        ("pools", pools(book)?),
        ("pool_bills", pool_bills(book, zone)?),
        ("shared_costs", shared_costs(settings, zone)?),
        ("quotas", quotas(settings)?),
        ("price_list", price_list(book)?),
    ])
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn counts(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn times(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<TimestampNanosecondArray>().with_data_type(Kind::Time.data_type()))
}

fn money(values: impl Iterator<Item = Option<i128>>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, 12)?))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
}

/// The first moments of a month and of the next.
fn bounds(month: Date, zone: &TimeZone) -> (Option<i64>, Option<i64>) {
    let next = month.checked_add(1.month()).ok();
    (first_moment(month, zone), next.and_then(|next| first_moment(next, zone)))
}

/// Each pool as it was from some day on.
fn pools(book: &Book) -> Result<RecordBatch, ArrowError> {
    let pools = || book.pools.iter();
    let until = |pool: &super::book::Pool| {
        let later = pools().filter(|other| other.name == pool.name && other.since > pool.since);
        later.filter_map(|other| other.since).min()
    };
    batch(vec![
        ("pool", texts(pools().map(|pool| Some(pool.name.as_str())))),
        ("since", times(pools().map(|pool| pool.since))),
        ("until", times(pools().map(until))),
        ("gpus", counts(pools().map(|pool| pool.gpus))),
        ("gpu_hour", money(pools().map(|pool| pool.gpu_hour))?),
        ("currency", texts(pools().map(|pool| Some(pool.currency.as_str())))),
    ])
}

fn pool_bills(book: &Book, zone: &TimeZone) -> Result<RecordBatch, ArrowError> {
    let bills: Vec<_> = book
        .pools
        .iter()
        .flat_map(|pool| pool.bills.iter().map(move |(month, amount)| (pool, bounds(*month, zone), *amount)))
        .collect();
    batch(vec![
        ("pool", texts(bills.iter().map(|(pool, _, _)| Some(pool.name.as_str())))),
        ("since", times(bills.iter().map(|(_, (since, _), _)| *since))),
        ("until", times(bills.iter().map(|(_, (_, until), _)| *until))),
        ("amount", money(bills.iter().map(|(_, _, amount)| Some(*amount)))?),
        ("currency", texts(bills.iter().map(|(pool, _, _)| Some(pool.currency.as_str())))),
    ])
}

/// One row a cost; of fixed shares one row a line.
fn shared_costs(settings: &MoneySettings, zone: &TimeZone) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = settings
        .shared
        .iter()
        .flat_map(|shared| {
            let whole = (shared.method != Sharing::Fixed).then_some((shared, None));
            whole.into_iter().chain(shared.percent.iter().map(move |share| (shared, Some(share))))
        })
        .collect();
    let month = |shared: &crate::request::SharedCost| shared.month.map(|month| bounds(month, zone));
    batch(vec![
        ("name", texts(rows.iter().map(|(shared, _)| Some(shared.name.as_str())))),
        ("since", times(rows.iter().map(|(shared, _)| month(shared)?.0))),
        ("until", times(rows.iter().map(|(shared, _)| month(shared)?.1))),
        ("amount", money(rows.iter().map(|(shared, _)| Some(shared.amount)))?),
        ("currency", texts(rows.iter().map(|(shared, _)| Some(shared.currency.as_str())))),
        ("method", texts(rows.iter().map(|(shared, _)| Some(shared.method.word())))),
        ("line", texts(rows.iter().map(|(_, share)| share.map(|(line, _)| line.as_str())))),
        ("percent", money(rows.iter().map(|(_, share)| share.map(|(_, percent)| *percent)))?),
    ])
}

fn quotas(settings: &MoneySettings) -> Result<RecordBatch, ArrowError> {
    let quotas = || settings.quotas.iter();
    batch(vec![
        ("line", texts(quotas().map(|quota| Some(quota.line.as_str())))),
        ("tokens", counts(quotas().map(|quota| quota.tokens))),
        ("cost", money(quotas().map(|quota| quota.cost))?),
        ("currency", texts(quotas().map(|quota| quota.currency.as_deref()))),
        ("tokens_per_minute", counts(quotas().map(|quota| quota.tokens_per_minute))),
        ("tokens_per_hour", counts(quotas().map(|quota| quota.tokens_per_hour))),
        ("requests_per_minute", counts(quotas().map(|quota| quota.requests_per_minute))),
    ])
}

/// A price as it is listed: base, tiers, and long prompts of each.
struct Listed<'a> {
    model: &'a super::offer::Model,
    price: &'a Price,
    until: Option<i64>,
    tier: Option<&'a str>,
    above: Option<(i64, LongMode)>,
    classes: Classes,
}

/// All prices: the base, its tiers, and long prompts of each.
///
/// # Errors
/// As [`tables`].
pub fn price_list(book: &Book) -> Result<RecordBatch, ArrowError> {
    let mut rows: Vec<Listed<'_>> = Vec::new();
    for model in &book.models {
        for (index, price) in model.prices.iter().enumerate() {
            let until = model.prices.get(index + 1).and_then(|next| next.since);
            let mut list = |tier, above, classes| rows.push(Listed { model, price, until, tier, above, classes });
            list(None, None, price.base);
            price.long.iter().for_each(|long| list(None, Some((long.above, long.mode)), long.classes));
            for (name, tier) in &price.tiers {
                match tier {
                    Tier::Factor(factor) => list(Some(name.as_str()), None, price.base.times(*factor)),
                    Tier::Own { classes, long } => {
                        list(Some(name.as_str()), None, **classes);
                        long.iter()
                            .for_each(|long| list(Some(name.as_str()), Some((long.above, long.mode)), long.classes));
                    }
                }
            }
        }
    }
    let listed = || rows.iter();
    let of = |class: fn(&Classes) -> Option<i128>| money(listed().map(move |row| class(&row.classes)));
    batch(vec![
        ("model", texts(listed().map(|row| Some(row.model.name.as_str())))),
        ("provider", texts(listed().map(|row| row.model.provider.as_deref()))),
        ("since", times(listed().map(|row| row.price.since))),
        ("until", times(listed().map(|row| row.until))),
        ("tier", texts(listed().map(|row| row.tier))),
        ("input", of(|classes| classes.input)?),
        ("cached", of(|classes| classes.cached)?),
        ("write_5m", of(|classes| classes.cache_write)?),
        ("write_1h", of(|classes| classes.cache_write_1h)?),
        ("output", of(|classes| classes.output)?),
        ("reasoning", of(|classes| classes.reasoning)?),
        ("total", of(|classes| classes.total)?),
        ("request", of(|classes| classes.request.map(|fee| fee / 1_000_000))?),
        ("above", counts(listed().map(|row| row.above.map(|(above, _)| above)))),
        ("mode", texts(listed().map(|row| row.above.map(|(_, mode)| mode.word())))),
        ("currency", texts(listed().map(|row| Some(row.price.currency.as_str())))),
        ("source", texts(listed().map(|row| row.model.source.as_deref()))),
    ])
}
