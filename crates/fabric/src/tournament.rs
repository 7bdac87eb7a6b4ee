//! Finds the largest of many keys: a binary tree of the larger key of each pair.

/// Keys by place; 0: not taking part.
pub(crate) struct TournamentTree {
    /// Number of leaves, a power of two.
    leaves: usize,
    /// Largest key of all at index 1; the children of node `n` are at `2n` and `2n + 1`.
    keys: Vec<u64>,
}

impl TournamentTree {
    pub(crate) fn new(places: usize) -> TournamentTree {
        let leaves = places.next_power_of_two();
        TournamentTree { leaves, keys: vec![0; 2 * leaves] }
    }

    /// Sets the key of a place.
    #[inline]
    pub(crate) fn set(&mut self, place: u16, key: u64) {
        let mut at = self.leaves + usize::from(place);
        self.keys[at] = key;
        while at > 1 {
            at /= 2;
            let larger = self.keys[2 * at].max(self.keys[2 * at + 1]);
            if self.keys[at] == larger {
                break;
            }
            self.keys[at] = larger;
        }
    }

    /// Returns the first place with the largest key after `last` in the circle of places.
    pub(crate) fn winner_after(&self, last: u16) -> u16 {
        let start = usize::from(last) + 1;
        let after = if start < self.leaves { self.winner_from(start) } else { None };
        after.unwrap_or_else(|| self.first_under(1))
    }

    /// Returns the first place with the largest key from `start` on.
    fn winner_from(&self, start: usize) -> Option<u16> {
        let mut at = self.leaves + start;
        if self.keys[at] == self.keys[1] {
            return Some(self.place(at));
        }
        while at > 1 {
            if at.is_multiple_of(2) && self.keys[at + 1] == self.keys[1] {
                return Some(self.first_under(at + 1));
            }
            at /= 2;
        }
        None
    }

    /// Returns the first leaf with the largest key under a node that has it.
    fn first_under(&self, mut at: usize) -> u16 {
        while at < self.leaves {
            at = if self.keys[2 * at] == self.keys[1] { 2 * at } else { 2 * at + 1 };
        }
        self.place(at)
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are at most MAX_PORTS places")]
    fn place(&self, leaf: usize) -> u16 {
        (leaf - self.leaves) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_search(places in 1usize..40, sets in proptest::collection::vec((0u16..40, 0u64..5), 1..60), last in 0u16..256) {
            let mut tree = TournamentTree::new(places);
            let mut keys = vec![0; places];
            for (place, key) in sets {
                let place = place % u16::try_from(places).unwrap();
                tree.set(place, key);
                keys[usize::from(place)] = key;
                let largest = *keys.iter().max().unwrap();
                prop_assert_eq!(tree.keys[1], largest);
                if largest > 0 {
                    let circle = (0..256).map(|step| (usize::from(last) + 1 + step) % 256);
                    let expected = circle.into_iter().find(|place| keys.get(*place) == Some(&largest)).unwrap();
                    prop_assert_eq!(usize::from(tree.winner_after(last)), expected);
                }
            }
        }
    }
}
