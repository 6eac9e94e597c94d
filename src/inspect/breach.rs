//! Where a log differs from what is expected of it.

use super::assignment::Assignment;
use super::expectation::Expectation;
use super::key::{Extreme, Key};
use super::kind::Type;
use super::survey::Survey;
use crate::nearest::suggestion;
use crate::record::unit::{Unit, suffix_unit};
use crate::record::{Column, Kind};
use crate::request::Word;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// What is wrong, without where.
    pub what: String,
    /// Byte at which the first record that shows it starts, where one does.
    pub offset: Option<u64>,
    /// Records that show it, where they were counted.
    pub count: Option<u64>,
}

/// All differences between a log and the expectations, in the order of the latter.
pub fn breaches(expectations: &[Expectation], survey: &Survey, assigned: &[Vec<Assignment>]) -> Vec<Breach> {
    let mut found = Vec::new();
    for expectation in expectations {
        let fields = fields(expectation, survey, assigned);
        found.extend(absence(expectation, &fields, survey));
        for field in fields {
            found.extend(field.wrong_types(expectation, survey.is_csv()));
            found.extend(field.wrong_unit(expectation));
            found.extend(field.out_of_bounds(expectation));
        }
    }
    found
}

/// A key that an expectation is about.
struct Field<'a> {
    key: &'a Key,
    /// Of the values in the log.
    unit: Option<Unit>,
    /// What bounds are in where the expectation names no unit.
    bound_unit: Option<Unit>,
    kind: Option<Kind>,
}

/// The keys that fill the expected column, else the key of that name.
fn fields<'a>(expectation: &Expectation, survey: &'a Survey, assigned: &[Vec<Assignment>]) -> Vec<Field<'a>> {
    let canonical = Column::named(&expectation.field);
    let fills =
        |assigned: &[Assignment]| assigned.iter().find(|assignment| assignment.column == expectation.field).cloned();
    let keys = survey.keys.iter().zip(assigned);
    keys.filter_map(|(key, assigned)| {
        if let Some(assignment) = fills(assigned) {
            let bound_unit = (assignment.kind == Kind::Duration).then_some(Unit::Milliseconds);
            return Some(Field { key, unit: assignment.unit, bound_unit, kind: Some(assignment.kind) });
        }
        let named = canonical.is_none() && key.dotted() == expectation.field;
        let unit = assigned.iter().find_map(|assignment| assignment.unit);
        let unit = unit.or_else(|| suffix_unit(key.leaf()).map(|(_, unit)| unit));
        let kind = assigned.first().map(|assignment| assignment.kind);
        named.then_some(Field { key, unit, bound_unit: unit, kind })
    })
    .collect()
}

fn absence(expectation: &Expectation, fields: &[Field], survey: &Survey) -> Option<Breach> {
    let field = &expectation.field;
    let records = survey.accepted();
    if fields.is_empty() {
        let names: Vec<String> = survey.keys.iter().map(Key::dotted).collect();
        let hint = suggestion(field, names.iter().map(String::as_str));
        return Some(Breach { what: format!("no record has `{field}`{hint}"), offset: None, count: Some(records) });
    }
    // Several keys of one column stand for each other: they are taken to be in different records.
    let present = fields.iter().map(|field| field.key.present).sum::<Option<u64>>()?.min(records);
    let share = if records == 0 { 0.0 } else { present as f64 / records as f64 };
    let least = expectation.present.unwrap_or(0.0);
    let enough = if expectation.present.is_some() { share >= least } else { present > 0 };
    let wanted =
        if expectation.present.is_some() { format!("at least {} %", percent(least)) } else { "some".to_owned() };
    let what = format!("`{field}` has a value in {} % of the records, expected in {wanted}", percent(share));
    (!enough).then_some(Breach { what, offset: None, count: Some(records - present) })
}

/// A share in per cent with up to two decimals, never rounded up to a whole that it is not.
fn percent(share: f64) -> f64 {
    // what is left of 0.29 * 10,000 in floating point is 2900 all the same
    (share * 10_000.0 + 1e-6).floor() / 100.0
}

impl Field<'_> {
    fn wrong_types(&self, expectation: &Expectation, is_csv: bool) -> Vec<Breach> {
        let Some(expected) = expectation.kind else { return Vec::new() };
        let types = self.key.types().into_iter();
        let wrong = types.filter(|(kind, _)| !self.fits(*kind, expected, is_csv));
        let breach = |(kind, seen): (Type, super::key::Sightings)| Breach {
            what: format!("`{}` is {}, expected {}", self.key.dotted(), kind.word(), expected.word()),
            offset: (seen.first != u64::MAX).then_some(seen.first),
            count: Some(seen.count),
        };
        wrong.map(breach).collect()
    }

    fn fits(&self, seen: Type, expected: Type, is_csv: bool) -> bool {
        let is_number = matches!(seen, Type::Integer | Type::Number);
        match expected {
            Type::Number => is_number,
            // an epoch is a time where its unit is known
            Type::Time => seen == Type::Time || is_number && self.kind == Some(Kind::Time) && self.unit.is_some(),
            // in CSV everything is written as text
            Type::Text => is_csv || matches!(seen, Type::Text | Type::Time),
            _ => seen == expected,
        }
    }

    fn wrong_unit(&self, expectation: &Expectation) -> Option<Breach> {
        let expected = expectation.unit?;
        let key = self.key.dotted();
        let what = match self.unit {
            Some(unit) if unit == expected => return None,
            Some(unit) => format!("`{key}` is in {}, expected {}", unit.word(), expected.word()),
            None => format!("`{key}` states no unit, expected {}", expected.word()),
        };
        Some(Breach { what, offset: None, count: self.key.present })
    }

    /// Bounds that cannot be checked are not kept.
    fn unknown_bounds(&self, expectation: &Expectation) -> Option<Breach> {
        let is_number = self.key.count_of(Type::Integer) + self.key.count_of(Type::Number) > 0;
        let is_bounded = expectation.min.is_some() || expectation.max.is_some();
        let what = format!(
            "the file does not tell how small and how large `{}` is, for which bounds are expected",
            self.key.dotted()
        );
        (is_number && is_bounded).then_some(Breach { what, offset: None, count: self.key.present })
    }

    fn out_of_bounds(&self, expectation: &Expectation) -> Vec<Breach> {
        let Some((low, high)) = self.key.range else { return self.unknown_bounds(expectation).into_iter().collect() };
        let bound_unit = expectation.unit.or(self.bound_unit);
        let scaled = |value: f64| match (self.unit, bound_unit) {
            (Some(from), Some(to)) if from != to => from.to_ms(value) / to.to_ms(1.0),
            _ => value,
        };
        let unit = bound_unit.map_or(String::new(), |unit| format!(" {}", unit.word()));
        let key = self.key.dotted();
        let breach = |extreme: Extreme, word: &str, least: &str, bound: f64| Breach {
            what: format!("`{key}` {word} {}{unit}, expected {least} {bound}{unit}", scaled(extreme.value)),
            offset: (extreme.offset != u64::MAX).then_some(extreme.offset),
            count: None,
        };
        let below = expectation.min.filter(|min| scaled(low.value) < *min);
        let above = expectation.max.filter(|max| scaled(high.value) > *max);
        let below = below.map(|min| breach(low, "goes down to", "at least", min));
        below.into_iter().chain(above.map(|max| breach(high, "goes up to", "at most", max))).collect()
    }
}
