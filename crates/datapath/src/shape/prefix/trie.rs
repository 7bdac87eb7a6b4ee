//! A tree bitmap (Eatherton, Varghese, Dittia: Tree Bitmap, SIGCOMM CCR 2004): twelve bits of the address select a
//! root, then each node covers six more.
//!
//! No prefix is expanded beyond the node that it ends in. Adding or removing a prefix therefore changes at most one
//! array of leaves (126) and one of nodes (64) per level, for any number of prefixes. Prefixes of up to twelve bits
//! change as many of the 4096 root leaves as they cover. A search remembers the index of the last leaf on its path
//! and reads only that leaf at the end.
use super::super::EntryId;
use super::node::{PrefixSlot, STRIDE, TrieNode};
use super::pool::BlockPool;
use weir_memory::OutOfMemory;
use zerocopy::FromZeros;

/// Number of address bits that select a root. Prefixes of up to this length are stored separately.
pub(super) const ROOT_BITS: u32 = 12;
pub(super) const ROOTS: usize = 1 << ROOT_BITS;
/// Maximum number of levels below the roots, for 128 bits.
pub(super) const LEVELS: usize = (128 - ROOT_BITS).div_ceil(STRIDE) as usize;

/// A prefix: its bits from the top of the number on, with zeros after them, and its length in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Prefix {
    pub(super) bits: u128,
    /// Length in bits, at most 128.
    pub(super) len: u8,
}

/// Entry of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromZeros)]
pub(super) struct TrieLeaf {
    pub(super) id: EntryId,
    pub(super) priority: u16,
}

impl TrieLeaf {
    /// Marks the absence of an entry.
    pub(super) const NONE: TrieLeaf = TrieLeaf { id: EntryId::NONE, priority: 0 };

    #[inline(always)]
    pub(super) fn is_some(self) -> bool {
        self.id != EntryId::NONE
    }

    /// Returns the entry with the higher priority; `self` if both are equal.
    #[inline(always)]
    pub(super) fn or_higher(self, other: TrieLeaf) -> TrieLeaf {
        let is_other = other.is_some() && (!self.is_some() || other.priority > self.priority);
        if is_other { other } else { self }
    }
}

/// A tree bitmap: see the [module](self). The first nodes are the roots. The first leaves are, for each root, the
/// longest of its short prefixes.
#[derive(Debug)]
pub(super) struct TreeBitmap {
    pub(super) nodes: BlockPool<TrieNode>,
    pub(super) leaves: BlockPool<TrieLeaf>,
    /// Prefixes of up to `ROOT_BITS` bits: the one with `n` bits of value `v` is at `2^n + v`.
    pub(super) short: Box<[TrieLeaf]>,
}

/// Path to the node in which a prefix of more than `ROOT_BITS` bits ends: the index of each node, and the six address
/// bits used there.
struct TriePath {
    nodes: [(u32, u32); LEVELS],
    len: usize,
}

impl TreeBitmap {
    /// Creates a trie without prefixes, of 224 KiB.
    pub(super) fn new() -> Result<TreeBitmap, OutOfMemory> {
        let short = vec![TrieLeaf::NONE; 2 * ROOTS].into_boxed_slice();
        Ok(TreeBitmap {
            nodes: BlockPool::new(ROOTS, TrieNode::default())?,
            leaves: BlockPool::new(ROOTS, TrieLeaf::NONE)?,
            short,
        })
    }

    /// Creates a trie with only the short prefixes of another one.
    pub(super) fn with_short_of(other: &TreeBitmap) -> Result<TreeBitmap, OutOfMemory> {
        let mut trie = TreeBitmap { short: other.short.clone(), ..TreeBitmap::new()? };
        trie.leaves.items_mut().copy_from_slice(&other.leaves.items()[..ROOTS]);
        Ok(trie)
    }

    /// Returns the leaf of exactly this prefix.
    pub(super) fn get(&self, prefix: Prefix) -> Option<TrieLeaf> {
        if u32::from(prefix.len) <= ROOT_BITS {
            return Some(self.short[short_place(prefix)]).filter(|leaf| leaf.is_some());
        }
        let mut at = root_of(prefix.bits);
        let (mut depth, len) = (ROOT_BITS, u32::from(prefix.len));
        loop {
            let (node, slot) = (&self.nodes.items()[at as usize], slot_at(prefix.bits, depth));
            if len <= depth + STRIDE {
                let place = PrefixSlot::new(slot, len - depth);
                return node.has(place).then(|| self.leaves.items()[(node.leaf_base + node.rank(place)) as usize]);
            }
            at = node.child(slot)?;
            depth += STRIDE;
        }
    }

    /// Sets the leaf of a prefix; replaces the present one.
    pub(super) fn set(&mut self, prefix: Prefix, leaf: TrieLeaf) -> Result<(), OutOfMemory> {
        if u32::from(prefix.len) <= ROOT_BITS {
            self.set_short(prefix, leaf);
            return Ok(());
        }
        let (at, place) = self.way_to(prefix)?;
        let node = &mut self.nodes.items_mut()[at as usize];
        let rank = node.rank(place);
        if node.has(place) {
            self.leaves.items_mut()[(node.leaf_base + rank) as usize] = leaf;
            return Ok(());
        }
        node.leaf_base = self.leaves.insert(node.leaf_base, node.leaves(), rank, leaf)?;
        node.flip(place);
        Ok(())
    }

    /// Removes the leaf of a prefix, and the nodes that existed only for it.
    pub(super) fn clear(&mut self, prefix: Prefix) -> Result<(), OutOfMemory> {
        if u32::from(prefix.len) <= ROOT_BITS {
            self.set_short(prefix, TrieLeaf::NONE);
            return Ok(());
        }
        let Some(way) = self.way(prefix) else { return Ok(()) };
        let (at, slot) = way.nodes[way.len - 1];
        let place = PrefixSlot::new(slot, u32::from(prefix.len) - ROOT_BITS - STRIDE * (levels(way.len) - 1));
        let node = &mut self.nodes.items_mut()[at as usize];
        if !node.has(place) {
            return Ok(());
        }
        node.leaf_base = self.leaves.remove(node.leaf_base, node.leaves(), node.rank(place))?;
        node.flip(place);
        self.prune(&way)
    }

    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.nodes.held() + self.leaves.held() + size_of_val(&*self.short)
    }

    /// Returns the size of all nodes and leaves, including unused ones, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(self.nodes.items()) + size_of_val(self.leaves.items())
    }

    /// Returns the size of the unused nodes and leaves, in bytes.
    pub(super) fn unused(&self) -> usize {
        self.nodes.unused() + self.leaves.unused()
    }

    /// Returns the node that a prefix ends in, and the position there. Creates missing nodes on the path.
    fn way_to(&mut self, prefix: Prefix) -> Result<(u32, PrefixSlot), OutOfMemory> {
        let mut at = root_of(prefix.bits);
        let (mut depth, len) = (ROOT_BITS, u32::from(prefix.len));
        while len > depth + STRIDE {
            let slot = slot_at(prefix.bits, depth);
            at = match self.nodes.items()[at as usize].child(slot) {
                Some(child) => child,
                None => self.grow(at, slot)?,
            };
            depth += STRIDE;
        }
        Ok((at, PrefixSlot::new(slot_at(prefix.bits, depth), len - depth)))
    }

    /// Creates the child node for `slot` of the node at `at`. Returns its index.
    fn grow(&mut self, at: u32, slot: u32) -> Result<u32, OutOfMemory> {
        let mut node = self.nodes.items()[at as usize];
        let rank = node.child_rank(slot);
        node.child_base = self.nodes.insert(node.child_base, node.child_count(), rank, TrieNode::default())?;
        node.flip_child(slot);
        self.nodes.items_mut()[at as usize] = node;
        Ok(node.child_base + rank)
    }

    /// Returns the path to the node that a prefix ends in; `None` if a node is missing.
    fn way(&self, prefix: Prefix) -> Option<TriePath> {
        let mut way = TriePath { nodes: [(0, 0); LEVELS], len: 0 };
        let mut at = root_of(prefix.bits);
        let (mut depth, len) = (ROOT_BITS, u32::from(prefix.len));
        loop {
            let slot = slot_at(prefix.bits, depth);
            way.nodes[way.len] = (at, slot);
            way.len += 1;
            if len <= depth + STRIDE {
                return Some(way);
            }
            at = self.nodes.items()[at as usize].child(slot)?;
            depth += STRIDE;
        }
    }

    /// Removes the nodes at the end of a path that have become empty. Roots stay.
    fn prune(&mut self, way: &TriePath) -> Result<(), OutOfMemory> {
        for step in way.nodes[..way.len].windows(2).rev() {
            let [(above, slot), (at, _)] = [step[0], step[1]];
            if !self.nodes.items()[at as usize].is_empty() {
                return Ok(());
            }
            let mut node = self.nodes.items()[above as usize];
            node.child_base = self.nodes.remove(node.child_base, node.child_count(), node.child_rank(slot))?;
            node.flip_child(slot);
            self.nodes.items_mut()[above as usize] = node;
        }
        Ok(())
    }

    /// Sets the leaf of a short prefix, and updates the leaves of the roots below it.
    fn set_short(&mut self, prefix: Prefix, leaf: TrieLeaf) {
        let place = short_place(prefix);
        self.short[place] = leaf;
        let mut inherited = TrieLeaf::NONE;
        for bits in 0..prefix.len {
            let above = self.short[place >> (prefix.len - bits)];
            inherited = if above.is_some() { above } else { inherited };
        }
        self.spread(place, inherited);
    }

    /// Updates the leaves of the roots below a short prefix. `inherited` is the leaf of the longest shorter prefix.
    fn spread(&mut self, place: usize, inherited: TrieLeaf) {
        let own = self.short[place];
        let leaf = if own.is_some() { own } else { inherited };
        if place >= ROOTS {
            self.leaves.items_mut()[place - ROOTS] = leaf;
            return;
        }
        self.spread(2 * place, leaf);
        self.spread(2 * place + 1, leaf);
    }
}

/// Returns the root of an address.
pub(super) fn root_of(bits: u128) -> u32 {
    (bits >> (128 - ROOT_BITS)) as u32
}

/// Converts a number of levels.
fn levels(count: usize) -> u32 {
    u32::try_from(count).expect("at most LEVELS")
}

/// Returns the six bits of an address from `depth` on.
pub(super) fn slot_at(bits: u128, depth: u32) -> u32 {
    (bits << depth >> (128 - STRIDE)) as u32
}

/// Returns the index of a prefix of up to `ROOT_BITS` bits in `TreeBitmap::short`.
fn short_place(prefix: Prefix) -> usize {
    let len = u32::from(prefix.len);
    1 << len | (root_of(prefix.bits) >> (ROOT_BITS - len)) as usize
}
