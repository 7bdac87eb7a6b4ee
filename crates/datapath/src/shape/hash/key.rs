//! Hashes masked words with a secret key: each pair of words, mixed with secrets, is multiplied to 128 bits, and the
//! two halves are combined by exclusive or.
//!
//! Unlike with a CRC, collisions cannot be aimed at without the secrets. These are random and do not leave the
//! process, and no packet sender or controller can observe which entries share a bucket.
//!
//! A last multiplication, with a secret alone, ends the hash. Without it the hashes of consecutive words are evenly
//! spaced, at a distance that the secret decides. Most distances spread them better than chance, but about one in
//! twenty crowds them, for as long as the process runs.
use std::hash::{BuildHasher, RandomState};

/// Secret key of the hash; random for each instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashSecret {
    word: u64,
    tuple: u64,
}

impl Default for HashSecret {
    fn default() -> HashSecret {
        let random = RandomState::new();
        HashSecret { word: random.hash_one(1) | 1, tuple: random.hash_one(2) }
    }
}

impl HashSecret {
    /// Returns the initial state of the hashes of a tuple's entries.
    pub(crate) const fn seed(self, tuple: u32) -> u64 {
        fold(self.tuple ^ tuple as u64, self.word.rotate_left(32)) ^ self.tuple
    }

    /// Combines two words into one. One of them includes the state so far.
    #[inline(always)]
    pub(super) const fn mix(self, one: u64, other: u64) -> u64 {
        fold(one, self.word ^ other)
    }

    /// Returns the hash of a tuple's words. Their number must be constant for the tuple.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64, mut words: impl Iterator<Item = u64>) -> u32 {
        let mut state = seed;
        while let Some(word) = words.next() {
            state = self.mix(state ^ word, words.next().unwrap_or(0));
        }
        self.end(state)
    }

    /// Ends a hash: returns its value for the state after all words.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is as good as the high one")]
    pub(super) const fn end(self, state: u64) -> u32 {
        self.mix(state, 0) as u32
    }
}

/// Returns the exclusive or of both halves of a product.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "one half each")]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest bucket count when the hashes' bits from `shift` on select one of 4096 buckets.
    fn worst(words: impl Iterator<Item = [u64; 3]>, shift: u32) -> u32 {
        let secret = HashSecret { word: 0x9a3c_51d2_77e0_4b17, tuple: 0x3df1_0be2_96ac_5807 };
        let mut counts = vec![0_u32; 4096];
        for one in words {
            let hash = secret.hash(secret.seed(1), one.into_iter());
            counts[(hash >> shift) as usize % 4096] += 1;
        }
        counts.into_iter().max().expect("there are some")
    }

    #[test]
    fn regular_words_are_spread() {
        // 64 hashes per bucket on average: with random hashes, a count above 110 occurs once in some thousand runs.
        let count = 4096 * 64;
        for shift in [0, 12, 20] {
            assert!(worst((0..count).map(|n| [n, 0, 0]), shift) < 115, "consecutive, from bit {shift}");
            assert!(worst((0..count).map(|n| [n << 16 | 0x800, 0, 0]), shift) < 115, "addresses, from bit {shift}");
            assert!(
                worst((0..count).map(|n| [0x800, n << 32, n & 0xff]), shift) < 115,
                "second word, from bit {shift}"
            );
            assert!(worst((0..count).map(|n| [0x800, 0x0a00_0001, n << 40]), shift) < 115, "third, from bit {shift}");
        }
    }

    #[test]
    fn no_secret_crowds_consecutive_words() {
        let mut draw = 0_u64;
        let mut random = || {
            draw += 1;
            fold(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0xd6e8_feb8_6659_fd93)
        };
        for _ in 0..100 {
            let secret = HashSecret { word: random() | 1, tuple: random() };
            let other = random();
            for (shift, place) in [(0, 0), (16, 0), (48, 0), (0, 1), (32, 1), (48, 1), (0, 2), (48, 2)] {
                let mut counts = [0_u32; 1024];
                for n in 0..8192_u64 {
                    let mut words = [other; 3];
                    words[place] = n << shift;
                    counts[secret.hash(secret.seed(1), words.into_iter()) as usize % 1024] += 1;
                }
                // Eight on average: with random hashes, a count above 30 occurs once in ten million buckets.
                let most = counts.into_iter().max().unwrap_or_default();
                assert!(most < 32, "{most} in a bucket, word {place} from bit {shift} on, {secret:x?}");
            }
        }
    }

    #[test]
    fn tuples_have_hashes_of_their_own() {
        let secret = HashSecret::default();
        let hashes: std::collections::HashSet<u32> =
            (0..1000).map(|tuple| secret.hash(secret.seed(tuple), [5].into_iter())).collect();
        assert!(hashes.len() > 990);
        assert_ne!(HashSecret::default().hash(1, [5, 6].into_iter()), secret.hash(1, [5, 6].into_iter()));
    }
}
