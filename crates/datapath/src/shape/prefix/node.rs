//! A node of the trie: six bits of the address, the prefixes that end within them and the nodes below, each as a set of bits that is
//! counted to find the place in an array.

use std::hint::select_unpredictable;
use zerocopy::FromZeros;

/// Bits of the address that a node looks at.
pub(super) const STRIDE: u32 = 6;

/// A node at depth `d` holds the prefixes of `d + 1` to `d + 6` bits that begin with its own. Half a cache line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromZeros)]
#[repr(C, align(32))]
pub(super) struct Node {
    /// Prefixes of one to five more bits: those of `r` bits `v` are bit `2^r + v`, so that a longer one is higher.
    inner: u64,
    /// Prefixes of six more bits.
    ends: u64,
    /// Six more bits for which there is a node below.
    children: u64,
    /// Where the nodes below begin; they are in order of their bits.
    pub(super) child_base: u32,
    /// Where the leaves begin: those of `inner`, then those of `ends`.
    pub(super) leaf_base: u32,
}

/// By six bits of an address: the bits of [`Node::inner`] that are prefixes of them.
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

/// A prefix's place in a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// A bit of `inner`.
    Inner(u32),
    /// A bit of `ends`.
    End(u32),
}

impl Place {
    /// The place of the first `bits` (1 to 6) of the six bits `slot`.
    pub(super) fn new(slot: u32, bits: u32) -> Place {
        if bits == STRIDE { Place::End(slot) } else { Place::Inner(1 << bits | slot >> (STRIDE - bits)) }
    }
}

impl Node {
    /// The place of the longest prefix of these six bits among the leaves; `other` if there is none.
    #[inline(always)]
    pub(super) fn longest_or(&self, slot: u32, other: u32) -> u32 {
        let inner = self.inner & PREFIXES[slot as usize & 63];
        let highest = 63 - (inner | 1).leading_zeros();
        let of_inner = (self.inner & below(highest)).count_ones();
        let of_ends = self.inner.count_ones() + (self.ends & below(slot)).count_ones();
        // Which it is depends on the packet: all are worked out, since guessing wrong would cost more.
        let place = self.leaf_base + select_unpredictable(self.ends >> slot & 1 != 0, of_ends, of_inner);
        select_unpredictable((inner | self.ends >> slot & 1) != 0, place, other)
    }

    /// The places of all prefixes of these six bits among the leaves.
    pub(super) fn all(&self, slot: u32) -> impl Iterator<Item = u32> {
        let (inner, base) = (self.inner & PREFIXES[slot as usize & 63], self.leaf_base);
        let lengths = (1..=STRIDE).map(move |bits| Place::new(slot, bits));
        let there = lengths.filter(move |place| match place {
            Place::Inner(bit) => inner >> bit & 1 != 0,
            Place::End(bit) => self.ends >> bit & 1 != 0,
        });
        there.map(move |place| base + self.rank(place))
    }

    /// Where the node below these six bits is.
    #[inline(always)]
    pub(super) fn child(&self, slot: u32) -> Option<u32> {
        (self.children >> slot & 1 != 0).then(|| self.child_base + self.child_rank(slot))
    }

    /// How many nodes below come before the one of these six bits.
    #[inline(always)]
    pub(super) fn child_rank(&self, slot: u32) -> u32 {
        (self.children & below(slot)).count_ones()
    }

    /// How many leaves come before the one of this place.
    pub(super) fn rank(&self, place: Place) -> u32 {
        match place {
            Place::Inner(bit) => (self.inner & below(bit)).count_ones(),
            Place::End(bit) => self.inner.count_ones() + (self.ends & below(bit)).count_ones(),
        }
    }

    /// Whether there is a leaf in this place.
    pub(super) fn has(&self, place: Place) -> bool {
        match place {
            Place::Inner(bit) => self.inner >> bit & 1 != 0,
            Place::End(bit) => self.ends >> bit & 1 != 0,
        }
    }

    /// A leaf comes to this place, or goes.
    pub(super) fn flip(&mut self, place: Place) {
        match place {
            Place::Inner(bit) => self.inner ^= 1 << bit,
            Place::End(bit) => self.ends ^= 1 << bit,
        }
    }

    /// A node comes below these six bits, or goes.
    pub(super) fn flip_child(&mut self, slot: u32) {
        self.children ^= 1 << slot;
    }

    /// How many leaves it has.
    pub(super) fn leaves(&self) -> u32 {
        self.inner.count_ones() + self.ends.count_ones()
    }

    /// How many nodes are below.
    pub(super) fn child_count(&self) -> u32 {
        self.children.count_ones()
    }

    /// Its prefixes in the order of their leaves: the bits after the node's own, and how many they are.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = (u32, u32)> {
        let inner = bits(self.inner).map(|bit| (bit & !(1 << bit.ilog2()), bit.ilog2()));
        inner.chain(bits(self.ends).map(|bit| (bit, STRIDE)))
    }

    /// Whether nothing is in it and nothing below.
    pub(super) fn is_empty(&self) -> bool {
        self.inner | self.ends | self.children == 0
    }
}

/// The numbers of the bits that are set, ascending.
fn bits(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |bit| set >> bit & 1 != 0)
}

/// The bits below a bit.
#[inline(always)]
const fn below(bit: u32) -> u64 {
    (1 << bit) - 1
}
