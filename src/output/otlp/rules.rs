//! The rules of OTLP/JSON: the messages of the protocol under proto3's mapping to JSON, with ids in hex.
//!
//! - encoding: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>
//! - messages: <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto>
//! - mapping: <https://protobuf.dev/programming-guides/json/>

use std::collections::HashSet;

use serde_json::Value;

/// Reads the spans of one export; every breach of a rule is an error.
pub fn read(line: &str) -> Result<Vec<Value>, String> {
    let whole: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let mut spans = Vec::new();
    known(&whole, &["resourceSpans"])?;
    for of_resource in list(&whole["resourceSpans"])? {
        known(of_resource, &["resource", "scopeSpans", "schemaUrl"])?;
        known(&of_resource["resource"], &["attributes", "droppedAttributesCount"])?;
        attributes(&of_resource["resource"]["attributes"])?;
        if attribute(&of_resource["resource"], "service.name").is_none() {
            return Err(format!("a resource without its service: {}", of_resource["resource"]));
        }
        for of_scope in list(&of_resource["scopeSpans"])? {
            known(of_scope, &["scope", "spans", "schemaUrl"])?;
            known(&of_scope["scope"], &["name", "version", "attributes", "droppedAttributesCount"])?;
            for span in list(&of_scope["spans"])? {
                check(span).map_err(|why| format!("{why}: {span}"))?;
                spans.push(span.clone());
            }
        }
    }
    family(&spans)?;
    Ok(spans)
}

/// The value of an attribute, in its wrapping.
pub fn attribute<'v>(of: &'v Value, key: &str) -> Option<&'v Value> {
    of["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
}

fn check(span: &Value) -> Result<(), String> {
    known(
        span,
        &[
            "traceId",
            "spanId",
            "traceState",
            "parentSpanId",
            "flags",
            "name",
            "kind",
            "startTimeUnixNano",
            "endTimeUnixNano",
            "attributes",
            "events",
            "links",
            "status",
        ],
    )?;
    id(&span["traceId"], 32)?;
    id(&span["spanId"], 16)?;
    span.get("parentSpanId").map_or(Ok(()), |parent| id(parent, 16))?;
    if span["name"].as_str().is_none_or(str::is_empty) {
        return Err("no name".to_owned());
    }
    if span["kind"].as_u64().is_none_or(|kind| !(1..=5).contains(&kind)) {
        return Err("the kind is no number of the protocol".to_owned());
    }
    if time(&span["startTimeUnixNano"])? > time(&span["endTimeUnixNano"])? {
        return Err("it ends before it begins".to_owned());
    }
    attributes(&span["attributes"])?;
    for event in span.get("events").map_or(Ok(&[][..]), list)? {
        known(event, &["timeUnixNano", "name", "attributes", "droppedAttributesCount"])?;
        time(&event["timeUnixNano"])?;
        attributes(&event["attributes"])?;
        if event["name"].as_str().is_none_or(str::is_empty) {
            return Err("an event without a name".to_owned());
        }
    }
    for link in span.get("links").map_or(Ok(&[][..]), list)? {
        known(link, &["traceId", "spanId", "traceState", "attributes", "droppedAttributesCount", "flags"])?;
        id(&link["traceId"], 32)?;
        id(&link["spanId"], 16)?;
        attributes(&link["attributes"])?;
    }
    let status = &span["status"];
    known(status, &["message", "code"])?;
    match (status.get("code"), status.get("message")) {
        (Some(code), _) if code.as_u64().is_none_or(|code| code > 2) => Err("no code of a status".to_owned()),
        (_, Some(message)) if !message.is_string() => Err("a message that is no text".to_owned()),
        _ => Ok(()),
    }
}

/// One trace with one span at its root, each id once and each parent there.
fn family(spans: &[Value]) -> Result<(), String> {
    let ids: HashSet<_> = spans.iter().map(|span| span["spanId"].as_str()).collect();
    let traces: HashSet<_> = spans.iter().map(|span| span["traceId"].as_str()).collect();
    let roots = spans.iter().filter(|span| span.get("parentSpanId").is_none()).count();
    let is_there = |span: &Value| span.get("parentSpanId").is_none_or(|parent| ids.contains(&parent.as_str()));
    match (ids.len() == spans.len(), traces.len(), roots, spans.iter().all(is_there)) {
        (true, 1, 1, true) => Ok(()),
        found => Err(format!("ids once, traces, roots, parents there: {found:?}")),
    }
}

/// An object without other keys, and without null, which stands for a default in the mapping.
fn known(value: &Value, keys: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or_else(|| format!("no object: {value}"))?;
    match members.iter().find(|(key, value)| !keys.contains(&key.as_str()) || value.is_null()) {
        Some((key, _)) => Err(format!("`{key}` is no field, or null")),
        None => Ok(()),
    }
}

fn list(value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("no list: {value}"))
}

fn id(value: &Value, digits: usize) -> Result<(), String> {
    let id = value.as_str().unwrap_or_default();
    let is_hex = id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    match id.len() == digits && is_hex && id.bytes().any(|byte| byte != b'0') {
        true => Ok(()),
        false => Err(format!("no id of {digits} digits: {value}")),
    }
}

/// 64 bits without a sign, as text.
fn time(value: &Value) -> Result<u64, String> {
    let text = value.as_str().ok_or_else(|| format!("a time that is no text: {value}"))?;
    text.parse().map_err(|_| format!("a time that is no number: {value}"))
}

fn attributes(value: &Value) -> Result<(), String> {
    let mut keys = HashSet::new();
    for attribute in list(value)? {
        known(attribute, &["key", "value"])?;
        let key = attribute["key"].as_str().filter(|key| !key.is_empty()).ok_or("a key that is no text")?;
        if !keys.insert(key) {
            return Err(format!("`{key}` twice"));
        }
        any_value(&attribute["value"])?;
    }
    Ok(())
}

fn any_value(value: &Value) -> Result<(), String> {
    let members = value.as_object().filter(|members| members.len() == 1);
    let (kind, inner) = members.and_then(|members| members.iter().next()).ok_or("not one kind of value")?;
    let holds = match kind.as_str() {
        "stringValue" => inner.is_string(),
        "boolValue" => inner.is_boolean(),
        "intValue" => inner.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
        "doubleValue" => inner.is_number() || matches!(inner.as_str(), Some("NaN" | "Infinity" | "-Infinity")),
        "arrayValue" => return list(&inner["values"])?.iter().try_for_each(any_value),
        _ => false,
    };
    holds.then_some(()).ok_or_else(|| format!("no value of its kind: {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span() -> Value {
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "a", "kind": 1,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2", "status": {},
            "attributes": [{ "key": "k", "value": { "intValue": "5" } }],
        })
    }

    fn export(spans: &[Value]) -> String {
        let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "s" } }] });
        let scopes = json!([{ "scope": { "name": "n" }, "spans": spans }]);
        json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": scopes }] }).to_string()
    }

    #[test]
    fn each_wrong_field_is_found() {
        assert!(read(&export(&[span()])).is_ok());
        for (key, value) in [
            ("traceId", json!("00000000000000000000000000000000")),
            ("traceId", json!("0AF7651916CD43DD8448EB211C80319C")),
            ("spanId", json!("t62xcWkgMzE=")),
            ("parentSpanId", json!("")),
            ("parentSpanId", json!("b7ad6b7169203332")),
            ("kind", json!("SPAN_KIND_SERVER")),
            ("startTimeUnixNano", json!(1)),
            ("startTimeUnixNano", json!("3")),
            ("startTimeUnixNano", json!("-1")),
            ("start_time_unix_nano", json!("1")),
            ("status", json!({ "code": "STATUS_CODE_OK" })),
            ("attributes", json!([{ "key": "k", "value": { "intValue": 5 } }])),
            ("attributes", json!([{ "key": "k", "value": { "doubleValue": null } }])),
            ("attributes", json!([{ "key": "k", "value": {} }])),
            ("events", json!([{ "timeUnixNano": "1", "name": "", "attributes": [] }])),
            ("links", json!([{ "traceId": "x", "spanId": "y", "attributes": [] }])),
        ] {
            let mut span = span();
            span[key] = value.clone();
            assert!(read(&export(&[span])).is_err(), "{key}: {value}");
        }
        assert!(read(&export(&[span(), span()])).is_err());
    }
}
