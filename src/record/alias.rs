//! Well-known keys of logs and the canonical columns they fill, without any profile.
//!
//! A key maps by its name alone, at the top level of a record or under `usage`. A duration's or an epoch's unit
//! comes from the key's suffix; a duration without one has no unit and is not mapped, since a unit is never guessed
//! from a value's size. Per-token times of other definitions (`inter_token_latency_s` is E2E / n,
//! `time_per_output_token_ms` is decode / n) are deliberately absent: they never fill `tpot_ms`.

use super::unit::{SUFFIXES, Unit};
use super::{Column, Kind};

/// A key path that fills a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub path: Vec<String>,
    /// Stated by the key's suffix or by the mapping.
    pub unit: Option<Unit>,
}

impl Alias {
    /// The path as a person writes it.
    pub fn dotted(&self) -> String {
        self.path.join(".")
    }
}

/// The key paths that fill `column`, the most trusted first.
pub fn aliases(column: Column) -> Vec<Alias> {
    let top = |key: &str, unit| Alias { path: vec![key.to_owned()], unit };
    let mut found = Vec::new();
    match column.kind() {
        Kind::Duration => {
            let own = column.name().trim_end_matches("_ms");
            for stem in std::iter::once(own).chain(stems(column).iter().copied()) {
                // the canonical unit first, so that `ttft_ms` wins over `ttft_s` in one record
                found.push(top(&format!("{stem}_ms"), Some(Unit::Milliseconds)));
                let others = SUFFIXES.iter().filter(|(suffix, _)| *suffix != "_ms");
                found.extend(others.map(|(suffix, unit)| top(&format!("{stem}{suffix}"), Some(*unit))));
            }
        }
        Kind::Time => {
            for stem in explicit(column).iter().copied().chain([column.name()]).chain(stems(column).iter().copied()) {
                found.push(top(stem, None));
                found.extend(SUFFIXES.iter().map(|(suffix, unit)| top(&format!("{stem}{suffix}"), Some(*unit))));
            }
        }
        _ => {
            for path in elsewhere(column) {
                // a flat log has the whole path as one key
                found.push(top(path, None));
                found.push(Alias { path: path.split('.').map(str::to_owned).collect(), unit: None });
            }
            for key in std::iter::once(column.name()).chain(stems(column).iter().copied()) {
                found.push(top(key, None));
            }
            for path in usage(column) {
                let path = std::iter::once("usage").chain(path.split('.')).map(str::to_owned).collect();
                found.push(Alias { path, unit: None });
            }
        }
    }
    found
}

/// Keys whose value is an error object or text; they decide `failed` and fill no column.
pub const ERROR_KEYS: [&str; 3] = ["error", "error_message", "error_msg"];

/// Keys of the text of a log line.
pub const MESSAGE_KEYS: [&str; 3] = ["message", "msg", "event"];

/// Keys that loggers write into every line, whatever it is about.
pub const LOGGER_KEYS: [&str; 9] =
    ["message", "msg", "event", "level", "levelname", "lvl", "severity", "logger", "logger_name"];

/// Whether a record that has a value for the column is about a request: a service logs other things too, and those have
/// a time, a level and a host as well.
pub fn tells_a_request(column: Column) -> bool {
    use Column::*;
    match column.kind() {
        Kind::Duration | Kind::Count | Kind::Money => !matches!(column, SourceOffset),
        Kind::Time => column != Timestamp,
        _ => matches!(
            column,
            RequestId
                | ModelName
                | Stream
                | Status
                | ErrorCode
                | ErrorStage
                | FinishReason
                | GpuId
                | CacheHit
                | Failed
                | PromptHash
                | BusinessLine
                | Tenant
                | UserTag
                | SessionId
                | TraceId
        ),
    }
}

/// Durations that a service also logs of other things than requests: how long a model took to load.
const OF_ANYTHING: [&str; 4] = ["duration", "elapsed", "total_duration", "total_time"];

/// Whether a key that fills a column also stands in lines that a logger writes about anything.
pub fn is_of_anything(alias: &Alias) -> bool {
    let is_stem = |stem: &&str| {
        alias
            .path
            .first()
            .and_then(|key| key.strip_prefix(*stem))
            .is_some_and(|unit| unit.is_empty() || unit.starts_with('_'))
    };
    OF_ANYTHING.iter().any(is_stem)
}

/// Whether a record that has a value for the column was measured or names a model: no mere label, as loggers add them.
pub fn measures_a_request(column: Column) -> bool {
    use Column::*;
    match column.kind() {
        Kind::Duration | Kind::Count | Kind::Money => !matches!(column, SourceOffset | Priority | Attempt),
        _ => column == ModelName,
    }
}

/// Names that say more than the column's own: beside them `timestamp` is when the line was written.
fn explicit(column: Column) -> &'static [&'static str] {
    match column {
        Column::Timestamp => &["arrival_time", "arrived_at", "received_at", "start_time", "started_at"],
        _ => &[],
    }
}

/// Other names of a column: whole keys, or for durations and times the key without its unit.
fn stems(column: Column) -> &'static [&'static str] {
    match column {
        Column::RequestId => &["requestId", "req_id", "rid", "id"],
        Column::TraceId => &["traceId"],
        Column::SessionId => &["conversation_id"],
        Column::Timestamp => &["TIMESTAMP", "Timestamp", "@timestamp", "ts", "time", "created_at", "created", "date"],
        Column::FirstTokenAt => &["first_token_time"],
        Column::CompletedAt => &["complete_at", "finished_at", "ended_at", "end_time", "finish_time"],
        Column::Tenant => &["tenant_id"],
        Column::UserTag => &["user", "user_id"],
        Column::ModelName => &["model"],
        Column::Stream => &["is_stream", "streamed"],
        Column::InputTokens => &[
            "prompt_tokens",
            "context_tokens",
            "ContextTokens",
            "number_input_tokens",
            "num_input_tokens",
            "inputTokens",
            "promptTokens",
            "input_len",
            "input_length",
        ],
        Column::OutputTokens => &[
            "completion_tokens",
            "generated_tokens",
            "generation_tokens",
            "GeneratedTokens",
            "number_output_tokens",
            "num_output_tokens",
            "outputTokens",
            "completionTokens",
            "output_len",
            "output_length",
        ],
        Column::CachedTokens => &[
            "cache_prefix_length",
            "prefix_cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_input_tokens",
            "cachedInputTokens",
            "input_cached_tokens",
            "cached_prompt_tokens",
            "num_cached_tokens",
        ],
        Column::PrefixHashes => &["hash_ids", "block_hashes"],
        Column::TotalTokens => &["number_total_tokens"],
        Column::QueueWaitMs => &["queue", "queue_time", "queue_wait_time", "queue_duration", "latency_queue"],
        Column::PrefillTimeMs => &["prefill", "latency_prefill", "prefill_duration", "prefill_latency"],
        Column::DecodeTimeMs => &["decode", "latency_decode", "decode_duration", "decode_latency"],
        Column::TtftMs => &["latency_ttft", "time_to_first_token", "first_token_latency"],
        Column::TotalLatencyMs => &[
            "latency",
            "latency_total",
            "total_time",
            "end_to_end_latency",
            "e2e_latency",
            "total_duration",
            "duration",
            "elapsed",
            "request_latency",
        ],
        Column::Status => &["success"],
        Column::GpuId => &["gpu"],
        Column::GpuMemPeakMb => &["gpu_memory_peak_mb"],
        Column::HttpStatus => &["status_code", "http_status_code", "response_code", "response_status"],
        Column::FinishReason => &["stop_reason", "done_reason"],
        Column::CostLogged => &["cost", "response_cost", "total_cost"],
        _ => &[],
    }
}

/// Paths of other conventions: OpenTelemetry's attributes, what stands under `usage` spread into the record, and reasons
/// that come with a type.
fn elsewhere(column: Column) -> &'static [&'static str] {
    match column {
        Column::InputTokens => &["gen_ai.usage.input_tokens"],
        Column::OutputTokens => &["gen_ai.usage.output_tokens"],
        Column::CachedTokens => &[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.cached_tokens",
            "gen_ai.usage.input_tokens.cached",
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
        ],
        Column::CacheWriteTokens => &[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.input_tokens.cache_write",
        ],
        Column::ReasoningTokens => &["gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"],
        Column::ServiceTier => &["openai.response.service_tier", "gen_ai.openai.response.service_tier"],
        Column::FinishReason => &["finish_reason.type"],
        _ => &[],
    }
}

/// Paths under `usage`, as OpenAI-compatible servers, LiteLLM, LangChain and the AI SDK write it. (Servers whose input
/// excludes cached tokens write other keys for those; telling them apart is a profile's work.)
fn usage(column: Column) -> &'static [&'static str] {
    match column {
        Column::InputTokens => &["prompt_tokens", "input_tokens", "promptTokens", "inputTokens"],
        Column::OutputTokens => &["completion_tokens", "output_tokens", "completionTokens", "outputTokens"],
        Column::TotalTokens => &["total_tokens"],
        Column::CachedTokens => &[
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_input_tokens",
            "cachedInputTokens",
            "inputTokenDetails.cacheReadTokens",
            "input_token_details.cache_read",
        ],
        Column::CacheWriteTokens => &[
            "prompt_tokens_details.cache_write_tokens",
            "input_tokens_details.cache_write_tokens",
            "prompt_tokens_details.cache_creation_tokens",
            "inputTokenDetails.cacheWriteTokens",
        ],
        Column::CacheWrite1hTokens => &[
            "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
            "cache_creation.ephemeral_1h_input_tokens",
        ],
        Column::ReasoningTokens => &[
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "reasoning_tokens",
            "outputTokenDetails.reasoningTokens",
            "reasoningTokens",
        ],
        Column::ServiceTier => &["service_tier"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn unit_of(column: Column, key: &str) -> Option<Option<Unit>> {
        aliases(column).into_iter().find(|alias| alias.dotted() == key).map(|alias| alias.unit)
    }

    #[test]
    fn a_durations_unit_comes_from_the_suffix_of_its_key() {
        assert_eq!(unit_of(Column::TtftMs, "ttft_s"), Some(Some(Unit::Seconds)));
        assert_eq!(unit_of(Column::TotalLatencyMs, "end_to_end_latency_s"), Some(Some(Unit::Seconds)));
        assert_eq!(unit_of(Column::TotalLatencyMs, "latency_total_ms"), Some(Some(Unit::Milliseconds)));
        assert_eq!(unit_of(Column::QueueWaitMs, "queue_ms"), Some(Some(Unit::Milliseconds)));
        assert_eq!(unit_of(Column::TotalLatencyMs, "total_duration_ns"), Some(Some(Unit::Nanoseconds)));
    }

    #[test]
    fn a_duration_without_unit_and_a_per_token_time_of_another_definition_are_not_mapped() {
        assert_eq!(unit_of(Column::TotalLatencyMs, "latency"), None);
        assert_eq!(unit_of(Column::TtftMs, "ttft"), None);
        for key in ["inter_token_latency_s", "time_per_output_token_ms", "time_per_token_ms"] {
            assert!(Column::ALL.iter().all(|&column| unit_of(column, key).is_none()), "{key}");
        }
    }

    #[test]
    fn no_key_fills_two_columns() {
        let mut seen = HashMap::new();
        for &column in Column::ALL {
            for alias in aliases(column) {
                if let Some(other) = seen.insert(alias.path.clone(), column) {
                    panic!("{} fills {} and {}", alias.dotted(), other.name(), column.name());
                }
            }
        }
    }
}
