//! Searches a trie for one address, or for those of a burst level by level, so that the packets' memory waits
//! overlap.
use super::super::MAX_BURST;
use super::layout::PrefixLayout;
use super::node::{STRIDE, TrieNode};
use super::trie::{ROOT_BITS, TreeBitmap, TrieLeaf};
use weir_memory::prefetch;
use weir_packet::FlowKey;

/// An address, its bits from the top of the number on. Bits after the field are ignored, because no prefix is that
/// long.
pub(super) trait PrefixAddress: Copy {
    /// The address zero.
    const ZERO: Self;
    /// Returns the address of a packet.
    fn of(layout: &PrefixLayout, key: &FlowKey) -> Self;
    /// Returns the bits that select a root.
    fn root(self) -> u32;
    /// Returns the next six bits.
    fn slot(self) -> u32;
    /// Returns the address without its first `bits` bits.
    fn after(self, bits: u32) -> Self;
}

macro_rules! address {
    ($number:ty, $of:ident) => {
        impl PrefixAddress for $number {
            const ZERO: Self = 0;

            #[inline(always)]
            fn of(layout: &PrefixLayout, key: &FlowKey) -> Self {
                layout.$of(key)
            }

            #[inline(always)]
            fn root(self) -> u32 {
                (self >> (Self::BITS - ROOT_BITS)) as u32
            }

            #[inline(always)]
            fn slot(self) -> u32 {
                (self >> (Self::BITS - STRIDE)) as u32
            }

            #[inline(always)]
            fn after(self, bits: u32) -> Self {
                self << bits
            }
        }
    };
}

address!(u64, narrow);
address!(u128, wide);

/// Addresses of a burst, and the progress of their searches.
pub(super) struct TrieWalk<A> {
    /// By lane: the rest of the address.
    rest: [A; MAX_BURST],
    /// By lane: the next node to look at.
    node: [u32; MAX_BURST],
    /// By lane: the leaf index of the longest prefix so far.
    leaf: [u32; MAX_BURST],
    /// Lanes whose search has not ended.
    walking: [u8; MAX_BURST],
    count: usize,
}

impl TreeBitmap {
    /// Returns the leaf of the longest prefix of an address, or [`TrieLeaf::NONE`].
    #[inline(always)]
    pub(super) fn longest<A: PrefixAddress>(&self, address: A) -> TrieLeaf {
        let nodes = self.nodes.items();
        let (mut at, mut place, mut rest) = (address.root(), address.root(), address.after(ROOT_BITS));
        loop {
            let (node, slot) = (&nodes[at as usize], rest.slot());
            place = node.longest_or(slot, place);
            let Some(child) = node.child(slot) else { return self.leaves.items()[place as usize] };
            (at, rest) = (child, rest.after(STRIDE));
        }
    }

    /// Returns the leaf with the highest priority among all prefixes of an address, or [`TrieLeaf::NONE`].
    pub(super) fn highest<A: PrefixAddress>(&self, address: A) -> TrieLeaf {
        let mut best = TrieLeaf::NONE;
        let mut see = |leaf: TrieLeaf| {
            if leaf.is_some() && (leaf.priority >= best.priority || !best.is_some()) {
                best = leaf;
            }
        };
        (0..=ROOT_BITS).for_each(|len| see(self.short[(1 << len | address.root() >> (ROOT_BITS - len)) as usize]));
        let (mut at, mut rest) = (address.root(), address.after(ROOT_BITS));
        loop {
            let (node, slot) = (&self.nodes.items()[at as usize], rest.slot());
            node.all(slot).for_each(|place| see(self.leaves.items()[place as usize]));
            let Some(child) = node.child(slot) else { return best };
            (at, rest) = (child, rest.after(STRIDE));
        }
    }
}

impl<A: PrefixAddress> TrieWalk<A> {
    /// Creates a walk without addresses.
    #[inline(always)]
    pub(super) fn new() -> TrieWalk<A> {
        TrieWalk {
            rest: [A::ZERO; MAX_BURST],
            node: [0; MAX_BURST],
            leaf: [0; MAX_BURST],
            walking: [0; MAX_BURST],
            count: 0,
        }
    }

    /// Begins the search for a lane's address; `lane` is below 64. The first level is searched immediately, because
    /// the roots are few enough to be in the cache.
    #[inline(always)]
    pub(super) fn begin(&mut self, trie: &TreeBitmap, lane: usize, address: A) {
        let (lane, root) = (lane & 63, address.root());
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let number = lane as u8;
        if self.step(trie, trie.nodes.items(), lane, (root, root), address.after(ROOT_BITS)) {
            self.walking[self.count & 63] = number;
            self.count += 1;
        }
    }

    /// Searches until all lanes have ended. Their leaves are prefetched.
    #[inline(always)]
    pub(super) fn run(&mut self, trie: &TreeBitmap) {
        let nodes = trie.nodes.items();
        while self.count > 0 {
            let mut still = 0;
            for at in 0..self.count.min(64) {
                let number = self.walking[at];
                let lane = usize::from(number) & 63;
                if self.step(trie, nodes, lane, (self.node[lane], self.leaf[lane]), self.rest[lane]) {
                    self.walking[still & 63] = number;
                    still += 1;
                }
            }
            self.count = still;
        }
    }

    /// Searches one level for a lane; `at` has the node to look at, and the leaf index so far. Returns true if there
    /// is another level.
    #[inline(always)]
    fn step(&mut self, trie: &TreeBitmap, nodes: &[TrieNode], lane: usize, at: (u32, u32), rest: A) -> bool {
        let (node, slot) = (&nodes[at.0 as usize], rest.slot());
        let leaf = node.longest_or(slot, at.1);
        self.leaf[lane] = leaf;
        let Some(child) = node.child(slot) else {
            prefetch(trie.leaves.items(), leaf as usize);
            return false;
        };
        prefetch(nodes, child as usize);
        self.node[lane] = child;
        self.rest[lane] = rest.after(STRIDE);
        true
    }

    /// Returns the leaf found for a lane, or [`TrieLeaf::NONE`].
    #[inline(always)]
    pub(super) fn found(&self, trie: &TreeBitmap, lane: usize) -> TrieLeaf {
        trie.leaves.items()[self.leaf[lane & 63] as usize]
    }
}
