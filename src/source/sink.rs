//! Where the records of a scan go: to the reader, to the rejects, or opened where others are inside.

use std::borrow::Cow;

use crate::record::excerpt::Excerpt;
use crate::record::{Column, timestamp};
use crate::source::carried::Carried;
use crate::source::dialect::Cargo;
use crate::source::json::{ObjectWriter, Record, Sink, write_text};
use crate::source::nest::Nest;
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, Pushed, RawRecord, RecordReader, Whence};
use crate::source::rejects::Rejects;
use crate::source::schema::Rows;
use crate::source::value::{RawValue, Reject, looks_like_json};
use crate::source::{LogFile, Place};

/// The reader of a piece of a log and what stands beside it.
pub struct Desk<'a> {
    pub reader: &'a mut RecordReader,
    pub rejects: &'a Rejects,
    pub file: &'a LogFile,
    /// Who wants to see the text of every record.
    pub watcher: Option<&'a mut dyn Watcher>,
}

/// Looks at the texts of records as they are read.
pub trait Watcher {
    /// A JSON object that was read as a record of a dialect, a row or skipped, from a byte of the file.
    fn record(&mut self, text: &[u8], dialect: usize, is_row: bool, offset: u64);
}

impl Desk<'_> {
    pub fn reborrow(&mut self) -> Desk<'_> {
        let watcher = self.watcher.as_mut().map(|watcher| &mut **watcher as &mut dyn Watcher);
        Desk { reader: self.reader, rejects: self.rejects, file: self.file, watcher }
    }

    /// Tells the watcher of a record that was pushed.
    #[inline(always)]
    fn tell<'t>(&mut self, pushed: Pushed, text: impl Fn() -> Cow<'t, [u8]>, offset: u64) {
        let Some(watcher) = &mut self.watcher else { return };
        match pushed {
            Pushed::Row { dialect } => watcher.record(&text(), dialect, true, offset),
            Pushed::Skipped { dialect } => watcher.record(&text(), dialect, false, offset),
            Pushed::Opened { .. } | Pushed::Held => {}
        }
    }

    pub fn rejected(&mut self, offset: u64, text: &[u8], why: Reject) {
        self.reader.counts.reject(why);
        self.rejects.add(Place { file: self.file.index, offset }, why, text);
    }
}

/// Where in a file, and in which envelopes, the text that is decoded stands.
pub trait Level<'a> {
    /// That of the record `offset` bytes into the text.
    fn whence(&mut self, offset: usize) -> Whence<'a>;
}

/// A block of the file itself.
pub struct TopLevel {
    /// Where it starts in the file.
    pub base: u64,
}

impl<'a> Level<'a> for TopLevel {
    #[inline(always)]
    fn whence(&mut self, offset: usize) -> Whence<'a> {
        Whence { offset: self.base + offset as u64, carried: Carried::NOTHING, stream: 0, part_of: None, in_turn: true }
    }
}

/// Takes the records of one text.
pub struct RecordSink<'a, L> {
    pub desk: Desk<'a>,
    pub level: L,
    pub layouts: &'a mut Layouts,
    /// Where what is found inside records waits.
    pub nest: &'a mut Nest,
}

impl<'a, L: Level<'a>> RecordSink<'a, L> {
    /// Takes a record that stands `offset` bytes into the text; `text` is asked for where others are inside.
    #[inline(always)]
    pub fn take<'t, R: RawRecord>(&mut self, record: &R, offset: usize, text: impl Fn() -> Cow<'t, [u8]>) {
        let from = Whence { in_turn: self.nest.is_idle(), ..self.level.whence(offset) };
        match self.desk.reader.push(record, from, self.layouts) {
            Pushed::Opened { dialect } => self.nest.open(dialect, record, text, from, &mut self.desk),
            Pushed::Held => {
                let pushed = self.take_in_turn(record, from);
                self.desk.tell(pushed, text, from.offset);
            }
            pushed => self.desk.tell(pushed, text, from.offset),
        }
    }

    /// Takes a record that must wait for those before it.
    #[inline(never)]
    fn take_in_turn<R: RawRecord>(&mut self, record: &R, from: Whence<'_>) -> Pushed {
        self.nest.flush(&mut self.desk);
        self.desk.reader.push(record, Whence { in_turn: true, ..from }, self.layouts)
    }

    /// A line that is no JSON object: text that a pattern may know, else what is left of a broken record.
    #[inline(never)]
    fn line_of_text(&mut self, offset: usize, line: &[u8], why: Reject) {
        let from = self.level.whence(offset);
        if why != Reject::NotAnObject {
            return self.desk.rejected(from.offset, line, why);
        }
        let is_text = std::str::from_utf8(line).is_ok();
        let plan = self.desk.reader.plan().clone();
        let found = plan.dialect_of_text(line).and_then(|number| {
            let pattern = plan.dialects[number].profile.as_ref()?.pattern.as_ref()?;
            Some((number, pattern, pattern.captures(line)?))
        });
        // a runtime may cut a line within a character, so that only what is inside an envelope need be text
        let is_readable = |number: usize| is_text || matches!(plan.dialects[number].carries, Cargo::Payload { .. });
        let (number, pattern, captures) = match found {
            Some(found) if is_readable(found.0) => found,
            _ if !is_text => return self.desk.rejected(from.offset, line, Reject::BadUtf8),
            _ if looks_like_json(line) => return self.desk.rejected(from.offset, line, why),
            _ => return self.unknown_line(&plan, line, from),
        };
        let part = |name: &str| Some((plan.slot_named(name)?, captures.name(name)?.as_bytes()));
        let mut record = TextRecord { parts: pattern.names().iter().filter_map(|name| part(name)).collect() };
        if plan.rows == Rows::Events {
            // what happened is the line itself
            record.parts.extend(plan.slot_named("message").map(|slot| (slot, line)));
        }
        self.nest.flush(&mut self.desk);
        let from = Whence { part_of: Some(number), in_turn: true, ..from };
        match self.desk.reader.push(&record, from, &mut Layouts::default()) {
            Pushed::Opened { dialect } => {
                self.nest.open(dialect, &record, || Cow::Borrowed(line), from, &mut self.desk);
                if plan.lines.is_some() && plan.dialects[dialect].speaks() {
                    self.unknown_line(&plan, line, from);
                }
            }
            pushed => self.desk.tell(pushed, || Cow::Owned(record.json(&plan)), from.offset),
        }
    }
}

impl<'a, L: Level<'a>> RecordSink<'a, L> {
    /// A line of text that no pattern knows.
    fn unknown_line(&mut self, plan: &ReadPlan, line: &[u8], from: Whence<'_>) {
        let Some(number) = plan.lines else { return self.desk.reader.counts.skip("text") };
        let mut parts = Vec::new();
        parts.extend(plan.slot_named("message").map(|slot| (slot, line)));
        parts.extend(plan.slot_named(Column::Timestamp.name()).zip(timestamp::within(line)));
        let record = TextRecord { parts };
        self.nest.flush(&mut self.desk);
        let from = Whence { part_of: Some(number), in_turn: true, ..from };
        self.desk.reader.push(&record, from, &mut Layouts::default());
    }
}

impl<'a, L: Level<'a>> Sink for RecordSink<'a, L> {
    #[inline(always)]
    fn record(&mut self, record: &Record<'_>) {
        self.take(record, record.offset(), || record.line());
    }

    fn reject(&mut self, offset: usize, line: &[u8], why: Reject) {
        self.line_of_text(offset, line, why);
    }
}

/// A line of text seen by slots: the named parts of its pattern.
struct TextRecord<'t> {
    parts: Vec<(u32, &'t [u8])>,
}

impl TextRecord<'_> {
    fn json(&self, plan: &ReadPlan) -> Vec<u8> {
        let mut text = Vec::new();
        let mut object = ObjectWriter::new(&mut text);
        for (slot, part) in &self.parts {
            write_text(&String::from_utf8_lossy(part), object.key(plan.name_of(*slot)));
        }
        object.end();
        text
    }
}

impl RawRecord for TextRecord<'_> {
    fn raw(&self, slot: usize) -> RawValue<'_> {
        match self.parts.iter().find(|(part, _)| *part as usize == slot) {
            Some((_, text)) => RawValue::Text { bytes: text, escaped: false },
            None => RawValue::Missing,
        }
    }

    fn excerpt(&self, _: usize) -> Option<Excerpt<'_>> {
        None
    }

    fn layout(&self) -> Option<usize> {
        None
    }

    fn present(&self) -> &[u32] {
        &[]
    }

    fn duplicate_keys(&self) -> u32 {
        0
    }
}

impl RawRecord for Record<'_> {
    #[inline(always)]
    fn raw(&self, slot: usize) -> RawValue<'_> {
        self.get(slot)
    }

    #[inline(always)]
    fn excerpt(&self, slot: usize) -> Option<Excerpt<'_>> {
        Record::excerpt(self, slot)
    }

    #[inline(always)]
    fn layout(&self) -> Option<usize> {
        Record::layout(self)
    }

    #[inline(always)]
    fn present(&self) -> &[u32] {
        Record::present(self)
    }

    #[inline(always)]
    fn duplicate_keys(&self) -> u32 {
        Record::duplicate_keys(self)
    }
}
