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
}

/// Attributes that give the provider's id of a response.
const RESPONSE_IDS: [&str; 3] = ["gen_ai.response.id", "llm.response.id", "ai.response.id"];

/// How attributes that count tokens begin.
const USAGES: [&str; 4] = ["gen_ai.usage.", "llm.usage.", "llm.token_count.", "ai.usage."];

impl Span {
    /// The span with its place among the others.
    pub fn item(self, offset: u64) -> Item {
        let Self { json, id, parent, response, has_usage } = self;
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
        let response = RESPONSE_IDS.iter().find_map(|name| attribute(name)).and_then(|json| scalar_text(json));

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
        object.end();
        let has_usage = attributes.iter().any(|(key, _)| USAGES.iter().any(|usage| key.starts_with(usage)));
        Self { json, id: id.into_owned(), parent: parent.map(Cow::into_owned), response, has_usage }
    }
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
