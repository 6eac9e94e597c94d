//! Observations of a trace, each one that may wrap another.

use super::Part;
use super::nesting::Item;
use crate::source::json::Tree;

/// Keys of an observation, as exports of either style write them.
const PARENTS: [&str; 2] = ["parentObservationId", "parent_observation_id"];
const USAGES: [&str; 2] = ["usageDetails", "usage_details"];

/// An observation with its place among the others.
pub(super) fn item(part: Part) -> Option<Item> {
    let tree = Tree::parse(&part.json).ok()?;
    let text = |keys: &[&str]| keys.iter().find_map(|key| tree.get(key).and_then(Tree::scalar));
    let usage = USAGES.iter().find_map(|key| tree.get(key));
    // an object in a CSV cell is a text
    let has_usage =
        usage.is_some_and(|usage| !usage.members().is_empty() || usage.scalar().is_some_and(|text| text.contains(':')));
    let is_call = text(&["type"]).is_some_and(|kind| kind == "GENERATION" || kind == "EMBEDDING");
    let id = text(&["id"]).unwrap_or_default().into_owned();
    let parent = text(&PARENTS).filter(|parent| !parent.is_empty()).map(|parent| parent.into_owned());
    Some(Item { id, parent, response: None, has_usage: is_call && has_usage, part })
}
