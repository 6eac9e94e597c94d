//! A value of a record as people read it.

use jiff::tz::TimeZone;

use crate::output::legible;
use crate::trace::life::{Fact, Life, Value};

use super::axis;

const UNKNOWN: &str = "unknown";

/// A text of a log, safe for a terminal; unknown where there is none.
pub fn word(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(|| UNKNOWN.to_owned(), legible::text)
}

/// A number without the zeros that end it: a measured 9.5 is no more exact as 9.500.
pub fn amount(value: f64) -> String {
    let shown = legible::number(value);
    if shown.contains('.') && !shown.contains('e') {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        shown
    }
}

/// Milliseconds with their unit.
pub fn ms(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| UNKNOWN.to_owned(), |ms| format!("{} ms", amount(ms)))
}

/// A number in a column that names its unit.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| "-".to_owned(), amount)
}

/// A whole number in a column that names its unit.
pub fn count(value: Option<i64>) -> String {
    value.map_or_else(|| "-".to_owned(), |count| legible::grouped(&count.to_string()))
}

/// A part of a whole.
pub fn share(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| "-".to_owned(), |part| legible::percent(part * 100.0))
}

/// The number that a value is.
pub fn of_value(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Number(number) => Some(*number),
        Value::Money(digits) => digits.parse().ok(),
        Value::Text(_) | Value::Flag(_) | Value::Time(_) => None,
    }
}

/// The value with its unit.
pub fn value(value: &Value, unit: &str, zone: &TimeZone) -> String {
    let plain = match value {
        Value::Text(text) => word(Some(text)),
        // A whole number without a unit is a label, such as an HTTP status.
        Value::Count(count) if unit.is_empty() => count.to_string(),
        Value::Count(count) => legible::grouped(&count.to_string()),
        Value::Number(number) if !number.is_finite() => return UNKNOWN.to_owned(),
        Value::Number(number) => amount(*number),
        Value::Flag(flag) => flag.to_string(),
        Value::Time(time) => axis::moment(*time, zone).unwrap_or_else(|| UNKNOWN.to_owned()),
        Value::Money(digits) => legible::grouped(&legible::text(digits)),
    };
    if unit.is_empty() { plain } else { format!("{plain} {}", legible::text(unit)) }
}

/// What a life knows by this name.
pub fn named<'a>(life: &'a Life, name: &str) -> Option<&'a Fact> {
    life.facts.iter().find(|fact| fact.name == name)
}
