//! Counts the priorities of a table's entries.
use std::collections::BTreeMap;

/// Number of entries of each priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorityCounts(BTreeMap<u16, u64>);

impl PriorityCounts {
    /// Returns the number of all entries.
    pub fn entries(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the number of different priorities.
    pub fn different(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of different priorities after adding an entry of this priority.
    pub fn different_with(&self, priority: u16) -> usize {
        self.0.len() + usize::from(!self.0.contains_key(&priority))
    }

    /// Returns the number of entries that have to shift for a new one: those of strictly lower priority. (Cheng 2015,
    /// equation 4.2, sums up to the priority itself. This contradicts its text, and its own result that equal
    /// priorities shift nothing.)
    pub fn below(&self, priority: u16) -> u64 {
        self.0.range(..priority).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds an entry.
    pub fn add(&mut self, priority: u16) {
        self.add_many(priority, 1);
    }

    /// Adds several entries of one priority.
    pub fn add_many(&mut self, priority: u16, entries: u64) {
        if entries > 0 {
            let count = self.0.entry(priority).or_default();
            *count = count.saturating_add(entries);
        }
    }

    /// Removes an entry of this priority, if there is one.
    pub fn remove(&mut self, priority: u16) {
        if let Some(count) = self.0.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&priority);
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
    }
}
