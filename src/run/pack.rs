//! `infer-stats report`: the reports of a month in one Markdown document.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::ask;
use crate::output::Part;
use crate::report::Accounting;
use crate::report::mistake::ReportMistake;
use crate::request::{Ask, Parameter, Request};
use crate::source::logs::Logs;

/// The reports of the pack in order, with their parameters.
const SECTIONS: [(&str, &[(&str, &str)]); 7] = [
    ("cost", &[("by", "business-line")]),
    ("cost", &[("by", "model")]),
    ("quota", &[]),
    ("latency", &[("by", "input-bucket")]),
    ("errors", &[]),
    ("cache", &[("by", "model")]),
    ("audit", &[]),
];

/// Reports that need a price book.
const OF_MONEY: [&str; 2] = ["cost", "quota"];

/// All sections; what cannot be told without a price book says so.
///
/// # Errors
/// A report cannot be made for another reason.
pub(super) async fn pack(
    prices: Option<&Path>,
    request: &Request,
    logs: &Logs,
    spill: &Path,
) -> anyhow::Result<(Vec<Part>, Accounting)> {
    let mut parts = vec![Part::Text(heading(request))];
    let mut source = Accounting::default();
    for (name, given) in SECTIONS {
        let given = given.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let book = prices.filter(|_| OF_MONEY.contains(&name)).map(|path| ("prices", path.display().to_string()));
        let parameters = given.chain(book).map(|(name, value)| Parameter { name: name.to_owned(), value }).collect();
        // a request that several logs saw is one; an audit is of the logs themselves
        let merges = request.merges || (name != "audit" && logs.roles().len() > 1);
        let question = Request { ask: Ask::Run { name: name.to_owned(), parameters }, merges, ..request.clone() };
        match Box::pin(ask(&question, logs, spill)).await {
            Ok(report) => {
                source = report.source.clone();
                parts.push(Part::Report(Box::new(report)));
            }
            Err(error)
                if matches!(
                    error.downcast_ref(),
                    Some(ReportMistake::NoPrices | ReportMistake::NotOfASample { .. })
                ) =>
            {
                parts.push(Part::Text(format!("## {name}\n\nNot available: {error:#}")));
            }
            Err(error) => return Err(error.context(format!("the section {name}"))),
        }
    }
    Ok((parts, source))
}

/// What the pack is about.
fn heading(request: &Request) -> String {
    let day = |time: Timestamp| time.to_zoned_datetime(request.zone.rules.clone()).date().to_string();
    let until = |time: Timestamp| day(time.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(time));
    let range = match (request.time.since.map(day), request.time.until.map(until)) {
        (Some(since), Some(until)) => format!("{since} to {until}"),
        (Some(since), None) => format!("from {since}"),
        (None, Some(until)) => format!("until {until}"),
        (None, None) => "all logs".to_owned(),
    };
    format!("# LLM usage, {range} ({})", request.zone.name)
}
