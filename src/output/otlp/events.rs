//! What spans carry besides attributes: events, and links to other requests.

use serde_json::{Value as Json, json};

use super::attributes::Attributes;
use super::{Export, ids};
use crate::trace::life::{Event, Finding, Neighbour, Stall, Step, Tokens, Value};

impl Export<'_> {
    /// An event of a span.
    pub(super) fn mark(&self, name: &str, at_ms: Option<f64>, mut attributes: Attributes) -> Json {
        let at = self.time(at_ms);
        attributes.value_if("infer_stats.timestamp", at.map(Value::Time));
        let at = at.unwrap_or_else(|| self.origin());
        let name = if name.is_empty() { "event" } else { name };
        json!({ "timeUnixNano": at.to_string(), "name": name, "attributes": attributes.list() })
    }

    pub(super) fn event(&self, event: &Event) -> Json {
        let mut attributes = Attributes::of_event("event", event.duration_ms);
        attributes.text("infer_stats.text", Some(&event.text));
        attributes.text("infer_stats.role", event.role.as_deref());
        attributes.text("infer_stats.host", event.host.as_deref());
        attributes.text("infer_stats.gpu_id", event.gpu_id.as_deref());
        attributes.text("infer_stats.place", Some(&event.place));
        self.mark(&event.name, event.at_ms, attributes)
    }

    pub(super) fn finding(&self, finding: &Finding) -> Json {
        let mut attributes = Attributes::of_event("finding", None);
        attributes.text("infer_stats.code", Some(finding.code));
        attributes.text("infer_stats.severity", Some(finding.severity));
        attributes.text("infer_stats.text", Some(&finding.text));
        self.mark("finding", None, attributes)
    }

    /// Every step, and every stall.
    pub(super) fn tokens(&self, tokens: &Tokens) -> Vec<Json> {
        let unit = if tokens.unit.is_empty() { "token" } else { tokens.unit };
        let steps = tokens.steps.iter().map(|step| self.mark(unit, step.at_ms, of_step(step)));
        let stalls = tokens.stalls.iter().map(|stall| self.mark("stall", stall.at_ms, of_stall(stall)));
        steps.chain(stalls).collect()
    }

    /// A link to another request: to its span in this file where it is there, else to what its span would be.
    pub(super) fn link(&self, neighbour: &Neighbour) -> Json {
        let same_trace = || matches!(neighbour.relation, "trace" | "parent" | "child").then(|| self.ids.trace.clone());
        let trace = self.traces.get(&*neighbour.id).cloned().or_else(same_trace);
        let mut attributes = Attributes::default();
        attributes.text("infer_stats.relation", Some(neighbour.relation));
        attributes.text("infer_stats.request_id", Some(&neighbour.id));
        attributes.text("infer_stats.role", neighbour.role.as_deref());
        attributes.text("infer_stats.outcome", Some(neighbour.outcome));
        attributes.text("infer_stats.gpu_id", neighbour.gpu_id.as_deref());
        attributes.text("infer_stats.batch_id", neighbour.batch_id.as_deref());
        attributes.count("infer_stats.input_tokens", neighbour.input_tokens);
        attributes.count("infer_stats.output_tokens", neighbour.output_tokens);
        attributes.number("infer_stats.queue_wait_ms", neighbour.queue_wait_ms);
        attributes.number("infer_stats.decode_time_ms", neighbour.decode_time_ms);
        attributes.value_if("infer_stats.start", self.time(neighbour.start_ms).map(Value::Time));
        attributes.value_if("infer_stats.end", self.time(neighbour.end_ms).map(Value::Time));
        attributes.text("infer_stats.place", Some(&neighbour.place));
        json!({
            "traceId": trace.unwrap_or_else(|| ids::trace_of(&neighbour.id)),
            "spanId": ids::request(&neighbour.id), "attributes": attributes.list(),
        })
    }
}

fn of_step(step: &Step) -> Attributes {
    let mut attributes = Attributes::of_event("token", None);
    attributes.count("infer_stats.token_index", Some(step.index));
    attributes.number("infer_stats.step_ms", step.step_ms);
    attributes.number("infer_stats.wait_ms", step.wait_ms);
    attributes.count("infer_stats.context_len", step.context_len);
    attributes.flag("infer_stats.cache_hit", step.cache_hit);
    attributes.flag("infer_stats.recompute", step.recompute);
    attributes.count("infer_stats.batch_size", step.batch_size);
    attributes.text("infer_stats.state", Some(step.state));
    attributes.flag("infer_stats.stall", step.stall.then_some(true));
    attributes
}

fn of_stall(stall: &Stall) -> Attributes {
    let mut attributes = Attributes::of_event("stall", None);
    attributes.count("infer_stats.stalled_index", Some(stall.index));
    attributes.number("infer_stats.step_ms", Some(stall.step_ms));
    attributes.number("infer_stats.over_ms", Some(stall.over_ms));
    attributes.text("infer_stats.cause", Some(stall.cause));
    attributes.count("infer_stats.neighbours", i64::try_from(stall.neighbours).ok());
    attributes.text("infer_stats.text", Some(&stall.text));
    attributes
}
