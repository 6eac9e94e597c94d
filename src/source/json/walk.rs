//! The way into a nested value: list items by number, keys that are not all known.

use super::tree::{Branches, Tree};
use crate::profile::Step;
use crate::source::value::RawValue;

/// The first value that `steps` lead to inside a nested value; missing where there is none.
pub fn walk<'t>(nested: &'t [u8], steps: &[Step]) -> RawValue<'t> {
    let Ok(tree) = Tree::parse(nested) else { return RawValue::Missing };
    descend(&tree, steps, &mut Some).unwrap_or(RawValue::Missing)
}

/// All values that `steps` lead to: a prefix leads to every key that begins so.
pub fn walk_all<'t>(nested: &'t [u8], steps: &[Step]) -> Vec<RawValue<'t>> {
    let mut found = Vec::new();
    if let Ok(tree) = Tree::parse(nested) {
        descend(&tree, steps, &mut |value| {
            found.push(value);
            None
        });
    }
    found
}

/// Goes to every place that the steps lead to, until one is `taken`.
fn descend<'t>(
    tree: &Tree<'t>,
    steps: &[Step],
    take: &mut dyn FnMut(RawValue<'t>) -> Option<RawValue<'t>>,
) -> Option<RawValue<'t>> {
    let Some((step, rest)) = steps.split_first() else {
        return match tree.raw() {
            RawValue::Null => None,
            value => take(value),
        };
    };
    match (step, &tree.branches) {
        (Step::Key(key), Branches::Object(_)) => descend(tree.get(key)?, rest, take),
        (Step::Prefix(prefix), Branches::Object(members)) => {
            let mut alike = members.iter().filter(|(name, _)| name.starts_with(prefix.as_str()));
            alike.find_map(|(_, value)| descend(value, rest, take))
        }
        (Step::AnyKey, Branches::Object(members)) => members.iter().find_map(|(_, value)| descend(value, rest, take)),
        (Step::AnyItem, Branches::Array(items)) => items.iter().find_map(|item| descend(item, rest, take)),
        (Step::Item(number), Branches::Array(items)) => {
            let from_end = |back: i64| items.len().checked_sub(usize::try_from(-back).ok()?);
            let at = if *number < 0 { from_end(*number)? } else { usize::try_from(*number).ok()? };
            descend(items.get(at)?, rest, take)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValuePath;

    fn steps(path: &str) -> Vec<Step> {
        ValuePath::parse(&format!("x.*.{path}")).unwrap().inner[1..].to_vec()
    }

    #[test]
    fn items_and_unknown_keys_lead_to_the_first_value_there_is() {
        let json = br#"{"a":{"n":null},"b":{"n":1,"list":[{"p":1},{"q":2},{"q":3}]}}"#;
        let at = |path: &[Step]| walk(json, path);
        assert_eq!(at(&[Step::AnyKey, Step::Key("n".into())]), RawValue::Number(b"1"));
        let list = |last: &str| [steps("b.list")[0..2].to_vec(), steps(last)].concat();
        assert_eq!(
            at(&[list("z")[..2].to_vec(), vec![Step::AnyItem, Step::Key("q".into())]].concat()),
            RawValue::Number(b"2")
        );
        assert_eq!(
            at(&[list("z")[..2].to_vec(), vec![Step::Item(-1), Step::Key("q".into())]].concat()),
            RawValue::Number(b"3")
        );
        assert_eq!(at(&[list("z")[..2].to_vec(), vec![Step::Item(7)]].concat()), RawValue::Missing);
    }

    #[test]
    fn a_prefix_leads_to_every_key_that_begins_so() {
        let values = walk_all(br#"{"input":36,"input_cached":64,"output":5}"#, &[Step::Prefix("input".into())]);
        assert_eq!(values, [RawValue::Number(b"36"), RawValue::Number(b"64")]);
    }
}
