//! Which column a key of a log fills, in which unit, and what says so.

use std::collections::HashMap;
use std::fmt;

use super::key::{Key, SEPARATOR};
use super::survey::Survey;
use crate::profile::{Profile, UnitOf};
use crate::record::alias::{Alias, ERROR_KEYS};
use crate::record::timestamp;
use crate::record::unit::{Unit, suffix_unit};
use crate::record::{Column, Kind};
use crate::request::{ExtraColumn, Request};
use crate::source::mapping::{Mapping, extra_candidates};

/// A key that fills a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The canonical or added column.
    pub column: String,
    pub kind: Kind,
    /// Of the values in the log; None where the column has no unit, or the log does not tell.
    pub unit: Option<Unit>,
    pub evidence: Evidence,
    /// The key that counts where a record has both.
    pub after: Option<usize>,
}

/// What says that a key fills a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The key is named like the column.
    Name,
    /// A well-known other name.
    Alias,
    /// A well-known name with a unit at its end.
    Suffix(&'static str),
    /// A time whose unit the size of its numbers tells.
    EpochSize,
    MapFlag,
    ColumnFlag,
    /// The map of a source of the config, by its name.
    Source(String),
    /// An error object or text tells that the request failed.
    ErrorKey,
    /// A profile, by its name.
    Profile(String),
}

/// As a table shows it.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Name => f.write_str("name"),
            Evidence::Alias => f.write_str("alias"),
            Evidence::Suffix(suffix) => write!(f, "suffix {suffix}"),
            Evidence::EpochSize => f.write_str("epoch size"),
            Evidence::MapFlag => f.write_str("--map"),
            Evidence::ColumnFlag => f.write_str("--column"),
            Evidence::Source(name) => write!(f, "source {name}"),
            Evidence::ErrorKey => f.write_str("error key"),
            Evidence::Profile(name) => write!(f, "profile {name}"),
        }
    }
}

/// The assignments of all keys of a survey, by the position of the key; a key may fill several columns.
pub fn assign(survey: &Survey, mapping: &Mapping, request: &Request, extras: &[ExtraColumn]) -> Vec<Vec<Assignment>> {
    let mut assigned = vec![Vec::new(); survey.keys.len()];
    let by_name: HashMap<&str, usize> =
        survey.keys.iter().enumerate().map(|(index, key)| (&*key.name, index)).collect();
    // A header of CSV writes a path with dots.
    let separator = if survey.is_csv() { '.' } else { SEPARATOR }.to_string();
    let position = |alias: &Alias| by_name.get(alias.path.join(&separator).as_str()).copied();
    for profile in survey.profiles.iter().filter_map(|(profile, _)| profile.as_ref()) {
        assign_by_profile(profile, mapping, &position, &mut assigned);
    }
    // where no record is without a profile, the well-known names were not asked
    let is_undescribed = survey.profiles.is_empty() || survey.profiles.iter().any(|(profile, _)| profile.is_none());
    let read = |column: &&Column| !is_provenance(**column) && (is_undescribed || mapping.is_mapped(**column));
    for &column in Column::ALL.iter().filter(read) {
        let (candidates, mapped) = mapping.candidates(column);
        let mut found: Vec<(usize, &Alias)> =
            candidates.iter().filter_map(|alias| Some((position(alias)?, alias))).collect();
        found.dedup_by_key(|(index, _)| *index);
        for (rank, &(index, alias)) in found.iter().enumerate() {
            let (unit, evidence) = match mapped {
                true => (alias.unit.or(Mapping::default_unit(column.kind())), chosen_by(column, survey, request)),
                false => (alias.unit, known_by(column, alias)),
            };
            let sized = if column.kind() == Kind::Time && unit.is_none() { epoch(&survey.keys[index]) } else { None };
            assigned[index].push(Assignment {
                column: column.name().to_owned(),
                kind: column.kind(),
                unit: unit.or(sized),
                evidence: if sized.is_some() && !mapped { Evidence::EpochSize } else { evidence },
                after: (rank > 0).then(|| found[0].0),
            });
        }
    }
    for extra in extras {
        for index in extra_candidates(extra).iter().filter_map(position) {
            let (column, evidence) = (extra.name.clone(), Evidence::ColumnFlag);
            assigned[index].push(Assignment { column, kind: extra.kind, unit: None, evidence, after: None });
        }
    }
    for (key, assigned) in survey.keys.iter().zip(&mut assigned) {
        if key.path().next().is_some_and(|top| ERROR_KEYS.contains(&top)) {
            let (column, evidence) = (Column::Failed.name().to_owned(), Evidence::ErrorKey);
            assigned.push(Assignment { column, kind: Kind::Flag, unit: None, evidence, after: None });
        }
    }
    assigned
}

/// The keys that a profile reads, each with the columns it fills.
fn assign_by_profile(
    profile: &Profile,
    mapping: &Mapping,
    position: &impl Fn(&Alias) -> Option<usize>,
    assigned: &mut [Vec<Assignment>],
) {
    for (column, rules) in profile.columns.iter().filter(|(column, _)| !mapping.is_mapped(*column)) {
        for rule in rules {
            let unit = match rule.unit {
                UnitOf::Fixed(unit) => Some(unit),
                _ => None,
            };
            for path in rule.paths() {
                let spelled = path.spellings().find_map(|path| position(&Alias { path, unit: None }));
                let Some(index) = spelled else { continue };
                if assigned[index].iter().any(|known| known.column == column.name()) {
                    continue;
                }
                assigned[index].push(Assignment {
                    column: column.name().to_owned(),
                    kind: column.kind(),
                    unit,
                    evidence: Evidence::Profile(profile.name.clone()),
                    after: None,
                });
            }
        }
    }
}

/// Filled by the program, whatever a log says.
pub fn is_provenance(column: Column) -> bool {
    matches!(column, Column::SourceFile | Column::SourceOffset)
}

fn chosen_by(column: Column, survey: &Survey, request: &Request) -> Evidence {
    let typed = request.maps.iter().any(|map| map.canonical == column.name());
    // mapping 0 is that of files of no source
    match survey.file.mapping.checked_sub(1).and_then(|source| request.logs.sources.get(source)) {
        Some(source) if !typed => Evidence::Source(source.name.clone()),
        _ => Evidence::MapFlag,
    }
}

fn known_by(column: Column, alias: &Alias) -> Evidence {
    let leaf = alias.path.last().map_or("", String::as_str);
    match suffix_unit(leaf) {
        _ if alias.path == [column.name()] => Evidence::Name,
        Some((suffix, _)) if alias.unit.is_some() => Evidence::Suffix(suffix),
        _ => Evidence::Alias,
    }
}

/// The unit in which the numbers of a key are times of this calendar.
fn epoch(key: &Key) -> Option<Unit> {
    let (low, high) = key.range?;
    let is_clock = |unit: &Unit, value: f64| timestamp::from_epoch(value.to_string().as_bytes(), Some(*unit)).is_ok();
    let units = [Unit::Seconds, Unit::Milliseconds, Unit::Microseconds, Unit::Nanoseconds];
    units.into_iter().find(|unit| is_clock(unit, low.value) || is_clock(unit, high.value))
}
