//! A tree bitmap (Eatherton, Varghese, Dittia: Tree Bitmap, SIGCOMM CCR 2004): twelve bits of the address choose a root, then each
//! node looks at six more.
//!
//! No prefix is expanded beyond the node that it ends in, so adding or removing one changes at most one array of leaves (126) and one of
//! nodes (64) for each level, whatever the number of prefixes; those of up to twelve bits change as many of the 4096 places as they
//! cover. A search remembers the place of the last leaf on its way and reads just that one in the end.
use super::super::EntryId;
use super::node::{Node, Place, STRIDE};
use super::pool::Pool;
use weir_memory::OutOfMemory;
use zerocopy::FromZeros;

/// Bits of the address that choose a root; prefixes as long as this, or shorter, are kept apart.
pub(super) const ROOT_BITS: u32 = 12;
pub(super) const ROOTS: usize = 1 << ROOT_BITS;
/// Levels below the roots that 128 bits can need.
pub(super) const LEVELS: usize = (128 - ROOT_BITS).div_ceil(STRIDE) as usize;

/// A prefix: its bits from the top of the number on, zero after them, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Prefix {
    pub(super) bits: u128,
    /// At most 128.
    pub(super) len: u8,
}

/// The entry of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromZeros)]
pub(super) struct Leaf {
    pub(super) id: EntryId,
    pub(super) priority: u16,
}

impl Leaf {
    /// No entry.
    pub(super) const NONE: Leaf = Leaf { id: EntryId::NONE, priority: 0 };

    #[inline(always)]
    pub(super) fn is_some(self) -> bool {
        self.id != EntryId::NONE
    }

    /// The one of the higher priority.
    #[inline(always)]
    pub(super) fn or_higher(self, other: Leaf) -> Leaf {
        let is_other = other.is_some() && (!self.is_some() || other.priority > self.priority);
        if is_other { other } else { self }
    }
}

/// See the module's page. The first nodes are the roots, the first leaves the longest of the short prefixes for each root.
#[derive(Debug)]
pub(super) struct Trie {
    pub(super) nodes: Pool<Node>,
    pub(super) leaves: Pool<Leaf>,
    /// The prefixes of up to `ROOT_BITS` bits: `v` of `n` bits is at `2^n + v`.
    pub(super) short: Box<[Leaf]>,
}

/// Where a prefix of more than `ROOT_BITS` bits ends: the nodes on the way with the six bits taken there, and the place in the last.
struct Way {
    nodes: [(u32, u32); LEVELS],
    len: usize,
}

impl Trie {
    /// A trie without prefixes, of 224 KiB.
    pub(super) fn new() -> Result<Trie, OutOfMemory> {
        let short = vec![Leaf::NONE; 2 * ROOTS].into_boxed_slice();
        Ok(Trie { nodes: Pool::new(ROOTS, Node::default())?, leaves: Pool::new(ROOTS, Leaf::NONE)?, short })
    }

    /// A trie with only the short prefixes of another one.
    pub(super) fn with_short_of(other: &Trie) -> Result<Trie, OutOfMemory> {
        let mut trie = Trie { short: other.short.clone(), ..Trie::new()? };
        trie.leaves.items_mut().copy_from_slice(&other.leaves.items()[..ROOTS]);
        Ok(trie)
    }

    /// The leaf of exactly this prefix.
    pub(super) fn get(&self, prefix: Prefix) -> Option<Leaf> {
        if u32::from(prefix.len) <= ROOT_BITS {
            return Some(self.short[short_place(prefix)]).filter(|leaf| leaf.is_some());
        }
        let mut at = root_of(prefix.bits);
        let (mut depth, len) = (ROOT_BITS, u32::from(prefix.len));
        loop {
            let (node, slot) = (&self.nodes.items()[at as usize], slot_at(prefix.bits, depth));
            if len <= depth + STRIDE {
                let place = Place::new(slot, len - depth);
                return node.has(place).then(|| self.leaves.items()[(node.leaf_base + node.rank(place)) as usize]);
            }
            at = node.child(slot)?;
            depth += STRIDE;
        }
    }

    /// Gives a prefix a leaf, in place of the one that it has.
    pub(super) fn set(&mut self, prefix: Prefix, leaf: Leaf) -> Result<(), OutOfMemory> {
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

    /// Takes a prefix's leaf away, and the nodes that were there only for it.
    pub(super) fn clear(&mut self, prefix: Prefix) -> Result<(), OutOfMemory> {
        if u32::from(prefix.len) <= ROOT_BITS {
            self.set_short(prefix, Leaf::NONE);
            return Ok(());
        }
        let Some(way) = self.way(prefix) else { return Ok(()) };
        let (at, slot) = way.nodes[way.len - 1];
        let place = Place::new(slot, u32::from(prefix.len) - ROOT_BITS - STRIDE * (levels(way.len) - 1));
        let node = &mut self.nodes.items_mut()[at as usize];
        if !node.has(place) {
            return Ok(());
        }
        node.leaf_base = self.leaves.remove(node.leaf_base, node.leaves(), node.rank(place))?;
        node.flip(place);
        self.prune(&way)
    }

    /// The bytes that it occupies.
    pub(super) fn held(&self) -> usize {
        self.nodes.held() + self.leaves.held() + size_of_val(&*self.short)
    }

    /// The bytes of its nodes and leaves.
    pub(super) fn size(&self) -> usize {
        size_of_val(self.nodes.items()) + size_of_val(self.leaves.items())
    }

    /// How many of them are not used.
    pub(super) fn unused(&self) -> usize {
        self.nodes.unused() + self.leaves.unused()
    }

    /// The node that a prefix ends in, made if it is not there, and the place there.
    fn way_to(&mut self, prefix: Prefix) -> Result<(u32, Place), OutOfMemory> {
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
        Ok((at, Place::new(slot_at(prefix.bits, depth), len - depth)))
    }

    /// Makes the node below `slot` of the one at `at`.
    fn grow(&mut self, at: u32, slot: u32) -> Result<u32, OutOfMemory> {
        let mut node = self.nodes.items()[at as usize];
        let rank = node.child_rank(slot);
        node.child_base = self.nodes.insert(node.child_base, node.child_count(), rank, Node::default())?;
        node.flip_child(slot);
        self.nodes.items_mut()[at as usize] = node;
        Ok(node.child_base + rank)
    }

    /// The nodes on the way to the one that a prefix ends in.
    fn way(&self, prefix: Prefix) -> Option<Way> {
        let mut way = Way { nodes: [(0, 0); LEVELS], len: 0 };
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

    /// Removes the nodes at the end of a way that have become empty; roots stay.
    fn prune(&mut self, way: &Way) -> Result<(), OutOfMemory> {
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

    /// Sets the leaf of a short prefix, and what the roots under it find.
    fn set_short(&mut self, prefix: Prefix, leaf: Leaf) {
        let place = short_place(prefix);
        self.short[place] = leaf;
        let mut inherited = Leaf::NONE;
        for bits in 0..prefix.len {
            let above = self.short[place >> (prefix.len - bits)];
            inherited = if above.is_some() { above } else { inherited };
        }
        self.spread(place, inherited);
    }

    /// Tells the roots under a short prefix what they find, given what the shorter prefixes say.
    fn spread(&mut self, place: usize, inherited: Leaf) {
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

/// The root of an address.
pub(super) fn root_of(bits: u128) -> u32 {
    (bits >> (128 - ROOT_BITS)) as u32
}

/// A number of levels.
fn levels(count: usize) -> u32 {
    u32::try_from(count).expect("at most LEVELS")
}

/// The six bits of an address from `depth` on.
pub(super) fn slot_at(bits: u128, depth: u32) -> u32 {
    (bits << depth >> (128 - STRIDE)) as u32
}

/// The place of a prefix of up to `ROOT_BITS` bits among the short ones.
fn short_place(prefix: Prefix) -> usize {
    let len = u32::from(prefix.len);
    1 << len | (root_of(prefix.bits) >> (ROOT_BITS - len)) as usize
}
