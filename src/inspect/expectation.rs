//! `--expect FILE`: what a log must hold, so that a logging change can be checked before it ships.
//!
//! ```toml
//! [fields]
//! request_id = { type = "text", required = true }
//! ttft_ms = { type = "number", unit = "ms", present = 0.95, min = 0, max = 600000 }
//! "usage.prompt_tokens" = { type = "integer" }
//! ```
//!
//! A field is a canonical column or a key of the log. `type` is text, integer, number, time, boolean, array or object;
//! `unit` is that of its values, as the log states it; `present` is the least share of records that have a value, 1 where
//! the field is `required`; `min` and `max` are in `unit`, else in that of the log. A field that is listed must be in at
//! least one record.

use std::fs;
use std::path::Path;

use super::kind::Type;
use crate::config::table::{Document, Table};
use crate::record::unit::Unit;
use crate::request::{Mistake, Word};

/// What is expected of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// A canonical column, or a key as the listing shows it.
    pub field: String,
    pub kind: Option<Type>,
    pub unit: Option<Unit>,
    /// The least share of records that have a value; None: one record is enough.
    pub present: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Word for Type {
    const KIND: &'static str = "type";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("text", Type::Text),
        ("integer", Type::Integer),
        ("number", Type::Number),
        ("time", Type::Time),
        ("boolean", Type::Boolean),
        ("array", Type::Array),
        ("object", Type::Object),
    ];
}

/// Reads an expectation file.
///
/// # Errors
/// A [`Mistake`] that names the line: of a key that does not exist, or a value that makes no sense.
pub fn read(path: &Path) -> Result<Vec<Expectation>, Mistake> {
    let text =
        fs::read_to_string(path).map_err(|reason| Mistake::UnreadableExpectations { path: path.to_owned(), reason })?;
    parse(&path.display().to_string(), &text)
}

fn parse(path: &str, text: &str) -> Result<Vec<Expectation>, Mistake> {
    let mut document = Document { path, text }.parse()?;
    let fields = document.table("fields")?;
    document.finish()?;
    let Some(mut fields) = fields else {
        return Err(
            document.mistake("nothing is expected: name fields under [fields], as in ttft_ms = { unit = \"ms\" }")
        );
    };
    let mut expectations = Vec::new();
    for field in fields.keys() {
        if let Some(table) = fields.table(&field)? {
            expectations.push(expectation(field, table)?);
        }
    }
    Ok(expectations)
}

fn expectation(field: String, mut table: Table) -> Result<Expectation, Mistake> {
    let required = table.take("required").map(|value| value.boolean()).transpose()?;
    let present = match table.take("present") {
        None => None,
        Some(value) => {
            let share = value.number()?;
            if !(0.0..=1.0).contains(&share) {
                return Err(value.mistake(&format!("`present` is a share from 0 to 1, but it is {share}")));
            }
            Some(share)
        }
    };
    let expectation = Expectation {
        field,
        kind: table.read("type", Type::from_word)?,
        unit: table.read("unit", Unit::from_word)?,
        present: if required == Some(true) { Some(1.0) } else { present },
        min: table.take("min").map(|value| value.number()).transpose()?,
        max: table.take("max").map(|value| value.number()).transpose()?,
    };
    table.finish()?;
    Ok(expectation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_field_is_read() {
        let text = "[fields]\nttft_ms = { type = \"number\", unit = \"ms\", present = 0.95, min = 0, max = 6.5e5 }\n\
                    request_id = { required = true }\n\"usage.prompt_tokens\" = {}";
        let expectations = parse("fields.toml", text).unwrap();
        let find = |name: &str| expectations.iter().find(|expectation| expectation.field == name).unwrap();
        let ttft = Expectation {
            field: "ttft_ms".into(),
            kind: Some(Type::Number),
            unit: Some(Unit::Milliseconds),
            present: Some(0.95),
            min: Some(0.0),
            max: Some(650_000.0),
        };
        assert_eq!(find("ttft_ms"), &ttft);
        assert_eq!(find("request_id").present, Some(1.0));
        assert_eq!(find("usage.prompt_tokens").present, None);
    }

    #[test]
    fn a_mistake_names_its_line_and_what_was_probably_meant() {
        for (text, sentence) in [
            ("[field]\na = {}", "fields.toml:1: unknown key `field`; did you mean `fields`? (known here: fields)"),
            ("[fields]\na = { presnt = 1 }", "fields.toml:2: unknown key `presnt`; did you mean `present`?"),
            ("[fields]\n\na = { type = \"int\" }", "fields.toml:3: unknown type `int`; did you mean `integer`?"),
            ("[fields]\na = { unit = \"sec\" }", "fields.toml:2: unknown unit `sec`"),
            ("[fields]\na = { present = 95 }", "fields.toml:2: `present` is a share from 0 to 1, but it is 95"),
            (
                "[fields]\na = { required = 1 }",
                "fields.toml:2: `required` must be true or false, but it is a whole number",
            ),
            ("[fields]\na = { max = inf }", "fields.toml:2: `max` is out of range: inf"),
            ("[fields]\na = \"number\"", "fields.toml:2: `a` must be a table, but it is a text"),
            ("", "fields.toml:1: nothing is expected"),
        ] {
            let mistake = parse("fields.toml", text).unwrap_err().to_string();
            assert!(mistake.starts_with(sentence), "{mistake}");
        }
    }
}
