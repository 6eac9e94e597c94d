//! Ids to take apart.

use std::path::PathBuf;

use super::{Clock, Format, Mistake, Note, Place, Zone, zone};
use crate::cli::IdArgs;
use crate::config::Config;
use crate::ident;

/// A question about ids rather than logs.
#[derive(Debug, Clone)]
pub struct Identification {
    /// As they were typed; `-` stands for those of standard input.
    pub ids: Vec<String>,
    pub options: ident::Options,
    /// The zone that times are shown in.
    pub zone: Zone,
    /// The zone of dates in ids.
    pub source_zone: Zone,
    pub format: Format,
    pub file: Option<PathBuf>,
    /// How the times that were typed were understood, where that is not obvious.
    pub notes: Vec<Note>,
}

impl Identification {
    /// What was typed, with the zones of the config where none was.
    ///
    /// # Errors
    /// A time or a zone is none, or the config cannot be used.
    pub fn resolve(typed: IdArgs, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let config = Config::find(typed.config.as_deref(), place, canonical_columns)?;
        let shown = zone(typed.tz.as_deref())?.or(config.zone).unwrap_or_else(Zone::utc);
        let source_zone = zone(typed.source_tz.as_deref())?.or(config.source_zone).unwrap_or_else(Zone::utc);
        let clock = Clock { now: place.now, zone: shown };
        let mut notes = Vec::new();
        let mut read = |flag, text: Option<&str>| text.map(|text| clock.read(flag, text, &mut notes)).transpose();
        let now = read("--now", typed.now.as_deref())?.unwrap_or(place.now);
        let epoch = read("--epoch", typed.epoch.as_deref())?;
        let ids = typed.ids.iter().map(|id| id.to_string_lossy().into_owned()).collect();
        Ok(Identification {
            ids,
            options: ident::Options { epoch, now, zone: source_zone.rules.clone() },
            zone: clock.zone,
            source_zone,
            format: typed.format,
            file: typed.output,
            notes,
        })
    }
}
