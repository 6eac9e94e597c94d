//! What is meant: the typed command line, the environment and the config, resolved to values that need no explaining.
//!
//! Every mistake that a user can make before a log is read is found here; nothing below knows how a value was typed.

mod buckets;
mod column;
mod dimension;
mod generation;
mod identification;
mod latency;
mod limits;
mod logs;
mod mistake;
mod money;
mod note;
mod output;
mod parameter;
mod path;
mod pivot;
mod place;
mod pricing;
mod replay;
mod shell;
mod time;
mod trace;
mod unit;
mod word;
mod zone;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use jiff::Timestamp;

pub use buckets::{Buckets, are_edges, parse_edges};
pub use column::{ExtraColumn, Map};
pub use dimension::{Dimension, DimensionKey, Period, WeekStart};
pub use generation::{Generation, LogFormat};
pub use identification::Identification;
pub use latency::{ALL_METRICS, Latency, Method, Metric, Percentile};
pub use limits::{Limits, THREADS, parse_memory};
pub use logs::{LogPattern, LogSelection, Matching, Role, Source};
pub use mistake::Mistake;
pub use money::{MoneySettings, NotBilled, Quota, SharedCost, Sharing, month};
pub use note::Note;
pub use output::{Color, Format, Order, OutputChoice, Sort};
pub use parameter::Parameter;
pub use path::KeyPath;
pub use pivot::Pivot;
pub use place::Place;
pub use pricing::{BookQuestion, Pricing};
pub use replay::Replay;
pub use shell::Shell;
pub use time::{Bounds, Clock, TimeRange, milliseconds};
pub use trace::Trace;
pub use word::Word;
pub use zone::Zone;

use crate::cli::{
    Cli, Command, GenerateArgs, InputFlags, LatencyArgs, OutputFlags, ProfilesAction, ProfilesArgs, QueriesArgs,
    ReportFlags, TimeFlags,
};
use crate::config::Config;
use crate::profile::{Catalog, Profile};

/// What one run of the program is to do.
#[derive(Debug)]
pub enum Task {
    /// Read logs and answer.
    Report(Box<Request>),
    Queries(QueryListing),
    /// All profiles, or the text of one.
    Profiles {
        catalog: Catalog,
        shown: Option<Arc<Profile>>,
    },
    /// A profile for the records of the logs of a request.
    ProposeProfile(Box<Request>),
    Prices(Pricing),
    Generate(Generation),
    /// What ids say of themselves.
    Identify(Identification),
    Completions(Shell),
    /// The manual page of a command, or of the program.
    Man(Option<String>),
}

/// A question about logs and everything that its answer depends on.
#[derive(Debug, Clone)]
pub struct Request {
    pub ask: Ask,
    pub logs: LogSelection,
    pub time: TimeRange,
    /// The zone of the report: days begin in it, times are shown in it.
    pub zone: Zone,
    /// The zone of logged times that name none, unless their source has its own.
    pub source_zone: Option<Zone>,
    /// When clocks without a date stood at zero, unless their source says so itself.
    pub clock_start: Option<Timestamp>,
    pub week_start: WeekStart,
    /// The moment that spans such as `7d` count back from.
    pub now: Timestamp,
    /// SQL, not parsed yet.
    pub predicate: Option<String>,
    /// From the command line; they come before those of a source.
    pub maps: Vec<Map>,
    pub columns: Vec<ExtraColumn>,
    /// All profiles that there are.
    pub profiles: Catalog,
    /// Whether the question is about requests put together from their records, rather than about records.
    pub merges: bool,
    /// Whether clocks of roles are set right before their records are put together.
    pub fixes_skew: bool,
    /// What records of one request have in common.
    pub matching: Matching,
    /// That of all records of all logs.
    pub profile: Option<Arc<Profile>>,
    pub buckets: Buckets,
    /// What the error codes of the logs mean.
    pub errors: BTreeMap<String, ErrorMeaning>,
    pub money: MoneySettings,
    /// Exit with 4 where a record was rejected or a file damaged.
    pub strict: bool,
    /// Where rejected records go.
    pub rejects: Option<PathBuf>,
    /// Folders with the user's own queries.
    pub queries: Vec<PathBuf>,
    pub limits: Limits,
    pub output: OutputChoice,
    /// At most so many rows, at least 1.
    pub top: Option<u64>,
    pub sort: Option<Sort>,
    /// The answer as a heat table.
    pub pivot: Option<Pivot>,
    /// How the request was understood, where that is not obvious.
    pub notes: Vec<Note>,
}

/// The question itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Latency(Latency),
    /// A report of the program's own.
    Report {
        name: String,
        parameters: Vec<Parameter>,
    },
    Inspect {
        /// Expected fields, types and units.
        expect: Option<PathBuf>,
    },
    Sql {
        query: String,
    },
    Run {
        name: String,
        parameters: Vec<Parameter>,
    },
    /// The rules of a policy.
    Check {
        policy: PathBuf,
        prices: Option<PathBuf>,
    },
    /// Everything about some requests.
    Trace(Trace),
    /// The reports of a month.
    Pack {
        prices: Option<PathBuf>,
    },
}

impl Ask {
    /// Whether the question itself says what to group by.
    fn groups(&self) -> bool {
        match self {
            Ask::Latency(latency) => !latency.by.is_empty(),
            Ask::Report { parameters, .. } | Ask::Run { parameters, .. } => {
                parameters.iter().any(|parameter| parameter.name == "by")
            }
            Ask::Inspect { .. } | Ask::Sql { .. } | Ask::Check { .. } | Ask::Trace(_) | Ask::Pack { .. } => false,
        }
    }
}

/// What an error code of the logs stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMeaning {
    pub name: Option<String>,
    pub stage: Option<String>,
}

/// Which queries to show, and where the user's own are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryListing {
    /// None: a list of all.
    pub name: Option<String>,
    pub folders: Vec<PathBuf>,
}

impl Task {
    /// What `cli` means in this place, given the names of the canonical columns.
    pub fn resolve(cli: Cli, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let report = |ask, flags| {
            Request::resolve(ask, flags, place, canonical_columns).map(|request| Task::Report(Box::new(request)))
        };
        match cli.command {
            Command::Latency(typed) => report(latency(&typed)?, typed.report),
            Command::Report(typed) => {
                let parameters = typed.parameters.into_iter().map(|(name, value)| Parameter { name, value }).collect();
                report(Ask::Report { name: typed.name, parameters }, typed.report)
            }
            Command::Inspect(typed) => {
                let expect = typed.expect;
                report(Ask::Inspect { expect }, typed.report)
            }
            Command::Sql(typed) => {
                let query = not_blank(typed.query, Mistake::EmptyQuery)?;
                report(Ask::Sql { query }, typed.report)
            }
            Command::Check(typed) => {
                let (policy, prices) = (typed.policy, typed.prices);
                report(Ask::Check { policy, prices }, typed.report)
            }
            Command::Trace(mut typed) => {
                let trace = Trace::resolve(&mut typed, place)?;
                report(Ask::Trace(trace), typed.report)
            }
            Command::Pack(typed) => {
                let prices = typed.prices;
                report(Ask::Pack { prices }, typed.report)
            }
            Command::Run(typed) => {
                let parameters = Parameter::parse_all(&typed.params)?;
                let name = typed.name;
                report(Ask::Run { name, parameters }, typed.report)
            }
            Command::Queries(typed) => listing(typed, place, canonical_columns),
            Command::Profiles(typed) => profiles(typed, place, canonical_columns),
            Command::Prices(typed) => Ok(Task::Prices(Pricing::resolve(typed.action, place, canonical_columns)?)),
            Command::Id(typed) => Ok(Task::Identify(Identification::resolve(typed, place, canonical_columns)?)),
            Command::Generate(typed) => generation(typed, place).map(Task::Generate),
            Command::Completions(typed) => Ok(Task::Completions(typed.shell)),
            Command::Man(typed) => Ok(Task::Man(typed.command)),
        }
    }
}

impl Request {
    fn resolve(ask: Ask, flags: ReportFlags, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let ReportFlags { input, time, output, limits } = flags;
        let config = Config::find(input.config.as_deref(), place, canonical_columns)?;
        let mut notes = Vec::new();
        let clock = clock(&time, &config, place, &mut notes)?;
        let threads = limits.threads.map(usize::from).or(config.threads);
        let memory = limits.memory.as_deref().map(parse_memory).transpose()?;
        let profiles = Catalog::with(&config.profiles);
        let may_merge = input.requests || matches!(ask, Ask::Sql { .. } | Ask::Run { .. });
        if matches!(ask, Ask::Pack { .. }) && !matches!(output.format, Format::Table | Format::Markdown) {
            return Err(Mistake::PackIsMarkdown);
        }
        if output.format.is_of_traces() && !matches!(ask, Ask::Trace(_)) {
            return Err(Mistake::OnlyOfATrace { format: output.format.word() });
        }
        if matches!(ask, Ask::Pack { .. }) && output.explode.is_some() {
            return Err(Mistake::PackInOne);
        }
        if output.pivot.is_some()
            && matches!(ask, Ask::Sql { .. } | Ask::Inspect { .. } | Ask::Check { .. } | Ask::Pack { .. })
        {
            return Err(Mistake::PivotOfNoReport);
        }
        if output.pivot.is_some() && ask.groups() {
            return Err(Mistake::PivotAndBy);
        }
        let of_requests = [(input.fix_skew, "--fix-skew"), (input.matching == Matching::AsOf, "--match asof")];
        if let Some((_, flag)) = of_requests.into_iter().find(|(given, _)| *given && !may_merge) {
            return Err(Mistake::NotOfRequests { flag });
        }
        Ok(Request {
            ask,
            logs: LogSelection::find(&input.logs, place, &config, &mut notes)?,
            time: time_range(&time, &clock, &mut notes)?,
            now: clock.now,
            zone: clock.zone.clone(),
            source_zone: zone(time.source_tz.as_deref())?.or(config.source_zone.clone()),
            clock_start: time
                .clock_start
                .as_deref()
                .map(|text| clock.read("--clock-start", text, &mut notes))
                .transpose()?,
            week_start: time.week_start.or(config.week_start).unwrap_or_default(),
            maps: Map::parse_all(&input.maps, canonical_columns)?,
            columns: ExtraColumn::parse_all(&input.columns, canonical_columns)?,
            merges: input.requests,
            fixes_skew: input.fix_skew,
            matching: input.matching,
            profile: input.profile.as_deref().map(|named| profiles.named(named, &place.folder)).transpose()?,
            profiles,
            buckets: buckets(&input, &config)?,
            queries: query_folders(input.queries, &config),
            errors: config.errors,
            money: config.money,
            predicate: input.predicate.map(|sql| not_blank(sql, Mistake::EmptyPredicate)).transpose()?,
            strict: input.strict,
            rejects: input.rejects,
            limits: Limits::new(memory.or(config.memory), threads),
            top: output.top,
            sort: output.sort.as_deref().map(Sort::parse).transpose()?,
            pivot: output.pivot.as_deref().map(Pivot::parse).transpose()?,
            output: output_choice(output),
            notes,
        })
    }
}

impl Request {
    /// Whether records are left out by time or predicate.
    pub fn narrows(&self) -> bool {
        self.time.since.is_some() || self.time.until.is_some() || self.predicate.is_some()
    }

    /// Reads times in the report's zone.
    pub fn clock(&self) -> Clock {
        Clock { now: self.now, zone: self.zone.clone() }
    }
}

fn latency(typed: &LatencyArgs) -> Result<Ask, Mistake> {
    Ok(Ask::Latency(Latency {
        by: Dimension::parse_all(&typed.group.by)?,
        metrics: Metric::parse_all(&typed.metrics)?,
        stages: typed.stages,
        percentiles: Percentile::parse_all(&typed.percentiles)?,
        method: typed.method,
        min_count: typed.min_count,
        include_failed: typed.include_failed,
    }))
}

fn profiles(typed: ProfilesArgs, place: &Place, canonical_columns: &[&str]) -> Result<Task, Mistake> {
    if let Some(ProfilesAction::Init { log }) = typed.action {
        let flags = InspectFlags::parse_from([OsString::from("inspect"), OsString::from("--"), log.into()]).report;
        let request = Request::resolve(Ask::Inspect { expect: None }, flags, place, canonical_columns)?;
        return Ok(Task::ProposeProfile(Box::new(request)));
    }
    let config = Config::find(typed.config.as_deref(), place, canonical_columns)?;
    let catalog = Catalog::with(&config.profiles);
    let shown = typed.name.map(|name| catalog.named(&name, &place.folder)).transpose()?;
    Ok(Task::Profiles { catalog, shown })
}

/// The flags of a command that looks into logs, as if they had been typed.
#[derive(Debug, clap::Parser)]
struct InspectFlags {
    #[command(flatten)]
    report: ReportFlags,
}

fn listing(typed: QueriesArgs, place: &Place, canonical_columns: &[&str]) -> Result<Task, Mistake> {
    let config = Config::find(typed.config.as_deref(), place, canonical_columns)?;
    Ok(Task::Queries(QueryListing { name: typed.name, folders: query_folders(typed.queries, &config) }))
}

fn generation(typed: GenerateArgs, place: &Place) -> Result<Generation, Mistake> {
    let clock = Clock { now: place.now, zone: Zone::utc() };
    Ok(Generation {
        rows: typed.rows,
        seed: typed.seed,
        format: typed.format,
        folder: typed.output,
        start: clock.read("--start", &typed.start, &mut Vec::new())?,
        days: typed.days,
        force: typed.force,
    })
}

/// The report's zone, and the moment that spans count back from in it.
fn clock(time: &TimeFlags, config: &Config, place: &Place, notes: &mut Vec<Note>) -> Result<Clock, Mistake> {
    let zone = zone(time.tz.as_deref())?.or(config.zone.clone());
    let real = Clock { now: place.now, zone: zone.unwrap_or_else(Zone::utc) };
    match &time.now {
        Some(text) => Ok(Clock { now: real.read("--now", text, notes)?, ..real }),
        None => Ok(real),
    }
}

fn time_range(time: &TimeFlags, clock: &Clock, notes: &mut Vec<Note>) -> Result<TimeRange, Mistake> {
    let bounds = Bounds { since: time.since.as_deref(), until: time.until.as_deref(), month: time.month.as_deref() };
    TimeRange::resolve(bounds, clock, notes)
}

fn zone(typed: Option<&str>) -> Result<Option<Zone>, Mistake> {
    typed.map(Zone::parse).transpose()
}

fn buckets(input: &InputFlags, config: &Config) -> Result<Buckets, Mistake> {
    let mut buckets = config.buckets.clone();
    if let Some(text) = &input.input_buckets {
        buckets.input = parse_edges("--input-buckets", text)?;
    }
    if let Some(text) = &input.output_buckets {
        buckets.output = parse_edges("--output-buckets", text)?;
    }
    Ok(buckets)
}

/// Those of the command line first, so that a name found there wins.
fn query_folders(typed: Vec<PathBuf>, config: &Config) -> Vec<PathBuf> {
    typed.into_iter().chain(config.queries.clone()).collect()
}

fn output_choice(typed: OutputFlags) -> OutputChoice {
    OutputChoice {
        format: typed.format,
        file: typed.output,
        explode: typed.explode,
        color: typed.color,
        quiet: typed.quiet,
        show_sql: typed.show_sql,
    }
}

fn not_blank(text: String, mistake: Mistake) -> Result<String, Mistake> {
    if text.trim().is_empty() { Err(mistake) } else { Ok(text) }
}

#[cfg(test)]
mod tests;
