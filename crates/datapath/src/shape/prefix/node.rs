//! Node of the trie. It covers six bits of the address. The prefixes that end within them and the child nodes are bit
//! sets; counting the bits below one gives the index in an array.

use std::hint::select_unpredictable;
use zerocopy::FromZeros;

/// Number of address bits that a node covers.
pub(super) const STRIDE: u32 = 6;

/// Node of the trie. A node at depth `d` holds the prefixes of `d + 1` to `d + 6` bits that begin with its own. Half
/// a cache line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromZeros)]
#[repr(C, align(32))]
pub(super) struct TrieNode {
    /// Set of prefixes with one to five more bits: a prefix with `r` bits of value `v` is bit `2^r + v`, so that
    /// longer ones are higher.
    inner: u64,
    /// Set of prefixes with six more bits.
    ends: u64,
    /// Set of the six-bit values that have a child node.
    children: u64,
    /// Index of the first child node; children are in order of their six bits.
    pub(super) child_base: u32,
    /// Index of the first leaf: first those of `inner`, then those of `ends`.
    pub(super) leaf_base: u32,
}

/// By six bits of an address: the bits of [`TrieNode::inner`] that are prefixes of them.
const PREFIXES: [u64; 64] = {
    let (mut table, mut slot) = ([0; 64], 0);
    while slot < 64 {
        let mut bits = 1;
        while bits < STRIDE {
            table[slot] |= 1 << (1 << bits | slot >> (STRIDE - bits));
            bits += 1;
        }
        slot += 1;
    }
    table
};

/// Position of a prefix in a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum PrefixSlot {
    /// Bit in `inner`.
    Inner(u32),
    /// Bit in `ends`.
    End(u32),
}

impl PrefixSlot {
    /// Returns the position for the first `bits` (1 to 6) of the six bits `slot`.
    pub(super) fn new(slot: u32, bits: u32) -> PrefixSlot {
        if bits == STRIDE { PrefixSlot::End(slot) } else { PrefixSlot::Inner(1 << bits | slot >> (STRIDE - bits)) }
    }
}

impl TrieNode {
    /// Returns the leaf index of the longest prefix of these six bits; `other` if there is none.
    #[inline(always)]
    pub(super) fn longest_or(&self, slot: u32, other: u32) -> u32 {
        let inner = self.inner & PREFIXES[slot as usize & 63];
        let highest = 63 - (inner | 1).leading_zeros();
        let of_inner = (self.inner & below(highest)).count_ones();
        let of_ends = self.inner.count_ones() + (self.ends & below(slot)).count_ones();
        // The case depends on the packet. All are computed, because a mispredicted branch would cost more.
        let place = self.leaf_base + select_unpredictable(self.ends >> slot & 1 != 0, of_ends, of_inner);
        select_unpredictable((inner | self.ends >> slot & 1) != 0, place, other)
    }

    /// Iterates over the leaf indices of all prefixes of these six bits.
    pub(super) fn all(&self, slot: u32) -> impl Iterator<Item = u32> {
        let (inner, base) = (self.inner & PREFIXES[slot as usize & 63], self.leaf_base);
        let lengths = (1..=STRIDE).map(move |bits| PrefixSlot::new(slot, bits));
        let there = lengths.filter(move |place| match place {
            PrefixSlot::Inner(bit) => inner >> bit & 1 != 0,
            PrefixSlot::End(bit) => self.ends >> bit & 1 != 0,
        });
        there.map(move |place| base + self.rank(place))
    }

    /// Returns the index of the child node for these six bits.
    #[inline(always)]
    pub(super) fn child(&self, slot: u32) -> Option<u32> {
        (self.children >> slot & 1 != 0).then(|| self.child_base + self.child_rank(slot))
    }

    /// Returns the number of children before the one for these six bits.
    #[inline(always)]
    pub(super) fn child_rank(&self, slot: u32) -> u32 {
        (self.children & below(slot)).count_ones()
    }

    /// Returns the number of leaves before the one at this position.
    pub(super) fn rank(&self, place: PrefixSlot) -> u32 {
        match place {
            PrefixSlot::Inner(bit) => (self.inner & below(bit)).count_ones(),
            PrefixSlot::End(bit) => self.inner.count_ones() + (self.ends & below(bit)).count_ones(),
        }
    }

    /// Returns true if this position has a leaf.
    pub(super) fn has(&self, place: PrefixSlot) -> bool {
        match place {
            PrefixSlot::Inner(bit) => self.inner >> bit & 1 != 0,
            PrefixSlot::End(bit) => self.ends >> bit & 1 != 0,
        }
    }

    /// Adds or removes the leaf bit of this position.
    pub(super) fn flip(&mut self, place: PrefixSlot) {
        match place {
            PrefixSlot::Inner(bit) => self.inner ^= 1 << bit,
            PrefixSlot::End(bit) => self.ends ^= 1 << bit,
        }
    }

    /// Adds or removes the child bit for these six bits.
    pub(super) fn flip_child(&mut self, slot: u32) {
        self.children ^= 1 << slot;
    }

    /// Returns the number of leaves.
    pub(super) fn leaves(&self) -> u32 {
        self.inner.count_ones() + self.ends.count_ones()
    }

    /// Returns the number of child nodes.
    pub(super) fn child_count(&self) -> u32 {
        self.children.count_ones()
    }

    /// Iterates over the node's prefixes in the order of their leaves: the bits after the node's own, and their
    /// number.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = (u32, u32)> {
        let inner = bits(self.inner).map(|bit| (bit & !(1 << bit.ilog2()), bit.ilog2()));
        inner.chain(bits(self.ends).map(|bit| (bit, STRIDE)))
    }

    /// Returns true if the node has neither leaves nor children.
    pub(super) fn is_empty(&self) -> bool {
        self.inner | self.ends | self.children == 0
    }
}

/// Iterates over the numbers of the bits that are set, ascending.
fn bits(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |bit| set >> bit & 1 != 0)
}

/// Returns a mask of the bits below a bit.
#[inline(always)]
const fn below(bit: u32) -> u64 {
    (1 << bit) - 1
}
