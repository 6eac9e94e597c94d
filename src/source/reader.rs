//! Records in, batches of canonical rows out: each record by its dialect, in one pass and lazily.
//!
//! Only what the query reads is converted, and a derivation's inputs only in records that lack the value. JSON, CSV and
//! text come here alike, so that a value means the same in all.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::error::ArrowError;

use crate::record::excerpt::Excerpt;
use crate::record::{Column, timestamp};
use crate::source::builder::Builder;
use crate::source::carried::Carried;
use crate::source::counts::PublishedCounts;
use crate::source::dialect::{Dialect, Fate, holds_json};
use crate::source::layout::{Candidates, Layout};
use crate::source::plan::ReadPlan;
use crate::source::row::Row;
use crate::source::slots::Test;
use crate::source::value::RawValue;

/// Why a record is no event and no step of tokens.
pub const REQUEST: &str = "request";

/// A record whose values can be asked for by slot.
pub trait RawRecord {
    fn raw(&self, slot: usize) -> RawValue<'_>;
    /// The value where it stands; asked for only in records of a known layout.
    fn excerpt(&self, slot: usize) -> Option<Excerpt<'_>>;
    /// Records of one layout have the same slots filled; None when it is not known.
    fn layout(&self) -> Option<usize>;
    /// The slots that are filled; asked once for each layout.
    fn present(&self) -> &[u32];
    fn duplicate_keys(&self) -> u32;
}

/// Where the records of a file come from: what every row of it shares.
#[derive(Debug, Default)]
pub struct Provenance {
    pub file: String,
    /// Values of the folders' `key=value` parts that are canonical columns; they fill in where a record says nothing.
    pub fallbacks: Vec<(Column, String)>,
    /// By partition column of the table.
    pub partitions: Vec<Option<String>>,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
pub struct Whence<'a> {
    /// Byte of the file.
    pub offset: u64,
    /// What envelopes around it say.
    pub carried: Carried<'a>,
    /// The stream of the envelopes around it, as a hash of what names it.
    pub stream: u64,
    /// The dialect that it is known to be of, as a part of a record that was taken apart.
    pub part_of: Option<usize>,
    /// Whether all records before it have been read, so that it may become a row.
    pub in_turn: bool,
}

impl Whence<'static> {
    /// That of what stands in no record.
    pub const NOWHERE: Self = Whence { offset: 0, carried: Carried::NOTHING, stream: 0, part_of: None, in_turn: true };
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is a row now.
    Row { dialect: usize },
    /// It was counted as no request.
    Skipped { dialect: usize },
    /// Others are inside: those of an envelope, or of a batch of this dialect.
    Opened { dialect: usize },
    /// It would be a row, but others come first.
    Held,
}

/// How records of one layout are read.
struct Known {
    /// That the first of the ways makes rows of them, unless one of these values says otherwise; None where even the
    /// first way takes a closer look.
    usual: Option<Box<[Unless]>>,
    ways: Vec<Way>,
}

/// A value that takes a closer look if it is one of some texts.
struct Unless {
    slot: u32,
    /// None: any text.
    texts: Option<Texts>,
}

/// Some texts, with a bit for the length of each, so that most others are told apart without looking at them.
struct Texts {
    texts: Box<[String]>,
    lengths: u64,
}

impl Texts {
    fn new(texts: &[String]) -> Self {
        let bit = |text: &String| 1 << (text.len() % 64);
        Self { texts: texts.into(), lengths: texts.iter().map(bit).fold(0, |bits: u64, bit: u64| bits | bit) }
    }

    #[inline(always)]
    fn contain(&self, text: &[u8]) -> bool {
        self.lengths >> (text.len() % 64) & 1 == 1 && self.texts.iter().any(|known| known.as_bytes() == text)
    }
}

impl Unless {
    #[inline(always)]
    fn holds<R: RawRecord>(&self, record: &R) -> bool {
        match (record.raw(self.slot as usize), &self.texts) {
            (RawValue::Text { bytes, escaped: false }, Some(texts)) => texts.contain(bytes),
            (RawValue::Text { .. }, _) => true,
            (RawValue::Number(_) | RawValue::Bool(_), texts) => texts.is_some(),
            (RawValue::Missing | RawValue::Null | RawValue::Nested(_), _) => false,
        }
    }
}

/// A loop, since a closure would be a call.
#[inline(always)]
fn none_holds<R: RawRecord>(all: &[Unless], record: &R) -> bool {
    for unless in all {
        if unless.holds(record) {
            return false;
        }
    }
    true
}

/// One of the ways in which records of a layout may be read.
struct Way {
    dialect: usize,
    /// Whether the layout alone tells the dialect.
    is_certain: bool,
    fate: Option<Fate>,
    /// The tests of the dialect that the layout leaves open, by what it has.
    skips: Vec<(usize, Test)>,
    embedded: Vec<u32>,
    layout: Layout,
}

/// What is known of the layouts of one decoder.
#[derive(Default)]
pub struct Layouts(Vec<Option<Known>>);

/// Turns records into batches.
pub struct RecordReader {
    plan: Arc<ReadPlan>,
    provenance: Provenance,
    builders: Vec<Builder>,
    scratch: Vec<u8>,
    clock: timestamp::Clock,
    rows: usize,
    pub counts: PublishedCounts,
}

impl RecordReader {
    pub fn new(plan: Arc<ReadPlan>, provenance: Provenance, batch_size: usize, counts: PublishedCounts) -> Self {
        let builders = plan.kinds.iter().map(|kind| Builder::new(*kind, batch_size)).collect();
        Self { plan, provenance, builders, scratch: Vec::new(), clock: timestamp::Clock::default(), rows: 0, counts }
    }

    pub fn plan(&self) -> &Arc<ReadPlan> {
        &self.plan
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Reads one record. Always inlined, so that the shortcuts are built with the instructions of the code that found
    /// the record.
    #[inline(always)]
    pub fn push<R: RawRecord>(&mut self, record: &R, from: Whence<'_>, layouts: &mut Layouts) -> Pushed {
        let Some(known) = record.layout().and_then(|number| layouts.0.get(number)?.as_ref()) else {
            return self.push_new(record, from, layouts);
        };
        let layout = match (&known.usual, &known.ways[..]) {
            (Some(unless), [way, ..]) if none_holds(unless, record) => &way.layout,
            (_, ways) => match self.decide(ways, record) {
                Ok(layout) => layout,
                Err(pushed) => return pushed,
            },
        };
        if !from.in_turn {
            return Pushed::Held;
        }
        self.counts.records += 1;
        self.counts.duplicate_keys += u64::from(record.duplicate_keys());
        self.rows += 1;
        let mut counted = 0;
        let bare = from.carried.is_nothing() && self.provenance.fallbacks.is_empty();
        for (output, (shortcut, builder)) in layout.shortcuts.iter().zip(&mut self.builders).enumerate() {
            if !shortcut.take(record, bare, &self.clock, &mut self.counts, builder) {
                let mut row = Row {
                    record,
                    fields: &layout.fields,
                    dialect: &self.plan.dialects[layout.dialect],
                    carried: from.carried,
                    counts: &mut self.counts,
                    counted: &mut counted,
                    scratch: &mut self.scratch,
                    clock: &mut self.clock,
                };
                row.write(output, builder, &self.plan, &self.provenance, from.offset);
            }
        }
        Pushed::Row { dialect: layout.dialect }
    }

    /// Finds the way in which a record of a layout is read, by what its values say; what is no row is done with.
    #[inline(never)]
    fn decide<'w, R: RawRecord>(&mut self, ways: &'w [Way], record: &R) -> Result<&'w Layout, Pushed> {
        let plan = &self.plan;
        let holds = |way: &&Way| way.is_certain || plan.dialects[way.dialect].recognise.holds(record);
        // the last way holds for every record
        let Some(way) = ways.iter().find(holds).or(ways.last()) else { return Err(Pushed::Skipped { dialect: 0 }) };
        match way.fate.unwrap_or_else(|| way.fate_of(record, &plan.dialects[way.dialect])) {
            Fate::Row => Ok(&way.layout),
            fate => Err(self.put_aside(way.dialect, fate)),
        }
    }

    /// Reads the first record of its layout, or one of no known layout.
    #[inline(never)]
    fn push_new<R: RawRecord>(&mut self, record: &R, from: Whence<'_>, layouts: &mut Layouts) -> Pushed {
        let plan = Arc::clone(&self.plan);
        let (dialect, fate) = recognise(&plan, record, from.part_of);
        if fate == Fate::Row && !from.in_turn {
            return Pushed::Held;
        }
        if let Some(number) = record.layout() {
            layouts.learn(number, &plan, record, from.part_of);
        }
        if fate != Fate::Row {
            return self.put_aside(dialect, fate);
        }
        self.write(record, dialect, &plan.dialects[dialect].fields, from);
        Pushed::Row { dialect }
    }

    /// Counts what is no row.
    fn put_aside(&mut self, dialect: usize, fate: Fate) -> Pushed {
        match fate {
            Fate::Opened | Fate::Row => return Pushed::Opened { dialect },
            Fate::Other(what) => self.counts.skip(what),
            Fate::Skipped(reason) => self.counts.skip(&self.plan.dialects[dialect].skips[reason].0),
        }
        Pushed::Skipped { dialect }
    }

    fn write<R: RawRecord>(&mut self, record: &R, dialect: usize, fields: &[Candidates], from: Whence<'_>) {
        self.counts.records += 1;
        self.counts.duplicate_keys += u64::from(record.duplicate_keys());
        self.rows += 1;
        let mut row = Row {
            record,
            fields,
            dialect: &self.plan.dialects[dialect],
            carried: from.carried,
            counts: &mut self.counts,
            counted: &mut 0,
            scratch: &mut self.scratch,
            clock: &mut self.clock,
        };
        for (output, builder) in self.builders.iter_mut().enumerate() {
            row.write(output, builder, &self.plan, &self.provenance, from.offset);
        }
    }

    /// The rows so far as a batch; the reader starts over.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(self.plan.schema().clone(), arrays, &options)
    }
}

/// The dialect of a record, and what it is there.
pub fn recognise<R: RawRecord>(plan: &ReadPlan, record: &R, part_of: Option<usize>) -> (usize, Fate) {
    let last = plan.dialects.len() - 1;
    let dialect = part_of.unwrap_or_else(|| {
        let holds = |dialect: &usize| plan.dialects[*dialect].recognise.holds(record);
        (0..last).find(holds).unwrap_or(last)
    });
    (dialect, plan.dialects[dialect].fate(record, part_of.is_some()))
}

impl Way {
    /// What must not be for all records of the layout to be rows of this way; None where that is not so simple.
    fn unless(&self) -> Option<Box<[Unless]>> {
        let is_row = self.is_certain && self.fate.is_none_or(|fate| fate == Fate::Row);
        if !is_row {
            return None;
        }
        if self.fate.is_some() {
            return Some([].into());
        }
        let texts = self.embedded.iter().map(|&slot| Some(Unless { slot, texts: None }));
        let skips = self.skips.iter().map(|(_, test)| {
            let (slot, texts) = test.one_value()?;
            Some(Unless { slot, texts: Some(Texts::new(texts)) })
        });
        texts.chain(skips).collect()
    }

    /// What a record of the layout is.
    fn fate_of<R: RawRecord>(&self, record: &R, dialect: &Dialect) -> Fate {
        if self.embedded.iter().any(|&slot| holds_json(record.raw(slot as usize))) {
            return Fate::Opened;
        }
        match self.skips.iter().find(|(_, test)| test.holds(record)) {
            Some((reason, _)) => Fate::Skipped(*reason),
            None => dialect.cargo(),
        }
    }
}

impl Layouts {
    /// Settles how records of a layout are read, given its first.
    fn learn<R: RawRecord>(&mut self, number: usize, plan: &ReadPlan, record: &R, part_of: Option<usize>) {
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number] = Some(Known::new(plan, record, part_of));
    }
}

impl Known {
    fn new<R: RawRecord>(plan: &ReadPlan, record: &R, part_of: Option<usize>) -> Self {
        let present = record.present();
        let has = |slot: u32| present.contains(&slot);
        let way = |number: usize, is_certain: bool| {
            let dialect = &plan.dialects[number];
            let layout = Layout::of(number, dialect, present, &plan.outputs);
            let fate = dialect.fate_by_presence(has, part_of.is_some());
            let open = dialect.skips.iter().enumerate().filter(|(_, (_, test))| test.by_presence(has) != Some(false));
            let skips = open.map(|(reason, (_, test))| (reason, test.among(has))).collect();
            let texts = dialect.embedded.iter().flat_map(|lookup| lookup.slots.iter().copied());
            let embedded = match part_of {
                Some(_) => Vec::new(),
                // an object belongs to the layout: another record of it has no text there
                None => texts.filter(|&slot| has(slot) && !is_nested(record.raw(slot as usize))).collect(),
            };
            Way { dialect: number, is_certain, fate, skips, embedded, layout }
        };
        let mut ways = Vec::new();
        match part_of {
            Some(number) => ways.push(way(number, true)),
            None => {
                for (number, dialect) in plan.dialects.iter().enumerate() {
                    match dialect.recognise.by_presence(has) {
                        Some(false) => {}
                        None => ways.push(way(number, false)),
                        Some(true) => {
                            ways.push(way(number, true));
                            break;
                        }
                    }
                }
            }
        }
        let is_row = |way: &&Way| plan.dialects[way.dialect].cargo() == Fate::Row;
        Self { usual: ways.first().filter(is_row).and_then(Way::unless), ways }
    }
}

fn is_nested(value: RawValue<'_>) -> bool {
    matches!(value, RawValue::Nested(_))
}
