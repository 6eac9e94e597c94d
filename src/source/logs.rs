//! The logs of a request, found and looked into: which files, what they are, how each is read.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use datafusion::logical_expr::Expr;
use jiff::Timestamp;
use tempfile::NamedTempFile;

use crate::profile::{Pattern, Profile};
use crate::record::Column;
use crate::report::{Accounting, Note};
use crate::request::{Ask, Matching, Request, Source, Word};
use crate::source::LogFile;
use crate::source::format::Format;
use crate::source::input::Input;
use crate::source::locate::{Skipped, locate};
use crate::source::mapping::Mapping;
use crate::source::parquet::ParquetLog;
use crate::source::rejects::Rejects;
use crate::source::requests::{Matches, RequestTable, Sightings, Skews, Unit};
use crate::source::rows;
use crate::source::schema::LogSchema;
use crate::source::table::LogTable;
use crate::source::tokens::TokenTable;

/// Skipped files that a note names.
const NAMED: usize = 5;

/// Everything a request reads.
#[derive(Debug)]
pub struct Logs {
    pub schema: Arc<LogSchema>,
    pub mappings: Arc<[Mapping]>,
    /// All inputs, in the order named.
    pub files: Vec<Arc<LogFile>>,
    /// Those that are read record by record.
    pub texts: Vec<Arc<LogFile>>,
    pub parquets: Vec<ParquetLog>,
    /// Parquet whose rows are steps of tokens.
    pub token_parquets: Vec<ParquetLog>,
    pub rejects: Arc<Rejects>,
    /// How far the clocks of roles are apart, where requests were put together.
    pub skews: Arc<Skews>,
    /// Which records are of one request without a common id, where that was asked for.
    pub matches: Arc<Matches>,
    /// Which ids stand in several records, as far as that is known.
    pub sightings: Arc<Sightings>,
    skipped: Vec<Skipped>,
    /// Which files of a folder or glob take the settings of a source.
    source_notes: Vec<Note>,
    /// Parquet files without a readable footer, as sentences.
    damaged: Vec<String>,
    /// Parquet that came compressed or as a stream, unpacked for as long as the logs are read.
    _unpacked: Vec<NamedTempFile>,
}

impl Logs {
    /// Finds the inputs, tells their formats by their content, and reads the footers of Parquet files.
    ///
    /// What must be unpacked to be read is unpacked into the folder `spill`.
    pub fn open(request: &Request, spill: &Path) -> anyhow::Result<Self> {
        let names: Vec<PathBuf> = request.logs.patterns.iter().map(|pattern| pattern.path()).collect();
        let patterns: Vec<&Pattern> = request
            .profiles
            .all()
            .iter()
            .chain(&request.profile)
            .filter_map(|profile| profile.pattern.as_ref())
            .collect();
        let located = locate(&names, &|input| has_known_lines(input, &patterns))?;
        let mappings: Arc<[Mapping]> = mappings(request).into();
        let keys = located.inputs.iter().flat_map(|input| input.partitions.iter().map(|(key, _)| key.clone()));
        let rejects = if request.rejects.is_some() { Rejects::keeping_all()? } else { Rejects::default() };
        let mut logs = Self {
            schema: Arc::new(LogSchema::new(&request.columns, keys.collect::<Vec<_>>())),
            mappings,
            files: Vec::new(),
            texts: Vec::new(),
            parquets: Vec::new(),
            token_parquets: Vec::new(),
            rejects: Arc::new(rejects),
            skews: Arc::default(),
            matches: Arc::default(),
            sightings: Arc::default(),
            skipped: located.skipped,
            damaged: Vec::new(),
            source_notes: Vec::new(),
            _unpacked: Vec::new(),
        };
        for (index, mut input) in located.inputs.into_iter().enumerate() {
            let mapping = input.path().and_then(|path| request.logs.source_index(path)).map_or(0, |source| source + 1);
            input.name = request.logs.shown(&input.name);
            if matches!(request.ask, Ask::Trace(_)) && !input.is_file() {
                // a trace reads its logs several times
                let name = input.name.clone();
                let unpacked = input.unpack(spill).with_context(|| format!("could not unpack {name}"))?;
                input = Input { name, ..Input::file(unpacked.path().to_owned(), Vec::new())? };
                logs._unpacked.push(unpacked);
            }
            let file = Arc::new(LogFile { index, input, mapping, rows: None, lines: OnceLock::new() });
            logs.files.push(file.clone());
            match file.input.format {
                Format::Parquet => logs.add_parquet(file, spill)?,
                _ => logs.texts.push(file),
            }
        }
        logs.source_notes = source_notes(request, &logs.files);
        Ok(logs)
    }

    fn add_parquet(&mut self, file: Arc<LogFile>, spill: &Path) -> anyhow::Result<()> {
        let mapping = &self.mappings[file.mapping];
        let opened = match file.input.plain_file() {
            Some(path) => ParquetLog::open(file.clone(), path, mapping),
            None => {
                let unpacked =
                    file.input.unpack(spill).with_context(|| format!("could not unpack {}", file.input.name))?;
                let opened = ParquetLog::open(file.clone(), unpacked.path(), mapping);
                self._unpacked.push(unpacked);
                opened
            }
        };
        let described = |log: &ParquetLog| {
            mapping.is_forced || mapping.profiles.iter().any(|profile| rows::are_of(profile, log.schema()))
        };
        match opened {
            Ok(log) if described(&log) => {
                let (index, input, mapping) = (file.index, file.input.clone(), file.mapping);
                let file = Arc::new(LogFile { index, input, mapping, rows: Some(log.path), lines: OnceLock::new() });
                self.files.pop();
                self.files.push(file.clone());
                self.texts.push(file);
            }
            Ok(log) if log.is_of_tokens() => self.token_parquets.push(log),
            Ok(log) => self.parquets.push(log),
            Err(error) => self.damaged.push(format!("{}: {error:#}", file.input.name)),
        }
        Ok(())
    }

    /// The table that reads them, with only the records that `predicate` holds for.
    pub fn table(&self, predicate: Option<Expr>) -> LogTable {
        LogTable {
            schema: self.schema.clone(),
            mappings: self.mappings.clone(),
            texts: self.texts.clone(),
            parquets: self.parquets.clone(),
            rejects: self.rejects.clone(),
            span_known: predicate.is_none() && self.spans_known(),
            predicate,
            is_lookup: false,
            found: None,
            scans: AtomicUsize::new(LOGS_BEHIND),
        }
    }

    /// The table of what else the logs say about requests, with only the events that `range` holds for.
    pub fn events(&self, range: Option<Expr>) -> LogTable {
        LogTable {
            schema: Arc::new(self.schema.of_events()),
            parquets: Vec::new(),
            scans: AtomicUsize::new(EVENTS_BEHIND),
            ..self.table(range)
        }
    }

    /// The table of requests and events alike, with only those that `predicate` holds for.
    pub fn both(&self, predicate: Option<Expr>) -> LogTable {
        LogTable { schema: Arc::new(self.schema.of_both()), ..self.table(predicate) }
    }

    /// The table of the steps of tokens, with only those of the records that `range` holds for.
    pub fn tokens(&self, range: Option<Expr>) -> TokenTable {
        let parquets = self.parquets.iter().chain(&self.token_parquets).cloned().collect();
        let records = LogTable { schema: Arc::new(self.schema.of_tokens()), parquets, ..self.table(range) };
        // a query of tokens is about those, whatever else it reads
        records.scans.store(0, Ordering::Relaxed);
        TokenTable::new(records)
    }

    /// The table of all requests, or attempts, put together from the records that `margin` holds for.
    pub fn requests(&self, unit: Unit, margin: Option<Expr>, request: &Request) -> RequestTable {
        let ids = Arc::new(request.profiles.ids());
        let priority = |file: &Arc<LogFile>| {
            let source = file.mapping.checked_sub(1).and_then(|source| request.logs.sources.get(source));
            Some((file.input.name.clone(), source?.priority)).filter(|(_, priority)| *priority != 0)
        };
        let priorities = self.files.iter().filter_map(priority).collect();
        let (skews, matches) = (self.skews.clone(), self.matches.clone());
        let mut table = RequestTable::new(unit, self.table(margin), ids, priorities, skews, matches);
        table.sightings = self.mostly_lone(request).then(|| self.sightings.clone());
        table
    }

    /// Whether it pays to take most ids for those of one record: not where several roles see each request, and only where
    /// the logs can be read again if that was wrong.
    fn mostly_lone(&self, request: &Request) -> bool {
        self.roles().len() < 2
            && self.files.iter().all(|file| file.input.is_file())
            && !matches!(request.ask, Ask::Sql { .. } | Ask::Inspect { .. } | Ask::Trace(_))
            && request.matching == Matching::Id
            && !request.fixes_skew
    }

    /// The roles of the logs, each once.
    pub fn roles(&self) -> Vec<&str> {
        let roles = self.files.iter().filter_map(|file| self.mappings[file.mapping].role.as_deref());
        roles.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether some of the logs are a sample, whose records stand for others too.
    pub fn are_sampled(&self) -> bool {
        let weight = Column::SampleWeight;
        let is_parquet_sampled = |log: &ParquetLog| {
            log.schema().fields().iter().any(|field| field.name().eq_ignore_ascii_case(weight.name()))
        };
        self.mappings.iter().any(|mapping| mapping.is_mapped(weight))
            || self.parquets.iter().any(is_parquet_sampled)
            || self.texts.iter().any(|file| file.input.is_sampled)
    }

    /// Whether the footers tell first and last of every Parquet log.
    pub fn spans_known(&self) -> bool {
        self.parquets.iter().all(|log| log.span.is_some())
    }

    /// What is known before anything is read.
    pub fn accounting(&self) -> Accounting {
        Accounting {
            files: self.files.len() as u64,
            bytes: self.bytes(),
            damaged_files: self.damaged.len() as u64,
            records: self.parquets.iter().map(ParquetLog::rows).sum(),
            ..Accounting::default()
        }
    }

    /// Bytes on disk; streams count nothing.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.input.size).sum()
    }

    /// What a reader must know about the files.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes = self.source_notes.clone();
        let mut damages = self.damaged.clone();
        damages.extend(self.rejects.damages());
        for damage in damages {
            notes.push(Note { code: "damaged_file".into(), text: format!("damaged: {damage}"), count: Some(1) });
        }
        if !self.token_parquets.is_empty() {
            let names: Vec<&str> = self.token_parquets.iter().map(|log| log.file.input.name.as_str()).collect();
            let text = format!("rows are steps of tokens and no requests: {}", names.join(", "));
            let count = self.token_parquets.iter().map(ParquetLog::rows).sum();
            notes.push(Note { code: "token_rows".into(), text, count: Some(count) });
        }
        if !self.skipped.is_empty() {
            let named = self.skipped.iter().take(NAMED).map(|skipped| format!("{} ({})", skipped.name, skipped.why));
            let more = self.skipped.len().saturating_sub(NAMED);
            let and_more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let text = format!("not read: {}{and_more}", named.collect::<Vec<_>>().join(", "));
            notes.push(Note { code: "skipped_file".into(), text, count: Some(self.skipped.len() as u64) });
        }
        notes
    }
}

/// Scans of records are numbered from here on, behind those of tokens.
pub const LOGS_BEHIND: usize = 1 << 10;

/// Scans of events are numbered from here on: where a query reads records or requests as well, those are counted.
const EVENTS_BEHIND: usize = 1 << 30;

/// Lines of a text that are compared with the patterns of profiles.
const LINES_LOOKED_AT: usize = 1000;

/// Whether the first lines of a text are of a kind that some profile knows.
fn has_known_lines(input: &Input, patterns: &[&Pattern]) -> bool {
    let Ok(contents) = input.open() else { return false };
    let lines = BufReader::new(contents.take(1 << 20)).split(b'\n').take(LINES_LOOKED_AT);
    lines.map_while(Result::ok).any(|line| patterns.iter().any(|pattern| pattern.is_match(&line)))
}

/// Notes for sources that no pattern as a whole belongs to, but files that a pattern found do.
fn source_notes(request: &Request, files: &[Arc<LogFile>]) -> Vec<Note> {
    let named = |source: usize| request.logs.patterns.iter().any(|pattern| pattern.source == Some(source));
    let note = |(index, source): (usize, &Source)| {
        let names: Vec<&str> =
            files.iter().filter(|file| file.mapping == index + 1).map(|file| file.input.name.as_str()).collect();
        let more = if names.len() > NAMED { format!(", and {} more", names.len() - NAMED) } else { String::new() };
        let listed = names[..names.len().min(NAMED)].join(", ") + &more;
        (!names.is_empty() && !named(index)).then(|| Note::from(&source.applied_to(&listed)))
    };
    request.logs.sources.iter().enumerate().filter_map(note).collect()
}

/// The mapping for files of no source, then one for each source of the config.
fn mappings(request: &Request) -> Vec<Mapping> {
    let utc = || jiff::tz::TimeZone::UTC;
    let nanoseconds = |time: Option<Timestamp>| time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    let asked = request.source_zone.as_ref().map(|zone| zone.rules.clone());
    let profiles = || -> Arc<[Arc<Profile>]> {
        match &request.profile {
            Some(profile) => request.profiles.only(profile).into(),
            None => request.profiles.all().into(),
        }
    };
    let general = Mapping {
        maps: request.maps.clone(),
        zone: asked.clone().unwrap_or_else(utc),
        zone_is_own: false,
        clock_start: nanoseconds(request.clock_start),
        role: None,
        profiles: profiles(),
        is_forced: request.profile.is_some(),
    };
    let of_source = request.logs.sources.iter().map(|source| {
        let own = source.source_zone.as_ref().map(|zone| zone.rules.clone());
        // what is typed wins over what is configured
        let typed = |name: &str| request.maps.iter().any(|map| map.canonical == name);
        let configured = source.maps.iter().filter(|map| !typed(&map.canonical));
        Mapping {
            maps: request.maps.iter().chain(configured).cloned().collect(),
            zone_is_own: own.is_some(),
            clock_start: nanoseconds(source.clock_start.or(request.clock_start)),
            zone: own.or(asked.clone()).unwrap_or_else(utc),
            profiles: match &source.profile {
                Some(profile) if request.profile.is_none() => request.profiles.only(profile).into(),
                _ => profiles(),
            },
            is_forced: request.profile.is_some() || source.profile.is_some(),
            role: source.role.map(|role| role.word().to_owned()),
        }
    });
    std::iter::once(general).chain(of_source).collect()
}
