//! What records of one layout have in common: which candidates they hold, and the short way to the usual values.
//!
//! Nearly every record of a log has the keys of many others, and values of the usual form: a number where a number is
//! due, `0` for no error. Such a value is read by a shortcut, settled once for all records of the layout: it leads to the
//! first of the candidates, which counts whatever the others hold if it holds a value. A shortcut declines what is not as
//! usual, null too, and the long way of the reader takes over: it alone decides what odd values mean.

use smallvec::SmallVec;

use crate::record::outcome::{self, Clue};
use crate::record::timestamp::Clock;
use crate::record::unit::Unit;
use crate::record::{Column, Kind, number};
use crate::source::builder::Builder;
use crate::source::plan::field_of_clue;
use crate::source::reader::RawRecord;
use crate::source::row::said;
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
    Count(Slot),
    Number(Slot),
    Time(Slot),
    Failed(Slot, Clue),
}

impl Layout {
    /// That of the records of a dialect that hold just the slots `present`, given the dialect's candidates by field.
    pub fn of(dialect: usize, fields: &[Candidates], present: &[u32], outputs: &[Meaning]) -> Self {
        let keep = |candidates: &Candidates| {
            let is_there = |slot: &&Slot| slot.slot == Slot::ANYWHERE || present.contains(&slot.slot);
            candidates.iter().filter(is_there).copied().collect()
        };
        let fields: Vec<Candidates> = fields.iter().map(keep).collect();
        let shortcuts = outputs.iter().map(|output| Shortcut::to(*output, &fields)).collect();
        Self { dialect, fields, shortcuts }
    }
}

impl Shortcut {
    fn to(output: Meaning, fields: &[Candidates]) -> Self {
        let Meaning::Canonical(column) = output else { return Shortcut::Closed };
        if column == Column::Failed {
            let first = Clue::ALL.into_iter().find_map(|clue| Some((fields[field_of_clue(clue, fields.len())].first()?, clue)));
            return match first {
                Some((slot, clue)) if slot.reading == PLAIN => Shortcut::Failed(*slot, clue),
                _ => Shortcut::Closed,
            };
        }
        match (fields[column.index()].first().filter(|slot| slot.reading == PLAIN), column.kind()) {
            (Some(&slot), Kind::Count) => Shortcut::Count(slot),
            (Some(&slot), Kind::Number | Kind::Duration) => Shortcut::Number(slot),
            (Some(&slot), Kind::Time) => Shortcut::Time(slot),
            _ => Shortcut::Closed,
        }
    }

    /// Appends the value if it is as usual; false if it is not, and nothing was appended.
    #[inline(always)]
    pub fn take<R: RawRecord>(self, record: &R, clock: &Clock, builder: &mut Builder) -> bool {
        let excerpt = |slot: Slot| record.excerpt(slot.slot as usize);
        match (self, builder) {
            (Shortcut::Count(slot), Builder::Count(builder)) => {
                excerpt(slot).and_then(number::short_count).map(|value| builder.append_value(value)).is_some()
            }
            (Shortcut::Number(slot), Builder::Number(builder)) => {
                let value = excerpt(slot).and_then(number::short_float);
                let in_unit = value.map(|value| slot.unit.map_or(value, |unit| unit.to_ms(value)));
                in_unit.map(|value| builder.append_value(value)).is_some()
            }
            (Shortcut::Time(slot), Builder::Time(builder)) => {
                let time = excerpt(slot).and_then(|excerpt| clock.same_minute(excerpt.inside()));
                time.map(|time| builder.append_value(time)).is_some()
            }
            (Shortcut::Failed(slot, clue), Builder::Flag(builder)) => {
                let raw = record.raw(slot.slot as usize);
                let failed =
                    outcome::alone(clue, said(raw)).filter(|_| !matches!(raw, RawValue::Text { escaped: true, .. }));
                failed.map(|failed| builder.append_value(failed)).is_some()
            }
            _ => false,
        }
    }
}
