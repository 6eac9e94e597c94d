//! A profile's rule for a column, compiled: from the values of a record to the one that the column is read from.

use std::borrow::Cow;

use crate::profile::{Origin, Rule, UnitOf};
use crate::record::number;
use crate::record::unit::Unit;
use crate::source::json::walk_all;
use crate::source::reader::RawRecord;
use crate::source::slots::{Lookup, Slots};
use crate::source::value::RawValue;

/// Decimal places of a computed number: those of money, and more than any duration has.
const PLACES: i32 = 12;

/// How one column is read where its value is not just there.
#[derive(Clone, Debug)]
pub struct Reading {
    from: From,
    unit: UnitAt,
    nulls: Box<[String]>,
    values: Box<[(String, String)]>,
    other: Option<String>,
    divide: Option<u32>,
    unless_equal: Option<Lookup>,
    unless: Option<Lookup>,
    not_negative: bool,
    has_no_date: bool,
}

#[derive(Clone, Debug)]
enum From {
    Values(Vec<Lookup>),
    Sum(Vec<(Lookup, bool)>),
    Difference(Lookup, Lookup),
    Constant(String),
}

#[derive(Clone, Debug)]
enum UnitAt {
    Fixed(Option<Unit>),
    Text,
    Value(Lookup),
}

/// What a reading finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    Raw(RawValue<'a>, Option<Unit>),
    /// A number that stands nowhere in the record.
    Computed(String, Option<Unit>),
    /// A time by a clock without a date: a number since the clock's start.
    NoDate(&'a [u8], Option<Unit>),
}

impl<'a> Found<'a> {
    pub const MISSING: Self = Found::Raw(RawValue::Missing, None);

    pub fn is_missing(&self) -> bool {
        matches!(self, Found::Raw(RawValue::Missing | RawValue::Null, _))
    }
}

impl Reading {
    pub fn new(rule: &Rule, slots: &mut Slots) -> Self {
        let from = match &rule.origin {
            Origin::Paths(paths) => From::Values(paths.iter().map(|path| slots.lookup(path)).collect()),
            Origin::Sum(parts) => {
                From::Sum(parts.iter().map(|part| (slots.lookup(&part.path), part.optional)).collect())
            }
            Origin::Difference { from, to } => From::Difference(slots.lookup(from), slots.lookup(to)),
            Origin::Constant(text) => From::Constant(text.clone()),
        };
        let unit = match &rule.unit {
            UnitOf::Unstated => UnitAt::Fixed(None),
            UnitOf::Fixed(unit) => UnitAt::Fixed(Some(*unit)),
            UnitOf::Text => UnitAt::Text,
            UnitOf::At(path) => UnitAt::Value(slots.lookup(path)),
        };
        Self {
            from,
            unit,
            nulls: rule.nulls.clone().into(),
            values: rule.values.clone().into(),
            other: rule.other.clone(),
            divide: rule.divide,
            unless_equal: rule.unless_equal.as_ref().map(|path| slots.lookup(path)),
            unless: rule.unless.as_ref().map(|path| slots.lookup(path)),
            not_negative: rule.not_negative,
            has_no_date: rule.clock.is_some(),
        }
    }

    /// Slots any of which must be filled for the reading to find anything; None where it finds something in any record.
    pub fn needs(&self) -> Option<Vec<u32>> {
        let slots = |lookups: &mut dyn Iterator<Item = &Lookup>| {
            lookups.flat_map(|lookup| lookup.slots.iter().copied()).collect::<Vec<_>>()
        };
        match &self.from {
            From::Values(lookups) => Some(slots(&mut lookups.iter())),
            From::Sum(parts) => Some(slots(&mut parts.iter().map(|(lookup, _)| lookup))),
            From::Difference(from, to) => Some(slots(&mut [from, to].into_iter())),
            From::Constant(_) => None,
        }
    }

    /// The unit, if the value is the one that stands at a slot, unless it is zero.
    pub fn plain_but_for_zero(&self) -> Option<Option<Unit>> {
        let (From::Values(lookups), UnitAt::Fixed(unit)) = (&self.from, &self.unit) else { return None };
        let is_zero = |null: &String| number::float(null.as_bytes()) == Ok(0.0);
        let is_plain = lookups.iter().all(|lookup| lookup.inner.is_empty())
            && self.nulls.iter().all(is_zero)
            && self.values.is_empty()
            && self.other.is_none()
            && self.divide.is_none()
            && self.unless_equal.is_none()
            && self.unless.is_none()
            && !self.has_no_date
            && !self.not_negative;
        is_plain.then_some(*unit)
    }

    pub fn find<'a, R: RawRecord>(&'a self, record: &'a R) -> Found<'a> {
        if self.unless.as_ref().is_some_and(|other| text_of(other.find(record)).is_some()) {
            return Found::MISSING;
        }
        match &self.from {
            From::Constant(text) => Found::Raw(RawValue::Text { bytes: text.as_bytes(), escaped: false }, None),
            From::Values(lookups) => self.value(lookups, record),
            From::Sum(parts) => self.computed(sum(parts, record), record),
            From::Difference(from, to) => self.computed(difference(from.find(record), to.find(record)), record),
        }
    }

    fn value<'a, R: RawRecord>(&'a self, lookups: &'a [Lookup], record: &'a R) -> Found<'a> {
        let mut value = RawValue::Missing;
        for lookup in lookups {
            match self.known(lookup.find(record)) {
                RawValue::Missing => {}
                RawValue::Null => value = RawValue::Null,
                found => {
                    value = found;
                    break;
                }
            }
        }
        let is_alike = |other: &Lookup| text_of(other.find(record)) == text_of(value) && text_of(value).is_some();
        if self.unless_equal.as_ref().is_some_and(is_alike) {
            return Found::MISSING;
        }
        if self.has_no_date {
            return match (text_of(value), self.unit(record)) {
                (Some(number), Some(unit)) => Found::NoDate(number, unit),
                _ => Found::MISSING,
            };
        }
        match (&self.unit, value) {
            (_, RawValue::Missing | RawValue::Null) => Found::Raw(value, None),
            (UnitAt::Text, _) => match text_of(value).and_then(with_unit) {
                Some((number, unit)) => Found::Raw(RawValue::Number(number), Some(unit)),
                // no number with a unit: a value that does not fit
                None => Found::Raw(value, None),
            },
            _ if self.divide.is_some() => self.computed(text_of(value).map(Cow::Borrowed), record),
            _ => match self.unit(record) {
                Some(unit) => Found::Raw(value, unit),
                None => Found::MISSING,
            },
        }
    }

    /// The value with what stands for nothing, and for something else, replaced.
    fn known<'a>(&'a self, value: RawValue<'a>) -> RawValue<'a> {
        let Some(text) = text_of(value) else { return value };
        if self.nulls.iter().any(|null| null.as_bytes() == text) || self.not_negative && text.first() == Some(&b'-') {
            return RawValue::Null;
        }
        let meaning = self.values.iter().find(|(word, _)| word.as_bytes() == text).map(|(_, meaning)| meaning);
        match meaning.or(self.other.as_ref()) {
            Some(meaning) => RawValue::Text { bytes: meaning.as_bytes(), escaped: false },
            None => value,
        }
    }

    /// The unit; None where the value that should name it does not.
    fn unit<R: RawRecord>(&self, record: &R) -> Option<Option<Unit>> {
        match &self.unit {
            UnitAt::Fixed(unit) => Some(*unit),
            UnitAt::Text => Some(None),
            UnitAt::Value(lookup) => {
                let word = text_of(lookup.find(record))?;
                Some(Some(Unit::named(std::str::from_utf8(word).ok()?)?))
            }
        }
    }

    fn computed<'a, R: RawRecord>(&'a self, number: Option<Cow<'a, [u8]>>, record: &'a R) -> Found<'a> {
        let (Some(number), Some(unit)) = (number, self.unit(record)) else { return Found::MISSING };
        let text = String::from_utf8_lossy(&number).into_owned();
        if self.nulls.contains(&text) {
            return Found::MISSING;
        }
        match self.divide {
            None => Found::Computed(text, unit),
            Some(divisor) => match number::scaled(text.as_bytes(), PLACES) {
                Ok(scaled) => Found::Computed(decimal(scaled / i128::from(divisor)), unit),
                // a value that does not fit
                Err(_) => Found::Computed(text, unit),
            },
        }
    }
}

/// The text of a scalar as it was written.
fn text_of(value: RawValue<'_>) -> Option<&[u8]> {
    match value {
        RawValue::Missing | RawValue::Null | RawValue::Nested(_) => None,
        RawValue::Bool(true) => Some(b"true"),
        RawValue::Bool(false) => Some(b"false"),
        RawValue::Number(text) | RawValue::Text { bytes: text, .. } => Some(text),
    }
}

/// The sum of the parts; None where one that must be there is not, or nothing is. A list that begins with the very sum before
/// it repeats it: vLLM's benchmark once put the time to the first token among the gaps between tokens too.
fn sum<'a, R: RawRecord>(parts: &[(Lookup, bool)], record: &'a R) -> Option<Cow<'a, [u8]>> {
    let mut sum: Option<Cow<'a, [u8]>> = None;
    for (lookup, optional) in parts {
        let values = match lookup.inner.is_empty() {
            true => vec![lookup.find(record)],
            false => lookup.slots.iter().flat_map(|&slot| all_inside(record.raw(slot as usize), lookup)).collect(),
        };
        let repeats = !lookup.inner.is_empty()
            && sum.is_some()
            && values.first().and_then(|first| text_of(*first)) == sum.as_deref();
        let values = values.into_iter().skip(usize::from(repeats));
        let mut is_there = false;
        for text in values.filter_map(text_of).filter(|text| !text.is_empty()) {
            is_there = true;
            sum = Some(match sum {
                None => Cow::Borrowed(text),
                Some(so_far) => added(&so_far, text, |a, b| a.checked_add(b), |a, b| a + b)?,
            });
        }
        if !is_there && !optional {
            return None;
        }
    }
    sum
}

fn all_inside<'a>(value: RawValue<'a>, lookup: &Lookup) -> Vec<RawValue<'a>> {
    match value {
        RawValue::Nested(json) => walk_all(json, &lookup.inner),
        _ => Vec::new(),
    }
}

fn difference<'a>(from: RawValue<'a>, to: RawValue<'a>) -> Option<Cow<'a, [u8]>> {
    let (from, to) = (text_of(from)?, text_of(to)?);
    added(to, from, |to, from| to.checked_sub(from), |to, from| to - from)
}

/// Two numbers put together as decimals, else as floats; None where either is no number.
fn added(
    one: &[u8],
    other: &[u8],
    exact: impl Fn(i128, i128) -> Option<i128>,
    near: impl Fn(f64, f64) -> f64,
) -> Option<Cow<'static, [u8]>> {
    let scaled = |text| number::scaled(text, PLACES).ok();
    let exact = scaled(one).zip(scaled(other)).and_then(|(one, other)| exact(one, other)).map(decimal);
    let text = match exact {
        Some(text) => text,
        None => near(number::float(one).ok()?, number::float(other).ok()?).to_string(),
    };
    Some(Cow::Owned(text.into_bytes()))
}

/// A number of so many decimal places as text, without those that are zero.
fn decimal(scaled: i128) -> String {
    let unit = 10_i128.pow(PLACES.unsigned_abs());
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, rest) = (scaled.unsigned_abs() / unit.unsigned_abs(), scaled.unsigned_abs() % unit.unsigned_abs());
    match rest {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{rest:0width$}", width = PLACES as usize).trim_end_matches('0').to_owned(),
    }
}

/// `1.48s`, `45.1µs`, `3124 ms`: the number and its unit.
fn with_unit(text: &[u8]) -> Option<(&[u8], Unit)> {
    let text = text.trim_ascii();
    let digits = text.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+')).count();
    let (number, unit) = text.split_at(digits);
    let unit = std::str::from_utf8(unit.trim_ascii_start()).ok()?;
    Some((number, Unit::named(unit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_that_carries_its_unit_is_split() {
        assert_eq!(with_unit("1.480212s".as_bytes()), Some((&b"1.480212"[..], Unit::Seconds)));
        assert_eq!(with_unit("45.1\u{b5}s".as_bytes()), Some((&b"45.1"[..], Unit::Microseconds)));
        assert_eq!(with_unit("45.1\u{3bc}s".as_bytes()), Some((&b"45.1"[..], Unit::Microseconds)));
        assert_eq!(with_unit(b" 3124 ms"), Some((&b"3124"[..], Unit::Milliseconds)));
        assert_eq!(with_unit(b"12"), None);
        assert_eq!(with_unit(b"1m30s"), None);
    }

    #[test]
    fn sums_and_differences_are_exact_decimals() {
        let sub = |to: &str, from: &str| {
            let numbers = (RawValue::Number(from.as_bytes()), RawValue::Number(to.as_bytes()));
            difference(numbers.0, numbers.1).map(|text| String::from_utf8(text.into_owned()).unwrap())
        };
        assert_eq!(sub("5012.020", "5012.003").as_deref(), Some("0.017"));
        assert_eq!(sub("881052050000", "881000000000").as_deref(), Some("52050000"));
        assert_eq!(sub("1", "2.5").as_deref(), Some("-1.5"));
        assert_eq!(sub("x", "2.5"), None);
        assert_eq!(decimal(1), "0.000000000001");
    }
}
