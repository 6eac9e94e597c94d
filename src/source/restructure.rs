//! Taking records apart: what a table of columns and paths cannot say about a producer, one small step each.
//!
//! ```text
//! a record -> records (the objects inside it) -> columns | spans | events | observations | streams
//!     -> embedded JSON -> parts
//! ```
//!
//! Parts are JSON texts of one record each. A step that looks at several records of a file keeps what it needs of them.

mod columns;
mod embedded;
mod events;
mod members;
mod nesting;
mod observations;
mod records;
mod span;
mod spans;
mod streams;

use std::sync::Arc;

use crate::profile::{Profile, Restructure};
use crate::source::json::Tree;
use crate::source::value::Reject;
use events::Events;
use nesting::Nesting;
use streams::Streams;

/// What a record was taken apart to.
#[derive(Debug, Default)]
pub struct Parts {
    pub records: Vec<Part>,
    /// Records of other kinds, to be recognised.
    pub others: Vec<Part>,
    /// Why others inside it are no requests, once for each.
    pub skipped: Vec<&'static str>,
}

/// One record found inside another.
#[derive(Debug)]
pub struct Part {
    /// A JSON object.
    pub json: Vec<u8>,
    /// Byte of the file where the record that held it starts, where that is not the one in hand.
    pub offset: Option<u64>,
}

/// Takes the records of one profile apart, those of one file in order.
pub struct Opener {
    profile: Arc<Profile>,
    step: Step,
}

/// The step of a profile with what it remembers.
enum Step {
    None,
    Columns,
    Observations(Nesting),
    Spans(Nesting),
    Events(Events),
    Streams(Streams),
}

impl Opener {
    pub fn new(profile: &Arc<Profile>) -> Self {
        let step = match profile.restructure {
            None => Step::None,
            Some(Restructure::Columns) => Step::Columns,
            Some(Restructure::Observations) => Step::Observations(Nesting::default()),
            Some(Restructure::Spans) => Step::Spans(Nesting::default()),
            Some(Restructure::Events) => Step::Events(Events::default()),
            Some(Restructure::Streams) => Step::Streams(Streams::default()),
        };
        Self { profile: profile.clone(), step }
    }

    /// The parts of one record, which starts at byte `offset` of its file and came in a `stream`, by a hash.
    ///
    /// # Errors
    /// The reason why the text is no record.
    pub fn open(&mut self, text: &[u8], offset: u64, stream: u64) -> Result<Parts, Reject> {
        let mut parts = Parts::default();
        if matches!(self.step, Step::Columns) && self.profile.records.is_empty() {
            // long arrays, which are never held as a tree with every number in it
            columns::rows(text, &self.profile, &mut parts)?;
            return Ok(self.settled(parts));
        }
        let tree = Tree::parse(text)?;
        let whole = |json| Part { json, offset: Some(offset) };
        let found = || records::found(&tree, &self.profile.records).into_iter().map(whole);
        match &mut self.step {
            Step::None => parts.records.extend(found()),
            Step::Columns => {
                for part in found() {
                    columns::rows(&part.json, &self.profile, &mut parts)?;
                }
            }
            Step::Events(events) => events.take(&tree, &mut parts),
            Step::Streams(streams) => streams.take(&tree, offset, stream, &mut parts),
            Step::Observations(nesting) => {
                found().filter_map(observations::item).for_each(|item| nesting.take(item));
                nesting.pass(&mut parts);
            }
            Step::Spans(nesting) => {
                for mut span in spans::spans(&tree) {
                    parts.others.extend(span.happenings(offset));
                    nesting.take(span.item(offset));
                }
                nesting.pass(&mut parts);
            }
        }
        Ok(self.settled(parts))
    }

    /// The parts of a record as they are read.
    fn settled(&self, mut parts: Parts) -> Parts {
        if parts.records.is_empty() && parts.others.is_empty() && parts.skipped.is_empty() && !self.holds_back() {
            parts.skipped.push("empty batch");
        }
        self.embed(&mut parts);
        parts
    }

    /// What is left when the file ends.
    pub fn finish(mut self) -> Parts {
        let mut parts = Parts::default();
        match std::mem::replace(&mut self.step, Step::None) {
            Step::Events(events) => events.finish(&mut parts),
            Step::Streams(streams) => streams.finish(&mut parts),
            Step::Observations(nesting) | Step::Spans(nesting) => nesting.finish(&mut parts),
            Step::None | Step::Columns => {}
        }
        self.embed(&mut parts);
        parts
    }

    /// Whether parts may come later than their record.
    fn holds_back(&self) -> bool {
        self.profile.restructure.is_some_and(Restructure::spans_records)
    }

    fn embed(&self, parts: &mut Parts) {
        if !self.profile.json.is_empty() {
            for part in &mut parts.records {
                part.json = embedded::opened(&part.json, &self.profile.json);
            }
        }
    }
}
