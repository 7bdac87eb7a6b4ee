//! Generates random numbers from a seed.
use fastrand::Rng;

/// A stream of random numbers.
#[derive(Debug)]
pub(super) struct CaseRng(Rng);

impl CaseRng {
    pub(super) fn new(seed: u64) -> CaseRng {
        CaseRng(Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns true with probability 1/`times`.
    pub(super) fn one_in(&mut self, times: u32) -> bool {
        self.0.u32(0..times) == 0
    }

    /// Returns a random number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        self.0.u32(low..=high)
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.0.u8(..)
    }

    pub(super) fn short(&mut self) -> u16 {
        self.0.u16(..)
    }

    pub(super) fn word(&mut self) -> u32 {
        self.0.u32(..)
    }

    pub(super) fn long(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub(super) fn wide(&mut self) -> u128 {
        self.0.u128(..)
    }

    pub(super) fn index(&mut self, below: usize) -> usize {
        self.0.usize(0..below)
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}
