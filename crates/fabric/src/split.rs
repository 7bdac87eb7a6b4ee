//! Splits a virtual link over paths: chooses the path of each packet and numbers it, so that
//! [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) can reassemble the link (Anhalt, 2011, 4.5.2; path
//! splitting: Yu, Yi, Rexford and Chiang, "Rethinking virtual network embedding", 2008).
use std::fmt;

/// Maximum number of paths of a virtual link.
pub const MAX_PATHS: usize = 16;

/// Distribution of packets over paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitPolicy {
    /// Weighted round robin: out of as many packets as the sum of the weights, each path gets its weight, evenly
    /// spread.
    Turn,
    /// Random path for each packet, with probabilities proportional to the weights.
    Random,
    /// Path that got the fewest bytes relative to its weight; the first one among equals.
    #[default]
    Bytes,
}

/// Error for invalid weights of a split link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitError {
    weights: Vec<u32>,
}

impl std::error::Error for SplitError {}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "split: found weights {:?}, expected those of 1 to {MAX_PATHS} paths, each above zero", self.weights)
    }
}

/// Entry of a split link: numbers its packets and assigns each a path.
#[derive(Debug, Clone)]
pub struct PathSplitter {
    policy: SplitPolicy,
    paths: Vec<SplitPath>,
    /// Sum of the weights.
    total: u64,
    random: fastrand::Rng,
    next: u64,
}

#[derive(Debug, Clone)]
struct SplitPath {
    weight: u32,
    /// Amount by which the path is behind its share, in packets times the sum of the weights.
    credit: i64,
    bytes: u64,
}

impl PathSplitter {
    /// Creates a splitter with one path per weight. `seed` is for [`SplitPolicy::Random`].
    ///
    /// # Errors
    /// No paths or too many, or a weight of zero.
    pub fn new(weights: &[u32], by: SplitPolicy, seed: u64) -> Result<PathSplitter, SplitError> {
        if !(1..=MAX_PATHS).contains(&weights.len()) || weights.contains(&0) {
            return Err(SplitError { weights: weights.iter().copied().take(MAX_PATHS + 1).collect() });
        }
        Ok(PathSplitter {
            policy: by,
            paths: weights.iter().map(|weight| SplitPath { weight: *weight, credit: 0, bytes: 0 }).collect(),
            total: weights.iter().map(|weight| u64::from(*weight)).sum(),
            random: fastrand::Rng::with_seed(seed),
            next: 0,
        })
    }

    /// Returns the path of the next packet, from 0, and the packet's number.
    pub fn split(&mut self, bytes: u32) -> (usize, u64) {
        let path = match self.policy {
            SplitPolicy::Turn => self.choose_in_turn(),
            SplitPolicy::Random => self.choose_at_random(),
            SplitPolicy::Bytes => self.fewest_bytes(),
        };
        self.paths[path].bytes += u64::from(bytes);
        let number = self.next;
        self.next += 1;
        (path, number)
    }

    /// Returns the number of bytes assigned to a path.
    pub fn bytes(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |path| path.bytes)
    }

    fn choose_in_turn(&mut self) -> usize {
        self.paths.iter_mut().for_each(|path| path.credit += i64::from(path.weight));
        let furthest_behind = (0..self.paths.len()).rev().max_by_key(|path| self.paths[*path].credit).unwrap_or(0);
        self.paths[furthest_behind].credit -= self.total.cast_signed();
        furthest_behind
    }

    fn choose_at_random(&mut self) -> usize {
        let mut drawn = self.random.u64(0..self.total);
        self.paths
            .iter()
            .position(|path| {
                let its = drawn < u64::from(path.weight);
                drawn = drawn.saturating_sub(path.weight.into());
                its
            })
            .unwrap_or(0)
    }

    fn fewest_bytes(&self) -> usize {
        let relative = |path: &SplitPath, other: &SplitPath| {
            (u128::from(path.bytes) * u128::from(other.weight))
                .cmp(&(u128::from(other.bytes) * u128::from(path.weight)))
        };
        (0..self.paths.len()).min_by(|path, other| relative(&self.paths[*path], &self.paths[*other])).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(weights: &[u32], by: SplitPolicy, lengths: &[u32]) -> Vec<usize> {
        let mut splitter = PathSplitter::new(weights, by, 7).unwrap();
        let split: Vec<(usize, u64)> = lengths.iter().map(|bytes| splitter.split(*bytes)).collect();
        assert!((0..).zip(&split).all(|(number, split)| split.1 == number), "numbered from 0 on: {split:?}");
        split.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn in_turn() {
        assert_eq!(paths(&[1, 1], SplitPolicy::Turn, &[100; 5]), [0, 1, 0, 1, 0]);
        assert_eq!(paths(&[2, 1], SplitPolicy::Turn, &[100; 6]), [0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn fewest_bytes() {
        assert_eq!(paths(&[1, 1], SplitPolicy::Bytes, &[1500, 100, 100, 1400, 64, 64]), [0, 1, 1, 1, 0, 0]);
        assert_eq!(paths(&[3, 1], SplitPolicy::Bytes, &[100; 8]), [0, 1, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn at_random_by_weight() {
        let taken = paths(&[3, 1], SplitPolicy::Random, &[100; 10_000]);
        let first = taken.iter().filter(|path| **path == 0).count();
        // Four standard deviations of a binomial distribution.
        assert!((7327..=7673).contains(&first), "{first}");
    }

    #[test]
    fn wrong_weights_are_refused() {
        for weights in [&[][..], &[1, 0], &[1; MAX_PATHS + 1]] {
            assert!(PathSplitter::new(weights, SplitPolicy::Turn, 0).is_err(), "{weights:?}");
        }
    }
}
