//! One record on its way to a row, by the long way: mapping, units, types, derivations, whatever stands in it.

use std::cell::OnceCell;

use crate::record::derive::{self, Logged};
use crate::record::number::{self, Unfit};
use crate::record::outcome::{self, Clue, Said};
use crate::record::timestamp::{self, Instant};
use crate::record::unit::Unit;
use crate::record::{Column, Kind};
use crate::source::builder::Builder;
use crate::source::carried::Carried;
use crate::source::counts::Counts;
use crate::source::dialect::Dialect;
use crate::source::json::unescape;
use crate::source::layout::{Candidates, PLAIN, Slot};
use crate::source::plan::{EXTRAS, ReadPlan, field_of_clue};
use crate::source::reader::{Provenance, RawRecord};
use crate::source::reading::Found;
use crate::source::schema::Meaning;
use crate::source::value::RawValue;

/// One record while it is read.
pub(super) struct Row<'a, R> {
    pub record: &'a R,
    pub fields: &'a [Candidates],
    pub dialect: &'a Dialect,
    /// What envelopes say of it.
    pub carried: Carried<'a>,
    pub counts: &'a mut Counts,
    /// Columns whose unfit value was counted already: a value may be asked for twice, by its column and by a derivation.
    pub counted: &'a mut u128,
    pub scratch: &'a mut Vec<u8>,
    pub clock: &'a mut timestamp::Clock,
}

impl<'a, R: RawRecord> Row<'a, R> {
    fn find(&self, field: usize) -> Found<'a> {
        let (record, dialect): (&'a R, &'a Dialect) = (self.record, self.dialect);
        find(record, dialect, &self.fields[field])
    }

    /// The same where a computed value makes no sense.
    fn raw(&self, field: usize) -> (RawValue<'a>, Option<Unit>) {
        match self.find(field) {
            Found::Raw(value, unit) => (value, unit),
            Found::Computed(..) | Found::NoDate(..) => (RawValue::Missing, None),
        }
    }

    /// Fills an output, whatever stands in the record. Never inlined, since a shortcut fills most.
    #[inline(never)]
    pub fn write(&mut self, output: usize, builder: &mut Builder, plan: &ReadPlan, from: &Provenance, offset: u64) {
        match plan.outputs[output] {
            Meaning::Canonical(column) => self.write_canonical(column, builder, from, offset),
            Meaning::Extra(index) => self.write_extra(EXTRAS + index, plan.schema().field(output).name(), builder),
            Meaning::Partition(index) => builder.text(from.partitions[index].as_deref().map(str::as_bytes)),
        }
    }

    fn write_canonical(&mut self, column: Column, builder: &mut Builder, from: &Provenance, offset: u64) {
        match column {
            Column::Failed => builder.flag(self.failed()),
            Column::SourceFile => builder.text(Some(from.file.as_bytes())),
            Column::SourceOffset => builder.count(i64::try_from(offset).ok()),
            Column::InputTokens => {
                let value = derive::input_tokens(self);
                self.counts.disjoint += u64::from(value.is_some_and(|(_, added)| added));
                builder.count(value.map(|(tokens, _)| tokens));
            }
            Column::CacheHit => {
                let value = derive::cache_hit(self);
                builder.flag(self.note(column, value));
            }
            Column::Timestamp => {
                let value = derive::timestamp(self);
                let time = self.note(column, value).or_else(|| self.carried_time());
                self.counts.undated += u64::from(time.is_none());
                builder.time(time);
            }
            Column::SampleWeight => {
                let weight = match self.raw(column.index()) {
                    (RawValue::Missing, _) => Some(1.0),
                    // a record that was sampled, nobody knows at what rate
                    _ => self.number(column, Self::float).filter(|weight| *weight > 0.0),
                };
                builder.number(weight);
            }
            _ => match column.kind() {
                Kind::Duration => {
                    let value = match &self.dialect.profile {
                        Some(profile) if profile.not_derived.contains(&column) => {
                            self.duration(column).map(|value| (value, false))
                        }
                        _ => derive::duration(self, column),
                    };
                    if value.is_none() && column == Column::TotalLatencyMs && derive::is_reversed(self) {
                        self.unfit(column, Unfit::OutOfRange);
                    }
                    builder.number(self.note(column, value));
                }
                Kind::Number => {
                    let value = self.number(column, Self::float);
                    builder.number(value);
                }
                Kind::Count => builder.count(self.count(column)),
                Kind::Time => builder.time(self.time(column)),
                Kind::Flag => builder.flag(self.flag(column)),
                Kind::Money => builder.money(self.number(column, |text, _| number::scaled(text, 12))),
                Kind::Text | Kind::Id => self.write_text(column, builder, from),
            },
        }
    }

    fn write_text(&mut self, column: Column, builder: &mut Builder, from: &Provenance) {
        let (raw, _) = self.raw(column.index());
        let mut scratch = std::mem::take(self.scratch);
        let text = as_text(raw, &mut scratch);
        let unfit = column.kind() == Kind::Id && matches!(raw, RawValue::Nested(_));
        let missing = match raw {
            RawValue::Nested(json) => matches!(json, b"{}" | b"[]"),
            _ => text.is_some_and(|text| text.is_empty() || column.kind() == Kind::Id && is_missing_word(text)),
        };
        match text {
            Some(text) if !unfit && !missing => builder.text(Some(text)),
            _ => {
                let role = if column == Column::Role { self.dialect.role.as_deref() } else { None };
                let partition = || from.fallbacks.iter().find(|(fallback, _)| *fallback == column);
                let known = role.or_else(|| partition().map(|(_, value)| value.as_str()));
                match known {
                    Some(known) => builder.text(Some(known.as_bytes())),
                    None => {
                        let label = self.carried.get(column).and_then(|(value, _)| as_text(value, &mut scratch));
                        builder.text(label.filter(|text| !is_missing_word(text)));
                    }
                }
            }
        }
        *self.scratch = scratch;
        if unfit && !missing {
            self.unfit(column, Unfit::WrongType);
        }
    }

    fn write_extra(&mut self, field: usize, name: &str, builder: &mut Builder) {
        let (raw, unit) = self.raw(field);
        let text = as_text(raw, self.scratch);
        let read = match unit {
            Some(unit) => builder.duration(text, unit),
            None => builder.parse(text, &self.dialect.zone),
        };
        if let Err(why) = read {
            self.counts.unfit(name, why, 1);
        }
    }

    /// Counts a derived value and hands the value on.
    fn note<T>(&mut self, column: Column, value: Option<(T, bool)>) -> Option<T> {
        let (value, derived) = value?;
        if derived {
            self.counts.derived(column, 1);
        }
        Some(value)
    }

    fn unfit(&mut self, column: Column, why: Unfit) {
        let bit = 1u128 << column.index();
        if *self.counted & bit == 0 {
            *self.counted |= bit;
            self.counts.unfit(column.name(), why, 1);
        }
    }

    /// A value read by `parse` from a number or from text; null and the words for nothing are missing.
    fn number<T>(&mut self, column: Column, parse: impl Fn(&[u8], Option<Unit>) -> Result<T, Unfit>) -> Option<T> {
        let (raw, unit) = match self.find(column.index()) {
            Found::Raw(value, unit) => (value, unit),
            Found::Computed(number, unit) => return self.fitting(column, parse(number.as_bytes(), unit)),
            Found::NoDate(..) => return None,
        };
        let parsed = match raw {
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Number(text) => parse(text, unit),
            RawValue::Text { bytes, escaped: false } => {
                if is_missing_word(bytes) {
                    return None;
                }
                parse(bytes, unit)
            }
            RawValue::Text { bytes, escaped: true } => {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                parse(&text, unit)
            }
            RawValue::Bool(_) | RawValue::Nested(_) => Err(Unfit::WrongType),
        };
        self.fitting(column, parsed)
    }

    /// A value that was read, or null where it does not fit.
    fn fitting<T>(&mut self, column: Column, read: Result<T, Unfit>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(why) => {
                self.unfit(column, why);
                None
            }
        }
    }

    /// The time of an envelope, where the record itself has none: about that of its writing, and never used to derive.
    fn carried_time(&mut self) -> Option<i64> {
        let (value, unit) = self.carried.get(Column::Timestamp)?;
        let read = match value {
            RawValue::Number(text) => timestamp::from_epoch(text, unit),
            RawValue::Text { bytes, .. } => self.clock.read(bytes, &self.dialect.zone, unit),
            _ => return None,
        };
        self.counts.envelope_time += u64::from(read.is_ok());
        self.fitting(Column::Timestamp, read.map(|instant| instant.nanoseconds))
    }

    fn float(text: &[u8], _: Option<Unit>) -> Result<f64, Unfit> {
        number::float(text)
    }

    fn failed(&self) -> Option<bool> {
        let texts: [OnceCell<Vec<u8>>; Clue::ALL.len()] = Default::default();
        outcome::failed(|clue| match self.raw(field_of_clue(clue, self.fields.len())).0 {
            RawValue::Text { bytes, escaped: true } => Said::Text(texts[clue as usize].get_or_init(|| {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                text
            })),
            raw => said(raw),
        })
    }
}

impl<R: RawRecord> Logged for Row<'_, R> {
    fn duration(&mut self, column: Column) -> Option<f64> {
        self.number(column, |text, unit| {
            let value = number::float(text)?;
            // -1 and the like stand for what was not measured
            if value < 0.0 { Err(Unfit::OutOfRange) } else { Ok(unit.map_or(value, |unit| unit.to_ms(value))) }
        })
    }

    fn time(&mut self, column: Column) -> Option<i64> {
        let zone = &self.dialect.zone;
        let (raw, unit) = match self.find(column.index()) {
            Found::Raw(value, unit) => (value, unit),
            Found::NoDate(number, unit) => {
                let time = match (self.dialect.clock_start, unit) {
                    (Some(start), Some(unit)) => timestamp::since(start, number, unit),
                    _ => Err(Unfit::NotAClock),
                };
                return self.fitting(column, time);
            }
            Found::Computed(..) => return None,
        };
        let read = match raw {
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Text { bytes, escaped: false } => {
                if is_missing_word(bytes) {
                    return None;
                }
                self.clock.read(bytes, zone, unit)
            }
            RawValue::Text { bytes, escaped: true } => {
                let mut text = Vec::new();
                unescape(bytes, &mut text);
                timestamp::from_text(&text, zone, unit)
            }
            RawValue::Number(text) => timestamp::from_epoch(text, unit),
            RawValue::Bool(_) | RawValue::Nested(_) => Err(Unfit::WrongType),
        };
        match read {
            Ok(Instant { nanoseconds, zone_assumed }) => {
                let bit = 1u128 << column.index();
                if zone_assumed && !self.dialect.zone_known && *self.counted & bit == 0 {
                    *self.counted |= bit;
                    self.counts.zone_assumed += 1;
                }
                Some(nanoseconds)
            }
            Err(why) => {
                self.unfit(column, why);
                None
            }
        }
    }

    fn count(&mut self, column: Column) -> Option<i64> {
        self.number(column, |text, _| number::count(text).and_then(not_negative))
    }

    fn flag(&mut self, column: Column) -> Option<bool> {
        let (raw, _) = self.raw(column.index());
        let text = match raw {
            RawValue::Bool(flag) => return Some(flag),
            RawValue::Missing | RawValue::Null => return None,
            RawValue::Number(text) | RawValue::Text { bytes: text, .. } => text,
            RawValue::Nested(_) => {
                self.unfit(column, Unfit::WrongType);
                return None;
            }
        };
        match flag_word(text) {
            Some(flag) => Some(flag),
            None if is_missing_word(text) => None,
            None => {
                self.unfit(column, Unfit::WrongType);
                None
            }
        }
    }
}

/// The first candidate that holds a value; null where candidates are there but hold none.
pub(super) fn find<'a, R: RawRecord>(record: &'a R, dialect: &'a Dialect, candidates: &[Slot]) -> Found<'a> {
    let mut found = Found::MISSING;
    let mut last = PLAIN;
    for candidate in candidates {
        let value = match candidate.reading {
            PLAIN => Found::Raw(record.raw(candidate.slot as usize), candidate.unit),
            // it has looked at all its slots already
            reading if reading == last => continue,
            reading => dialect.readings[reading as usize].find(record),
        };
        last = candidate.reading;
        match value {
            Found::Raw(RawValue::Missing, _) => {}
            Found::Raw(RawValue::Null, _) => found = Found::Raw(RawValue::Null, None),
            // a producer that is known writes these for nothing
            Found::Raw(RawValue::Text { bytes, .. }, _) if dialect.profile.is_some() && is_missing_word(bytes) => {
                found = Found::Raw(RawValue::Null, None);
            }
            value => return value,
        }
    }
    found
}

/// Counts below zero stand for what is not known.
pub(crate) fn not_negative(count: i64) -> Result<i64, Unfit> {
    if count < 0 { Err(Unfit::OutOfRange) } else { Ok(count) }
}

/// Any value as text, its escapes resolved in `scratch`; None is missing.
fn as_text<'t>(raw: RawValue<'t>, scratch: &'t mut Vec<u8>) -> Option<&'t [u8]> {
    match raw {
        RawValue::Missing | RawValue::Null => None,
        RawValue::Text { bytes, escaped: true } => {
            scratch.clear();
            unescape(bytes, scratch);
            Some(scratch)
        }
        RawValue::Text { bytes, .. } | RawValue::Number(bytes) | RawValue::Nested(bytes) => Some(bytes),
        RawValue::Bool(true) => Some(b"true"),
        RawValue::Bool(false) => Some(b"false"),
    }
}

/// `true` and `false` as loggers of several languages write them, and the numbers 1 and 0.
pub fn flag_word(text: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is(&["true", "1", "1.0", "yes", "t"]) {
        Some(true)
    } else if is(&["false", "0", "0.0", "no", "f"]) {
        Some(false)
    } else {
        None
    }
}

/// What loggers write where they have nothing to write.
pub fn is_missing_word(text: &[u8]) -> bool {
    matches!(text, b"" | b"-" | b"null" | b"None")
}

pub(super) fn said(raw: RawValue<'_>) -> Said<'_> {
    match raw {
        RawValue::Missing => Said::Absent,
        RawValue::Null => Said::Null,
        RawValue::Bool(flag) => Said::Flag(flag),
        RawValue::Number(text) | RawValue::Text { bytes: text, .. } => Said::Text(text),
        RawValue::Nested(json) => {
            Said::Nested { empty: json.iter().filter(|byte| !byte.is_ascii_whitespace()).count() == 2 }
        }
    }
}
