//! A trace as rows, one a mark on the time axis, for the formats that hold nothing else.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::life::Life;
use crate::record::Kind;

/// The columns: name, unit, definition.
pub const MEANINGS: [(&str, &str, &str); 12] = [
    ("request_id", "", "the request"),
    ("kind", "", "record, stage, event, token, neighbour, missing or finding"),
    ("name", "", "of a stage or an event; the state of a token, the relation of a neighbour, the code of a finding"),
    ("role", "", "who logged it: gateway, engine or app"),
    ("start", "", "when it began"),
    ("duration_ms", "ms", "how long it took; of a token the time since the one before"),
    ("share", "ratio", "part of the request's total"),
    ("p50_ms", "ms", "median of the stage among requests of the same model and input bucket"),
    ("p99_ms", "ms", "99th percentile of them"),
    ("count", "", "how many those are; of a token its index, of a neighbour its output tokens"),
    ("text", "", "the finding in a sentence, the text of an event, the id of a neighbour"),
    ("place", "", "file and line of the record"),
];

/// One of the rows.
#[derive(Default)]
struct Mark {
    kind: &'static str,
    name: String,
    role: Option<String>,
    start_ms: Option<f64>,
    duration_ms: Option<f64>,
    share: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    count: Option<u64>,
    text: Option<String>,
    place: Option<String>,
}

/// All marks of some lives, in the order of a screen.
///
/// # Errors
/// The rows do not fit their columns, which is a mistake of this program.
pub fn rows(lives: &[Life]) -> anyhow::Result<RecordBatch> {
    let all: Vec<(&Life, Mark)> =
        lives.iter().flat_map(|life| marks(life).into_iter().map(move |mark| (life, mark))).collect();
    let texts = |of: &dyn Fn(&(&Life, Mark)) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: fn(&Mark) -> Option<f64>| -> ArrayRef {
        Arc::new(all.iter().map(|(_, mark)| of(mark)).collect::<Float64Array>())
    };
    let start = |(life, mark): &(&Life, Mark)| Some(life.origin_ns? + super::entry::nanoseconds(mark.start_ms?));
    let starts: TimestampNanosecondArray = all.iter().map(start).collect();
    let columns: Vec<ArrayRef> = vec![
        texts(&|(life, _)| Some(life.id.clone())),
        texts(&|(_, mark)| Some(mark.kind.to_owned())),
        texts(&|(_, mark)| Some(mark.name.clone())),
        texts(&|(_, mark)| mark.role.clone()),
        Arc::new(starts.with_data_type(Kind::Time.data_type())),
        numbers(|mark| mark.duration_ms),
        numbers(|mark| mark.share),
        numbers(|mark| mark.p50_ms),
        numbers(|mark| mark.p99_ms),
        Arc::new(all.iter().map(|(_, mark)| mark.count).collect::<UInt64Array>()),
        texts(&|(_, mark)| mark.text.clone()),
        texts(&|(_, mark)| mark.place.clone()),
    ];
    let field =
        |((name, ..), column): (&(&str, &str, &str), &ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let fields: Vec<Field> = MEANINGS.iter().zip(&columns).map(field).collect();
    debug_assert!(fields.iter().all(|field| *field.data_type() != DataType::Null));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn marks(life: &Life) -> Vec<Mark> {
    let count = |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok());
    let mut marks = Vec::new();
    marks.extend(life.findings.iter().map(|finding| Mark {
        kind: "finding",
        name: finding.code.to_owned(),
        text: Some(finding.text.clone()),
        ..Mark::default()
    }));
    marks.extend(life.records.iter().map(|record| Mark {
        kind: "record",
        name: life.outcome.to_owned(),
        role: record.role.clone(),
        start_ms: record.start_ms,
        duration_ms: record.end_ms.zip(record.start_ms).map(|(end, start)| end - start),
        place: Some(record.place.clone()),
        ..Mark::default()
    }));
    marks.extend(life.stages.iter().map(|stage| Mark {
        kind: "stage",
        name: stage.name.to_owned(),
        role: stage.role.clone(),
        start_ms: Some(stage.start_ms),
        duration_ms: Some(stage.duration_ms),
        share: stage.share,
        p50_ms: stage.standing.as_ref().map(|standing| standing.p50_ms),
        p99_ms: stage.standing.as_ref().map(|standing| standing.p99_ms),
        count: stage.standing.as_ref().map(|standing| standing.count),
        ..Mark::default()
    }));
    marks.extend(life.events.iter().map(|event| Mark {
        kind: "event",
        name: event.name.clone(),
        role: event.role.clone(),
        start_ms: event.at_ms,
        duration_ms: event.duration_ms,
        text: Some(event.text.clone()).filter(|text| !text.is_empty()),
        place: Some(event.place.clone()),
        ..Mark::default()
    }));
    let steps = life.tokens.iter().flat_map(|tokens| &tokens.steps);
    marks.extend(steps.map(|step| Mark {
        kind: "token",
        name: step.state.to_owned(),
        start_ms: step.at_ms,
        duration_ms: step.step_ms,
        count: count(Some(step.index)),
        ..Mark::default()
    }));
    marks.extend(life.neighbours.iter().map(|other| Mark {
        kind: "neighbour",
        name: other.relation.to_owned(),
        role: other.role.clone(),
        start_ms: other.start_ms,
        duration_ms: other.end_ms.zip(other.start_ms).map(|(end, start)| end - start),
        count: count(other.output_tokens),
        text: Some(other.id.clone()),
        place: Some(other.place.clone()),
        ..Mark::default()
    }));
    marks.extend(life.missing.iter().map(|missing| Mark {
        kind: "missing",
        name: missing.role.clone(),
        role: Some(missing.role.clone()),
        text: Some(missing.text.clone()),
        ..Mark::default()
    }));
    marks
}
