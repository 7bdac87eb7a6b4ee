//! Keeps the sets of tuples that values of slices select. Each set is stored once, however many values select it.
//!
//! A set is found by the exclusive or of its tuples' random numbers. The set with one tuple more or less is thus
//! found without reading all its tuples; sets with equal sums are compared bit by bit. A set's number is reused as
//! soon as no value selects it. When all numbers are in use, no set is created. The caller then keeps a tuple in a
//! set longer than needed, or lets it pass more values, which costs time but finds the same entries.
use super::columns::{ColumnPlace, TupleColumns};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Number of a set; 0 is the empty set.
pub(super) type TupleSetId = u16;

/// Marks the end of a chain.
const NO_SET: TupleSetId = TupleSetId::MAX;

/// Number of chains for finding sets by sum, a power of two.
const CHAINS: usize = 1 << 14;

/// All sets of tuples, found by sum and counted by use. Their bits are in [`TupleColumns`]. See the [module](self).
#[derive(Debug)]
pub(super) struct TupleSets {
    /// By set: the exclusive or of its tuples' random numbers.
    sums: Vec<u64>,
    /// By set: the number of values that select it.
    uses: Vec<u32>,
    /// By set: the next set of its chain.
    next: Vec<TupleSetId>,
    /// By the low bits of a sum: the first set of the chain.
    chains: Box<[TupleSetId]>,
    /// Set numbers for reuse.
    free: Vec<TupleSetId>,
    /// Source of the tuples' random numbers.
    hasher: RandomState,
}

impl Default for TupleSets {
    fn default() -> TupleSets {
        let mut sets = TupleSets {
            sums: vec![0],
            uses: vec![0],
            next: vec![NO_SET],
            chains: vec![NO_SET; CHAINS].into(),
            free: Vec::new(),
            hasher: RandomState::default(),
        };
        sets.chains[chain(0)] = 0;
        sets
    }
}

impl TupleSets {
    /// Returns the set that differs from `from` in `bit` only, and counts one more value for it. Creates the set if
    /// needed; `None` if no number is left.
    pub(super) fn flip(
        &mut self,
        from: TupleSetId,
        bit: ColumnPlace,
        columns: &mut TupleColumns,
    ) -> Option<TupleSetId> {
        let sum = self.sums[usize::from(from)] ^ self.hasher.hash_one(bit);
        let mut at = self.chains[chain(sum)];
        while at != NO_SET {
            if self.sums[usize::from(at)] == sum && columns.differ_by(from, at, bit) {
                self.uses[usize::from(at)] += 1;
                return Some(at);
            }
            at = self.next[usize::from(at)];
        }
        self.make(from, bit, sum, columns)
    }

    /// Counts one value less for a set; removes the set with the last one.
    pub(super) fn release(&mut self, set: TupleSetId) {
        // The empty set is neither created nor removed.
        if set == 0 {
            return;
        }
        let uses = &mut self.uses[usize::from(set)];
        *uses -= 1;
        if *uses == 0 {
            self.unlink(set);
            self.free.push(set);
        }
    }

    /// Returns the number of sets in use, including the empty one.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sums.len() - self.free.len()
    }

    fn make(&mut self, from: TupleSetId, bit: ColumnPlace, sum: u64, columns: &mut TupleColumns) -> Option<TupleSetId> {
        let set = self.free.pop().or_else(|| {
            let new = TupleSetId::try_from(self.sums.len()).ok().filter(|new| usize::from(*new) < super::MAX_SETS)?;
            self.sums.push(0);
            self.uses.push(0);
            self.next.push(NO_SET);
            Some(new)
        })?;
        columns.make_set(from, set, bit);
        let first = &mut self.chains[chain(sum)];
        self.sums[usize::from(set)] = sum;
        self.uses[usize::from(set)] = 1;
        self.next[usize::from(set)] = std::mem::replace(first, set);
        Some(set)
    }

    fn unlink(&mut self, set: TupleSetId) {
        let after = self.next[usize::from(set)];
        let first = chain(self.sums[usize::from(set)]);
        if self.chains[first] == set {
            self.chains[first] = after;
            return;
        }
        let mut at = self.chains[first];
        while self.next[usize::from(at)] != set {
            at = self.next[usize::from(at)];
        }
        self.next[usize::from(at)] = after;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits choose the chain")]
fn chain(sum: u64) -> usize {
    sum as usize & (CHAINS - 1)
}
