//! `infer-stats profiles init`: a profile for the records of a log, as far as their keys tell.

use std::fmt::Write;

use super::assignment::{Assignment, assign};
use super::key::{Key, SEPARATOR};
use super::survey::Survey;
use crate::profile::ValuePath;
use crate::record::Kind;
use crate::request::{Request, Word};
use crate::source::logs::Logs;

/// Keys that a record is recognised by.
const RECOGNISED_BY: usize = 4;

/// The text of a profile for the first log of a request.
///
/// # Errors
/// The log cannot be read.
pub fn proposal(request: &Request, logs: &Logs) -> anyhow::Result<String> {
    let file = logs.files.first();
    let survey = file.map(|file| Survey::of(file, logs, request.limits.threads)).transpose()?;
    let survey = survey.ok_or_else(|| anyhow::anyhow!("there is no log to propose a profile for"))?;
    let assigned = assign(&survey, &logs.mappings[survey.file.mapping], request, &request.columns);
    let mut text = String::from(
        "# A proposal: check each unit, and what `timestamp` means, against what the producer documents.\n",
    );
    writeln!(text, "title = \"{}\"", escaped(&survey.file.input.name))?;
    writeln!(text, "\n[recognise]\nkeys = [{}]", recognised_by(&survey).join(", "))?;
    writeln!(text, "\n[columns]")?;
    for (key, assignments) in survey.keys.iter().zip(&assigned) {
        for assignment in assignments.iter().filter(|assignment| assignment.after.is_none()) {
            writeln!(text, "{}", line(key, assignment))?;
        }
    }
    let unread = survey.keys.iter().zip(&assigned).filter(|(_, assigned)| assigned.is_empty()).map(|(key, _)| key);
    let unread: Vec<String> = unread.map(|key| format!("# {} ({})\n", escaped(&path(key)), types(key))).collect();
    if !unread.is_empty() {
        write!(
            text,
            "\n# Not read; to read one, give the column that it fills: column = \"key\"\n{}",
            unread.concat()
        )?;
    }
    Ok(text)
}

fn line(key: &Key, assignment: &Assignment) -> String {
    let (column, path) = (&assignment.column, path(key));
    if !can_be_read(&path) {
        return format!("# {column}: {} is no path that a profile can write", escaped(&path));
    }
    if column == "failed" && assignment.kind == Kind::Flag {
        return format!("error = \"{}\"", escaped(&path));
    }
    match (assignment.kind, assignment.unit) {
        (Kind::Duration, Some(unit)) => {
            format!("{column} = {{ path = \"{}\", unit = \"{}\" }}", escaped(&path), unit.word())
        }
        // a duration whose unit nobody states
        (Kind::Duration, None) => format!("# {column} = {{ path = \"{}\", unit = \"?\" }}", escaped(&path)),
        _ => format!("{column} = \"{}\"", escaped(&path)),
    }
}

/// Keys that all records have, those first that fewest other producers have: long names.
fn recognised_by(survey: &Survey) -> Vec<String> {
    let is_common = |key: &&Key| {
        key.present.unwrap_or(0) + key.nulls >= survey.records.saturating_sub(survey.counts.rejected_total()).max(1)
    };
    let mut keys: Vec<String> =
        survey.keys.iter().filter(is_common).map(path).filter(|path| can_be_read(path)).collect();
    keys.sort_by_key(|key| (std::cmp::Reverse(key.len()), key.clone()));
    keys.truncate(RECOGNISED_BY);
    keys.iter().map(|key| format!("\"{}\"", escaped(key))).collect()
}

/// The path of a key as a profile writes it.
fn path(key: &Key) -> String {
    let keys = key.name.split(SEPARATOR).map(str::to_owned).collect();
    ValuePath { keys, inner: Vec::new() }.to_string()
}

/// Whether a profile that holds the path reads it as the same.
fn can_be_read(path: &str) -> bool {
    ValuePath::parse(path).is_some_and(|read| read.to_string() == path)
}

fn types(key: &Key) -> String {
    let types: Vec<&str> = key.types().iter().map(|(kind, _)| kind.word()).collect();
    if types.is_empty() { "null".to_owned() } else { types.join(", ") }
}

/// Inside a basic string of TOML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '"' => escaped.extend(['\\', character]),
            _ if character.is_control() => escaped.push_str(&format!("\\u{:04X}", u32::from(character))),
            _ => escaped.push(character),
        }
    }
    escaped
}
