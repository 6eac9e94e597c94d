//! One span of any export, as a flat object: the same keys whether it came as OTLP, from Tempo or flattened.

use std::borrow::Cow;

use super::Part;
use super::nesting::Item;
use crate::source::json::{ObjectWriter, Tree, write_text};

/// A span with what is needed to know whether it is a request of its own.
#[derive(Debug)]
pub(super) struct Span {
    json: Vec<u8>,
    id: String,
    parent: Option<String>,
    /// The provider's id of the response.
    response: Option<String>,
    has_usage: bool,
    /// Events of the logs in what this program exports, each as a record of its own.
    happenings: Vec<Vec<u8>>,
}

/// Attributes that give the provider's id of a response.
const RESPONSE_IDS: [&str; 3] = ["gen_ai.response.id", "llm.response.id", "ai.response.id"];

/// The attribute of a record of the logs in what this program exports: each is a row, whichever called which.
const RECORD: &str = "infer_stats.record";

/// The attribute of the request that a span belongs to, there.
const REQUEST: &str = "infer_stats.request_id";

/// Attributes of an event of the logs there, with the keys that a log writes them under.
const OF_EVENTS: [(&str, &str); 6] = [
    ("infer_stats.timestamp", "timestamp"),
    ("infer_stats.text", "message"),
    ("infer_stats.role", "role"),
    ("infer_stats.host", "host"),
    ("infer_stats.gpu_id", "gpu_id"),
    ("infer_stats.duration_ms", "duration_ms"),
];

/// Bytes of a value of an event that is kept. Prompts and answers stand in events too, and no column is read from them.
const LONGEST: usize = 256;

/// How attributes that count tokens begin.
const USAGES: [&str; 4] = ["gen_ai.usage.", "llm.usage.", "llm.token_count.", "ai.usage."];

impl Span {
    /// What happened to the request, as records to be recognised.
    pub fn happenings(&mut self, offset: u64) -> impl Iterator<Item = Part> + use<> {
        std::mem::take(&mut self.happenings).into_iter().map(move |json| Part { json, offset: Some(offset) })
    }

    /// The span with its place among the others.
    pub fn item(self, offset: u64) -> Item {
        let Self { json, id, parent, response, has_usage, .. } = self;
        Item { part: Part { json, offset: Some(offset) }, id, parent, response, has_usage }
    }

    /// Reads a span; `resource` and `scope` are what stands around it.
    pub fn of(tree: &Tree<'_>, resource: Option<&Tree<'_>>, scope: Option<&Tree<'_>>) -> Self {
        let first = |keys: &[&str]| keys.iter().find_map(|key| tree.get(key).filter(|value| value.text != b"null"));
        let text = |keys: &[&str]| first(keys).and_then(Tree::scalar);
        let context = |key: &str| tree.get("context").and_then(|context| context.get(key)).and_then(Tree::scalar);
        let id = text(&["spanId", "span_id"]).or_else(|| context("span_id")).unwrap_or_default();
        let parent = text(&["parentSpanId", "parent_span_id", "parent_id"]).filter(|parent| !parent.is_empty());
        let attributes = attributes(tree.get("attributes"));
        let resource = match first(&["resource_attributes"]) {
            Some(own) => self::attributes(Some(own)),
            None => self::attributes(resource.and_then(|resource| resource.get("attributes"))),
        };
        let attribute = |name: &str| attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let is_record = attribute(RECORD).is_some();
        let response = RESPONSE_IDS
            .iter()
            .filter(|_| !is_record)
            .find_map(|name| attribute(name))
            .and_then(|json| scalar_text(json));

        let mut json = Vec::with_capacity(tree.text.len());
        let mut object = ObjectWriter::new(&mut json);
        let mut copy = |name: &str, value: Option<Cow<'_, str>>| {
            if let Some(value) = value {
                write_text(&value, object.key(name));
            }
        };
        copy("trace_id", text(&["traceId", "trace_id"]).or_else(|| context("trace_id")));
        copy("span_id", Some(id.clone()));
        copy("parent_span_id", parent.clone());
        copy("name", text(&["name"]));
        copy("kind", text(&["kind"]));
        copy("start_time", text(&["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"]));
        copy("end_time", text(&["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"]));
        let status = |key: &str| tree.get("status").and_then(|status| status.get(key)).and_then(Tree::scalar);
        copy("status_code", status("code").or_else(|| status("status_code")));
        copy("status_message", status("message").or_else(|| status("description")));
        copy("scope_name", scope.and_then(|scope| scope.get("name")).and_then(Tree::scalar));
        for (name, members) in [("attributes", &attributes), ("resource", &resource)] {
            let mut inner = ObjectWriter::new(object.key(name));
            members.iter().for_each(|(key, value)| inner.key(key).extend_from_slice(value));
            inner.end();
        }
        let mut happenings = Vec::new();
        if let Some(list) = tree.get("events").filter(|list| !list.items().is_empty()) {
            events(list, object.key("events"));
            let request = attribute(REQUEST).and_then(|json| scalar_text(json));
            happenings.extend(list.items().iter().filter_map(|event| happening(event, request.as_deref())));
        }
        object.end();
        let has_usage =
            !is_record && attributes.iter().any(|(key, _)| USAGES.iter().any(|usage| key.starts_with(usage)));
        Self { json, id: id.into_owned(), parent: parent.map(Cow::into_owned), response, has_usage, happenings }
    }
}

/// An event of the logs as a log writes it; None for the other events of a span.
fn happening(event: &Tree<'_>, request: Option<&str>) -> Option<Vec<u8>> {
    let attributes = attributes(event.get("attributes"));
    let attribute = |name: &str| attributes.iter().find(|(key, _)| key == name).and_then(|(_, json)| scalar_text(json));
    attribute("infer_stats.event").filter(|kind| kind == "event")?;
    let mut json = Vec::new();
    let mut object = ObjectWriter::new(&mut json);
    write_text(&event.get("name").and_then(Tree::scalar)?, object.key("event"));
    if let Some(request) = request {
        write_text(request, object.key("request_id"));
    }
    for (name, key) in OF_EVENTS {
        if let Some(value) = attribute(name).filter(|value| !value.is_empty()) {
            write_text(&value, object.key(key));
        }
    }
    object.end();
    Some(json)
}

/// The events of a span: name, time and attributes of each, without what is long or nested.
fn events(list: &Tree<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, event) in list.items().iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut object = ObjectWriter::new(out);
        for (name, keys) in
            [("name", &["name"][..]), ("time", &["timeUnixNano", "time_unix_nano", "time", "timestamp"])]
        {
            if let Some(value) = keys.iter().find_map(|key| event.get(key)).and_then(Tree::scalar) {
                write_text(&value, object.key(name));
            }
        }
        let mut inner = ObjectWriter::new(object.key("attributes"));
        let is_plain = |value: &[u8]| value.len() <= LONGEST && !matches!(value.first(), Some(b'{' | b'['));
        let attributes = attributes(event.get("attributes"));
        let plain = attributes.iter().filter(|(_, value)| is_plain(value));
        plain.for_each(|(key, value)| inner.key(key).extend_from_slice(value));
        inner.end();
        object.end();
    }
    out.push(b']');
}

/// Attributes as keys with JSON values, from a list of keys and values or from an object.
fn attributes(tree: Option<&Tree<'_>>) -> Vec<(String, Vec<u8>)> {
    let Some(tree) = tree else { return Vec::new() };
    if tree.is_array() {
        let member = |item: &Tree<'_>| Some((item.get("key")?.scalar()?.into_owned(), plain(item.get("value")?)?));
        return tree.items().iter().filter_map(member).collect();
    }
    tree.members().iter().map(|(key, value)| (key.clone().into_owned(), value.text.to_vec())).collect()
}

/// The JSON of a value that is wrapped in its type, as `{"intValue": "5"}`.
fn plain(value: &Tree<'_>) -> Option<Vec<u8>> {
    let (kind, inner) = value.members().first().map(|(kind, inner)| (&**kind, inner))?;
    match kind {
        "arrayValue" => {
            let items: Vec<Vec<u8>> =
                inner.get("values").map_or(&[][..], Tree::items).iter().filter_map(plain).collect();
            Some([b"[", items.join(&b","[..]).as_slice(), b"]"].concat())
        }
        "kvlistValue" => {
            let mut json = Vec::new();
            let mut object = ObjectWriter::new(&mut json);
            for (key, value) in attributes(inner.get("values")) {
                object.key(&key).extend_from_slice(&value);
            }
            object.end();
            Some(json)
        }
        _ => Some(inner.text.to_vec()),
    }
}

fn scalar_text(json: &[u8]) -> Option<String> {
    Some(Tree::parse(json).ok()?.scalar()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(json: &str) -> Span {
        Span::of(&Tree::parse(json.as_bytes()).unwrap(), None, None)
    }

    #[test]
    fn events_are_kept_with_what_is_short_and_plain() {
        let prompt = "x".repeat(LONGEST);
        let span = span(&format!(
            r#"{{"spanId":"a","events":[{{"timeUnixNano":"7","name":"token","attributes":[
                {{"key":"infer_stats.token_index","value":{{"intValue":"47"}}}},
                {{"key":"prompt","value":{{"stringValue":"{prompt}"}}}},
                {{"key":"list","value":{{"arrayValue":{{"values":[{{"intValue":"1"}}]}}}}}}]}},{{"name":"end"}}]}}"#
        ));
        let json = String::from_utf8(span.json).unwrap();
        let events = r#""events":[{"name":"token","time":"7","attributes":{"infer_stats.token_index":"47"}},"#;
        assert!(json.ends_with(&format!(r#"{events}{{"name":"end","attributes":{{}}}}]}}"#)), "{json}");
    }

    #[test]
    fn a_record_that_was_exported_is_a_row_whatever_it_called() {
        let usage = r#"{"key":"gen_ai.usage.input_tokens","value":{"intValue":"5"}},{"key":"gen_ai.response.id","value":{"stringValue":"r"}}"#;
        let call = span(&format!(r#"{{"spanId":"a","attributes":[{usage}]}}"#));
        assert!(call.has_usage && call.response.as_deref() == Some("r"));
        let record = r#"{"key":"infer_stats.record","value":{"intValue":"0"}}"#;
        let record = span(&format!(r#"{{"spanId":"a","attributes":[{usage},{record}]}}"#));
        assert!(!record.has_usage && record.response.is_none());
    }
}
