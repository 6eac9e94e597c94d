//! What records of one layout have in common: which candidates they hold, and the short way to the usual values.
//!
//! Nearly every record of a log has the keys of many others, and values of the usual form: a number where a number is
//! due, `0` for no error. Such a value is read by a shortcut, settled once for all records of the layout: it leads to the
//! first of the candidates, which counts whatever the others hold if it holds a value. A shortcut declines what is not as
//! usual, null too, and the long way of the reader takes over: it alone decides what odd values mean.

use simdutf8::basic::from_utf8;
use smallvec::SmallVec;

use crate::record::outcome::{self, Clue};
use crate::record::timestamp::Clock;
use crate::record::unit::Unit;
use crate::record::{Column, Kind, number};
use crate::source::builder::Builder;
use crate::source::counts::Counts;
use crate::source::dialect::Dialect;
use crate::source::plan::field_of_clue;
use crate::source::reader::RawRecord;
use crate::source::reading::Reading;
use crate::source::row::{is_missing_word, said};
use crate::source::schema::Meaning;
use crate::source::value::RawValue;

/// A key path's slot, and the unit its values are in.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub slot: u32,
    pub unit: Option<Unit>,
    /// Which of the dialect's readings makes the value, or [`PLAIN`].
    pub reading: u16,
}

/// The value is the one that stands at the slot.
pub(crate) const PLAIN: u16 = u16::MAX;

impl Slot {
    /// That of a value which needs none.
    pub const ANYWHERE: u32 = u32::MAX;
}

/// The candidates of one field; nearly always none or one.
pub type Candidates = SmallVec<[Slot; 2]>;

/// What records of one layout have in common.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The dialect of the records.
    pub dialect: usize,
    /// Candidates by field: canonical columns, then extra columns, then the error keys.
    pub fields: Vec<Candidates>,
    /// One for each output column.
    pub shortcuts: Vec<Shortcut>,
}

/// The short way from a record of a layout to the usual value of an output column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shortcut {
    /// There is none.
    Closed,
    /// Zero may be no usual value: it can stand for a missing one.
    Count {
        slot: Slot,
        zero_is_usual: bool,
    },
    /// Input tokens, in a layout with cached tokens: usual where they include those.
    Input {
        slot: Slot,
        zero_is_usual: bool,
        cached: Slot,
    },
    Number {
        slot: Slot,
        zero_is_usual: bool,
    },
    Time(Moment),
    /// From one time to another, in a layout without the duration itself.
    Span {
        from: Moment,
        to: Moment,
    },
    Failed(Slot, Clue),
    /// A text as it stands, without escapes.
    Text(u32),
    /// No record of the layout has the column, and nothing that it follows from.
    Absent,
    /// The same of a text, which envelopes and folders may know too.
    AbsentText,
}

/// Where a time stands, and whether a number there counts seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    slot: u32,
    may_be_seconds: bool,
}

impl Moment {
    fn of(candidates: &Candidates) -> Option<Self> {
        let first = candidates.first().filter(|slot| slot.reading == PLAIN)?;
        Some(Self { slot: first.slot, may_be_seconds: matches!(first.unit, None | Some(Unit::Seconds)) })
    }

    /// The time, if it is written as usual.
    #[inline(always)]
    fn read<R: RawRecord>(self, record: &R, clock: &Clock) -> Option<i64> {
        let excerpt = record.excerpt(self.slot as usize)?;
        match excerpt.text.get(excerpt.start) {
            Some(b'"') => clock.same_minute(excerpt.inside()),
            _ if self.may_be_seconds => number::short_epoch(excerpt),
            _ => None,
        }
    }
}

impl Layout {
    /// That of the records of a dialect that hold just the slots `present`.
    pub fn of(number: usize, dialect: &Dialect, present: &[u32], outputs: &[Meaning]) -> Self {
        let keep = |candidates: &Candidates| {
            let is_there = |slot: &&Slot| slot.slot == Slot::ANYWHERE || present.contains(&slot.slot);
            candidates.iter().filter(is_there).copied().collect()
        };
        let fields: Vec<Candidates> = dialect.fields.iter().map(keep).collect();
        let shortcuts = outputs.iter().map(|output| Shortcut::to(*output, &fields, &dialect.readings)).collect();
        Self { dialect: number, fields, shortcuts }
    }
}

impl Shortcut {
    fn to(output: Meaning, fields: &[Candidates], readings: &[Reading]) -> Self {
        let Meaning::Canonical(column) = output else { return Shortcut::Closed };
        if column == Column::Failed {
            let first =
                Clue::ALL.into_iter().find_map(|clue| Some((fields[field_of_clue(clue, fields.len())].first()?, clue)));
            return match first {
                Some((slot, clue)) if slot.reading == PLAIN => Shortcut::Failed(*slot, clue),
                _ => Shortcut::Closed,
            };
        }
        let candidates = &fields[column.index()];
        if column.kind() == Kind::Time && !candidates.is_empty() {
            return Moment::of(candidates).map_or(Shortcut::Closed, Shortcut::Time);
        }
        let Some(&slot) = candidates.first() else {
            let moment = |column: Column| Moment::of(&fields[column.index()]);
            return match (column, moment(Column::Timestamp), moment(Column::CompletedAt)) {
                (Column::TotalLatencyMs, Some(from), Some(to)) => Shortcut::Span { from, to },
                _ => Self::without_candidate(column),
            };
        };
        let (slot, zero_is_usual) = match slot.reading {
            PLAIN => (slot, true),
            reading => match readings[reading as usize].plain_but_for_zero() {
                Some(unit) => (Slot { unit, ..slot }, false),
                None => return Shortcut::Closed,
            },
        };
        match (column, fields[Column::CachedTokens.index()].first()) {
            (Column::InputTokens, Some(cached)) if cached.reading == PLAIN => {
                return Shortcut::Input { slot, zero_is_usual, cached: *cached };
            }
            (Column::InputTokens, Some(_)) => return Shortcut::Closed,
            _ => {}
        }
        // a weight of nothing is no weight
        let zero_is_usual = zero_is_usual && column != Column::SampleWeight;
        match column.kind() {
            Kind::Count => Shortcut::Count { slot, zero_is_usual },
            Kind::Number | Kind::Duration => Shortcut::Number { slot, zero_is_usual },
            Kind::Text | Kind::Id if slot.reading == PLAIN => Shortcut::Text(slot.slot),
            _ => Shortcut::Closed,
        }
    }

    /// The way to a column that no record of the layout has: none, where it is derived or what it says is in no record.
    fn without_candidate(column: Column) -> Self {
        use Column::{CacheHit, Role, SampleWeight, SourceFile, SourceOffset, Timestamp};
        match column.kind() {
            _ if matches!(column, CacheHit | Role | SampleWeight | SourceFile | SourceOffset | Timestamp) => {
                Shortcut::Closed
            }
            Kind::Duration => Shortcut::Closed,
            Kind::Text | Kind::Id => Shortcut::AbsentText,
            Kind::Count | Kind::Number | Kind::Time | Kind::Flag | Kind::Money => Shortcut::Absent,
        }
    }

    /// Appends the value if it is as usual; false if it is not, and nothing was appended. A `bare` record is all that is
    /// known of its request: no envelope, no folder says more.
    #[inline(always)]
    pub fn take<R: RawRecord>(
        self,
        record: &R,
        bare: bool,
        clock: &Clock,
        counts: &mut Counts,
        builder: &mut Builder,
    ) -> bool {
        let excerpt = |slot: Slot| record.excerpt(slot.slot as usize);
        match (self, builder) {
            (Shortcut::Count { slot, zero_is_usual }, Builder::Count(builder)) => {
                let value = excerpt(slot).and_then(number::short_count).filter(|value| zero_is_usual || *value != 0);
                value.map(|value| builder.append_value(value)).is_some()
            }
            (Shortcut::Input { slot, zero_is_usual, cached }, Builder::Count(builder)) => {
                let value = excerpt(slot).and_then(number::short_count).filter(|value| zero_is_usual || *value != 0);
                let cached = excerpt(cached).and_then(number::short_count);
                let includes = value.zip(cached).filter(|(value, cached)| cached <= value);
                includes.map(|(value, _)| builder.append_value(value)).is_some()
            }
            (Shortcut::Number { slot, zero_is_usual }, Builder::Number(builder)) => {
                let value = excerpt(slot).and_then(number::short_float).filter(|value| zero_is_usual || *value != 0.0);
                let in_unit = value.map(|value| slot.unit.map_or(value, |unit| unit.to_ms(value)));
                in_unit.map(|value| builder.append_value(value)).is_some()
            }
            (Shortcut::Time(moment), Builder::Time(builder)) => {
                moment.read(record, clock).map(|time| builder.append_value(time)).is_some()
            }
            (Shortcut::Span { from, to }, Builder::Number(builder)) => {
                let times = from.read(record, clock).zip(to.read(record, clock));
                let span = times.filter(|(from, to)| from < to);
                let span = span.map(|(from, to)| builder.append_value((to - from) as f64 / 1_000_000.0));
                span.map(|()| counts.derived(Column::TotalLatencyMs, 1)).is_some()
            }
            (Shortcut::Failed(slot, clue), Builder::Flag(builder)) => {
                let raw = record.raw(slot.slot as usize);
                let failed =
                    outcome::alone(clue, said(raw)).filter(|_| !matches!(raw, RawValue::Text { escaped: true, .. }));
                failed.map(|failed| builder.append_value(failed)).is_some()
            }
            (Shortcut::Text(slot), Builder::Text(builder)) => match record.raw(slot as usize) {
                RawValue::Text { bytes, escaped: false } if !is_missing_word(bytes) => {
                    from_utf8(bytes).map(|text| builder.append_value(text)).is_ok()
                }
                _ => false,
            },
            (Shortcut::Absent, builder) => {
                builder.null();
                true
            }
            (Shortcut::AbsentText, builder) if bare => {
                builder.null();
                true
            }
            _ => false,
        }
    }
}
