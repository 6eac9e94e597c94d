//! Which keys of a source fill which columns: `--map` where it was given, the well-known names elsewhere.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::profile::Profile;
use crate::record::alias::{Alias, aliases};
use crate::record::unit::{Unit, suffix_unit};
use crate::record::{Column, Kind};
use crate::request::{ExtraColumn, Map};

/// The reading rules of one source.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// A mapped column is filled by its mapped paths alone, so that two definitions are never mixed in one column.
    pub maps: Vec<Map>,
    /// The zone of times that are written without one.
    pub zone: TimeZone,
    /// Whether that is said of just this source, so that a profile does not know better.
    pub zone_is_own: bool,
    /// When clocks without a date stood at zero, nanoseconds since 1970.
    pub clock_start: Option<i64>,
    /// The profiles that its records are compared with, in this order.
    pub profiles: Arc<[Arc<Profile>]>,
    /// Whether all records are of the first of them that is no envelope.
    pub is_forced: bool,
    /// Written into every record of the source that does not say itself.
    pub role: Option<String>,
}

impl Mapping {
    /// The key paths that fill `column`, the most trusted first, and whether the user chose them.
    pub fn candidates(&self, column: Column) -> (Vec<Alias>, bool) {
        let mapped = self.maps.iter().filter(|map| map.canonical == column.name());
        let mapped: Vec<Alias> =
            mapped.flat_map(|map| spellings(map.path.keys()).map(|path| Alias { path, unit: map.unit })).collect();
        match mapped.is_empty() {
            true => (aliases(column), false),
            false => (mapped, true),
        }
    }

    /// Whether the user said where the column stands.
    pub fn is_mapped(&self, column: Column) -> bool {
        self.maps.iter().any(|map| map.canonical == column.name())
    }

    /// A duration that was mapped without a unit takes the canonical one: milliseconds.
    pub fn default_unit(kind: Kind) -> Option<Unit> {
        (kind == Kind::Duration).then_some(Unit::Milliseconds)
    }
}

/// The key paths that an added column reads.
pub fn extra_candidates(extra: &ExtraColumn) -> Vec<Alias> {
    let paths = extra.paths.iter().flat_map(|path| spellings(path.keys()));
    let unit = |path: &[String]| match (extra.kind, path.last()) {
        (Kind::Duration, Some(key)) => suffix_unit(key).map(|(_, unit)| unit),
        _ => None,
    };
    paths.map(|path| Alias { unit: unit(&path), path }).collect()
}

/// `a.b` names a nested key, and in flat logs a key with a dot in it.
fn spellings(path: &[String]) -> impl Iterator<Item = Vec<String>> {
    let flat = (path.len() > 1).then(|| vec![path.join(".")]);
    std::iter::once(path.to_vec()).chain(flat)
}
