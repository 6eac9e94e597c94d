//! The stages of a request: what each role did, one after the other, and what lies between them.

use super::calls::callers;
use super::entry::{Entry, nanoseconds};
use super::life::Stage;
use crate::record::Column;

/// What is left of two equal times.
const NO_TIME_MS: f64 = 1e-6;

/// Gaps below this are no stage: clocks and roundings are no finer.
const LEAST_MS: f64 = 1.0;

/// The stages that records of one request tell of, in order of their start. Records are in order of theirs.
///
/// What a role did itself is taken from its own record. Time that an outer role spent waiting for an inner one is the
/// inner one's to tell, and what is left between them is the network, as far as their clocks agree.
/// Without an origin, no record has a time: their stages are laid one behind the other.
pub fn stages(records: &[&Entry], origin: Option<i64>) -> Vec<Stage> {
    let mut stages = Vec::new();
    let is_timed = origin.is_some();
    let origin = origin.unwrap_or(0);
    let callers = callers(records);
    for (index, record) in records.iter().enumerate() {
        let called = (0..records.len()).filter(|inner| callers[*inner] == Some(index));
        let inner: Vec<&Entry> = called.map(|inner| records[inner]).collect();
        let untimed = || (!is_timed).then_some(Span { start: 0, end: None });
        let Some(span) = Span::of(record).or_else(untimed) else { continue };
        let mut own = Own { record, index, origin, stages: &mut stages };
        let (served_from, served_to) = own.edges(span, !inner.is_empty());
        match inner.is_empty() {
            true => own.inside(served_from, served_to),
            false => own.between(served_from, served_to, &inner),
        }
    }
    stages.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms).then(a.end_ms.total_cmp(&b.end_ms)));
    let longest = stages.iter().map(|stage| stage.duration_ms).max_by(f64::total_cmp);
    if let Some(stage) = stages.iter_mut().find(|stage| Some(stage.duration_ms) == longest) {
        stage.dominant = true;
    }
    stages
}

/// First and last moment of a record, nanoseconds; one without an end has only its beginning.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: Option<i64>,
}

impl Span {
    fn of(record: &Entry) -> Option<Self> {
        Some(Self { start: record.start()?, end: record.end() })
    }
}

/// The stages of one record while they are found.
struct Own<'a> {
    record: &'a Entry,
    index: usize,
    origin: i64,
    stages: &'a mut Vec<Stage>,
}

impl Own<'_> {
    fn ms(&self, column: Column) -> Option<f64> {
        self.record.number(column.name())
    }

    fn push(&mut self, name: &'static str, start: i64, end: i64, duration_ms: Option<f64>) {
        let axis = |time: i64| (time - self.origin) as f64 / 1e6;
        let stage = Stage {
            name,
            role: self.record.role().map(str::to_owned),
            record: Some(self.index),
            start_ms: axis(start),
            end_ms: axis(end),
            duration_ms: duration_ms.unwrap_or((end - start) as f64 / 1e6),
            ..Stage::default()
        };
        self.stages.push(stage);
    }

    /// Adds a stretch that no record tells of, if it is one.
    fn gap(&mut self, name: &'static str, start: i64, end: i64) {
        if (end - start) as f64 / 1e6 >= LEAST_MS {
            self.push(name, start, end, None);
        }
    }

    /// What the role does before it serves the request and after that; the time in between.
    fn edges(&mut self, span: Span, has_inner: bool) -> (i64, Option<i64>) {
        let mut at = span.start;
        for (name, column) in [("auth", Column::AuthMs), ("preprocess", Column::PreprocessMs)] {
            if let Some(ms) = self.ms(column) {
                self.push(name, at, at + nanoseconds(ms), Some(ms));
                at += nanoseconds(ms);
            }
        }
        if let Some(forwarded) = self.record.time(Column::ForwardedAt.name()).filter(|time| *time > at && has_inner) {
            self.gap("unexplained", at, forwarded);
            at = forwarded;
        }
        let postprocess = self.ms(Column::PostprocessMs);
        let end = span.end.map(|end| end - postprocess.map_or(0, nanoseconds));
        if let (Some(ms), Some(end)) = (postprocess, end) {
            self.push("postprocess", end, end + nanoseconds(ms), Some(ms));
        }
        (at, end)
    }

    /// What the role itself knows of serving the request.
    fn inside(&mut self, from: i64, to: Option<i64>) {
        let time = |column: Column| self.record.time(column.name());
        let start = self.record.start().unwrap_or(0);
        let since = |earlier: i64, later: Option<i64>| later.map(|later| (later - earlier) as f64 / 1e6);
        let queue = self.ms(Column::QueueWaitMs).or(since(start, time(Column::ScheduledAt)).filter(|ms| *ms >= 0.0));
        let ttft = self.ms(Column::TtftMs).or(since(start, time(Column::FirstTokenAt)).filter(|ms| *ms >= 0.0));
        let prefill = self.ms(Column::PrefillTimeMs).or(ttft.zip(queue).map(|(ttft, queue)| ttft - queue));
        // what failed before its first token decoded nothing
        let decode = self.ms(Column::DecodeTimeMs).filter(|ms| *ms > NO_TIME_MS);
        let mut at = from;
        if let Some(queue) = queue {
            let end = time(Column::ScheduledAt).filter(|end| *end >= at).unwrap_or(at + nanoseconds(queue));
            self.push("queue", at, end, Some(queue));
            at = end;
        }
        let first_token = time(Column::FirstTokenAt).filter(|first| *first >= at);
        match (prefill, ttft) {
            (Some(prefill), _) => {
                let end = first_token.unwrap_or(at + nanoseconds(prefill));
                self.push("prefill", at, end, Some(prefill));
                at = end;
            }
            (None, Some(ttft)) => {
                let end = first_token.unwrap_or(start + nanoseconds(ttft)).max(at);
                self.push("first_token", at, end, Some((end - at) as f64 / 1e6));
                at = end;
            }
            (None, None) => {}
        }
        if let Some(decode) = decode {
            self.push("decode", at, at + nanoseconds(decode), Some(decode));
            at += nanoseconds(decode);
        }
        let knows_nothing = queue.is_none() && prefill.is_none() && ttft.is_none() && decode.is_none();
        let to = to.or_else(|| Some(at + nanoseconds(self.ms(Column::TotalLatencyMs)?)).filter(|_| knows_nothing));
        if let Some(to) = to {
            self.gap(if knows_nothing { "request" } else { "unexplained" }, at, to);
        }
    }

    /// What lies between an outer role and the calls of the inner one.
    fn between(&mut self, from: i64, to: Option<i64>, inner: &[&Entry]) {
        let mut spans: Vec<Span> = inner.iter().filter_map(|inner| Span::of(inner)).collect();
        spans.sort_by_key(|span| span.start);
        // clocks that disagree tell nothing of what lies between them
        let fits = |span: &Span| span.start >= from && to.is_none_or(|to| span.end.unwrap_or(span.start) <= to);
        if !spans.iter().all(fits) {
            return;
        }
        let mut at = Some(from);
        for (number, span) in spans.iter().enumerate() {
            if let Some(at) = at {
                self.gap(if number == 0 { "network" } else { "retry_wait" }, at, span.start);
            }
            at = span.end;
        }
        if let (Some(at), Some(to)) = (at, to) {
            self.gap("network", at, to);
        }
    }
}
