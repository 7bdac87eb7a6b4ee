//! A set of tuples as bits: 64 of them, or a cache line of 512.

/// Which of a column's tuples are in a set.
pub(super) trait Row: Copy + PartialEq {
    /// How many tuples it can hold.
    const TUPLES: usize;
    /// None of them.
    const NONE: Self;
    /// All of them.
    const ALL: Self;

    fn has(&self, tuple: usize) -> bool;
    fn put(&mut self, tuple: usize, is_in: bool);
    /// Keeps those that are in either of two sets.
    fn keep(&mut self, one: &Self, other: &Self);
    /// The set's words, the tuples of the lowest numbers first.
    fn words(&self) -> &[u64];
    /// Takes the lowest number out, if there is one.
    fn take_first(&mut self) -> Option<usize>;
    /// Which words are not zero, one bit each.
    fn occupied(&self) -> u32;
}

impl Row for u64 {
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

    #[inline]
    fn words(&self) -> &[u64] {
        std::slice::from_ref(self)
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        let first = self.trailing_zeros() as usize;
        *self &= self.wrapping_sub(1);
        (first < 64).then_some(first)
    }

    #[inline(always)]
    fn occupied(&self) -> u32 {
        u32::from(*self != 0)
    }
}

/// 512 tuples in one cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct Line([u64; 8]);

impl From<u64> for Line {
    #[inline(always)]
    fn from(word: u64) -> Line {
        Line([word, 0, 0, 0, 0, 0, 0, 0])
    }
}

impl Row for Line {
    const TUPLES: usize = 512;
    const NONE: Line = Line([0; 8]);
    const ALL: Line = Line([u64::MAX; 8]);

    #[inline]
    fn has(&self, tuple: usize) -> bool {
        self.0[tuple / 64].has(tuple % 64)
    }

    #[inline]
    fn put(&mut self, tuple: usize, is_in: bool) {
        self.0[tuple / 64].put(tuple % 64, is_in);
    }

    #[inline(always)]
    fn keep(&mut self, one: &Line, other: &Line) {
        // Not iterators in step: those were not always made into wide instructions.
        self.0 = std::array::from_fn(|word| self.0[word] & (one.0[word] | other.0[word]));
    }

    #[inline]
    fn words(&self) -> &[u64] {
        &self.0
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<usize> {
        let number = self.occupied().trailing_zeros() as usize;
        let first = self.0.get_mut(number)?.take_first()?;
        Some(number * 64 + first)
    }

    #[inline(always)]
    fn occupied(&self) -> u32 {
        self.0.iter().enumerate().fold(0, |occupied, (number, word)| occupied | u32::from(*word != 0) << number)
    }
}
