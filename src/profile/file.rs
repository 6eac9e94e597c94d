//! The text of a profile, read into a [`Profile`]: every mistake is named by its line.

use super::condition::Condition;
use super::path::ValuePath;
use super::pattern::Pattern;
use super::rule::{Clock, Origin, Part, Rule, UnitOf};
use super::{Carries, Envelope, IdRule, Profile, Restructure, Skip};
use crate::config::table::{Document, Table, Value};
use crate::nearest::suggestion;
use crate::record::unit::Unit;
use crate::record::{Column, Kind};
use crate::request::{Mistake, Role, Word, Zone};
use crate::source::schema::OF_TOKENS;

/// The key that names what is there only in failures, among the columns.
const ERROR: &str = "error";

/// How the text of a pattern is read.
pub(super) type ReadPattern = fn(&str) -> Result<Pattern, regex::Error>;

pub(super) fn profile(name: &str, path: &str, text: &str, read: ReadPattern) -> Result<Profile, Mistake> {
    let mut table = Document { path, text }.parse()?;
    let title = table.text("title")?.unwrap_or_else(|| name.to_owned());
    // where the facts come from is for people
    table.text("source")?;
    let role = table.read("role", Role::from_word)?;
    let zone = table.read("zone", Zone::parse)?.map(|zone| zone.rules);
    let recognise: Vec<Condition> =
        table.table_or_tables("recognise")?.into_iter().map(condition).collect::<Result<_, _>>()?;
    let pattern = table.take("pattern").map(|value| pattern(&value, read)).transpose()?;
    if pattern.is_none() && recognise.iter().all(|condition| *condition == Condition::default()) {
        return Err(table.mistake("a profile needs [recognise] or a pattern, to know its records by"));
    }
    let skips = table.tables("skip")?.into_iter().map(skip).collect::<Result<_, _>>()?;
    let envelope = table.table("envelope")?.map(envelope).transpose()?;
    let other = match table.take("table") {
        Some(value) if value.read(|word| Ok(word == "events"))? => Some(Carries::Event),
        Some(value) if value.read(|word| Ok(word == "tokens"))? => Some(Carries::Token),
        Some(value) => {
            return Err(value.mistake("the tables besides that of requests are \"events\" and \"tokens\""));
        }
        None => None,
    };
    let carries = match (&envelope, other) {
        (Some((envelope, _)), _) => Carries::Payload(envelope.clone()),
        (None, Some(other)) => other,
        (None, None) => Carries::Request,
    };
    let (columns, errors) = table.table("columns")?.map(columns).transpose()?.unwrap_or_default();
    let tokens = table.table("tokens")?.map(tokens).transpose()?.unwrap_or_default();
    let json = paths(&mut table, "json")?;
    let mut records = table.list("records", |text| Ok(keys_to_records(text)))?;
    records.extend(envelope.map(|(_, records)| records).unwrap_or_default());
    let restructure = table.read("restructure", Restructure::from_word)?;
    let aliases = table.take("aliases").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    let not_derived = match table.take("not_derived") {
        Some(value) => texts(&value)?.iter().map(|name| column(name, &value)).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let order = table.take("order").map(|value| value.integer()).transpose()?.unwrap_or(0);
    let ids = table.table("match")?.map(ids).transpose()?.unwrap_or_default();
    table.finish()?;
    Ok(Profile {
        name: name.to_owned(),
        title,
        role,
        zone,
        recognise,
        pattern,
        skips,
        columns,
        tokens,
        aliases,
        not_derived,
        order,
        errors,
        carries,
        json,
        records,
        restructure,
        ids,
        text: text.to_owned(),
    })
}

fn path(text: &str) -> Result<ValuePath, Mistake> {
    ValuePath::parse(text).ok_or_else(|| Mistake::NotAPath { path: text.to_owned() })
}

fn paths(table: &mut Table, key: &str) -> Result<Vec<ValuePath>, Mistake> {
    table.list(key, path)
}

fn pattern(value: &Value, read: ReadPattern) -> Result<Pattern, Mistake> {
    let mut pattern = None;
    value.read(|text| {
        pattern = Some(read(text));
        Ok(())
    })?;
    match pattern {
        Some(Ok(pattern)) => Ok(pattern),
        Some(Err(error)) => Err(value.mistake(&format!("this pattern is no regular expression: {error}"))),
        None => Err(value.mistake("a pattern is a regular expression in quotes")),
    }
}

fn condition(mut table: Table) -> Result<Condition, Mistake> {
    let condition = conditions(&mut table)?;
    table.finish()?;
    Ok(condition)
}

fn conditions(table: &mut Table) -> Result<Condition, Mistake> {
    Ok(Condition {
        keys: paths(table, "keys")?,
        any: paths(table, "any")?,
        without: paths(table, "without")?,
        bare: table.take("bare").map(|value| value.boolean()).transpose()?.unwrap_or(false),
        is: valued(table, "is")?,
        not: valued(table, "not")?,
        starts: valued(table, "starts")?,
    })
}

/// A table of paths, each with a list of texts or one.
fn valued(table: &mut Table, key: &str) -> Result<Vec<(ValuePath, Vec<String>)>, Mistake> {
    let Some(mut table) = table.table(key)? else { return Ok(Vec::new()) };
    let mut valued = Vec::new();
    for key in table.keys() {
        let path = path(&key).map_err(|_| table.mistake(&format!("`{key}` is no path")))?;
        if let Some(value) = table.take(&key) {
            valued.push((path, texts(&value)?));
        }
    }
    Ok(valued)
}

fn texts(value: &Value) -> Result<Vec<String>, Mistake> {
    match value.list() {
        Ok(items) => items.iter().map(|item| item.read(|text| Ok(text.to_owned()))).collect(),
        Err(_) => value.read(|text| Ok(vec![text.to_owned()])),
    }
}

fn skip(mut table: Table) -> Result<Skip, Mistake> {
    let reason = table.text("reason")?;
    let when = conditions(&mut table)?;
    table.finish()?;
    match reason {
        Some(reason) => Ok(Skip { reason, when }),
        None => Err(table.mistake("a [[skip]] needs a reason, as in reason = \"tool span\"")),
    }
}

/// The envelope, and the list that its payloads stand in.
fn envelope(mut table: Table) -> Result<(Envelope, Vec<Vec<String>>), Mistake> {
    let mut envelope = Envelope::default();
    let mut records = Vec::new();
    for text in table.list("payload", |text| Ok(text.to_owned()))? {
        // what stands in a list is cut out first, and is an envelope of its own then
        let (list, payload) = text.rsplit_once("[].").map_or((None, &*text), |(list, payload)| (Some(list), payload));
        records.extend(list.map(keys_to_records));
        envelope.payload.push(path(payload).map_err(|_| table.mistake(&format!("`{text}` is no path")))?);
    }
    envelope.speaks = table.take("speaks").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    if let Some(mut pieces) = table.table("pieces")? {
        envelope.by = paths(&mut pieces, "by")?;
        let partial = pieces.list("partial", |text| Ok(text.to_owned()))?;
        envelope.partial = pieces.read("path", path)?.map(|path| (path, partial));
        envelope.until_newline =
            pieces.take("until_newline").map(|value| value.boolean()).transpose()?.unwrap_or(false);
        pieces.finish()?;
    }
    table.finish()?;
    match envelope.payload.is_empty() {
        true => Err(table.mistake("an [envelope] needs a payload, as in payload = [\"log\"]")),
        false => Ok((envelope, records)),
    }
}

/// The keys that lead to records, lists on the way marked or not.
fn keys_to_records(text: &str) -> Vec<String> {
    text.split('.').map(|key| key.trim_end_matches("[]").to_owned()).collect()
}

fn ids(mut table: Table) -> Result<IdRule, Mistake> {
    let texts = |text: &str| Ok(text.to_owned());
    let ids = IdRule { prefixes: table.list("prefix", texts)?, cuts: table.list("cut", texts)? };
    table.finish()?;
    Ok(ids)
}

fn column(name: &str, value: &Value) -> Result<Column, Mistake> {
    let names = || Column::ALL.iter().map(|column| column.name());
    let mistake = || value.mistake(&format!("`{name}` is no canonical column{}", suggestion(name, names())));
    Column::named(name).ok_or_else(mistake)
}

type Columns = (Vec<(Column, Vec<Rule>)>, Vec<ValuePath>);

fn columns(mut table: Table) -> Result<Columns, Mistake> {
    let (mut columns, mut errors) = (Vec::new(), Vec::new());
    for name in table.keys() {
        let Some(value) = table.take(&name) else { continue };
        if name == ERROR {
            errors = texts(&value)?.iter().map(|text| path(text)).collect::<Result<_, _>>()?;
            continue;
        }
        let column = column(&name, &value)?;
        let rules = rules(&value)?;
        if let Some(why) = rules.iter().find_map(|rule| misfit(column, rule)) {
            return Err(value.mistake(why));
        }
        columns.push((column, rules));
    }
    Ok((columns, errors))
}

/// Where the columns of steps of tokens stand.
fn tokens(mut table: Table) -> Result<Vec<(String, Vec<Rule>)>, Mistake> {
    let mut columns = Vec::new();
    for name in table.keys() {
        let Some(value) = table.take(&name) else { continue };
        let names = || OF_TOKENS.iter().map(|(name, ..)| *name);
        if !names().any(|known| known == name) {
            return Err(value.mistake(&format!("`{name}` is no column of tokens{}", suggestion(&name, names()))));
        }
        columns.push((name, rules(&value)?));
    }
    Ok(columns)
}

/// What is wrong with a rule for this column.
fn misfit(column: Column, rule: &Rule) -> Option<&'static str> {
    let has_unit = rule.unit != UnitOf::Unstated;
    match column.kind() {
        Kind::Duration if !has_unit => Some("a duration needs its unit, as in { path = \"ttft\", unit = \"s\" }"),
        Kind::Duration | Kind::Time => None,
        _ if has_unit => Some("only durations and times have a unit"),
        _ => None,
    }
}

/// One rule, or several of which the first that yields a value counts.
fn rules(value: &Value) -> Result<Vec<Rule>, Mistake> {
    if let Ok(items) = value.list() {
        let mut rules: Vec<Rule> = Vec::new();
        for item in &items {
            let rule = rule(item)?;
            match (rules.last_mut(), &rule) {
                // paths that are read alike are one rule
                (Some(Rule { origin: Origin::Paths(paths), .. }), Rule { origin: Origin::Paths(more), .. })
                    if rule == Rule::of(Origin::Paths(more.clone())) && items.iter().all(Value::is_text) =>
                {
                    paths.extend(more.iter().cloned());
                }
                _ => rules.push(rule),
            }
        }
        return Ok(rules);
    }
    Ok(vec![rule(value)?])
}

fn rule(value: &Value) -> Result<Rule, Mistake> {
    if value.is_text() {
        return Ok(Rule::plain(value.read(path)?));
    }
    let mut table = value.table()?;
    let origin = origin(&mut table)?;
    let mut rule = Rule::of(origin);
    rule.unit = match (table.text("unit")?, table.read("unit_path", path)?) {
        (None, None) => UnitOf::Unstated,
        (_, Some(path)) => UnitOf::At(path),
        (Some(word), None) if word == "text" => UnitOf::Text,
        // the size of such a number is that of no other clock
        (Some(word), None) if word == "ticks" => UnitOf::Unstated,
        (Some(word), None) => {
            UnitOf::Fixed(Unit::from_word(&word).map_err(|mistake| table.mistake(&mistake.to_string()))?)
        }
    };
    rule.nulls = table.list("null", |text| Ok(text.to_owned()))?;
    if let Some(mut values) = table.table("values")? {
        for word in values.keys() {
            let Some(meaning) = values.text(&word)? else { continue };
            match word.as_str() {
                "*" => rule.other = Some(meaning),
                _ => rule.values.push((word, meaning)),
            }
        }
    }
    if let Some(divisor) = table.take("divide") {
        let number = divisor.integer()?;
        let fits = u32::try_from(number).ok().filter(|number| *number > 0);
        rule.divide = Some(fits.ok_or_else(|| divisor.mistake("`divide` is a whole number above 0"))?);
    }
    rule.unless_equal = table.read("unless_equal", path)?;
    rule.unless = table.read("unless", path)?;
    rule.not_negative = table.take("not_negative").map(|value| value.boolean()).transpose()?.unwrap_or(false);
    rule.clock = table.read("clock", Clock::from_word)?;
    table.finish()?;
    Ok(rule)
}

fn origin(table: &mut Table) -> Result<Origin, Mistake> {
    if let Some(value) = table.take("path") {
        let paths = texts(&value)?.iter().map(|text| path(text)).collect::<Result<_, _>>()?;
        return Ok(Origin::Paths(paths));
    }
    if let Some(constant) = table.text("value")? {
        return Ok(Origin::Constant(constant));
    }
    let parts = table.list("sum", |text| {
        let optional = text.strip_suffix('?');
        Ok(Part { path: path(optional.unwrap_or(text))?, optional: optional.is_some() })
    })?;
    if !parts.is_empty() {
        return Ok(Origin::Sum(parts));
    }
    match (table.read("from", path)?, table.read("to", path)?) {
        (Some(from), Some(to)) => Ok(Origin::Difference { from, to }),
        _ => Err(table.mistake("a column is filled from a path, a sum, from and to, or a value")),
    }
}

impl Word for Clock {
    const KIND: &'static str = "clock";
    const WORDS: &'static [(&'static str, Self)] = &[("relative", Clock::Relative), ("monotonic", Clock::Monotonic)];
}
