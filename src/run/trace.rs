//! A trace: the lives of some requests as a report.

use std::path::Path;

use datafusion::arrow::array::AsArray;

use super::predicate;
use crate::engine::{self, session};
use crate::inspect::{BREACH, Inspection};
use crate::nearest;
use crate::record::Column;
use crate::report::answer::{accounting, record_notes};
use crate::report::mistake::ReportMistake;
use crate::report::{Note, Report};
use crate::request::{Request, Trace, Word};
use crate::source::logs::Logs;
use crate::trace::{Chronicle, Life, Lookup, MEANINGS, chronicle, rows};

/// Letters of an id that a mistake repeats.
const LONGEST: usize = 200;

/// Ids that a mistake names.
const NAMED: usize = 3;

/// Tells the lives of the requests that were asked for; a breach is a role that has no record of one.
pub async fn trace(question: &Trace, request: &Request, logs: &Logs, spill: &Path) -> anyhow::Result<Inspection> {
    let context = session::session(&request.limits, spill)?;
    let predicate = predicate(&context, request, request.time, &logs.schema.arrow)?;
    let rule = request.profiles.ids();
    let threads = request.limits.threads;
    let lookup = Lookup { logs, context: &context, rule: &rule, predicate, threads };
    let around = || logs.both(lookup.predicate.clone());
    let told = chronicle(question, &lookup, around, &logs.roles(), &request.buckets.input).await?;
    if let Some((asked, longer)) = told.unknown.iter().find(|(_, longer)| longer.len() > 1) {
        let examples = longer.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let mistake = ReportMistake::AmbiguousId { asked: asked.clone(), count: longer.len(), examples };
        return Err(mistake.into());
    }
    let mut report = Report::of_rows("trace", "Trace", rows(&told.lives)?, &MEANINGS)?;
    report.source = accounting(&told.counted, logs, request);
    if question.alone {
        // lines without the id were passed over unread
        let read: usize = told.lives.iter().map(|life| life.records.len()).sum();
        report.source.used = read as u64;
        let others = report.source.rejected + report.source.skipped + report.source.used;
        report.source.filtered = report.source.records.saturating_sub(others);
    }
    report.parameters = parameters(question);
    report.notes = request.notes.iter().map(Note::from).collect();
    report.notes.extend(logs.notes());
    // what was derived in others is nothing of this request
    let concerns =
        |note: &Note| ["rejected", "envelope_time", "collision", "unfit_value"].contains(&note.code.as_str());
    report.notes.extend(record_notes(&told.counted, &report.source, logs, request).into_iter().filter(concerns));
    report.notes.extend(notes(&told));
    for (asked, _) in &told.unknown {
        // nobody waits for a look at all ids who asked for the speed of a search
        let near = if question.alone { Vec::new() } else { near(asked, &context, logs).await? };
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
        let held = match told.lines {
            0 => String::new(),
            1 => ", though a line holds it, of a kind that is not read".to_owned(),
            lines => format!(", though {lines} lines hold one of the ids, of kinds that are not read"),
        };
        let asked: String = asked.chars().take(LONGEST).collect();
        let text = format!("the logs have no record, event or token of `{asked}`{held}{hint}");
        report.notes.push(Note { code: "not_found".to_owned(), text, count: None });
    }
    let mut breaches = Vec::new();
    for life in &told.lives {
        let has = |role: &str| life.records.iter().any(|record| record.role.as_deref() == Some(role));
        breaches.extend(question.required.iter().filter(|role| !has(role.word())).map(|role| (life, role.word())));
    }
    for (life, role) in &breaches {
        let has_roles = life.records.iter().any(|record| record.role.is_some());
        let text = match has_roles {
            true => format!("--require: {role} has no record of {}", life.id),
            false => format!("--require: no record of {} has a role: name those of the logs in the settings", life.id),
        };
        report.notes.push(Note { code: BREACH.to_owned(), text, count: None });
    }
    let breached = !breaches.is_empty() || !question.required.is_empty() && !told.unknown.is_empty();
    report.nothing_found = !told.unknown.is_empty();
    report.zone = request.zone.rules.clone();
    report.lives = told.lives;
    Ok(Inspection { report, breached })
}

fn parameters(question: &Trace) -> serde_json::Map<String, serde_json::Value> {
    let roles: Vec<&str> = question.required.iter().map(|role| role.word()).collect();
    serde_json::Map::from_iter([
        ("ids".to_owned(), question.ids.clone().into()),
        ("alone".to_owned(), question.alone.into()),
        ("tokens".to_owned(), question.steps.into()),
        ("context_ms".to_owned(), (question.context_ns / 1_000_000).into()),
        ("require".to_owned(), roles.into()),
    ])
}

fn notes(told: &Chronicle) -> Vec<Note> {
    let has_no_roles = |life: &&Life| life.records.len() > 1 && life.records.iter().any(|record| record.role.is_none());
    let without_roles = told.lives.iter().filter(has_no_roles).count() as u64;
    let roles = (without_roles > 0).then(|| Note {
        code: "no_role".to_owned(),
        text: "requests have records without a role, so that what is missing is not known: give the sources of the logs a role in the settings".to_owned(),
        count: Some(without_roles),
    });
    let cut = told.cut.iter().map(|(asked, count)| Note {
        code: "more_requests".to_owned(),
        text: format!("`{asked}` stands for more requests than are shown: ask for one of them by its own id"),
        count: Some(*count as u64),
    });
    let left_out = (told.left_out > 0).then(|| Note {
        code: "more_neighbours".to_owned(),
        text: "more requests were in the batch or on the GPU than are told of, the earliest first".to_owned(),
        count: Some(told.left_out as u64),
    });
    cut.chain(roles).chain(left_out).collect()
}

/// The ids of the logs that are nearest to one that was not found.
async fn near(asked: &str, context: &datafusion::prelude::SessionContext, logs: &Logs) -> anyhow::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for batch in engine::collect(context, logs.table(None), &[Column::RequestId]).await? {
        let ids = batch.column(0).as_string_view();
        // the nearest of each batch, and of those the nearest
        found.extend(nearest::nearest(asked, ids.iter().flatten()).map(str::to_owned));
    }
    found.sort();
    found.dedup();
    let mut near = Vec::new();
    while near.len() < NAMED {
        let Some(next) = nearest::nearest(asked, found.iter().map(String::as_str)).map(str::to_owned) else { break };
        found.retain(|id| *id != next);
        near.push(next);
    }
    Ok(near)
}
