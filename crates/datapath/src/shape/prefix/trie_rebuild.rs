//! Releases memory of a trie that has become sparse: copies it to a new one, a few nodes with each change, while the
//! old one serves lookups.
use super::node::{STRIDE, TrieNode};
use super::trie::{Prefix, ROOT_BITS, ROOTS, TreeBitmap, TrieLeaf, root_of, slot_at};
use weir_memory::OutOfMemory;

/// Number of nodes copied with each change. Copying the leaves of one node takes some microseconds at most.
const NODES_A_STEP: usize = 2;
/// Minimum unused memory, in bytes, that justifies the work.
const MIN_UNUSED: usize = 256 << 10;

/// Position of a node: the address bits on the path to it, and their number. In this order a node precedes those
/// below it.
type NodePosition = (u128, u32);

/// Copy of a trie under construction: see the [module](self).
#[derive(Debug)]
pub(super) struct TrieRebuild {
    trie: TreeBitmap,
    /// Last node that was copied; all nodes before it are copied, too.
    done: Option<NodePosition>,
}

impl TrieRebuild {
    /// Begins a copy of a trie that uses less than half of its items. Returns `None` if the trie is not sparse, or if
    /// there is no memory for the copy.
    pub(super) fn worthwhile(old: &TreeBitmap) -> Option<Box<TrieRebuild>> {
        let unused = old.unused();
        let is_sparse = unused > MIN_UNUSED && unused > old.size() / 2;
        let trie = is_sparse.then(|| TreeBitmap::with_short_of(old).ok())?;
        trie.map(|trie| Box::new(TrieRebuild { trie, done: None }))
    }

    /// Copies a few nodes. Returns true if all are copied.
    pub(super) fn step(&mut self, old: &TreeBitmap) -> Result<bool, OutOfMemory> {
        for _ in 0..NODES_A_STEP {
            let Some((position, node)) = old.node_after(self.done) else { return Ok(true) };
            for (prefix, leaf) in old.leaves_of(position, node) {
                self.trie.set(prefix, leaf)?;
            }
            self.done = Some(position);
        }
        Ok(false)
    }

    /// Applies a change of the old trie to the copy: the new leaf of a prefix, or its removal.
    pub(super) fn change(&mut self, prefix: Prefix, leaf: Option<TrieLeaf>) -> Result<(), OutOfMemory> {
        match leaf {
            _ if position_of(prefix) > self.done => Ok(()),
            Some(leaf) => self.trie.set(prefix, leaf),
            None => self.trie.clear(prefix),
        }
    }

    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.trie.held()
    }

    /// Returns the copy, which replaces the old trie.
    pub(super) fn finish(self) -> TreeBitmap {
        self.trie
    }
}

/// Returns the position of the node that a prefix ends in; `None` for a short prefix, which is stored separately.
fn position_of(prefix: Prefix) -> Option<NodePosition> {
    let depth = ROOT_BITS + u32::from(prefix.len).checked_sub(ROOT_BITS + 1)? / STRIDE * STRIDE;
    Some((prefix.bits & !(u128::MAX >> depth), depth))
}

impl TreeBitmap {
    /// Returns the first node after a position, which need not exist; the very first node for `None`.
    fn node_after(&self, position: Option<NodePosition>) -> Option<(NodePosition, &TrieNode)> {
        let below = position.and_then(|position| self.after_below_root(position));
        below.or_else(|| {
            let begin = position.map_or(0, |(bits, _)| root_of(bits) as usize + 1);
            let root = (begin..ROOTS).find(|root| !self.nodes.items()[*root].is_empty())?;
            Some((((root as u128) << (128 - ROOT_BITS), ROOT_BITS), &self.nodes.items()[root]))
        })
    }

    /// Returns the first node after a position among those below the position's root.
    fn after_below_root(&self, (bits, depth): NodePosition) -> Option<(NodePosition, &TrieNode)> {
        let nodes = self.nodes.items();
        let (mut node, mut at, mut later) = (&nodes[root_of(bits) as usize], ROOT_BITS, None);
        // Returns the first child of `node` within a range of slots.
        let first = |node: &TrieNode, at: u32, slots: std::ops::Range<u32>| {
            slots.into_iter().find_map(|slot| {
                let child = node.child(slot)?;
                let way = bits & !(u128::MAX >> at) | u128::from(slot) << (128 - STRIDE - at);
                Some(((way, at + STRIDE), child))
            })
        };
        while at < depth {
            let slot = slot_at(bits, at);
            // A branch further down precedes those above it.
            later = first(node, at, slot + 1..64).or(later);
            let Some(child) = node.child(slot) else { break };
            (node, at) = (&nodes[child as usize], at + STRIDE);
        }
        let next = if at == depth { first(node, at, 0..64).or(later) } else { later };
        next.map(|(position, child)| (position, &nodes[child as usize]))
    }

    /// Iterates over the leaves of a node, with their prefixes.
    fn leaves_of(&self, (bits, depth): NodePosition, node: &TrieNode) -> impl Iterator<Item = (Prefix, TrieLeaf)> {
        let leaves = &self.leaves.items()[node.leaf_base as usize..];
        node.prefixes().zip(leaves).map(move |((value, len), leaf)| {
            let len = depth + len;
            let bits = bits | u128::from(value) << (128 - len);
            (Prefix { bits, len: u8::try_from(len).expect("no prefix is longer than 128 bits") }, *leaf)
        })
    }
}
