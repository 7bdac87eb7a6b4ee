//! The highest priority of each tuple, and of all from a place on: where a search may end.

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// By place in the columns.
    of: Vec<u16>,
    /// By 64 places: the highest of these and all later ones.
    from: Vec<u16>,
}

impl Ranks {
    /// The highest priority of a tuple.
    #[inline(always)]
    pub(super) fn of(&self, bit: usize) -> u16 {
        self.of[bit]
    }

    /// The highest priority of the tuples from this place on, a multiple of 64.
    #[inline(always)]
    pub(super) fn highest_from(&self, bit: usize) -> u16 {
        self.from.get(bit / 64).copied().unwrap_or(0)
    }

    /// Notes a tuple's highest priority; 0 when it is gone.
    pub(super) fn set(&mut self, bit: usize, highest: u16) {
        if self.of.len() <= bit {
            self.of.resize((bit / 64 + 1) * 64, 0);
            self.from.resize(self.of.len() / 64, 0);
        }
        let before = std::mem::replace(&mut self.of[bit], highest);
        let word = bit / 64;
        if highest > before {
            // Words before it that are higher are so already.
            self.from[..=word].iter_mut().rev().take_while(|from| **from < highest).for_each(|from| *from = highest);
        } else if before == self.from[word] {
            let mut from = self.from.get(word + 1).copied().unwrap_or(0);
            for word in (0..=word).rev() {
                from = self.of[word * 64..][..64].iter().fold(from, |from, of| from.max(*of));
                self.from[word] = from;
            }
        }
    }
}
