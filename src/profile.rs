//! Profiles: what the records of one producer look like, as data.
//!
//! A profile is a TOML file (`profiles/NAME.toml`). It says how a record of its producer is recognised, which of those
//! records are requests, and where each canonical column stands, in which unit. Some profiles describe envelopes: records
//! that only carry what another program wrote. What a table of columns cannot say (arrays that are columns, spans inside
//! batches) is a named [`Restructure`] step.
//!
//! Nothing here reads a log: [`crate::source`] compiles profiles against the columns that a query asks for.

mod catalog;
mod condition;
mod file;
mod path;
mod pattern;
mod rule;

use jiff::tz::TimeZone;

pub use catalog::Catalog;
pub use condition::Condition;
pub use path::{Step, ValuePath};
pub use pattern::Pattern;
pub use rule::{Clock, Origin, Part, Rule, UnitOf};

use crate::record::Column;
use crate::request::{Mistake, Role, Word};

/// How the records of one producer are told and read.
#[derive(Clone, Debug)]
pub struct Profile {
    /// As a user types it, that of its file.
    pub name: String,
    /// As people write the producer's name.
    pub title: String,
    pub role: Option<Role>,
    /// The zone of times that name none, where the producer is known to write all in one.
    pub zone: Option<TimeZone>,
    /// One of these must hold.
    pub recognise: Vec<Condition>,
    /// Lines of plain text that are records: the named parts are their keys.
    pub pattern: Option<Pattern>,
    /// Which of the records are no requests; the first that holds decides.
    pub skips: Vec<Skip>,
    pub columns: Vec<(Column, Vec<Rule>)>,
    /// The same for the columns that only steps of tokens have, by their names.
    pub tokens: Vec<(String, Vec<Rule>)>,
    /// Columns that are not derived from others, which are too coarse for it.
    pub not_derived: Vec<Column>,
    /// Whether columns without a rule are read by their well-known names.
    pub aliases: bool,
    /// Those of a lower order are compared with a record first.
    pub order: i64,
    /// Values that are there only where a request failed.
    pub errors: Vec<ValuePath>,
    pub carries: Carries,
    /// Texts that hold JSON, which is read as if it stood there itself.
    pub json: Vec<ValuePath>,
    /// The objects inside a record that are the records, each as the keys that lead to it; of a list every item.
    pub records: Vec<Vec<String>>,
    pub restructure: Option<Restructure>,
    pub ids: IdRule,
    /// The file itself.
    pub text: String,
}

/// What a record of a profile is.
#[derive(Clone, Debug, PartialEq)]
pub enum Carries {
    /// A request, unless it is skipped.
    Request,
    /// Something that happened to a request.
    Event,
    /// A step in which a token was made.
    Token,
    /// A record, or a line, of another program.
    Payload(Envelope),
}

/// How an envelope holds what it carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    /// The first of these values that is there: a text, or an object.
    pub payload: Vec<ValuePath>,
    /// A long line comes in pieces, those of one line with equal values here.
    pub by: Vec<ValuePath>,
    /// The value that marks a piece that another follows.
    pub partial: Option<(ValuePath, Vec<String>)>,
    /// A piece without a newline at its end is followed by another.
    pub until_newline: bool,
    /// The line says something itself, before what it carries.
    pub speaks: bool,
}

/// Records that are no requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    /// As the accounting says it: `tool span`.
    pub reason: String,
    pub when: Condition,
}

/// A step that turns a record into the records it holds, where columns and paths cannot say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restructure {
    /// Parallel arrays to a row each.
    Columns,
    /// Batches of OpenTelemetry spans to one object a span.
    Spans,
    /// Events that share an id to one object an id.
    Events,
    /// Observations of a trace, without those that only wrap another.
    Observations,
    /// Chunks of streamed answers to one object an answer, which is recognised anew.
    Streams,
}

impl Word for Restructure {
    const KIND: &'static str = "restructuring step";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("columns", Restructure::Columns),
        ("spans", Restructure::Spans),
        ("events", Restructure::Events),
        ("observations", Restructure::Observations),
        ("streams", Restructure::Streams),
    ];
}

impl Restructure {
    /// Whether what becomes of a record depends on others of its file.
    pub fn spans_records(self) -> bool {
        !matches!(self, Restructure::Columns)
    }
}

/// What producers put around the id that a request has elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdRule {
    /// Taken off the front.
    pub prefixes: Vec<String>,
    /// Everything from here on is taken off.
    pub cuts: Vec<String>,
}

impl IdRule {
    /// The id as other producers have it.
    pub fn bare<'t>(&self, id: &'t str) -> &'t str {
        let id = self.prefixes.iter().find_map(|prefix| id.strip_prefix(prefix.as_str())).unwrap_or(id);
        self.cuts.iter().find_map(|cut| id.find(cut.as_str())).map_or(id, |end| &id[..end])
    }
}

/// Profiles of one text are one profile.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Profile {
    /// Reads a profile from the text of its file; `path` is what mistakes in it are reported under.
    ///
    /// # Errors
    /// A [`Mistake`] that names the line.
    pub fn parse(name: &str, path: &str, text: &str) -> Result<Self, Mistake> {
        file::profile(name, path, text, Pattern::parse)
    }

    /// Reads a profile that the program brings.
    ///
    /// # Errors
    /// The same, but for patterns: a test compiles those.
    fn embedded(name: &str, path: &str, text: &str) -> Result<Self, Mistake> {
        file::profile(name, path, text, |text| Ok(Pattern::trusted(text)))
    }

    /// Whether a column is read from this key of a record, or from what is inside its value.
    pub fn reads(&self, key: &str) -> bool {
        let mut rules = self.columns.iter().flat_map(|(_, rules)| rules);
        let leads_there = |path: &ValuePath| path.keys.first().is_some_and(|first| first == key);
        rules.any(|rule| matches!(&rule.origin, Origin::Paths(paths) if paths.iter().any(leads_there)))
    }

    /// Whether the producer writes envelopes around what others wrote.
    pub fn is_envelope(&self) -> bool {
        matches!(self.carries, Carries::Payload(_))
    }

    /// Whether the lines that an envelope carries end with their newlines.
    pub fn ends_at_newline(&self) -> bool {
        matches!(&self.carries, Carries::Payload(envelope) if envelope.until_newline)
    }

    /// Whether every record becomes other records before its columns are read.
    pub fn rewrites(&self) -> bool {
        self.restructure.is_some() || !self.records.is_empty()
    }
}
