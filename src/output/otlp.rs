//! Lives as OpenTelemetry spans in OTLP/JSON, which Jaeger and Tempo take and this program reads back.
//!
//! A life is one line, an export of its own: a span for the request, one for each record below it, one for each stage
//! below those; tokens and events are events of spans. Records carry the GenAI conventions for other tools, and every
//! canonical column as `infer_stats.COLUMN` for this one. What is no record has no `gen_ai` attribute, so that no tool
//! counts it as a call.

mod attributes;
mod events;
mod ids;
#[cfg(test)]
mod rules;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::{Value as Json, json};

use self::attributes::Attributes;
use self::ids::Ids;
use crate::trace::life::{Life, Record, Stage, Value};

/// Kinds of spans, as the protocol numbers them.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// Of a span's status, as the protocol numbers them.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// The service of a resource that names none, as the conventions have it.
const NO_SERVICE: &str = "unknown_service";

/// Writes each life as a line; one that comes twice is written once, since ids of spans are those of requests.
pub fn write<W: Write>(lives: &[Life], out: &mut W) -> io::Result<()> {
    let traces: HashMap<&str, String> = lives.iter().map(|life| (&*life.id, ids::trace(life))).collect();
    let mut seen = HashSet::new();
    let mut responses = HashSet::new();
    for life in lives.iter().filter(|life| seen.insert(&life.id)) {
        let export = Export { life, ids: Ids::of(life), traces: &traces, resources: Vec::new() };
        writeln!(out, "{}", export.json(&mut responses))?;
    }
    Ok(())
}

/// The spans of one life, those of one resource together.
struct Export<'l> {
    life: &'l Life,
    ids: Ids<'l>,
    /// The trace of each life of the file.
    traces: &'l HashMap<&'l str, String>,
    resources: Vec<Resource<'l>>,
}

/// Who wrote spans: a service on a host.
struct Resource<'l> {
    service: &'l str,
    host: Option<&'l str>,
    spans: Vec<Json>,
}

impl<'l> Export<'l> {
    fn json(mut self, responses: &mut HashSet<&'l str>) -> Json {
        let life = self.life;
        let parents = super::roles::parents(&life.records);
        let users = users(&life.records, &parents);
        // tokens are those of the innermost record
        let rank = |record: &Record| super::roles::rank(record.role.as_deref());
        let last = life.records.iter().enumerate().max_by_key(|(_, record)| rank(record)).map(|(at, _)| at);
        self.request(last.is_none());
        for (at, record) in life.records.iter().enumerate() {
            let parent = parents[at].map_or_else(|| self.ids.request(), |parent| self.ids.record(parent));
            let mut is_first = || text(record, "request_id").is_none_or(|id| responses.insert(id));
            let tells_usage = users.contains(&at) && is_first();
            self.record(at, record, parent, tells_usage, last == Some(at));
        }
        life.stages.iter().enumerate().for_each(|(at, stage)| self.stage(at, stage));
        let scope = json!({ "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") });
        let resource = |resource: Resource<'_>| {
            let mut attributes = Attributes::default();
            attributes.text("service.name", Some(resource.service));
            attributes.text("host.name", resource.host);
            let scopes = json!([{ "scope": scope, "spans": resource.spans }]);
            json!({ "resource": { "attributes": attributes.list() }, "scopeSpans": scopes })
        };
        json!({ "resourceSpans": self.resources.into_iter().map(resource).collect::<Vec<_>>() })
    }

    /// The span of the whole request.
    fn request(&mut self, has_tokens: bool) {
        let life = self.life;
        let mut attributes = Attributes::default();
        attributes.text("infer_stats.span", Some("request"));
        attributes.text("infer_stats.request_id", Some(&life.id));
        attributes.text("infer_stats.asked", Some(&life.asked));
        attributes.text("infer_stats.trace_id", life.trace_id.as_deref());
        attributes.text("infer_stats.outcome", Some(life.outcome));
        attributes.number("infer_stats.total_ms", life.total_ms);
        for fact in &life.facts {
            attributes.value(&format!("infer_stats.fact.{}", fact.name), &fact.value);
        }
        let mut events: Vec<Json> = life.events.iter().map(|event| self.event(event)).collect();
        events.extend(life.findings.iter().map(|finding| self.finding(finding)));
        events.extend(life.missing.iter().map(|missing| {
            let mut attributes = Attributes::of_event("missing", None);
            attributes.text("infer_stats.role", Some(&missing.role));
            attributes.text("infer_stats.text", Some(&missing.text));
            self.mark("missing", None, attributes)
        }));
        events.extend(life.skews.iter().map(|skew| {
            let mut attributes = Attributes::of_event("skew", None);
            attributes.text("infer_stats.role", Some(&skew.role));
            attributes.text("infer_stats.against", Some(&skew.against));
            attributes.number("infer_stats.ahead_ms", Some(skew.ahead_ms));
            attributes.text("infer_stats.text", Some(&skew.text));
            self.mark("skew", None, attributes)
        }));
        if let Some(tokens) = life.tokens.as_ref().filter(|_| has_tokens) {
            events.extend(self.tokens(tokens));
        }
        let status = match life.outcome {
            "success" => json!({ "code": OK }),
            "failed" => json!({ "code": ERROR }),
            _ => json!({}),
        };
        let mut span = json!({
            "traceId": self.ids.trace, "spanId": self.ids.request(), "name": "request", "kind": INTERNAL,
        });
        let end = Some(life.length_ms).filter(|length| *length > 0.0);
        self.times(&mut span, &mut attributes, Some(0.0), end.or(Some(0.0)));
        extend(&mut span, attributes, events, status);
        let links: Vec<Json> = life.neighbours.iter().map(|neighbour| self.link(neighbour)).collect();
        if !links.is_empty() {
            span["links"] = Json::Array(links);
        }
        let rank = |record: &&Record| super::roles::rank(record.role.as_deref()).unwrap_or(usize::MAX);
        let outermost = life.records.iter().min_by_key(rank);
        let (service, host) = outermost.map_or((NO_SERVICE, None), service);
        self.add(service, host, span);
    }

    /// The span of a record.
    fn record(&mut self, at: usize, record: &'l Record, parent: String, tells_usage: bool, has_tokens: bool) {
        let mut attributes = Attributes::default();
        attributes.conventions(record, tells_usage);
        attributes.text("infer_stats.span", Some("record"));
        attributes.count("infer_stats.record", i64::try_from(at).ok());
        attributes.text("infer_stats.place", Some(&record.place));
        for (column, value) in &record.values {
            attributes.value(&format!("infer_stats.{column}"), value);
        }
        let kind = match record.role.as_deref() {
            Some("gateway" | "engine") => SERVER,
            Some("app") => CLIENT,
            _ => INTERNAL,
        };
        let status = match value(record, "failed") {
            Some(Value::Flag(true)) => match text(record, "error_code") {
                Some(error) => json!({ "code": ERROR, "message": error }),
                None => json!({ "code": ERROR }),
            },
            Some(Value::Flag(false)) => json!({ "code": OK }),
            _ => json!({}),
        };
        let name = text(record, "model_name").map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let mut span = json!({
            "traceId": self.ids.trace, "spanId": self.ids.record(at), "parentSpanId": parent,
            "name": name, "kind": kind,
        });
        self.times(&mut span, &mut attributes, record.start_ms, record.end_ms);
        let tokens = self.life.tokens.as_ref().filter(|_| has_tokens);
        let events = tokens.map_or_else(Vec::new, |tokens| self.tokens(tokens));
        extend(&mut span, attributes, events, status);
        let (service, host) = service(record);
        self.add(service, host, span);
    }

    fn stage(&mut self, at: usize, stage: &Stage) {
        let record = stage.record.and_then(|of| Some((of, self.life.records.get(of)?)));
        let mut attributes = Attributes::default();
        attributes.text("infer_stats.span", Some("stage"));
        attributes.text("infer_stats.role", stage.role.as_deref());
        attributes.number("infer_stats.duration_ms", Some(stage.duration_ms));
        attributes.number("infer_stats.share", stage.share);
        attributes.flag("infer_stats.dominant", Some(stage.dominant));
        if let Some(standing) = &stage.standing {
            attributes.text("infer_stats.standing.model_name", standing.model_name.as_deref());
            attributes.text("infer_stats.standing.input_bucket", standing.input_bucket.as_deref());
            attributes.count("infer_stats.standing.count", i64::try_from(standing.count).ok());
            attributes.number("infer_stats.standing.p50_ms", Some(standing.p50_ms));
            attributes.number("infer_stats.standing.p95_ms", Some(standing.p95_ms));
            attributes.number("infer_stats.standing.p99_ms", Some(standing.p99_ms));
            attributes.number("infer_stats.standing.below", Some(standing.below));
        }
        let parent = record.map_or_else(|| self.ids.request(), |(of, _)| self.ids.record(of));
        let mut span = json!({
            "traceId": self.ids.trace, "spanId": self.ids.stage(at), "parentSpanId": parent,
            "name": stage.name, "kind": INTERNAL,
        });
        self.times(&mut span, &mut attributes, Some(stage.start_ms), Some(stage.end_ms));
        extend(&mut span, attributes, Vec::new(), json!({}));
        let own = record.map(|(_, record)| record);
        let of_role = || self.life.records.iter().find(|record| stage.role.is_some() && record.role == stage.role);
        let (service, host) = own.or_else(of_role).or(self.life.records.first()).map_or((NO_SERVICE, None), service);
        self.add(service, host, span);
    }

    fn add(&mut self, service: &'l str, host: Option<&'l str>, span: Json) {
        match self.resources.iter_mut().find(|resource| resource.service == service && resource.host == host) {
            Some(resource) => resource.spans.push(span),
            None => self.resources.push(Resource { service, host, spans: vec![span] }),
        }
    }

    /// Gives a span its times. The protocol knows no span without them: what is not known is said in an attribute, and
    /// stands where the other time stands, else at the origin.
    fn times(&self, span: &mut Json, attributes: &mut Attributes, start_ms: Option<f64>, end_ms: Option<f64>) {
        let (from, to) = (self.time(start_ms), self.time(end_ms));
        let start = from.or(to).unwrap_or_else(|| self.origin());
        attributes.text(
            "infer_stats.undated",
            match (from, to) {
                (Some(_), Some(_)) => None,
                (None, Some(_)) => Some("start"),
                (Some(_), None) => Some("end"),
                (None, None) => Some("both"),
            },
        );
        span["startTimeUnixNano"] = json!(start.to_string());
        span["endTimeUnixNano"] = json!(to.unwrap_or(start).max(start).to_string());
    }

    fn origin(&self) -> i64 {
        self.life.origin_ns.unwrap_or(0).max(0)
    }

    /// Nanoseconds since 1970, which the protocol has without a sign.
    fn time(&self, ms: Option<f64>) -> Option<i64> {
        let ns = (ms.filter(|ms| ms.is_finite())? * 1e6).round() as i64;
        self.life.origin_ns?.checked_add(ns).filter(|time| *time >= 0)
    }
}

fn extend(span: &mut Json, attributes: Attributes, events: Vec<Json>, status: Json) {
    span["attributes"] = attributes.list();
    if !events.is_empty() {
        span["events"] = Json::Array(events);
    }
    span["status"] = status;
}

/// Records that tell their usage by the conventions: those with tokens that called no other with tokens, so that tools
/// that add up the spans of a trace count no token twice.
fn users(records: &[Record], parents: &[Option<usize>]) -> HashSet<usize> {
    let counts = |record: &Record| ["input_tokens", "output_tokens"].iter().any(|name| value(record, name).is_some());
    let mut users: HashSet<usize> = (0..records.len()).filter(|&at| counts(&records[at])).collect();
    for user in users.clone() {
        let mut above = parents[user];
        while let Some(parent) = above {
            users.remove(&parent);
            above = parents[parent];
        }
    }
    users
}

/// The service and host of a record; a role is as good as a name for it.
fn service(record: &Record) -> (&str, Option<&str>) {
    let service = text(record, "service").or(record.role.as_deref()).filter(|service| !service.is_empty());
    (service.unwrap_or(NO_SERVICE), text(record, "host").or(record.host.as_deref()))
}

fn value<'r>(record: &'r Record, column: &str) -> Option<&'r Value> {
    record.values.iter().find(|(name, _)| *name == column).map(|(_, value)| value)
}

fn text<'r>(record: &'r Record, column: &str) -> Option<&'r str> {
    match value(record, column)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::rules::{attribute, read};
    use super::*;
    use crate::output::any_life::{Draws, LIVES, ORIGIN, stalled};

    fn lines(lives: &[Life]) -> Vec<String> {
        let mut out = Vec::new();
        write(lives, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    fn spans(life: &Life) -> Vec<Json> {
        let lines = lines(std::slice::from_ref(life));
        assert_eq!(lines.len(), 1);
        read(&lines[0]).unwrap_or_else(|why| panic!("{why}"))
    }

    fn of_kind(life: &Life, kind: &str) -> Vec<Json> {
        let is = |span: &Json| attribute(span, "infer_stats.span").is_some_and(|span| span["stringValue"] == kind);
        let mut spans: Vec<Json> = spans(life).into_iter().filter(is).collect();
        let place = |span: &Json| attribute(span, "infer_stats.record").map(|at| at["intValue"].to_string());
        spans.sort_by_key(place);
        spans
    }

    /// A value as the wrapping has it.
    fn unwrapped(wrapped: &Json, like: &Value) -> Value {
        let text = |kind: &str| wrapped[kind].as_str().unwrap().to_owned();
        match like {
            Value::Text(_) => Value::Text(text("stringValue")),
            Value::Money(_) => Value::Money(text("stringValue")),
            Value::Count(_) => Value::Count(text("intValue").parse().unwrap()),
            Value::Number(_) => Value::Number(wrapped["doubleValue"].as_f64().unwrap()),
            Value::Flag(_) => Value::Flag(wrapped["boolValue"].as_bool().unwrap()),
            Value::Time(_) => {
                let time: jiff::Timestamp = text("stringValue").parse().unwrap();
                Value::Time(time.as_nanosecond() as i64)
            }
        }
    }

    #[test]
    fn whatever_the_lives_each_line_keeps_the_rules() {
        for seed in 0..LIVES {
            let mut draws = Draws::of(seed);
            let lives: Vec<Life> = (0..seed % 4).map(|_| draws.life()).collect();
            let ids: HashSet<_> = lives.iter().map(|life| &life.id).collect();
            let lines = lines(&lives);
            assert_eq!(lines.len(), ids.len());
            lines.iter().for_each(|line| drop(read(line).unwrap_or_else(|why| panic!("{seed}: {why}"))));
        }
    }

    #[test]
    fn a_record_has_just_its_canonical_values() {
        for seed in 0..LIVES {
            let life = Draws::of(seed).life();
            let spans = of_kind(&life, "record");
            assert_eq!(spans.len(), life.records.len());
            for (record, span) in life.records.iter().zip(&spans) {
                let read = |(column, value): &(&'static str, Value)| {
                    let wrapped = attribute(span, &format!("infer_stats.{column}")).unwrap();
                    (*column, unwrapped(wrapped, value))
                };
                assert_eq!(record.values.iter().map(read).collect::<Vec<_>>(), record.values);
                let own = ["span", "record", "place", "undated"].map(|name| format!("infer_stats.{name}"));
                let keys = span["attributes"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap());
                let columns = keys.filter(|key| key.starts_with("infer_stats.") && own.iter().all(|own| own != key));
                assert_eq!(columns.count(), record.values.len());
            }
        }
    }

    #[test]
    fn what_is_no_record_is_no_call_and_no_token_is_counted_twice() {
        for seed in 0..LIVES {
            let life = Draws::of(seed).life();
            let spans = spans(&life);
            let says = |span: &Json, start: &str| {
                span["attributes"].as_array().unwrap().iter().any(|one| one["key"].as_str().unwrap().starts_with(start))
            };
            for span in &spans {
                assert_eq!(says(span, "gen_ai."), attribute(span, "infer_stats.record").is_some());
                let mut above = span.get("parentSpanId");
                while let Some(id) = above.filter(|_| says(span, "gen_ai.usage.")) {
                    let parent = spans.iter().find(|span| span["spanId"] == *id).unwrap();
                    assert!(!says(parent, "gen_ai.usage."), "{parent}");
                    above = parent.get("parentSpanId");
                }
            }
        }
    }

    #[test]
    fn every_token_is_an_event_with_all_that_its_step_says() {
        for seed in 0..LIVES {
            let life = Draws::of(seed).life();
            let Some(tokens) = &life.tokens else { continue };
            let all = spans(&life);
            let events = all.iter().flat_map(|span| span["events"].as_array().cloned().unwrap_or_default());
            let is_step = |event: &Json| attribute(event, "infer_stats.token_index").is_some();
            let events: Vec<Json> = events.filter(is_step).collect();
            assert_eq!(events.len(), tokens.steps.len());
            for (event, step) in events.iter().zip(&tokens.steps) {
                let number = |key: &str| attribute(event, key).and_then(|value| value["doubleValue"].as_f64());
                let count = |key: &str| attribute(event, key)?["intValue"].as_str()?.parse::<i64>().ok();
                let flag = |key: &str| attribute(event, key).and_then(|value| value["boolValue"].as_bool());
                assert_eq!(count("infer_stats.token_index"), Some(step.index));
                assert_eq!(number("infer_stats.step_ms"), step.step_ms.filter(|ms| ms.is_finite()));
                assert_eq!(number("infer_stats.wait_ms"), step.wait_ms);
                assert_eq!(count("infer_stats.context_len"), step.context_len);
                assert_eq!(count("infer_stats.batch_size"), step.batch_size);
                assert_eq!(flag("infer_stats.cache_hit"), step.cache_hit);
                assert_eq!(flag("infer_stats.recompute"), step.recompute);
                assert_eq!(flag("infer_stats.stall"), step.stall.then_some(true));
                let at = step.at_ms.filter(|at| at.abs() < 1e9).zip(life.origin_ns);
                let at = at.map(|(at, origin)| (origin + (at * 1e6).round() as i64).to_string());
                assert_eq!(attribute(event, "infer_stats.timestamp").is_some(), at.is_some());
                assert!(at.is_none_or(|at| event["timeUnixNano"] == at));
            }
        }
    }

    #[test]
    fn a_retry_links_to_the_span_that_it_has_in_the_same_file() {
        let mut retry = stalled();
        retry.id = "req-retry-03".to_owned();
        retry.trace_id = None;
        let lines = lines(&[stalled(), retry]);
        let root = |line: &str| read(line).unwrap().into_iter().find(|span| span.get("links").is_some()).unwrap();
        let (first, second) = (root(&lines[0]), root(&lines[1]));
        assert_eq!(
            (&first["links"][0]["traceId"], &first["links"][0]["spanId"]),
            (&second["traceId"], &second["spanId"])
        );
        assert_ne!(first["traceId"], second["traceId"]);
    }

    #[test]
    fn a_record_reads_as_a_span_of_its_caller() {
        let spans = of_kind(&stalled(), "record");
        let (gateway, engine) = (&spans[0], &spans[1]);
        assert_eq!(engine["parentSpanId"], gateway["spanId"]);
        assert_eq!(engine["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(engine["startTimeUnixNano"], (ORIGIN + 2_500_000).to_string());
        assert_eq!(engine["endTimeUnixNano"], (ORIGIN + 422_000_001).to_string());
        assert_eq!((&engine["name"], &engine["kind"]), (&json!("chat m"), &json!(SERVER)));
        assert_eq!((&gateway["status"], &engine["status"]), (&json!({ "code": 1 }), &json!({})));
        assert_eq!(
            engine["attributes"],
            json!([
                { "key": "gen_ai.operation.name", "value": { "stringValue": "chat" } },
                { "key": "gen_ai.request.model", "value": { "stringValue": "m" } },
                { "key": "gen_ai.response.id", "value": { "stringValue": "req-stall-06" } },
                { "key": "gen_ai.usage.output_tokens", "value": { "intValue": "3" } },
                { "key": "infer_stats.span", "value": { "stringValue": "record" } },
                { "key": "infer_stats.record", "value": { "intValue": "1" } },
                { "key": "infer_stats.place", "value": { "stringValue": "engine.ndjson:17" } },
                { "key": "infer_stats.request_id", "value": { "stringValue": "req-stall-06" } },
                { "key": "infer_stats.timestamp", "value": { "stringValue": "2026-01-02T03:00:00.002500000Z" } },
                { "key": "infer_stats.model_name", "value": { "stringValue": "m" } },
                { "key": "infer_stats.output_tokens", "value": { "intValue": "3" } },
            ])
        );
        assert_eq!(
            engine["events"][2],
            json!({
                "timeUnixNano": (ORIGIN + 400_000_000).to_string(),
                "name": "token",
                "attributes": [
                    { "key": "infer_stats.event", "value": { "stringValue": "token" } },
                    { "key": "infer_stats.token_index", "value": { "intValue": "2" } },
                    { "key": "infer_stats.step_ms", "value": { "doubleValue": 334.0 } },
                    { "key": "infer_stats.cache_hit", "value": { "boolValue": false } },
                    { "key": "infer_stats.state", "value": { "stringValue": "cache_miss" } },
                    { "key": "infer_stats.stall", "value": { "boolValue": true } },
                    { "key": "infer_stats.timestamp", "value": { "stringValue": "2026-01-02T03:00:00.400000000Z" } },
                ],
            })
        );
    }
}
