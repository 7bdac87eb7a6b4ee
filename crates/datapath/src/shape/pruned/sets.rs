//! The sets of tuples that values of slices select, each kept once however many values select it.
//!
//! A set is found by the sum (exclusive or) of its tuples' random numbers, so the set with one tuple more or less is found without
//! looking at all of them; equal sums are compared bit by bit. Its number is used again as soon as no value selects it. When all
//! numbers are taken no set is made: the caller then leaves a tuple in where it need not be, or lets it pass more, which costs
//! time but finds the same entries.
use super::columns::{Bit, Columns};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// A set's number; 0 is the empty set.
pub(super) type SetId = u16;

/// Nothing selects it; ends a chain.
const NO_SET: SetId = SetId::MAX;

/// Sets by sum are found through this many chains, a power of two.
const CHAINS: usize = 1 << 14;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Sets {
    /// By set: the sum of its tuples' numbers.
    sums: Vec<u64>,
    /// By set: how many values select it.
    uses: Vec<u32>,
    /// By set: the next one of its chain.
    next: Vec<SetId>,
    /// By the low bits of a sum: the first one.
    chains: Box<[SetId]>,
    /// Numbers to use again.
    free: Vec<SetId>,
    /// Makes tuples' random numbers.
    hasher: RandomState,
}

impl Default for Sets {
    fn default() -> Sets {
        let mut sets = Sets {
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

impl Sets {
    /// The set that has `bit` if `from` has not, or the other way round, for one more value; none if no number is left.
    pub(super) fn flip(&mut self, from: SetId, bit: Bit, columns: &mut Columns) -> Option<SetId> {
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

    /// Says that a value no longer selects this set.
    pub(super) fn release(&mut self, set: SetId) {
        // The empty set is never made nor freed.
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

    /// How many sets there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sums.len() - self.free.len()
    }

    fn make(&mut self, from: SetId, bit: Bit, sum: u64, columns: &mut Columns) -> Option<SetId> {
        let set = self.free.pop().or_else(|| {
            let new = SetId::try_from(self.sums.len()).ok().filter(|new| usize::from(*new) < super::MAX_SETS)?;
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

    fn unlink(&mut self, set: SetId) {
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
