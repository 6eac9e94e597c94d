//! What a money report needs besides the logs: its price book, the tables of prices and settings, what is not billed.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use datafusion::catalog::MemTable;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;

use crate::cost::bill;
use crate::cost::book::{Book, currency_code};
use crate::cost::sanity::{self, Severity};
use crate::cost::tables::tables;
use crate::engine;
use crate::engine::functions::ChargeCall;
use crate::report::Note;
use crate::report::header::Header;
use crate::report::mistake::ReportMistake;
use crate::report::parameter::ParameterValue;
use crate::request::{NotBilled, Request};

/// What a report says of its price book.
#[derive(Default)]
pub(super) struct Known {
    /// How the book calls itself.
    pub label: Option<String>,
    pub notes: Vec<Note>,
}

/// Gives the session the function `charge`, the tables of the price book and the settings, and `bill` where there is one.
///
/// # Errors
/// No price book is named where one is needed, or something in the files is wrong.
pub(super) fn register(
    context: &SessionContext,
    header: &Header,
    values: &BTreeMap<String, ParameterValue>,
    request: &Request,
) -> anyhow::Result<Known> {
    let typed = values.values().find_map(|value| match value {
        ParameterValue::Book(path) => Some(path.clone()),
        _ => None,
    });
    if let Some(ParameterValue::Text(text)) = values.get("currency") {
        currency_code(text)?;
    }
    let path = typed.or_else(|| request.money.book.clone());
    // the cost as the logs state it needs no prices
    let is_logged = values.get("method") == Some(&ParameterValue::Text("logged".to_owned()));
    let book = match &path {
        Some(path) => Book::read(path)?,
        None if is_logged || !header.needs_prices() => Book::default(),
        None => return Err(ReportMistake::NoPrices.into()),
    };
    let label = path.map(|_| book.label());
    let absurd = sanity::findings(&book).into_iter().filter(|finding| finding.severity == Severity::Error).count();
    let note = || Note {
        code: "absurd_price".to_owned(),
        text: "prices of the book cannot be meant: `infer-stats prices check` names them".to_owned(),
        count: Some(absurd as u64),
    };
    let by = label.iter().map(|label| Note {
        code: "price_book".to_owned(),
        text: format!("priced by {label}"),
        count: None,
    });
    let notes = by.chain((absurd > 0).then(note)).collect();
    for (name, rows) in tables(&book, &request.money, &request.zone.rules)? {
        add_table(context, name, MemTable::try_new(rows.schema(), vec![vec![rows]])?)?;
    }
    for value in values.values() {
        if let ParameterValue::Bill(path) = value {
            let map = match values.get("bill_map") {
                Some(ParameterValue::Text(text)) => text.as_str(),
                _ => "",
            };
            let rows = bill::read(path, map, request).with_context(|| path.display().to_string())?;
            add_table(context, "bill", MemTable::try_new(rows.schema(), vec![vec![rows]])?)?;
        }
    }
    context.register_udf(ScalarUDF::new_from_impl(ChargeCall::new(Arc::new(book))));
    Ok(Known { label, notes })
}

fn add_table(context: &SessionContext, name: &str, table: MemTable) -> anyhow::Result<()> {
    context.register_table(name, Arc::new(table)).map(drop).map_err(engine::in_words)
}

/// Why a call is not billed, as an expression over an attempt.
pub(super) fn exemption(rules: &[NotBilled], check: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<String> {
    if rules.is_empty() {
        return Ok("CAST(NULL AS VARCHAR)".to_owned());
    }
    let mut cases = String::new();
    for NotBilled { name, when } in rules {
        let condition = check(when).with_context(|| format!("[prices] not_billed `{name}`"))?;
        cases += &format!(" WHEN {condition} THEN 'not billed: {}'", name.replace('\'', "''"));
    }
    Ok(format!("CASE{cases} END"))
}
