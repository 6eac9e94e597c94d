//! Attributes of spans, events and links.

use serde_json::{Value as Json, json};

use super::{text, value};
use crate::trace::life::{Record, Value};

/// A list of keys and values as the protocol writes it.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<Json>);

impl Attributes {
    /// Those of an event: what kind it is and how long it took.
    pub fn of_event(kind: &str, duration_ms: Option<f64>) -> Self {
        let mut attributes = Self::default();
        attributes.text("infer_stats.event", Some(kind));
        attributes.number("infer_stats.duration_ms", duration_ms);
        attributes
    }

    pub fn list(self) -> Json {
        Json::Array(self.0)
    }

    fn push(&mut self, key: &str, value: Json) {
        self.0.push(json!({ "key": key, "value": value }));
    }

    pub fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.push(key, json!({ "stringValue": text }));
        }
    }

    /// As text, since JSON numbers of other languages are no 64-bit integers.
    pub fn count(&mut self, key: &str, count: Option<i64>) {
        if let Some(count) = count {
            self.push(key, json!({ "intValue": count.to_string() }));
        }
    }

    pub fn number(&mut self, key: &str, number: Option<f64>) {
        if let Some(number) = number {
            self.push(key, json!({ "doubleValue": double(number) }));
        }
    }

    pub fn flag(&mut self, key: &str, flag: Option<bool>) {
        if let Some(flag) = flag {
            self.push(key, json!({ "boolValue": flag }));
        }
    }

    pub fn value_if(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.value(key, &value);
        }
    }

    /// A canonical value, so that it is read back as it was: times with all their digits, money as its text.
    pub fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::Text(text) | Value::Money(text) => self.text(key, Some(text)),
            Value::Count(count) => self.count(key, Some(*count)),
            Value::Number(number) => self.number(key, Some(*number)),
            Value::Flag(flag) => self.flag(key, Some(*flag)),
            Value::Time(ns) => {
                let time = jiff::Timestamp::from_nanosecond(i128::from(*ns)).ok();
                self.text(key, time.map(|time| format!("{time:.9}")).as_deref());
            }
        }
    }

    /// What a record says in the words of the GenAI semantic conventions
    /// (<https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/>).
    pub fn conventions(&mut self, record: &Record, tells_usage: bool) {
        const SAME: [(&str, &str); 9] = [
            ("gen_ai.provider.name", "provider"),
            ("gen_ai.request.model", "model_name"),
            ("gen_ai.conversation.id", "session_id"),
            ("gen_ai.request.stream", "stream"),
            ("gen_ai.request.temperature", "temperature"),
            ("gen_ai.request.top_p", "top_p"),
            ("gen_ai.request.max_tokens", "max_tokens"),
            ("user.id", "user_tag"),
            ("http.response.status_code", "http_status"),
        ];
        const USAGE: [(&str, &str); 6] = [
            ("gen_ai.response.id", "request_id"),
            ("gen_ai.usage.input_tokens", "input_tokens"),
            ("gen_ai.usage.output_tokens", "output_tokens"),
            ("gen_ai.usage.cache_read.input_tokens", "cached_tokens"),
            ("gen_ai.usage.cache_creation.input_tokens", "cache_write_tokens"),
            ("gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"),
        ];
        // required; logs of requests do not tell chats from completions
        self.text("gen_ai.operation.name", Some("chat"));
        let usage = USAGE.iter().filter(|_| tells_usage);
        for (name, column) in SAME.iter().chain(usage) {
            if let Some(value) = value(record, column) {
                self.value(name, value);
            }
        }
        if let Some(Value::Number(ttft_ms)) = value(record, "ttft_ms") {
            self.number("gen_ai.response.time_to_first_chunk", Some(ttft_ms / 1000.0));
        }
        if let Some(reason) = text(record, "finish_reason") {
            let reasons = json!({ "arrayValue": { "values": [{ "stringValue": reason }] } });
            self.push("gen_ai.response.finish_reasons", reasons);
        }
        if value(record, "failed") == Some(&Value::Flag(true)) {
            self.text("error.type", text(record, "error_code"));
        }
    }
}

/// A double; those that are no number have names (<https://protobuf.dev/programming-guides/json/>).
fn double(number: f64) -> Json {
    match number {
        _ if number.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!(number),
    }
}
