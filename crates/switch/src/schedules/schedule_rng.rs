//! Random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014), whose stream is equal on every machine.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct ScheduleRng(u64);

impl ScheduleRng {
    /// Returns the stream of a seed. `purpose` separates different streams of one seed.
    pub(super) fn new(seed: u64, purpose: u64) -> ScheduleRng {
        let mut dice = ScheduleRng(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
        dice.next();
        dice
    }

    /// Returns 64 random bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `end`, excluding `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }

    /// Returns true with a probability of `per_mille` thousandths.
    pub(super) fn hits(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// Returns a random element.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
