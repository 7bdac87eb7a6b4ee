//! Giving memory back: a trie of which little is left is copied to a new one, a few nodes with each change, while the old one answers.
use super::node::{Node, STRIDE};
use super::trie::{Leaf, Prefix, ROOT_BITS, ROOTS, Trie, root_of, slot_at};
use weir_memory::OutOfMemory;

/// Nodes copied with each change. The leaves of one take some microseconds at most.
const NODES_A_STEP: usize = 2;
/// Less is not worth the work.
const MIN_UNUSED: usize = 256 << 10;

/// Which node: the bits on the way to it, and how many they are. In this order a node comes before those below it.
type Position = (u128, u32);

/// See the module's page.
#[derive(Debug)]
pub(super) struct Renewal {
    trie: Trie,
    /// The last node that was copied; those before it were, too.
    done: Option<Position>,
}

impl Renewal {
    /// A new trie for an old one that uses less than half of its items. If there is no memory for it, things stay as they are.
    pub(super) fn worthwhile(old: &Trie) -> Option<Box<Renewal>> {
        let unused = old.unused();
        let is_sparse = unused > MIN_UNUSED && unused > old.size() / 2;
        let trie = is_sparse.then(|| Trie::with_short_of(old).ok())?;
        trie.map(|trie| Box::new(Renewal { trie, done: None }))
    }

    /// Copies a few nodes; whether that were the last.
    pub(super) fn step(&mut self, old: &Trie) -> Result<bool, OutOfMemory> {
        for _ in 0..NODES_A_STEP {
            let Some((position, node)) = old.node_after(self.done) else { return Ok(true) };
            for (prefix, leaf) in old.leaves_of(position, node) {
                self.trie.set(prefix, leaf)?;
            }
            self.done = Some(position);
        }
        Ok(false)
    }

    /// A prefix has this leaf now, or none.
    pub(super) fn change(&mut self, prefix: Prefix, leaf: Option<Leaf>) -> Result<(), OutOfMemory> {
        match leaf {
            _ if position_of(prefix) > self.done => Ok(()),
            Some(leaf) => self.trie.set(prefix, leaf),
            None => self.trie.clear(prefix),
        }
    }

    /// The bytes that it occupies.
    pub(super) fn held(&self) -> usize {
        self.trie.held()
    }

    /// The new trie, in place of the old one.
    pub(super) fn finish(self) -> Trie {
        self.trie
    }
}

/// The node that a prefix ends in; none for one so short that it is kept apart.
fn position_of(prefix: Prefix) -> Option<Position> {
    let depth = ROOT_BITS + u32::from(prefix.len).checked_sub(ROOT_BITS + 1)? / STRIDE * STRIDE;
    Some((prefix.bits & !(u128::MAX >> depth), depth))
}

impl Trie {
    /// The node that comes after a position, whether one is there or not; without one the first.
    fn node_after(&self, position: Option<Position>) -> Option<(Position, &Node)> {
        let below = position.and_then(|position| self.after_below_root(position));
        below.or_else(|| {
            let begin = position.map_or(0, |(bits, _)| root_of(bits) as usize + 1);
            let root = (begin..ROOTS).find(|root| !self.nodes.items()[*root].is_empty())?;
            Some((((root as u128) << (128 - ROOT_BITS), ROOT_BITS), &self.nodes.items()[root]))
        })
    }

    /// The same among the nodes below the position's root.
    fn after_below_root(&self, (bits, depth): Position) -> Option<(Position, &Node)> {
        let nodes = self.nodes.items();
        let (mut node, mut at, mut later) = (&nodes[root_of(bits) as usize], ROOT_BITS, None);
        // The first node below `node` from this slot on.
        let first = |node: &Node, at: u32, slots: std::ops::Range<u32>| {
            slots.into_iter().find_map(|slot| {
                let child = node.child(slot)?;
                let way = bits & !(u128::MAX >> at) | u128::from(slot) << (128 - STRIDE - at);
                Some(((way, at + STRIDE), child))
            })
        };
        while at < depth {
            let slot = slot_at(bits, at);
            // What branches off further down comes earlier.
            later = first(node, at, slot + 1..64).or(later);
            let Some(child) = node.child(slot) else { break };
            (node, at) = (&nodes[child as usize], at + STRIDE);
        }
        let next = if at == depth { first(node, at, 0..64).or(later) } else { later };
        next.map(|(position, child)| (position, &nodes[child as usize]))
    }

    /// The leaves of a node with their prefixes.
    fn leaves_of(&self, (bits, depth): Position, node: &Node) -> impl Iterator<Item = (Prefix, Leaf)> {
        let leaves = &self.leaves.items()[node.leaf_base as usize..];
        node.prefixes().zip(leaves).map(move |((value, len), leaf)| {
            let len = depth + len;
            let bits = bits | u128::from(value) << (128 - len);
            (Prefix { bits, len: u8::try_from(len).expect("no prefix is longer than 128 bits") }, *leaf)
        })
    }
}
