//! `infer-stats inspect`: what is in a log, and how each key of it is read. The first thing to run on a new log.
//!
//! ```text
//! each log -> survey (keys, records, times) -> assignment (column, unit, evidence of each key)
//!                                                  | listing: the rows
//!                                                  | finding: what to know before trusting a report
//!                                                  | breach: where --expect is not met
//! ```
//!
//! Whatever is in an input, it is described and no error: a log that cannot be read is what this is for.

mod assignment;
mod breach;
mod expectation;
mod finding;
mod key;
mod keys;
mod kind;
mod listing;
mod plausible;
mod proposal;
mod survey;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::accounting::Counted;
use crate::report::answer::{self, Question};
use crate::report::header::Header;
use crate::report::{Note, Report, Rows};
use crate::request::{Format, Request};
use crate::source::Place;
use crate::source::logs::Logs;
use crate::source::rejects::positions;
use assignment::assign;
use breach::Breach;
use listing::Listing;
pub use proposal::proposal;
use survey::Survey;

/// Keys of one log that are listed unless `--top` says otherwise.
const LISTED: usize = 500;

/// The code of the notes that tell where a log is not as expected.
pub const BREACH: &str = "breach";

/// Differences from `--expect` that are told one by one.
const TOLD: usize = 100;

/// What was found.
pub struct Inspection {
    pub report: Report,
    /// Whether a log differs from what is expected of it.
    pub breached: bool,
}

/// Describes every log, and checks each against the expectations in the file `expect`.
///
/// # Errors
/// A mistake in the expectation file. What is wrong with a log is part of the answer.
pub fn inspect(request: &Request, logs: &Logs, expect: Option<&Path>) -> anyhow::Result<Inspection> {
    let expectations = expect.map(expectation::read).transpose()?.unwrap_or_default();
    // People see what a single log is above the table; programs find the same rows and columns always.
    let for_people = matches!(request.output.format, Format::Table | Format::Markdown);
    let standalone = !for_people || logs.files.len() != 1;
    let zone = &request.zone.rules;
    let mut title = format!("What is in {} logs", logs.files.len());
    let mut rows = Rows::new(Listing::new(standalone).batch()?.schema());
    let mut counted = Counted { scanned: true, ..Counted::default() };
    let (mut findings, mut breaches) = (Vec::new(), Vec::new());
    let most = request.top.map_or(LISTED, |top| usize::try_from(top).unwrap_or(usize::MAX));
    for file in &logs.files {
        let survey = Survey::of(file, logs, request.limits.threads)?;
        let mapping = &logs.mappings[file.mapping];
        let assigned = assign(&survey, mapping, request, &logs.schema.extras);
        let listed = most_frequent(&survey, most);
        rows.push(Listing::new(standalone).with(&survey, &assigned, &listed, zone).batch()?)?;
        if logs.files.len() == 1 {
            title = format!("What is in {}", listing::title(&survey, zone));
        }
        finding::collect(&survey, &assigned, &mapping.maps, &listed, &mut findings);
        let differences = breach::breaches(&expectations, &survey, &assigned);
        breaches.extend(differences.into_iter().map(|breach| (file.index, breach)));
        counted.counts.add(&survey.counts);
        counted.tally.add(&survey.tally);
    }
    let breached = !breaches.is_empty();
    let source = answer::accounting(&counted, logs, request);
    let mut notes: Vec<Note> = request
        .notes
        .iter()
        .map(|note| Note { code: note.code.into(), text: note.text.clone(), count: None })
        .collect();
    notes.extend(breach_notes(breaches, logs));
    notes.extend(logs.notes());
    notes.extend(answer::record_notes(&counted, &source, logs, request));
    notes.extend(findings);
    notes.extend(whole_logs(request));
    let question = Question {
        name: "inspect",
        title: &title,
        header: &Header::default(),
        dimensions: &[],
        values: &BTreeMap::new(),
    };
    let mut parameters = answer::parameters(&question, request);
    parameters.insert("expect".into(), expect.and_then(Path::file_name).map(|name| name.to_string_lossy()).into());
    let report = Report {
        name: question.name.to_owned(),
        title: title.clone(),
        parameters,
        source,
        columns: listing::columns(standalone),
        rows,
        totals: None,
        sparks: Vec::new(),
        lives: Vec::new(),
        nothing_found: false,
        heat: None,
        notes,
        reads_logs: true,
        details: Vec::new(),
        concerns: 0,
        zone: zone.clone(),
    };
    Ok(Inspection { report, breached })
}

/// Positions of the `most` keys that most records have, in the order of the log.
fn most_frequent(survey: &Survey, most: usize) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..survey.keys.len()).collect();
    positions.sort_by_key(|&index| Reverse(survey.keys[index].present.unwrap_or(survey.records)));
    positions.truncate(most);
    positions.sort_unstable();
    positions
}

/// Differences as notes, each with the place of its first record.
fn breach_notes(breaches: Vec<(usize, Breach)>, logs: &Logs) -> Vec<Note> {
    let more = breaches.len().saturating_sub(TOLD);
    let told = || breaches.iter().take(TOLD);
    let mut places: Vec<Place> =
        told().filter_map(|(file, breach)| Some(Place { file: *file, offset: breach.offset? })).collect();
    places.sort_unstable();
    places.dedup();
    let positions = positions(&logs.files, &places);
    let note = |(file, breach): &(usize, Breach)| {
        let place = breach.offset.and_then(|offset| places.binary_search(&Place { file: *file, offset }).ok());
        let place = place.map_or(logs.files[*file].input.name.as_str(), |index| positions[index].as_str());
        Note { code: BREACH.to_owned(), text: format!("breach: {place}: {}", breach.what), count: breach.count }
    };
    let mut notes: Vec<Note> = told().map(note).collect();
    if more > 0 {
        notes.push(Note { code: BREACH.into(), text: "more breaches are not told".into(), count: Some(more as u64) });
    }
    notes
}

/// Inspecting is about logs, not about what is asked of them: flags that choose records change only the records themselves.
fn whole_logs(request: &Request) -> Option<Note> {
    let ignored = request.narrows() || request.sort.is_some();
    ignored.then(|| Note {
        code: "whole_logs".to_owned(),
        text: "logs are inspected whole: time range, --where and --sort hold only for --format jsonl".to_owned(),
        count: None,
    })
}
