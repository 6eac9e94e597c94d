//! What stands inside records: the lines that envelopes carry, and the parts of records that are taken apart.
//!
//! They are collected as lines of their own, with where they come from beside them, and then decoded like any other
//! text, by a decoder that learns their shapes. What is inside those is collected one level further down.

pub mod deferred;
mod join;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::profile::Restructure;
use crate::source::carried::Labels;
use crate::source::dialect::{Cargo, Dialect};
use crate::source::json::{LineDecoder, ROOM, Writing, one_line, quoted_object, unescape, write_line};
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, RawRecord, Whence};
use crate::source::reading::Found;
use crate::source::restructure::{Opener, Parts};
use crate::source::row;
use crate::source::sink::{Desk, Level, RecordSink};
use crate::source::value::RawValue;
use deferred::{Course, Deferred, Left, Standing, What};
use join::{Ending, Joins, Piece};

/// Envelopes are opened this deep.
const DEEPEST: usize = 3;

/// Bytes of lines that are decoded at once: enough to pay for starting, and still in the processor's own caches.
const FULL: usize = 48 << 10;

/// Texts that are decoded in the other way, where most lines had to go through the general parser when they were read
/// quoted. Then that is tried again: logs change.
const UNQUOTED: u32 = 64;

/// Lines found inside records, until they are decoded.
#[derive(Default)]
pub struct Nest {
    /// How many envelopes stand around its lines.
    depth: usize,
    lines: Lines,
    kind: Kind,
    /// Texts to come before lines are read quoted again.
    unquoted: u32,
    /// Lines that have come in part.
    joins: Joins,
    course: Course,
    /// Whether an envelope was opened whose lines may come in pieces.
    takes_pieces: bool,
    plan: Option<Arc<ReadPlan>>,
    /// The stream of the line in hand.
    stream: Vec<u8>,
    /// What can be settled only with the other pieces of the log.
    deferred: Vec<Deferred>,
    decoders: Vec<(Writing, LineDecoder)>,
    layouts: Vec<(Kind, Layouts)>,
    openers: Vec<(usize, Opener)>,
    inner: Option<Box<Nest>>,
}

/// What the lines that wait are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// What envelopes carry.
    #[default]
    Carried,
    /// The same, each an object with its quotes still escaped.
    Quoted,
    /// Parts of records that were taken apart: all are known to be of that dialect.
    Parts(usize),
}

impl Kind {
    /// That of what records of a dialect are taken apart to.
    fn of_parts(dialect: usize, described: &Dialect) -> Self {
        match described.profile.as_ref().and_then(|profile| profile.restructure) {
            // an answer is put together from its chunks, and then read as if it had come whole
            Some(Restructure::Streams) => Kind::Carried,
            _ => Kind::Parts(dialect),
        }
    }

    fn part_of(self) -> Option<usize> {
        match self {
            Kind::Parts(dialect) => Some(dialect),
            Kind::Carried | Kind::Quoted => None,
        }
    }

    fn writing(self) -> Writing {
        if self == Kind::Quoted { Writing::Quoted } else { Writing::Plain }
    }
}

/// Lines with their origins.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    origins: Vec<Origin>,
    labels: Labels,
}

/// Where a line comes from.
struct Origin {
    /// Its first byte among the lines.
    start: usize,
    /// Byte of the file where the record that held it starts.
    offset: u64,
    labels: Range<usize>,
    /// Of the envelopes around it.
    stream: u64,
}

impl Lines {
    fn clear(&mut self) {
        self.text.clear();
        self.origins.clear();
        self.labels.clear();
    }

    /// Adds a line, which `write` writes without a newline at its end.
    fn push(&mut self, offset: u64, labels: Range<usize>, stream: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        self.text.push(b'\n');
        self.origins.push(Origin { start, offset, labels, stream });
    }
}

/// The level of lines that were found inside records.
struct Inside<'a> {
    lines: &'a Lines,
    kind: Kind,
    /// The origin of the last line.
    at: usize,
}

impl<'a> Level<'a> for Inside<'a> {
    fn whence(&mut self, offset: usize) -> Whence<'a> {
        let origins = &self.lines.origins;
        while origins.get(self.at + 1).is_some_and(|next| next.start <= offset) {
            self.at += 1;
        }
        let Some(Origin { offset, labels, stream, .. }) = origins.get(self.at) else { return Whence::NOWHERE };
        let carried = self.lines.labels.range(labels.clone());
        Whence { offset: *offset, carried, stream: *stream, part_of: self.kind.part_of(), in_turn: true }
    }
}

impl Nest {
    /// For records that come so.
    pub fn of_course(course: Course) -> Self {
        Self { course, ..Self::default() }
    }

    /// Whether lines were met, on any level, that may come in pieces.
    pub fn takes_pieces(&self) -> bool {
        self.takes_pieces || self.inner.as_ref().is_some_and(|inner| inner.takes_pieces())
    }

    /// Whether its records are those of a piece of a log only.
    pub fn is_part(&self) -> bool {
        self.course.is_part()
    }

    /// Whether nothing waits to be decoded.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.lines.text.is_empty()
    }

    /// Takes what is inside a record of `dialect`; `text` is asked for where that is taken apart.
    #[inline(never)]
    pub fn open<'t, R: RawRecord>(
        &mut self,
        dialect: usize,
        record: &R,
        text: impl Fn() -> Cow<'t, [u8]>,
        from: Whence<'_>,
        desk: &mut Desk<'_>,
    ) {
        // not counted as one more use of it: all threads would wait for the count
        let plan = self.plan.take().unwrap_or_else(|| desk.reader.plan().clone());
        self.open_by(&plan, dialect, record, text, from, desk);
        self.plan = Some(plan);
    }

    fn open_by<'t, R: RawRecord>(
        &mut self,
        plan: &ReadPlan,
        dialect: usize,
        record: &R,
        text: impl Fn() -> Cow<'t, [u8]>,
        from: Whence<'_>,
        desk: &mut Desk<'_>,
    ) {
        let described = &plan.dialects[dialect];
        let (payload, by, partial) = match &described.carries {
            // what becomes other records is taken apart first: its parts have the payloads
            Cargo::Payload { payload, by, partial } if from.part_of.is_some() || !described.rewrites() => {
                (payload, by, partial)
            }
            _ => return self.take_apart(dialect, described, &text(), from, desk),
        };
        if self.depth >= DEEPEST {
            return desk.reader.counts.skip("envelopes too deep");
        }
        let found = payload.iter().map(|lookup| lookup.find(record)).find(|value| !is_nothing(*value));
        let until_newline = matches!(&described.profile, Some(profile) if profile.ends_at_newline());
        self.takes_pieces |= until_newline || partial.is_some();
        let mark = partial.as_ref().map(|(lookup, marks)| {
            let says =
                |value| matches!(value, RawValue::Text { bytes, .. } if marks.iter().any(|mark| is_mark(bytes, mark)));
            if says(lookup.find(record)) { Ending::Partial } else { Ending::Whole }
        });
        // the usual line is a whole object, which need not be written anew
        let quoted = match found {
            Some(RawValue::Text { bytes, escaped: true }) if self.unquoted == 0 && self.joins.is_empty() => {
                let is_whole = mark.map_or(!until_newline || bytes.ends_with(b"n"), |mark| mark == Ending::Whole);
                quoted_object(bytes).filter(|_| is_whole)
            }
            _ => None,
        };
        self.prepare(if quoted.is_some() { Kind::Quoted } else { Kind::Carried }, desk);
        let first = self.lines.labels.len();
        add_labels(described, record, &mut self.lines.labels);
        self.lines.labels.extend(from.carried);
        let labels = first..self.lines.labels.len();
        // two kinds of envelopes have no stream in common, nor have those of different streams around them
        self.stream.clear();
        self.stream.extend((dialect as u32).to_le_bytes());
        self.stream.extend(from.stream.to_le_bytes());
        for lookup in by {
            self.stream.extend(text_of(lookup.find(record)));
            self.stream.push(0);
        }
        let is_known = quoted.map(|object| self.is_known(object.first().copied(), Ending::Whole, from.offset));
        if let (Some(object), Some(true)) = (quoted, is_known) {
            let stream = join::hash(&self.stream);
            self.lines.push(from.offset, labels, stream, |text| text.extend_from_slice(object));
            return self.flush_if_full(desk);
        }
        let bytes;
        let (text, escaped) = match found {
            None => return desk.reader.counts.skip("empty envelope"),
            Some(RawValue::Nested(json)) if json.first() == Some(&b'{') => {
                self.lines.push(from.offset, labels, join::hash(&self.stream), |text| write_line(json, text));
                return self.flush_if_full(desk);
            }
            Some(RawValue::Nested(json)) => match bytes_of(json) {
                Some(list) => {
                    bytes = list;
                    (&bytes[..], false)
                }
                None => return desk.reader.counts.skip("unreadable envelope"),
            },
            Some(RawValue::Text { bytes, escaped }) => (bytes, escaped),
            Some(RawValue::Number(text)) => (text, false),
            Some(_) => return desk.reader.counts.skip("empty envelope"),
        };
        // The usual line is written where it is decoded, and is whole.
        let start = self.lines.text.len();
        let others = match escaped {
            true => unescape(text, &mut self.lines.text),
            false => {
                self.lines.text.extend_from_slice(text);
                0
            }
        };
        let ending = mark.unwrap_or_else(|| Ending::of(&self.lines.text[start..], until_newline));
        if !is_known.unwrap_or_else(|| self.is_known(self.lines.text.get(start).copied(), ending, from.offset)) {
            let text = self.lines.text.split_off(start);
            let labels = Labels::of(self.lines.labels.range(labels));
            let what = What::Piece { by: self.stream.clone(), ending };
            self.deferred.push(Deferred { offset: from.offset, labels, text, what });
            return;
        }
        let line = &self.lines.text[start..];
        if ending == Ending::Whole && self.joins.is_empty() && join::is_whole(line) {
            match others {
                // the only character that was escaped is the newline at the end, which goes
                1 if line.last() == Some(&b'\n') => _ = self.lines.text.pop(),
                0 if escaped => {}
                _ => one_line(&mut self.lines.text, start),
            }
            self.lines.text.push(b'\n');
            self.lines.origins.push(Origin { start, offset: from.offset, labels, stream: join::hash(&self.stream) });
            return self.flush_if_full(desk);
        }
        let text = self.lines.text.split_off(start);
        let carried = self.lines.labels.range(labels);
        let piece = Piece { by: self.stream.clone(), text, ending, offset: from.offset, carried };
        for whole in self.joins.take(piece) {
            self.push_joined(whole);
        }
        self.flush_if_full(desk);
    }

    /// Whether what stands before a line of the stream in hand is known, as far as that matters; by its first byte.
    fn is_known(&mut self, first: Option<u8>, ending: Ending, offset: u64) -> bool {
        let standing = match &mut self.course {
            Course::Whole | Course::First => Standing::Known,
            Course::Any => Standing::Unknown,
            Course::Later(streams) => streams.settle(&self.stream, first, ending),
        };
        if standing == Standing::Settled {
            let what = What::Beginning { by: self.stream.clone() };
            self.deferred.push(Deferred { offset, labels: Labels::default(), text: Vec::new(), what });
        }
        standing != Standing::Unknown
    }

    fn push_joined(&mut self, joined: join::Joined) {
        let first = self.lines.labels.len();
        self.lines.labels.extend(joined.labels.range(0..joined.labels.len()));
        let labels = first..self.lines.labels.len();
        self.lines.push(joined.offset, labels, joined.stream, |text| {
            let start = text.len();
            text.extend_from_slice(&joined.text);
            one_line(text, start);
        });
    }

    /// Takes a record apart; its parts are read as records of the same dialect.
    fn take_apart(&mut self, dialect: usize, described: &Dialect, text: &[u8], from: Whence<'_>, desk: &mut Desk<'_>) {
        let Some(profile) = &described.profile else { return };
        if self.course.is_part() && profile.restructure.is_some_and(Restructure::spans_records) {
            let labels = Labels::of(from.carried);
            let what = What::Record { dialect, stream: from.stream };
            return self.deferred.push(Deferred { offset: from.offset, labels, text: text.to_vec(), what });
        }
        self.prepare(Kind::of_parts(dialect, described), desk);
        match known_or(&mut self.openers, dialect, || Opener::new(profile)).open(text, from.offset, from.stream) {
            Ok(parts) => self.add_parts(parts, from, desk),
            Err(why) => desk.rejected(from.offset, text, why),
        }
        self.flush_if_full(desk);
    }

    fn add_parts(&mut self, parts: Parts, from: Whence<'_>, desk: &mut Desk<'_>) {
        let first = self.lines.labels.len();
        self.lines.labels.extend(from.carried);
        let labels = first..self.lines.labels.len();
        for part in &parts.records {
            let offset = part.offset.unwrap_or(from.offset);
            self.lines.push(offset, labels.clone(), from.stream, |text| write_line(&part.json, text));
        }
        for reason in parts.skipped {
            desk.reader.counts.skip(reason);
        }
        if !parts.others.is_empty() {
            self.prepare(Kind::Carried, desk);
            for part in &parts.others {
                self.lines
                    .push(part.offset.unwrap_or(from.offset), 0..0, from.stream, |text| write_line(&part.json, text));
            }
        }
    }

    /// Makes sure that what waits is of one kind.
    fn prepare(&mut self, kind: Kind, desk: &mut Desk<'_>) {
        if self.kind != kind {
            self.flush(desk);
            self.kind = kind;
        }
    }

    fn flush_if_full(&mut self, desk: &mut Desk<'_>) {
        if self.lines.text.len() >= FULL {
            self.flush(desk);
        }
    }

    /// Decodes what waits.
    pub fn flush(&mut self, desk: &mut Desk<'_>) {
        if !self.is_idle() {
            let mut lines = std::mem::take(&mut self.lines);
            let length = lines.text.len();
            if self.kind == Kind::Quoted {
                lines.text.extend_from_slice(&[0; ROOM]);
            }
            let envelope = usize::from(self.kind.part_of().is_none());
            let depth = self.depth + envelope;
            let mut inner = self.inner.take().unwrap_or_else(|| Box::new(Nest::of_course(self.course.inside())));
            inner.depth = depth;
            let writing = self.kind.writing();
            let new = || LineDecoder::new(desk.reader.plan().wanted.clone(), writing);
            let decoder = known_or(&mut self.decoders, writing, new);
            let layouts = known_or(&mut self.layouts, self.kind, Layouts::default);
            let level = Inside { lines: &lines, kind: self.kind, at: 0 };
            let mut sink = RecordSink { desk: desk.reborrow(), level, layouts, nest: &mut inner };
            match writing {
                Writing::Plain => decoder.decode(&lines.text, &mut sink),
                Writing::Quoted => {
                    let starts = lines.origins.iter().skip(1).map(|origin| origin.start).chain([length]);
                    decoder.decode_known(&lines.text, starts.map(|start| start as u32 - 1), &mut sink);
                }
            }
            inner.flush(desk);
            self.unquoted = match decoder.take_parsed() {
                parsed if writing == Writing::Quoted && parsed > lines.origins.len() / 4 => UNQUOTED,
                _ => self.unquoted.saturating_sub(1),
            };
            self.inner = Some(inner);
            self.lines = lines;
            self.lines.clear();
        }
    }

    /// Decodes what waits, and what will not become whole any more. To be called behind the last record of a whole log.
    pub fn finish(&mut self, desk: &mut Desk<'_>) {
        self.finish_level(desk);
        if let Some(mut inner) = self.inner.take() {
            inner.finish(desk);
        }
    }

    fn finish_level(&mut self, desk: &mut Desk<'_>) {
        self.flush(desk);
        for (dialect, opener) in std::mem::take(&mut self.openers) {
            let parts = opener.finish();
            let kind = Kind::of_parts(dialect, &desk.reader.plan().dialects[dialect]);
            self.prepare(kind, desk);
            self.add_parts(parts, Whence::NOWHERE, desk);
            self.flush(desk);
        }
        self.prepare(Kind::Carried, desk);
        let unfinished: Vec<join::Joined> = self.joins.finish().collect();
        unfinished.into_iter().for_each(|joined| self.push_joined(joined));
        self.flush(desk);
    }

    /// Decodes what waits, and returns what other pieces of the log must be known for. To be called behind the last
    /// record of a piece.
    pub fn hand_over(&mut self, desk: &mut Desk<'_>) -> Left {
        self.flush(desk);
        let mut left = Left::new();
        let mut level = Some(self);
        while let Some(nest) = level {
            let mut deferred = std::mem::take(&mut nest.deferred);
            deferred.extend(nest.joins.hand_over());
            left.push(deferred);
            level = nest.inner.as_deref_mut();
        }
        left
    }

    /// Settles what all pieces of a log left, level by level: what is inside waits for all that is around it.
    pub fn settle(left: Left, desk: &mut Desk<'_>) {
        let mut left = left.into_iter();
        let mut nest = Box::<Nest>::default();
        loop {
            match left.next() {
                Some(mut level) => nest.deferred.append(&mut level),
                None if nest.waits() => {}
                None => return,
            }
            let mut deferred = std::mem::take(&mut nest.deferred);
            deferred.sort_by_key(|deferred| deferred.offset);
            nest.course = Course::Whole;
            nest.inner.get_or_insert_with(|| Box::new(Nest::of_course(Course::Any)));
            deferred.into_iter().for_each(|deferred| nest.settle_one(deferred, desk));
            nest.finish_level(desk);
            nest = nest.inner.take().unwrap_or_default();
        }
    }

    fn waits(&self) -> bool {
        !self.deferred.is_empty() || self.inner.as_ref().is_some_and(|inner| inner.waits())
    }

    fn settle_one(&mut self, deferred: Deferred, desk: &mut Desk<'_>) {
        let Deferred { offset, labels, text, what } = deferred;
        let carried = labels.range(0..labels.len());
        match what {
            What::Record { dialect, stream } => {
                let plan = desk.reader.plan().clone();
                let from = Whence { offset, carried, stream, ..Whence::NOWHERE };
                self.take_apart(dialect, &plan.dialects[dialect], &text, from, desk);
            }
            What::Beginning { by } => {
                self.prepare(Kind::Carried, desk);
                self.joins.end(&by).into_iter().for_each(|joined| self.push_joined(joined));
            }
            What::Piece { by, ending } => {
                self.prepare(Kind::Carried, desk);
                for whole in self.joins.take(Piece { by, text, ending, offset, carried }) {
                    self.push_joined(whole);
                }
                self.flush_if_full(desk);
            }
        }
    }
}

/// What is known by a key; made when it is asked for first.
fn known_or<K: PartialEq, V>(known: &mut Vec<(K, V)>, key: K, make: impl FnOnce() -> V) -> &mut V {
    let at = known.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
        known.push((key, make()));
        known.len() - 1
    });
    &mut known[at].1
}

/// What an envelope says for the columns that are asked for: texts and the time, never what durations are made of.
fn add_labels<R: RawRecord>(dialect: &Dialect, record: &R, labels: &mut Labels) {
    for &column in &dialect.labels {
        if let Found::Raw(value, unit) = row::find(record, dialect, &dialect.fields[column.index()]) {
            labels.push(column, value, unit);
        }
    }
}

fn is_nothing(value: RawValue<'_>) -> bool {
    matches!(value, RawValue::Missing | RawValue::Null | RawValue::Text { bytes: b"", .. })
}

fn text_of(value: RawValue<'_>) -> &[u8] {
    match value {
        RawValue::Text { bytes, .. } | RawValue::Number(bytes) | RawValue::Nested(bytes) => bytes,
        _ => b"",
    }
}

/// A tag may have more parts behind a colon.
fn is_mark(tag: &[u8], mark: &str) -> bool {
    tag.split(|&byte| byte == b':').next() == Some(mark.as_bytes())
}

/// Text that is logged as a list of the numbers of its bytes, or texts that are logged as a list of them.
fn bytes_of(json: &[u8]) -> Option<Vec<u8>> {
    let texts = || serde_json::from_slice::<Vec<String>>(json).ok().map(|texts| texts.join("\n").into_bytes());
    serde_json::from_slice::<Vec<u8>>(json).ok().or_else(texts)
}

#[cfg(test)]
mod tests;
