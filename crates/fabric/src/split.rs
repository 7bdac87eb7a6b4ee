//! Splitting a virtual link over paths: which packet takes which, and its number, by which
//! [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) puts the link together again (Anhalt, 2011, 4.5.2; path splitting: Yu, Yi,
//! Rexford and Chiang, "Rethinking virtual network embedding", 2008).
use std::fmt;

/// Most paths of a virtual link.
pub const MAX_PATHS: usize = 16;

/// How packets are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitBy {
    /// In turn: of every so many packets as all weights together, each path gets as many as its weight, evenly spread.
    Turn,
    /// Each at random, with probabilities like the weights.
    Random,
    /// Each to the path that had the fewest bytes for its weight: the first of those with the same.
    #[default]
    Bytes,
}

/// Why a link cannot be split like this.
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

/// The classifier where a split link begins: numbers its packets and gives each a path.
#[derive(Debug, Clone)]
pub struct Splitter {
    by: SplitBy,
    paths: Vec<Path>,
    /// All weights together.
    total: u64,
    random: fastrand::Rng,
    next: u64,
}

#[derive(Debug, Clone)]
struct Path {
    weight: u32,
    /// How far it is behind its share, in packets times all weights.
    credit: i64,
    bytes: u64,
}

impl Splitter {
    /// A link split over a path for each weight. `seed` is for [`SplitBy::Random`].
    ///
    /// # Errors
    /// No paths or too many, or a weight of zero.
    pub fn new(weights: &[u32], by: SplitBy, seed: u64) -> Result<Splitter, SplitError> {
        if !(1..=MAX_PATHS).contains(&weights.len()) || weights.contains(&0) {
            return Err(SplitError { weights: weights.iter().copied().take(MAX_PATHS + 1).collect() });
        }
        Ok(Splitter {
            by,
            paths: weights.iter().map(|weight| Path { weight: *weight, credit: 0, bytes: 0 }).collect(),
            total: weights.iter().map(|weight| u64::from(*weight)).sum(),
            random: fastrand::Rng::with_seed(seed),
            next: 0,
        })
    }

    /// The path of the next packet, counted from 0, and its number.
    pub fn split(&mut self, bytes: u32) -> (usize, u64) {
        let path = match self.by {
            SplitBy::Turn => self.in_turn(),
            SplitBy::Random => self.at_random(),
            SplitBy::Bytes => self.fewest_bytes(),
        };
        self.paths[path].bytes += u64::from(bytes);
        let number = self.next;
        self.next += 1;
        (path, number)
    }

    /// Bytes that a path was given.
    pub fn bytes(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |path| path.bytes)
    }

    fn in_turn(&mut self) -> usize {
        self.paths.iter_mut().for_each(|path| path.credit += i64::from(path.weight));
        let furthest_behind = (0..self.paths.len()).rev().max_by_key(|path| self.paths[*path].credit).unwrap_or(0);
        self.paths[furthest_behind].credit -= self.total.cast_signed();
        furthest_behind
    }

    fn at_random(&mut self) -> usize {
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
        let relative = |path: &Path, other: &Path| {
            (u128::from(path.bytes) * u128::from(other.weight))
                .cmp(&(u128::from(other.bytes) * u128::from(path.weight)))
        };
        (0..self.paths.len()).min_by(|path, other| relative(&self.paths[*path], &self.paths[*other])).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(weights: &[u32], by: SplitBy, lengths: &[u32]) -> Vec<usize> {
        let mut splitter = Splitter::new(weights, by, 7).unwrap();
        let split: Vec<(usize, u64)> = lengths.iter().map(|bytes| splitter.split(*bytes)).collect();
        assert!((0..).zip(&split).all(|(number, split)| split.1 == number), "numbered from 0 on: {split:?}");
        split.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn in_turn() {
        assert_eq!(paths(&[1, 1], SplitBy::Turn, &[100; 5]), [0, 1, 0, 1, 0]);
        assert_eq!(paths(&[2, 1], SplitBy::Turn, &[100; 6]), [0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn fewest_bytes() {
        assert_eq!(paths(&[1, 1], SplitBy::Bytes, &[1500, 100, 100, 1400, 64, 64]), [0, 1, 1, 1, 0, 0]);
        assert_eq!(paths(&[3, 1], SplitBy::Bytes, &[100; 8]), [0, 1, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn at_random_by_weight() {
        let taken = paths(&[3, 1], SplitBy::Random, &[100; 10_000]);
        let first = taken.iter().filter(|path| **path == 0).count();
        // Four standard deviations of a binomial distribution.
        assert!((7327..=7673).contains(&first), "{first}");
    }

    #[test]
    fn wrong_weights_are_refused() {
        for weights in [&[][..], &[1, 0], &[1; MAX_PATHS + 1]] {
            assert!(Splitter::new(weights, SplitBy::Turn, 0).is_err(), "{weights:?}");
        }
    }
}
