//! What somebody who looks at a new log should know before trusting a report over it.

use super::assignment::{Assignment, Evidence, is_provenance};
use super::key::Key;
use super::kind::Type;
use super::survey::Survey;
use crate::nearest::{nearest, suggestion};
use crate::record::alias::{Alias, aliases};
use crate::record::unit::suffix_unit;
use crate::record::{Column, Kind};
use crate::report::Note;
use crate::request::{Map, Word};
use crate::source::format::Format;

/// Guesses at what a key may mean, of one log; more are noise.
const GUESSES: usize = 10;

/// Adds a log's findings to those of other logs; what several logs share is said once. `maps` are those it is read by.
pub fn collect(survey: &Survey, assigned: &[Vec<Assignment>], maps: &[Map], listed: &[usize], notes: &mut Vec<Note>) {
    let mut add = |code: &str, text: String, count: u64| match notes.iter_mut().find(|note| note.text == text) {
        Some(note) => note.count = note.count.map(|sum| sum + count),
        None => notes.push(Note { code: code.to_owned(), text, count: Some(count) }),
    };
    if survey.file.input.format == Format::Parquet {
        let text = "Parquet is described by its footer alone, which tells types, nulls and ranges; its values were not looked at".to_owned();
        add("footer_only", text, survey.records);
    } else if survey.accepted() == 0 && survey.records > 0 {
        add("no_records", format!("{}: nothing in it is a record", survey.file.input.name), survey.records);
    }
    for (code, text, count) in survey.plausible.findings() {
        add(code, text, count);
    }
    for map in maps.iter().filter(|map| !is_filled(&map.canonical, assigned)) {
        let names: Vec<String> = survey.keys.iter().map(Key::dotted).collect();
        let hint = suggestion(&map.path.to_string(), names.iter().map(String::as_str));
        add(
            "map_unmet",
            format!("records lack `{}`, which {} is mapped to{hint}", map.path, map.canonical),
            survey.records,
        );
    }
    for (key, assigned) in survey.keys.iter().zip(assigned) {
        for assignment in assigned {
            if let Some(first) = assignment.after.map(|first| &survey.keys[first]) {
                let (key, column) = (key.dotted(), &assignment.column);
                let text = format!("`{key}` fills {column} only where `{}` is missing", first.dotted());
                add("two_keys", text, first.present.unwrap_or(0));
            }
            if let Some(text) = unit_conflict(key, assignment) {
                add("unit_conflict", text, key.present.unwrap_or(0));
            }
        }
    }
    let (stems, names) = (duration_stems(), free_names(assigned));
    let unread = listed.iter().filter(|index| assigned[**index].is_empty()).map(|&index| &survey.keys[index]);
    let guesses = unread.filter_map(|key| Some((key, no_unit(key, &stems).or_else(|| near_miss(key, &names))?)));
    for (key, (code, text)) in guesses.take(GUESSES) {
        add(code, text, key.present.unwrap_or(0));
    }
    if listed.len() < survey.keys.len() {
        let text = "keys are not listed: the most frequent are, and --top N lists more".to_owned();
        add("keys_hidden", text, (survey.keys.len() - listed.len()) as u64);
    }
    if survey.uncounted > 0 {
        let text =
            "values stand under so many or so long keys that they were not counted; perhaps ids are used as keys";
        add("keys_uncounted", text.to_owned(), survey.uncounted);
    }
}

/// A mapped duration that is read as milliseconds although its name says otherwise.
fn unit_conflict(key: &Key, assignment: &Assignment) -> Option<String> {
    let mapped = matches!(assignment.evidence, Evidence::MapFlag | Evidence::Source(_));
    let (suffix, stated) = suffix_unit(key.leaf())?;
    let read = assignment.unit.filter(|unit| mapped && *unit != stated)?;
    let (key, column) = (key.dotted(), &assignment.column);
    let (read, stated) = (read.word(), stated.word());
    Some(format!(
        "`{key}` is read in {read}, as mapped, although its name ends in {suffix}; for {stated} use --map {column}={key}:{stated}"
    ))
}

fn is_filled(column: &str, assigned: &[Vec<Assignment>]) -> bool {
    assigned.iter().flatten().any(|assignment| assignment.column == column)
}

/// Names that would be those of durations if they ended in a unit.
fn duration_stems() -> Vec<(String, Column)> {
    let stem = |mut alias: Alias| alias.path.pop()?.strip_suffix("_ms").map(str::to_owned);
    let durations = Column::ALL.iter().filter(|column| column.kind() == Kind::Duration);
    durations.flat_map(|&column| aliases(column).into_iter().filter_map(stem).map(move |stem| (stem, column))).collect()
}

/// The last keys of well-known names of the columns that no key fills.
fn free_names(assigned: &[Vec<Assignment>]) -> Vec<(String, Column)> {
    let free = Column::ALL.iter().filter(|column| !is_provenance(**column) && !is_filled(column.name(), assigned));
    free.flat_map(|&column| aliases(column).into_iter().filter_map(move |mut alias| Some((alias.path.pop()?, column))))
        .collect()
}

/// The key that tells what a value is: of `{"ttft": {"value": 1, "unit": "ms"}}` it is the outer one.
fn telling(key: &Key) -> &str {
    let mut path: Vec<&str> = key.path().collect();
    if path.len() > 1 && key.leaf() == "value" {
        path.pop();
    }
    path.last().copied().unwrap_or_default()
}

/// A key that would be a duration if it said in which unit.
fn no_unit(key: &Key, stems: &[(String, Column)]) -> Option<(&'static str, String)> {
    let (_, column) = stems.iter().find(|(stem, _)| stem == telling(key)).filter(|_| is_numeric(key))?;
    let (key, column) = (key.dotted(), column.name());
    Some(("no_unit", format!("`{key}` is not read: its name has no unit; use --map {column}={key}:s, or :ms")))
}

/// A key whose name is nearly one that would be read, or is one in another place.
fn near_miss(key: &Key, names: &[(String, Column)]) -> Option<(&'static str, String)> {
    let fitting = || names.iter().filter(|(_, column)| suits(key, column.kind()));
    let word = telling(key).to_lowercase();
    let start: String = word.chars().take(2).collect();
    // A name that merely goes on, such as `prompt` for `prompt_tokens`, is another thing, and slips come late in a word.
    let slips = fitting()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with(&start) && (*name == word || !name.starts_with(&word)));
    let name = nearest(&word, slips)?;
    let (_, column) = fitting().find(|(candidate, _)| candidate == name)?;
    let unit = match (column.kind(), suffix_unit(&word)) {
        (Kind::Duration | Kind::Time, Some((_, unit))) => format!(":{}", unit.word()),
        (Kind::Duration, None) => ":s, or :ms".to_owned(),
        _ => String::new(),
    };
    let (key, column) = (key.dotted(), column.name());
    Some(("near_miss", format!("`{key}` is not read; if it is {column}, use --map {column}={key}{unit}")))
}

fn suits(key: &Key, kind: Kind) -> bool {
    let has = |kind| key.count_of(kind) > 0;
    match kind {
        Kind::Count | Kind::Number | Kind::Duration | Kind::Money => is_numeric(key),
        Kind::Time => is_numeric(key) || has(Type::Time),
        Kind::Flag => has(Type::Boolean),
        Kind::Text | Kind::Id => has(Type::Text) || has(Type::Integer),
    }
}

fn is_numeric(key: &Key) -> bool {
    key.count_of(Type::Integer) + key.count_of(Type::Number) > 0
}
