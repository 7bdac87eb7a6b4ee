//! Bit sets of small numbers with circular search.
use crate::MAX_PORTS;

const WORDS: usize = MAX_PORTS / 64;
/// Start of the circle: the search after it begins with 0.
pub(crate) const BEFORE_FIRST: u16 = 255;
const _: () = assert!(MAX_PORTS == 256 && crate::MAX_SWITCHES == MAX_PORTS);

/// Set of inputs or of virtual switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IndexBitSet([u64; WORDS]);

impl IndexBitSet {
    #[inline]
    pub(crate) fn insert(&mut self, number: u16) {
        self.0[usize::from(number) / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u16) {
        self.0[usize::from(number) / 64] &= !(1 << (number % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, number: u16) -> bool {
        self.0[usize::from(number) / 64] & (1 << (number % 64)) != 0
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Returns true if this number is the only one in the set.
    #[inline]
    pub(crate) fn is_only(&self, number: u16) -> bool {
        let mut only = IndexBitSet::default();
        only.insert(number);
        *self == only
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn and(&self, other: &IndexBitSet) -> IndexBitSet {
        IndexBitSet(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Returns the first member after `last` in the circle; `last` itself comes at the end.
    #[inline]
    pub(crate) fn next_after(&self, last: u16) -> Option<u16> {
        let start = if last < BEFORE_FIRST { last + 1 } else { 0 };
        self.first_from(start).or_else(|| self.first_from(0))
    }

    #[inline]
    fn first_from(&self, start: u16) -> Option<u16> {
        let word = usize::from(start) / 64;
        let rest = self.0[word] & (u64::MAX << (start % 64));
        if rest != 0 {
            return Some(place(word, rest));
        }
        (word + 1..WORDS).find(|word| self.0[*word] != 0).map(|word| place(word, self.0[word]))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let words = self.0;
        (0..WORDS).flat_map(move |word| {
            let mut rest = words[word];
            std::iter::from_fn(move || {
                let found = (rest != 0).then(|| place(word, rest))?;
                rest &= rest - 1;
                Some(found)
            })
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "below 256")]
fn place(word: usize, bits: u64) -> u16 {
    (word * 64) as u16 + bits.trailing_zeros() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round() {
        let mut bits = IndexBitSet::default();
        assert_eq!(bits.next_after(BEFORE_FIRST), None);
        for number in [3, 64, 255] {
            bits.insert(number);
        }
        let after = |last| bits.next_after(last).unwrap();
        assert_eq!(
            [after(BEFORE_FIRST), after(3), after(64), after(255), after(2), after(200)],
            [3, 64, 255, 3, 3, 255]
        );
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 64, 255]);
        bits.remove(3);
        assert!(!bits.is_only(64));
        bits.remove(255);
        assert_eq!(bits.next_after(64), Some(64));
        assert_eq!(bits.len(), 1);
        assert!(bits.is_only(64) && !bits.is_only(65) && !IndexBitSet::default().is_only(64));
    }
}
