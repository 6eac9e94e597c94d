//! `engine`: one line per attempt that reached an engine.

use anyhow::Result;

use crate::generate::attempt::Attempt;
use crate::generate::history::Call;
use crate::generate::request::Request;

use super::{Fields, Line};

#[derive(Default)]
pub struct EngineLine {
    request_id: String,
    at_us: i64,
    model_name: &'static str,
    model_version: &'static str,
    business_line: &'static str,
    user_tag: String,
    input_tokens: u64,
    output_tokens: u64,
    queue_wait_us: u64,
    prefill_us: Option<u64>,
    decode_us: Option<u64>,
    total_us: u64,
    gpu_id: Option<u64>,
    batch_size: Option<u64>,
    cached_tokens: Option<u64>,
    error_code: u64,
    postprocess_us: Option<u64>,
    ttft_us: Option<u64>,
    stream: bool,
    gpu_pool: Option<&'static str>,
    gpu_mem_peak_mb: Option<u64>,
    error_stage: Option<&'static str>,
    finish_reason: Option<&'static str>,
    attempt: u64,
}

impl EngineLine {
    pub fn new(request: &Request, call: &Call, at_us: i64, attempt: &Attempt) -> Self {
        let placement = attempt.placement.as_ref();
        EngineLine {
            request_id: call.request_id.clone(),
            at_us,
            model_name: request.model.name,
            model_version: request.version.name,
            business_line: request.line.name,
            user_tag: request.user_tag.clone(),
            input_tokens: request.input_tokens,
            output_tokens: attempt.output_tokens,
            queue_wait_us: attempt.queue_us,
            prefill_us: attempt.prefill_us,
            decode_us: attempt.decode_us,
            total_us: attempt.total_us(),
            gpu_id: placement.map(|placement| placement.gpu_id),
            batch_size: placement.map(|placement| placement.batch_size),
            cached_tokens: placement.map(|_| request.cached_tokens),
            error_code: attempt.fault.map_or(0, |fault| fault.engine_code()),
            postprocess_us: attempt.postprocess_us,
            ttft_us: attempt.ttft_us,
            stream: request.stream,
            gpu_pool: placement.map(|_| request.model.gpu_pool),
            gpu_mem_peak_mb: placement.map(|placement| placement.memory_peak_mb),
            error_stage: attempt.fault.map(|fault| fault.stage()),
            finish_reason: attempt.fault.is_none().then_some(request.finish_reason),
            attempt: call.number,
        }
    }
}

impl Line for EngineLine {
    const LOG: &'static str = "engine";

    fn at_us(&self) -> i64 {
        self.at_us
    }

    fn write<F: Fields>(&self, fields: &mut F) -> Result<()> {
        fields.text("request_id", self.request_id.as_str())?;
        fields.time("timestamp", self.at_us)?;
        fields.text("model_name", self.model_name)?;
        fields.text("model_version", self.model_version)?;
        fields.text("business_line", self.business_line)?;
        fields.text("user_tag", self.user_tag.as_str())?;
        fields.whole("input_tokens", self.input_tokens)?;
        fields.whole("output_tokens", self.output_tokens)?;
        fields.thousandths("queue_wait_ms", self.queue_wait_us)?;
        fields.thousandths("prefill_time_ms", self.prefill_us)?;
        fields.thousandths("decode_time_ms", self.decode_us)?;
        fields.thousandths("total_latency_ms", self.total_us)?;
        fields.text("gpu_id", self.gpu_id.map(|id| id.to_string()).as_deref())?;
        fields.whole("batch_size", self.batch_size)?;
        fields.flag("cache_hit", self.cached_tokens.map(|tokens| tokens > 0))?;
        fields.whole("error_code", self.error_code)?;
        fields.whole("cache_prefix_length", self.cached_tokens)?;
        fields.thousandths("postprocess_ms", self.postprocess_us)?;
        fields.thousandths("ttft_ms", self.ttft_us)?;
        fields.flag("stream", self.stream)?;
        fields.text("gpu_pool", self.gpu_pool)?;
        fields.whole("gpu_mem_peak_mb", self.gpu_mem_peak_mb)?;
        fields.text("error_stage", self.error_stage)?;
        fields.text("finish_reason", self.finish_reason)?;
        fields.whole("attempt", self.attempt)
    }
}
