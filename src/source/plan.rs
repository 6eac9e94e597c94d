//! What a query reads from one source: settled once, shared by all its readers.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use regex::bytes::RegexSet;

use crate::profile::{Carries, Origin, Pattern, Rule};
use crate::record::alias::{
    Alias, ERROR_KEYS, LOGGER_KEYS, MESSAGE_KEYS, aliases, is_of_anything, measures_a_request, tells_a_request,
};
use crate::record::derive;
use crate::record::outcome::Clue;
use crate::record::{Column, Kind};
use crate::request::ExtraColumn;
use crate::source::dialect::{Cargo, Dialect, Recognition};
use crate::source::json::Wanted;
use crate::source::layout::{Candidates, PLAIN, Slot};
use crate::source::mapping::{Mapping, extra_candidates};
use crate::source::schema::{AT, LISTS, LogSchema, Meaning, OF_TOKENS, Rows, TABLE};
use crate::source::slots::{Lookup, Slots, Test};

/// What a query reads from one source.
#[derive(Debug)]
pub struct ReadPlan {
    pub wanted: Arc<Wanted>,
    /// The wanted paths as flat logs would name them, by slot.
    names: Vec<String>,
    /// In the order in which a record is compared with them; the last holds for every record.
    pub dialects: Vec<Dialect>,
    /// The dialects that lines of plain text are compared with.
    pub patterns: Vec<usize>,
    pattern_set: OnceLock<Option<RegexSet>>,
    pub outputs: Vec<Meaning>,
    pub kinds: Vec<Kind>,
    schema: SchemaRef,
    /// Which records are rows.
    pub rows: Rows,
    /// The dialect of lines of text that no pattern knows, where they are events.
    pub lines: Option<usize>,
}

/// The field of the first extra column.
pub(super) const EXTRAS: usize = Column::ALL.len();

/// The field that a clue to failure stands in, of so many fields: the last is that of the error keys.
pub(super) fn field_of_clue(clue: Clue, fields: usize) -> usize {
    match clue {
        Clue::Failed => Column::Failed.index(),
        Clue::Status => Column::Status.index(),
        Clue::ErrorCode => Column::ErrorCode.index(),
        Clue::HttpStatus => Column::HttpStatus.index(),
        Clue::Error => fields - 1,
        Clue::FinishReason => Column::FinishReason.index(),
    }
}

impl ReadPlan {
    /// `projection` are the columns of the table to read, in order.
    pub fn new(schema: &LogSchema, projection: &[usize], mapping: &Mapping) -> Result<Self, ArrowError> {
        let outputs: Vec<Meaning> = projection.iter().map(|&index| schema.meaning(index)).collect();
        let canonical = outputs.iter().filter_map(|output| match output {
            Meaning::Canonical(column) => Some(*column),
            _ => None,
        });
        let wanted = derive::with_inputs(canonical);
        let fields = EXTRAS + schema.extras.len() + 1;
        let mut slots = Slots::default();
        let measures = |column: &Column| measures_a_request(*column) || mapping.is_mapped(*column);
        slots.measures = slots_of(Column::ALL.iter().copied().filter(measures), mapping, &mut slots);
        let profiles = mapping.profiles.iter();
        let mut dialects: Vec<Dialect> = profiles
            .map(|profile| Dialect::of_profile(profile, mapping, &wanted, fields, schema.rows, &mut slots))
            .collect();
        if mapping.is_forced {
            for dialect in dialects.iter_mut().filter(|dialect| !matches!(dialect.carries, Cargo::Payload { .. })) {
                dialect.recognise = Recognition::any();
            }
        }
        dialects.extend(undescribed(mapping, schema, &wanted, fields, &mut slots));
        for dialect in &mut dialects {
            let profile = dialect.profile.clone();
            let has_aliases = profile.as_ref().is_some_and(|profile| profile.aliases);
            for column in wanted.iter().filter(|_| has_aliases) {
                // what the profile says of a column, even that it is nowhere, holds
                let is_told = profile.iter().any(|profile| profile.columns.iter().any(|(told, _)| told == column));
                if !is_told {
                    dialect.fields[column.index()] = candidates(mapping, *column, &mut slots);
                }
            }
            if has_aliases && dialect.fields[fields - 1].is_empty() {
                dialect.fields[fields - 1] = error_candidates(&mut slots);
            }
            for column in wanted.iter().filter(|column| mapping.is_mapped(**column)) {
                dialect.fields[column.index()] = candidates(mapping, *column, &mut slots);
            }
            for output in &outputs {
                if let Meaning::Extra(index) = output {
                    add_extra(dialect, EXTRAS + index, &schema.extras[*index], &mut slots);
                }
            }
            if schema.rows == Rows::Tokens && dialect.recounts() {
                let is_list = |(_, extra): &(usize, &ExtraColumn)| LISTS.contains(&extra.name.as_str());
                let lists = schema.extras.iter().enumerate().filter(is_list).map(|(index, _)| EXTRAS + index);
                dialect.skip_without_steps(&lists.collect::<Vec<_>>());
            }
        }
        let is_label = |column: &Column| *column == Column::Timestamp || matches!(column.kind(), Kind::Text | Kind::Id);
        let asked = outputs.iter().filter_map(|output| match output {
            Meaning::Canonical(column) => Some(*column).filter(is_label),
            _ => None,
        });
        let asked: Vec<Column> = asked.collect();
        for dialect in &mut dialects {
            let said = asked.iter().filter(|column| !dialect.fields[column.index()].is_empty());
            dialect.labels = said.copied().collect();
        }
        let names_a_part =
            |dialect: &Dialect| dialect.profile.as_ref().is_some_and(|profile| profile.pattern.is_some());
        let patterns = (0..dialects.len()).filter(|&number| names_a_part(&dialects[number])).collect();
        for part in dialects.iter().filter_map(|dialect| dialect.profile.as_ref()?.pattern.as_ref()) {
            for name in part.names() {
                slots.of(vec![name.clone()]);
            }
        }
        let paths = slots.into_paths();
        // events come before requests, the last
        let lines = schema.takes_lines.then(|| dialects.len() - 2);
        Ok(Self {
            lines,
            names: paths.iter().map(|path| path.join(".")).collect(),
            wanted: Arc::new(Wanted::new(paths)),
            dialects,
            patterns,
            pattern_set: OnceLock::new(),
            kinds: outputs.iter().map(|output| kind_of(schema, *output)).collect(),
            outputs,
            schema: Arc::new(schema.arrow.project(projection)?),
            rows: schema.rows,
        })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The slots of a CSV header's columns; a path is found under its dotted name.
    pub fn slots_of_header<'a>(&self, header: impl Iterator<Item = &'a str>) -> Vec<Option<u32>> {
        header.map(|column| self.slot_named(column)).collect()
    }

    /// The slot of the path that a flat record writes so.
    pub fn slot_named(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|known| known == name).map(|slot| slot as u32)
    }

    /// The name under which a flat record has the value of a slot.
    pub fn name_of(&self, slot: u32) -> &str {
        self.names.get(slot as usize).map_or("", String::as_str)
    }

    /// The first dialect whose pattern a line of text has.
    pub fn dialect_of_text(&self, line: &[u8]) -> Option<usize> {
        let set = self.pattern_set.get_or_init(|| {
            let pattern = |&number: &usize| self.dialects[number].profile.as_ref()?.pattern.as_ref();
            RegexSet::new(self.patterns.iter().filter_map(pattern).map(Pattern::text)).ok()
        });
        let first = set.as_ref()?.matches(line).iter().next()?;
        self.patterns.get(first).copied()
    }
}

/// Where a column beyond the canonical record stands: where the profile says, else under its own keys.
fn add_extra(dialect: &mut Dialect, field: usize, extra: &ExtraColumn, slots: &mut Slots) {
    if extra.name == TABLE.0 {
        let table = if dialect.is_of_events { "events" } else { "logs" };
        return dialect.add(field, &Rule::of(Origin::Constant(table.to_owned())), slots);
    }
    let profile = dialect.profile.clone();
    let told = profile.iter().flat_map(|profile| &profile.tokens).find(|(name, _)| *name == extra.name);
    match told {
        Some((_, rules)) => rules.iter().for_each(|rule| dialect.add(field, rule, slots)),
        None => dialect.fields[field] = Dialect::plain_candidates(extra_candidates(extra), None, slots),
    }
}

/// How records that no profile describes are read: as events where they only say something about a request, else by
/// the well-known names.
fn undescribed(
    mapping: &Mapping,
    schema: &LogSchema,
    wanted: &[Column],
    fields: usize,
    slots: &mut Slots,
) -> [Dialect; 3] {
    let keys = |keys: &[&str], slots: &mut Slots| Lookup::of(keys.iter().map(|key| slots.of(vec![(*key).to_owned()])));
    let ids = slots_of([Column::RequestId].into_iter(), mapping, slots);
    let telling = Column::ALL.iter().copied().filter(|&column| tells_a_request(column) || mapping.is_mapped(column));
    let evidence = slots_of(telling, mapping, slots);
    let without_id: Vec<u32> = evidence.iter().copied().filter(|slot| !ids.contains(slot)).collect();
    let of_anything = aliases(Column::TotalLatencyMs).into_iter().filter(is_of_anything);
    let of_anything: Vec<u32> = of_anything.map(|alias| slots.of(alias.path)).collect();
    let but_took = || without_id.iter().copied().filter(|slot| !of_anything.contains(slot));
    let places = slots_of(PLACES_OF_EVENTS.into_iter(), mapping, slots);
    let models = slots_of([Column::ModelName, Column::ModelVersion].into_iter(), mapping, slots);
    let happening = keys(&["event"], slots);
    // an event may tell how long it took, and where it happened
    let events = vec![
        Test::without(but_took().filter(|slot| !places.contains(slot)))
            .with(vec![Lookup::of(ids.clone()), happening.clone()]),
        Test::without(without_id.clone()).with(vec![Lookup::of(ids.clone()), keys(&MESSAGE_KEYS, slots)]),
        // that of a GPU or a batch, perhaps of the model that it loads
        Test::without(but_took().filter(|slot| !places.contains(slot) && !models.contains(slot)).chain(ids.clone()))
            .with(vec![Lookup::of(places.clone()), happening]),
    ];
    let steps = vec![Test::without([]).with(vec![Lookup::of(ids), keys(OF_TOKENS[0].2, slots)])];
    let dialect = |recognise, carries: &Carries| Dialect {
        profile: None,
        recognise: Recognition(recognise),
        skips: Vec::new(),
        embedded: Vec::new(),
        fields: vec![Candidates::new(); fields],
        readings: Vec::new(),
        labels: Vec::new(),
        zone: mapping.zone.clone(),
        zone_known: false,
        clock_start: mapping.clock_start,
        role: mapping.role.clone(),
        is_of_events: *carries == Carries::Event,
        carries: Cargo::new(carries, schema.rows, &mut Slots::default()),
    };
    let mut step = dialect(steps, &Carries::Token);
    let mut event = dialect(events, &Carries::Event);
    let mut request = dialect(vec![Test::without([])], &Carries::Request);
    for &column in wanted {
        let found = candidates(mapping, column, slots);
        for dialect in [&mut step, &mut event, &mut request] {
            dialect.fields[column.index()] = found.clone();
        }
    }
    if wanted.contains(&Column::Timestamp) {
        let at = AT.map(|key| Slot { slot: slots.of(vec![key.to_owned()]), unit: None, reading: PLAIN });
        step.fields[Column::Timestamp.index()].extend(at);
        event.fields[Column::Timestamp.index()].extend(at);
    }
    request.fields[fields - 1] = error_candidates(slots);
    // what the user asks for by its path, and what only failures have
    let extras = schema.extras.iter().filter(|_| schema.rows == Rows::Requests);
    let asked = extras.flat_map(extra_candidates).map(|alias| alias.path);
    let errors = ERROR_KEYS.iter().map(|key| vec![(*key).to_owned()]);
    let others: Vec<u32> = asked.chain(errors).map(|path| slots.of(path)).collect();
    let times = slots_of([Column::Timestamp].into_iter(), mapping, slots);
    let of_requests = evidence.iter().copied().filter(|slot| !of_anything.contains(slot));
    let is_line = Test::without(of_requests).with(vec![keys(&LOGGER_KEYS, slots)]);
    request.skips.push(("log line".to_owned(), is_line));
    request.skips.push(("no request field".to_owned(), Test::without(evidence.into_iter().chain(times).chain(others))));
    [step, event, request]
}

/// Where something happened that is no request.
const PLACES_OF_EVENTS: [Column; 6] =
    [Column::GpuId, Column::GpuPool, Column::BatchId, Column::BatchSize, Column::TraceId, Column::SessionId];

/// The slots of the well-known keys of columns.
fn slots_of(columns: impl Iterator<Item = Column>, mapping: &Mapping, slots: &mut Slots) -> Vec<u32> {
    columns.flat_map(|column| candidates(mapping, column, slots)).map(|candidate| candidate.slot).collect()
}

fn error_candidates(slots: &mut Slots) -> Candidates {
    let error = |key: &&str| Slot { slot: slots.of(vec![(**key).to_owned()]), unit: None, reading: PLAIN };
    ERROR_KEYS.iter().map(error).collect()
}

fn candidates(mapping: &Mapping, column: Column, slots: &mut Slots) -> Candidates {
    let (aliases, _): (Vec<Alias>, bool) = mapping.candidates(column);
    Dialect::plain_candidates(aliases, Mapping::default_unit(column.kind()), slots)
}

fn kind_of(schema: &LogSchema, meaning: Meaning) -> Kind {
    match meaning {
        Meaning::Canonical(column) => column.kind(),
        Meaning::Extra(index) => schema.extras[index].kind,
        Meaning::Partition(_) => Kind::Text,
    }
}
