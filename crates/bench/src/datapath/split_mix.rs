//! Random numbers that depend only on the seed, in every version of this program.

/// SplitMix64 generator of Steele, Lea and Flood (OOPSLA 2014).
#[derive(Debug, Clone)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns a uniform 64-bit number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform 32-bit number.
    pub(super) fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// Returns a random element of a slice, which must not be empty.
    pub(super) fn pick<'a, T>(&mut self, slice: &'a [T]) -> &'a T {
        let at = (u64::from(self.word()) * slice.len() as u64) >> 32;
        &slice[usize::try_from(at).unwrap_or(0)]
    }

    /// Returns a random number from `first` to `last`, both included.
    pub(super) fn within(&mut self, first: u16, last: u16) -> u16 {
        let span = u64::from(last.saturating_sub(first)) + 1;
        first.saturating_add(u16::try_from((u64::from(self.word()) * span) >> 32).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_paper() {
        // First numbers of the reference implementation for the seed 1234567.
        let mut dice = SplitMix64::new(1_234_567);
        assert_eq!([dice.next(), dice.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn bounds_are_reached_and_kept() {
        let mut dice = SplitMix64::new(1);
        let drawn: Vec<u16> = (0..1000).map(|_| dice.within(5, 7)).collect();
        assert!([5, 6, 7].iter().all(|wanted| drawn.contains(wanted)) && drawn.iter().all(|n| (5..=7).contains(n)));
        assert_eq!(dice.within(9, 9), 9);
        dice.within(0, u16::MAX);
        let picked: Vec<char> = (0..100).map(|_| *dice.pick(&['a', 'b'])).collect();
        assert!(picked.contains(&'a') && picked.contains(&'b'));
    }
}
