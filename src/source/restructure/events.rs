//! Events that share an id to one record an id: `[{"id": 7, ...}, {"id": 7, "timestamps": [{"name", "ns"}]}]`.

use std::collections::HashMap;

use super::members::Members;
use super::{Part, Parts};
use crate::source::json::Tree;

/// The event that ends a request.
const LAST: &str = "REQUEST_END";

/// Requests that are open at once; a trace whose ends are lost must not fill the memory.
const MOST_OPEN: usize = 1 << 20;

/// The requests whose last event has not come.
#[derive(Default)]
pub(super) struct Events {
    open: HashMap<String, Members>,
    /// In the order of their first event.
    order: Vec<String>,
}

impl Events {
    /// Takes an item; hands out the request that it ends.
    pub fn take(&mut self, item: &Tree<'_>, parts: &mut Parts) {
        let Some(id) = item.get("id").and_then(Tree::scalar) else { return parts.skipped.push("no id") };
        if !self.open.contains_key(&*id) {
            if self.open.len() >= MOST_OPEN {
                return parts.skipped.push("too many open");
            }
            self.order.push(id.to_string());
        }
        let request = self.open.entry(id.to_string()).or_default();
        let mut ends = false;
        for (key, value) in item.members() {
            match value.is_array() {
                true => {
                    for event in value.items() {
                        let (name, at) = (event.get("name").and_then(Tree::scalar), event.get("ns"));
                        if let (Some(name), Some(at)) = (name, at) {
                            ends |= name == LAST;
                            request.set(&name, at.text);
                        }
                    }
                }
                false => request.set(key, value.text),
            }
        }
        if ends {
            let request = self.open.remove(&*id).unwrap_or_default();
            self.order.retain(|open| *open != id);
            parts.records.push(Part { json: request.json(), offset: None });
        }
    }

    /// The requests that never ended, as far as they came.
    pub fn finish(mut self, parts: &mut Parts) {
        let requests = self.order.iter().filter_map(|id| self.open.remove(id));
        parts.records.extend(requests.map(|request| Part { json: request.json(), offset: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_an_id_become_one_record_when_the_last_has_come() {
        let mut events = Events::default();
        let mut parts = Parts::default();
        for item in [
            r#"{"id":1,"model":"m"}"#,
            r#"{"id":2,"model":"n"}"#,
            r#"{"id":1,"timestamps":[{"name":"REQUEST_START","ns":5}]}"#,
            r#"{"id":1,"timestamps":[{"name":"REQUEST_END","ns":9}]}"#,
        ] {
            events.take(&Tree::parse(item.as_bytes()).unwrap(), &mut parts);
        }
        events.finish(&mut parts);
        let records: Vec<String> =
            parts.records.into_iter().map(|record| String::from_utf8(record.json).unwrap()).collect();
        let first = r#"{"id":1,"model":"m","REQUEST_START":5,"REQUEST_END":9}"#;
        assert_eq!(records, [first, r#"{"id":2,"model":"n"}"#]);
    }
}
