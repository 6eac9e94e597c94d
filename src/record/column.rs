//! The columns of the canonical record: names, types, and what each means.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// What kind of value a column holds; it decides the Arrow type and how a log's value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text exactly as written.
    Text,
    /// Text that names something: `''`, `-`, `null` and `None` are missing.
    Id,
    /// A whole number, Int64.
    Count,
    /// A plain decimal number, Float64.
    Number,
    /// Float64 milliseconds.
    Duration,
    /// An instant, nanoseconds UTC.
    Time,
    Flag,
    /// Decimal(38, 12), read from the text and never through a float.
    Money,
}

impl Kind {
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Text | Kind::Id => DataType::Utf8View,
            Kind::Count => DataType::Int64,
            Kind::Number | Kind::Duration => DataType::Float64,
            Kind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Kind::Flag => DataType::Boolean,
            Kind::Money => DataType::Decimal128(38, 12),
        }
    }

    /// The unit that a column of this kind is in, as reports print it.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Duration => "ms",
            _ => "",
        }
    }
}

macro_rules! columns {
    ($($variant:ident $name:literal $kind:ident $definition:literal;)*) => {
        /// A column of the canonical record, in schema order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Column { $($variant),* }

        impl Column {
            pub const ALL: &'static [Column] = &[$(Column::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Column::$variant => $name),* }
            }

            pub fn kind(self) -> Kind {
                match self { $(Column::$variant => Kind::$kind),* }
            }

            /// One line for people: what the column holds.
            pub fn definition(self) -> &'static str {
                match self { $(Column::$variant => $definition),* }
            }
        }
    };
}

columns! {
    RequestId "request_id" Id "the request's id, as written";
    TraceId "trace_id" Id "id of the trace that the request belongs to";
    PreviousRequestId "previous_request_id" Id "the request that this one retries or reconnects";
    BatchId "batch_id" Id "the batch that it ran in";
    SessionId "session_id" Id "the conversation or session";
    Attempt "attempt" Count "1 for the first try";
    Role "role" Text "who wrote the record: gateway, engine or app";
    Service "service" Text "the service that wrote it";
    Host "host" Text "the machine that wrote it";
    Timestamp "timestamp" Time "arrival of the request";
    ForwardedAt "forwarded_at" Time "when the gateway passed it on";
    ScheduledAt "scheduled_at" Time "when the engine took it from its queue";
    FirstTokenAt "first_token_at" Time "first token";
    CompletedAt "completed_at" Time "end of the response";
    BusinessLine "business_line" Id "who pays";
    Tenant "tenant" Id "tenant, team or organisation";
    UserTag "user_tag" Id "the user, as the log names them";
    App "app" Id "the calling application";
    Tags "tags" Text "free tags, as written";
    ModelName "model_name" Id "the model that answered";
    ModelVersion "model_version" Id "its version";
    Provider "provider" Id "who serves it";
    Deployment "deployment" Id "which deployment of it";
    Stream "stream" Flag "whether the answer was streamed";
    Priority "priority" Text "scheduling priority, as written";
    Temperature "temperature" Number "sampling temperature";
    TopP "top_p" Number "nucleus sampling";
    MaxTokens "max_tokens" Count "the asked limit of output tokens";
    PromptHash "prompt_hash" Id "hash of the prompt";
    PrefixHashes "prefix_hashes" Text "hashes of the prompt's blocks from its front on, a JSON list";
    PromptVersion "prompt_version" Id "version of the prompt template";
    ServiceTier "service_tier" Id "batch, flex, default, priority";
    InputTokens "input_tokens" Count "prompt tokens, cached ones included";
    OutputTokens "output_tokens" Count "generated tokens, reasoning included";
    CachedTokens "cached_tokens" Count "prompt tokens reused from the prefix cache";
    CacheWriteTokens "cache_write_tokens" Count "prompt tokens written to a cache";
    CacheWrite1hTokens "cache_write_1h_tokens" Count "of the tokens written to a cache, those kept for an hour";
    ReasoningTokens "reasoning_tokens" Count "reasoning tokens, inside the output";
    TotalTokens "total_tokens" Count "total as logged";
    OriginalInputTokens "original_input_tokens" Count "prompt tokens before truncation";
    InputTruncated "input_truncated" Flag "whether the prompt was cut";
    TokenOrigin "token_origin" Text "server usage, engine count or client estimate";
    AuthMs "auth_ms" Duration "authentication";
    PreprocessMs "preprocess_ms" Duration "tokenising and preparing";
    QueueWaitMs "queue_wait_ms" Duration "arrival to scheduling";
    PrefillTimeMs "prefill_time_ms" Duration "scheduling to first token";
    DecodeTimeMs "decode_time_ms" Duration "first to last token";
    PostprocessMs "postprocess_ms" Duration "after the last token";
    NetworkMs "network_ms" Duration "on the wire";
    TtftMs "ttft_ms" Duration "time to first token: first token - arrival, queue included; null when not streamed";
    TpotMs "tpot_ms" Duration "time per output token: (total - TTFT) / (output tokens - 1); null below 2 tokens";
    TotalLatencyMs "total_latency_ms" Duration "end of the response - arrival";
    GpuId "gpu_id" Id "the GPU, as text";
    GpuPool "gpu_pool" Id "the pool that the GPU belongs to";
    BatchSize "batch_size" Count "requests in its batch";
    GpuMemPeakMb "gpu_mem_peak_mb" Number "peak GPU memory, MB";
    GpuUtil "gpu_util" Number "GPU utilisation, as written";
    CacheHit "cache_hit" Flag "whether the prefix cache was hit";
    ResponseCacheHit "response_cache_hit" Flag "whether the gateway answered from its own cache";
    Status "status" Text "status, as written";
    ErrorCode "error_code" Text "error code as text; 0 and empty are no error";
    ErrorStage "error_stage" Text "the stage that failed";
    HttpStatus "http_status" Count "HTTP status of the response";
    FinishReason "finish_reason" Text "why generation ended, as written";
    Failed "failed" Flag "whether the request failed; null when the log does not say";
    CostLogged "cost_logged" Money "cost as the log states it";
    Currency "currency" Text "its currency";
    SampleWeight "sample_weight" Number "how many requests the record stands for; 1 unless the log says it was sampled";
    SourceFile "source_file" Text "the file that the record came from";
    SourceOffset "source_offset" Count "byte of the (decompressed) file where the record starts; null in Parquet";
}

impl Column {
    pub fn index(self) -> usize {
        self as usize
    }

    pub fn named(name: &str) -> Option<Column> {
        Self::ALL.iter().copied().find(|column| column.name() == name)
    }
}

/// The schema of the canonical record, all columns nullable.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let fields = Column::ALL.iter().map(|column| Field::new(column.name(), column.kind().data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    });
    SCHEMA.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_found_by_its_name_and_stands_at_its_index() {
        for (index, column) in Column::ALL.iter().enumerate() {
            assert_eq!(Column::named(column.name()), Some(*column));
            assert_eq!(column.index(), index);
            assert_eq!(schema().field(index).name(), column.name());
        }
    }
}
