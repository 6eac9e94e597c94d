//! The whole life of one request, on one time axis: what every drawing and export of a trace shows.
//!
//! Times are milliseconds from the origin of the axis, which is the first moment of any of its records. What is not
//! known is None, never zero.

use jiff::Timestamp;
use serde::Serialize;

/// The life of one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Life {
    /// The id, as the records write it.
    pub id: String,
    /// What was asked for: the id, a prefix of it, or the id of its trace or batch.
    pub asked: String,
    pub trace_id: Option<String>,
    /// Nanoseconds since 1970 of the axis' zero; None where no record has a time.
    #[serde(skip)]
    pub origin_ns: Option<i64>,
    /// From the origin to the last moment of any of its records.
    pub length_ms: f64,
    /// How long it took, as the outermost record (gateway, else app, else engine) has it.
    pub total_ms: Option<f64>,
    /// `success`, `failed` or `unknown`.
    pub outcome: &'static str,
    /// What is known of it in a word each: tenant, model, tokens, status. In the order to show them.
    pub facts: Vec<Fact>,
    /// In order of their start.
    pub records: Vec<Record>,
    /// In order of their start; of one role they do not overlap.
    pub stages: Vec<Stage>,
    /// In order of time, those without a time last.
    pub events: Vec<Event>,
    pub tokens: Option<Tokens>,
    /// Roles whose logs were read and that have no record of it.
    pub missing: Vec<Missing>,
    /// Clocks of two roles that cannot both be right.
    pub skews: Vec<Skew>,
    pub neighbours: Vec<Neighbour>,
    /// What explains it, the weightiest first, each a sentence.
    pub findings: Vec<Finding>,
}

/// Something known of the request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// snake_case: the canonical column, as in `tenant`.
    pub name: &'static str,
    pub value: Value,
    /// `ms`, `tokens`; empty for words.
    pub unit: &'static str,
}

/// A value of a record. In JSON: the text, the number, true or false; a time as RFC 3339 in UTC; money as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Count(i64),
    Number(f64),
    Flag(bool),
    /// Nanoseconds since 1970.
    Time(i64),
    /// A decimal number.
    Money(String),
}

/// One record of the logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Record {
    /// `gateway`, `engine`, `app`.
    pub role: Option<String>,
    pub host: Option<String>,
    pub attempt: Option<i64>,
    pub start_ms: Option<f64>,
    pub end_ms: Option<f64>,
    /// `gateway.ndjson:17`; without a line in Parquet.
    pub place: String,
    /// Every canonical column that the record has a value for, in the order of the schema.
    #[serde(serialize_with = "as_object")]
    pub values: Vec<(&'static str, Value)>,
}

/// A stage of the request, a stretch of the axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stage {
    /// `auth`, `preprocess`, `network`, `queue`, `prefill`, `first_token` (queue and prefill, not told apart), `decode`,
    /// `postprocess`, `retry_wait`, `unexplained`; `request` where a record tells its total alone.
    pub name: &'static str,
    pub role: Option<String>,
    /// Position of its record; None for what lies between two records.
    pub record: Option<usize>,
    pub start_ms: f64,
    pub end_ms: f64,
    /// As logged or derived; may differ from end - start where the record contradicts itself.
    pub duration_ms: f64,
    /// Part of the request's total, 0 to 1.
    pub share: Option<f64>,
    /// The longest of all stages.
    pub dominant: bool,
    /// Where it stands among requests of the same model and input bucket.
    pub standing: Option<Standing>,
}

/// Where a duration stands among others of its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Standing {
    pub model_name: Option<String>,
    /// `2K-4K`.
    pub input_bucket: Option<String>,
    /// Successful records of the same role with the duration known, this one left out.
    pub count: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Part of them that took less time, 0 to 1.
    pub below: f64,
}

/// Something that happened on the axis: a KV eviction, a model load, a line of text that carries the id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Event {
    pub at_ms: Option<f64>,
    /// `kv_eviction`; `line` for a line of text.
    pub name: String,
    /// Masked, and never a prompt or an answer.
    pub text: String,
    pub role: Option<String>,
    pub host: Option<String>,
    pub gpu_id: Option<String>,
    /// How long it took, where the log tells.
    pub duration_ms: Option<f64>,
    pub place: String,
}

/// The tokens of the answer, as far as they were logged one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tokens {
    /// `token`, or `chunk` where a step may hold several.
    pub unit: &'static str,
    pub steps: Vec<Step>,
    /// Of the gaps between steps; the time to the first is none.
    pub itl: Option<Gaps>,
    pub stalls: Vec<Stall>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    pub index: i64,
    /// When the token was there.
    pub at_ms: Option<f64>,
    /// Time since the token before, waits included; for the first token the time of the prefill where the log tells, no gap.
    pub step_ms: Option<f64>,
    pub wait_ms: Option<f64>,
    pub context_len: Option<i64>,
    pub cache_hit: Option<bool>,
    pub recompute: Option<bool>,
    pub batch_size: Option<i64>,
    /// `normal`, `cache_miss` or `recompute`.
    pub state: &'static str,
    pub stall: bool,
}

/// Gaps between tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gaps {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// A step that took far longer than those around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stall {
    pub index: i64,
    pub at_ms: Option<f64>,
    pub step_ms: f64,
    /// Above the median of the steps around it.
    pub over_ms: f64,
    /// `cache_miss`, `recompute`, `wait`, `event` or `unknown`.
    pub cause: &'static str,
    /// How many others stalled at the same time.
    pub neighbours: u64,
    /// The sentence: `token 47: +312 ms, KV miss, 3 neighbours stalled at the same time`.
    pub text: String,
}

/// A role without a record of the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Missing {
    pub role: String,
    /// `engine has no record of this id: lost between gateway and engine`.
    pub text: String,
}

/// Two clocks that cannot both be right.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Skew {
    pub role: String,
    pub against: String,
    /// How far `role` is ahead of `against` (negative: behind), at least.
    pub ahead_ms: f64,
    pub text: String,
}

/// Another request that has to do with this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Neighbour {
    pub id: String,
    /// `batch` (in the same batch), `retry` (this one was retried as it), `retried` (it was retried as this one),
    /// `reconnect`, `reconnected`, `trace` (same trace), `parent`, `child`, `gpu` (ran on the GPU at that time).
    pub relation: &'static str,
    pub start_ms: Option<f64>,
    pub end_ms: Option<f64>,
    pub role: Option<String>,
    pub gpu_id: Option<String>,
    pub batch_id: Option<String>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub queue_wait_ms: Option<f64>,
    pub decode_time_ms: Option<f64>,
    pub outcome: &'static str,
    pub place: String,
}

/// What explains a request, or must be known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// `slow_stage`, `dominant_stage`, `missing_record`, `retry`, `reconnect`, `starved`, `stall`, `clock_skew`, `failed`, `reused_id`, `contradiction`, `unexplained`,
    /// `event`.
    pub code: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    pub text: String,
}

impl Value {
    pub fn count(&self) -> Option<i64> {
        match self {
            Value::Count(count) => Some(*count),
            _ => None,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) | Value::Money(text) => serializer.serialize_str(text),
            Value::Count(count) => serializer.serialize_i64(*count),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Time(time) => {
                let time = Timestamp::from_nanosecond(i128::from(*time)).map_err(serde::ser::Error::custom)?;
                serializer.collect_str(&time)
            }
        }
    }
}

/// Pairs as the members of an object.
fn as_object<S: serde::Serializer>(values: &[(&'static str, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}
