//! Batches of OpenTelemetry spans to one record a span.

use super::span::Span;
use crate::source::json::Tree;

/// The first list that there is under one of the keys.
fn list<'a, 't>(tree: &'a Tree<'t>, keys: &[&str]) -> Option<&'a Tree<'t>> {
    keys.iter().find_map(|key| tree.get(key).filter(|list| list.is_array()))
}

/// The spans of an export: batches of resources, of scopes, of spans; a list of spans; or one span.
pub(super) fn spans(tree: &Tree<'_>) -> Vec<Span> {
    let Some(resources) = list(tree, &["resourceSpans", "resource_spans", "batches"]) else {
        return match list(tree, &["spans"]) {
            Some(spans) => spans.items().iter().map(|span| Span::of(span, tree.get("resource"), None)).collect(),
            None => vec![Span::of(tree, tree.get("resource"), None)],
        };
    };
    let mut found = Vec::new();
    for resource in resources.items() {
        let scopes = list(resource, &["scopeSpans", "scope_spans", "instrumentationLibrarySpans"]);
        for scope in scopes.iter().flat_map(|scopes| scopes.items()) {
            let name = scope.get("scope").or_else(|| scope.get("instrumentationLibrary"));
            let spans = list(scope, &["spans"]);
            let spans = spans.iter().flat_map(|spans| spans.items());
            found.extend(spans.map(|span| Span::of(span, resource.get("resource"), name)));
        }
    }
    found
}
