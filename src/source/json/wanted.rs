//! The key paths whose values are asked for, as a tree to walk down while parsing.

use crate::source::json::unescape;

/// The key paths whose values a query reads. A path's position is its slot.
#[derive(Debug)]
pub struct Wanted {
    slots: usize,
    nodes: Vec<Node>,
}

/// One key of a path.
#[derive(Debug, Default)]
struct Node {
    slot: Option<u32>,
    /// Keys below this one, ordered by length, so that a key is compared with few others.
    children: Vec<(Box<[u8]>, NodeId)>,
}

/// Where in the tree of wanted paths an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Wanted {
    /// Each path is the keys from the outermost object inwards, without escapes. Paths are to
    /// differ: of equal ones the last is filled.
    pub fn new(paths: Vec<Vec<String>>) -> Wanted {
        let mut wanted = Wanted { slots: paths.len(), nodes: vec![Node::default()] };
        for (slot, path) in paths.into_iter().enumerate() {
            let mut node = NodeId::ROOT;
            for key in path {
                node = wanted.child_or_new(node, key);
            }
            wanted.nodes[node.index()].slot = Some(slot as u32);
        }
        wanted
    }

    fn child_or_new(&mut self, node: NodeId, key: String) -> NodeId {
        if let Some(child) = self.child(node, key.as_bytes()) {
            return child;
        }
        let child = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        let siblings = &mut self.nodes[node.index()].children;
        let place = siblings.partition_point(|(sibling, _)| sibling.len() < key.len());
        siblings.insert(place, (key.into_bytes().into(), child));
        child
    }

    /// How many paths there are.
    pub fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn slot(&self, node: NodeId) -> Option<u32> {
        self.nodes[node.index()].slot
    }

    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.nodes[node.index()].children.iter().map(|&(_, child)| child)
    }

    /// The wanted key of this name in the object at `node`.
    pub(super) fn child(&self, node: NodeId, key: &[u8]) -> Option<NodeId> {
        let siblings = &self.nodes[node.index()].children;
        let first = siblings.partition_point(|(sibling, _)| sibling.len() < key.len());
        siblings[first..]
            .iter()
            .take_while(|(sibling, _)| sibling.len() == key.len())
            .find(|(sibling, _)| **sibling == *key)
            .map(|&(_, child)| child)
    }

    /// The same for a key as it was written, with escapes.
    pub(super) fn child_escaped(&self, node: NodeId, key: &[u8]) -> Option<NodeId> {
        let mut name = Vec::with_capacity(key.len());
        unescape(key, &mut name);
        self.child(node, &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_share_keys_lead_to_their_own_slots() {
        let path = |path: &str| path.split('.').map(String::from).collect();
        let wanted = Wanted::new(vec![path("usage.in"), path("model"), path("usage"), path("usage.out")]);
        let child = |node, key: &str| wanted.child(node, key.as_bytes()).expect("a wanted key");
        let usage = child(NodeId::ROOT, "usage");
        assert_eq!(wanted.slot(usage), Some(2));
        assert_eq!(wanted.slot(child(usage, "in")), Some(0));
        assert_eq!(wanted.slot(child(usage, "out")), Some(3));
        assert_eq!(wanted.slot(child(NodeId::ROOT, "model")), Some(1));
        assert_eq!(wanted.child(NodeId::ROOT, b"in"), None);
        assert_eq!(wanted.child_escaped(NodeId::ROOT, br"us\u0061ge"), Some(usage));
    }
}
