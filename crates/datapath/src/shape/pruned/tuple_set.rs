//! Sets of tuples as bits: 64 tuples, or a cache line of 512.

/// Set of a column's tuples.
pub(super) trait TupleSet: Copy + PartialEq {
    /// Number of tuples that it can hold.
    const TUPLES: usize;
    /// The empty set.
    const NONE: Self;
    /// The set of all tuples.
    const ALL: Self;

    fn has(&self, tuple: usize) -> bool;
    fn put(&mut self, tuple: usize, is_in: bool);
    /// Keeps the tuples that are in `one` or `other`.
    fn keep(&mut self, one: &Self, other: &Self);
}

impl TupleSet for u64 {
    const TUPLES: usize = 64;
    const NONE: u64 = 0;
    const ALL: u64 = u64::MAX;

    #[inline]
    fn has(&self, tuple: usize) -> bool {
        self >> tuple & 1 == 1
    }

    #[inline]
    fn put(&mut self, tuple: usize, is_in: bool) {
        *self = *self & !(1 << tuple) | u64::from(is_in) << tuple;
    }

    #[inline(always)]
    fn keep(&mut self, one: &u64, other: &u64) {
        *self &= one | other;
    }
}

/// Set of up to 512 tuples in one cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct WideTupleSet([u64; 8]);

impl TupleSet for WideTupleSet {
    const TUPLES: usize = 512;
    const NONE: WideTupleSet = WideTupleSet([0; 8]);
    const ALL: WideTupleSet = WideTupleSet([u64::MAX; 8]);

    #[inline]
    fn has(&self, tuple: usize) -> bool {
        self.0[tuple / 64].has(tuple % 64)
    }

    #[inline]
    fn put(&mut self, tuple: usize, is_in: bool) {
        self.0[tuple / 64].put(tuple % 64, is_in);
    }

    #[inline(always)]
    fn keep(&mut self, one: &WideTupleSet, other: &WideTupleSet) {
        // Not zipped iterators, because those were not always compiled to wide instructions.
        self.0 = std::array::from_fn(|word| self.0[word] & (one.0[word] | other.0[word]));
    }
}

impl WideTupleSet {
    /// Returns the words, the lowest tuple numbers first.
    #[inline(always)]
    pub(super) const fn words_mut(&mut self) -> &mut [u64; 8] {
        &mut self.0
    }

    /// Returns the set of words that are not zero, one bit each.
    #[inline(always)]
    pub(super) fn occupied(&self) -> u32 {
        self.0.iter().enumerate().fold(0, |occupied, (number, word)| occupied | u32::from(*word != 0) << number)
    }
}
