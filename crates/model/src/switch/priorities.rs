//! Counts the priorities of a table's entries.
use std::collections::BTreeMap;

/// Number of entries of each priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorityCounts {
    by_priority: BTreeMap<u16, u64>,
    /// Sum of all counts. Devices ask for it with each packet.
    sum: u128,
}

impl PriorityCounts {
    /// Returns the number of all entries, `u64::MAX` if there are more.
    pub fn entries(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Returns the number of different priorities.
    pub fn different(&self) -> usize {
        self.by_priority.len()
    }

    /// Returns the number of different priorities after adding an entry of this priority.
    pub fn different_with(&self, priority: u16) -> usize {
        self.by_priority.len() + usize::from(!self.by_priority.contains_key(&priority))
    }

    /// Returns the number of entries that have to shift for a new one: those of strictly lower priority. (Cheng 2015,
    /// equation 4.2, sums up to the priority itself. This contradicts its text, and its own result that equal
    /// priorities shift nothing.)
    pub fn below(&self, priority: u16) -> u64 {
        self.by_priority.range(..priority).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds an entry.
    pub fn add(&mut self, priority: u16) {
        self.add_many(priority, 1);
    }

    /// Adds several entries of one priority.
    pub fn add_many(&mut self, priority: u16, entries: u64) {
        if entries > 0 {
            let count = self.by_priority.entry(priority).or_default();
            let added = entries.min(u64::MAX - *count);
            *count += added;
            self.sum += u128::from(added);
        }
    }

    /// Removes an entry of this priority, if there is one.
    pub fn remove(&mut self, priority: u16) {
        if let Some(count) = self.by_priority.get_mut(&priority) {
            *count -= 1;
            self.sum -= 1;
            if *count == 0 {
                self.by_priority.remove(&priority);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strictly_lower_ones_move() {
        let mut priorities = PriorityCounts::default();
        [(501, 10), (600, 5), (700, 3)].into_iter().for_each(|(priority, count)| priorities.add_many(priority, count));
        assert_eq!([501, 600, 601, 65535].map(|new| priorities.below(new)), [0, 10, 15, 18]);
        (0..5).for_each(|_| priorities.remove(600));
        priorities.remove(600);
        assert_eq!((priorities.entries(), priorities.different(), priorities.different_with(600)), (13, 2, 3));
        [(1, u64::MAX), (1, 7), (2, 8)].into_iter().for_each(|(priority, count)| priorities.add_many(priority, count));
        assert_eq!((priorities.below(2), priorities.entries()), (u64::MAX, u64::MAX));
    }
}
