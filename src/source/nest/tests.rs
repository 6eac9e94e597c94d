//! A log that is cut anywhere holds what it holds as a whole.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::Nest;
use super::deferred::{Course, Handover};
use crate::profile::Catalog;
use crate::record::Column;
use crate::source::LogFile;
use crate::source::compression::Compression;
use crate::source::counts::{Counts, PublishedCounts};
use crate::source::format::Format;
use crate::source::input::{Input, Origin};
use crate::source::mapping::Mapping;
use crate::source::plan::ReadPlan;
use crate::source::reader::{Layouts, Provenance, RecordReader};
use crate::source::records;
use crate::source::rejects::Rejects;
use crate::source::schema::LogSchema;
use crate::source::sink::{Desk, RecordSink, TopLevel};

/// What was read of a log.
#[derive(Debug, PartialEq)]
struct Read {
    /// Ids and tokens, sorted.
    rows: Vec<(Option<String>, Option<i64>)>,
    rejected: u64,
    skipped: Vec<(String, u64)>,
}

fn plan() -> Arc<ReadPlan> {
    static PLAN: OnceLock<Arc<ReadPlan>> = OnceLock::new();
    let new = || {
        let mapping = Mapping {
            maps: Vec::new(),
            zone: TimeZone::UTC,
            zone_is_own: false,
            clock_start: None,
            profiles: Catalog::embedded().all().into(),
            is_forced: false,
            role: None,
        };
        let projection = [Column::RequestId.index(), Column::InputTokens.index()];
        Arc::new(ReadPlan::new(&LogSchema::new(&[], []), &projection, &mapping).unwrap())
    };
    PLAN.get_or_init(new).clone()
}

/// Reads a log in pieces that start at these bytes, in the order given; None reads it whole.
fn read(log: &[u8], pieces: &[Option<(u64, u64)>]) -> Read {
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(log).unwrap();
    let path: PathBuf = on_disk.path().to_owned();
    let input = Input {
        origin: Origin::File(path),
        name: "log".to_owned(),
        size: Some(log.len() as u64),
        partitions: Vec::new(),
        compression: Compression::None,
        format: Format::Text,
        is_sampled: false,
    };
    let file = LogFile { index: 0, input, mapping: 0, rows: None, lines: OnceLock::new() };
    let plan = plan();
    let (rejects, metrics) = (Rejects::default(), ExecutionPlanMetricsSet::new());
    let handover = Handover::new([(0, pieces.len())].into_iter());
    let mut rows = Vec::new();
    for piece in pieces {
        let counts = PublishedCounts::new(metrics.clone(), 0);
        let mut reader = RecordReader::new(plan.clone(), Provenance::default(), 0, counts);
        let mut nest = Nest::of_course(Course::of_piece(piece.map(|(start, _)| start)));
        let mut layouts = Layouts::default();
        let desk = Desk { reader: &mut reader, rejects: &rejects, file: &file, watcher: None };
        let mut sink = RecordSink { desk, level: TopLevel { base: 0 }, layouts: &mut layouts, nest: &mut nest };
        let (mut records, _) = records::open(&file, &plan, *piece).unwrap();
        while records.advance(&mut sink).unwrap().is_some() {}
        handover.settle(sink.nest, &mut sink.desk);
        let batch = reader.finish().unwrap();
        let (ids, tokens) = (batch.column(0).as_string_view(), batch.column(1).as_primitive::<Int64Type>());
        rows.extend((0..batch.num_rows()).map(|row| {
            let id = ids.is_valid(row).then(|| ids.value(row).to_owned());
            (id, tokens.is_valid(row).then(|| tokens.value(row)))
        }));
    }
    rows.sort();
    let mut counts = Counts::default();
    counts.collect(&metrics.clone_inner());
    Read { rows, rejected: counts.rejected_total(), skipped: counts.skipped }
}

/// Text as a JSON string holds it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A line of one of the kinds that depend on others, `number` being its request.
fn lines(kind: u8, number: usize) -> Vec<(&'static str, String)> {
    let record = format!("{{\"request_id\":\"r{number}\",\"input_tokens\":{number},\"note\":\"a {{ b\\n\"}}");
    let docker = |stream: &str, text: &str| {
        format!("{{\"log\":{},\"stream\":\"{stream}\",\"time\":\"2026-01-02T03:00:00Z\"}}\n", quoted(text))
    };
    let cri = |stream: &str, tag: &str, text: &str| format!("2026-01-02T03:00:00Z {stream} {tag} {text}\n");
    let beat = |text: &str| {
        let message = quoted(text);
        format!(
            "{{\"@timestamp\":\"2026-01-02T03:00:00Z\",\"message\":{message},\"agent\":{{\"type\":\"filebeat\"}},\"ecs\":{{}}}}\n"
        )
    };
    let (head, tail) = record.split_at(record.len() / 2);
    let pretty = format!(
        "{{\n  \"request_id\": \"p{number}\",\n  \"usage\":\n  {{\n    \"x\": 1\n  }},\n  \"input_tokens\": {number}\n}}"
    );
    let span = |id: usize, parent: usize, name: &str| {
        format!(
            "{{\"traceId\":\"{number:032x}\",\"spanId\":\"{id:016x}\",\"parentSpanId\":\"{parent:016x}\",\"name\":\"{name}\",\
             \"startTimeUnixNano\":\"1767322800000000000\",\"endTimeUnixNano\":\"1767322801000000000\",\"attributes\":\
             [{{\"key\":\"gen_ai.request.model\",\"value\":{{\"stringValue\":\"m\"}}}},{{\"key\":\
             \"gen_ai.usage.input_tokens\",\"value\":{{\"intValue\":\"{number}\"}}}}]}}\n"
        )
    };
    match kind {
        0 => vec![("", docker("stdout", &format!("{record}\n")))],
        1 => vec![("out", docker("stdout", head)), ("out", docker("stdout", &format!("{tail}\n")))],
        2 => vec![("err", docker("stderr", "part of ")), ("err", docker("stderr", "a text\n"))],
        3 => vec![("cri", cri("stdout", "P", head)), ("cri", cri("stdout", "F", tail))],
        4 => vec![("cri", cri("stderr", "F", &record))],
        5 => pretty.lines().map(|line| ("out", docker("stdout", &format!("{line}\n")))).collect(),
        6 => vec![("beat", beat(&docker("stdout", head))), ("beat", beat(&docker("stdout", &format!("{tail}\n"))))],
        7 => vec![("", span(2 * number + 1, 2 * number + 2, "chat")), ("", span(2 * number + 2, 0, "chat outer"))],
        8 => vec![("", "plain text\n".to_owned())],
        _ => vec![("", format!("{record}\n"))],
    }
}

/// A log in which the lines of different streams come between each other.
fn woven(kinds: &[u8], order: &[usize]) -> Vec<u8> {
    let mut streams: Vec<(&str, Vec<String>)> = Vec::new();
    for (number, &kind) in kinds.iter().enumerate() {
        for (stream, line) in lines(kind, number) {
            match streams.iter_mut().find(|(name, _)| *name == stream) {
                Some((_, lines)) => lines.push(line),
                None => streams.push((stream, vec![line])),
            }
        }
    }
    streams.iter_mut().for_each(|(_, lines)| lines.reverse());
    let mut log = String::new();
    for &pick in order.iter().cycle() {
        streams.retain(|(_, lines)| !lines.is_empty());
        if streams.is_empty() {
            break;
        }
        let stream = pick % streams.len();
        log.extend(streams[stream].1.pop());
    }
    log.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_log_cut_anywhere_is_the_log_as_a_whole(
        kinds in prop::collection::vec(0..10u8, 1..40),
        order in prop::collection::vec(any::<usize>(), 50),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        turn in any::<prop::sample::Index>(),
    ) {
        let log = woven(&kinds, &order);
        let mut cuts: Vec<u64> = places.iter().map(|place| place.index(log.len()) as u64).collect();
        cuts.extend([0, log.len() as u64]);
        cuts.sort();
        cuts.dedup();
        let mut pieces: Vec<_> = cuts.windows(2).map(|ends| Some((ends[0], ends[1]))).collect();
        let turn = turn.index(pieces.len());
        pieces.rotate_left(turn);
        prop_assert_eq!(read(&log, &pieces), read(&log, &[None]), "{:?} {}", pieces, String::from_utf8_lossy(&log));
    }
}

#[test]
fn the_woven_log_of_the_test_gives_all_its_requests() {
    let kinds: Vec<u8> = (0..10).collect();
    let whole = read(&woven(&kinds, &[3, 1, 4, 1, 5, 9, 2, 6]), &[None]);
    let ids: Vec<&str> = whole.rows.iter().filter_map(|(id, _)| id.as_deref()).collect();
    assert!(["p5", "r0", "r1", "r3", "r4", "r6", "r9"].iter().all(|id| ids.contains(id)), "{whole:?}");
    assert_eq!((whole.rows.len(), whole.rejected), (8, 0), "{whole:?}");
}
