//! Tracks whether the longest matching prefix always has the highest priority.

/// Priorities of the entries by prefix length. A length's range of priorities shrinks only when it has no entries
/// left.
#[derive(Debug)]
pub(super) struct PrefixLengthOrder {
    lengths: Box<[LengthPriorities; 129]>,
    /// True if no shorter prefix has a higher priority than a longer one.
    is_by_length: bool,
}

#[derive(Debug, Clone, Copy)]
struct LengthPriorities {
    lowest: u16,
    highest: u16,
    entries: u32,
}

impl LengthPriorities {
    const UNUSED: LengthPriorities = LengthPriorities { lowest: u16::MAX, highest: 0, entries: 0 };
}

impl PrefixLengthOrder {
    pub(super) fn new() -> PrefixLengthOrder {
        PrefixLengthOrder { lengths: Box::new([LengthPriorities::UNUSED; 129]), is_by_length: true }
    }

    /// Returns true if every longer prefix has at least the priority of every shorter one. The longest match is then
    /// the best.
    #[inline(always)]
    pub(super) fn is_by_length(&self) -> bool {
        self.is_by_length
    }

    /// Returns true if that order still holds with this entry added.
    pub(super) fn admits(&self, len: u8, priority: u16) -> bool {
        let own = &self.lengths[usize::from(len)];
        if own.lowest <= priority && priority <= own.highest {
            return self.is_by_length;
        }
        let (shorter, longer) = self.lengths.split_at(usize::from(len));
        let shorter = shorter.iter().fold(0, |highest, length| length.highest.max(highest));
        let longer = longer[1..].iter().fold(u16::MAX, |lowest, length| length.lowest.min(lowest));
        (shorter..=longer).contains(&priority)
    }

    /// Counts a new entry.
    pub(super) fn add(&mut self, len: u8, priority: u16) {
        self.is_by_length &= self.admits(len, priority);
        let length = &mut self.lengths[usize::from(len)];
        length.lowest = length.lowest.min(priority);
        length.highest = length.highest.max(priority);
        length.entries += 1;
    }

    /// Stops counting an entry.
    pub(super) fn remove(&mut self, len: u8) {
        let length = &mut self.lengths[usize::from(len)];
        length.entries -= 1;
        if length.entries == 0 {
            *length = LengthPriorities::UNUSED;
            self.is_by_length = self.check();
        }
    }

    fn check(&self) -> bool {
        let used = self.lengths.iter().filter(|length| length.entries > 0);
        let mut highest = 0;
        used.fold(true, |is_so_far, length| {
            let is_higher = length.lowest >= highest;
            highest = highest.max(length.highest);
            is_so_far && is_higher
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_prefixes_must_have_at_least_the_priority_of_shorter_ones() {
        let mut order = PrefixLengthOrder::new();
        for (len, priority) in [(0, 0), (16, 10), (24, 10), (24, 30), (32, 30)] {
            assert!(order.admits(len, priority), "{len} {priority}");
            order.add(len, priority);
        }
        assert!(order.is_by_length());
        assert!(!order.admits(16, 11) && !order.admits(32, 29) && order.admits(8, 10));
        order.add(8, 40);
        assert!(!order.is_by_length());
        order.remove(8);
        assert!(order.is_by_length());
    }
}
