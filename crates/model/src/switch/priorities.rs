//! Which priorities the entries of a table have.
use std::collections::BTreeMap;

/// How many entries there are of each priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Priorities(BTreeMap<u16, u64>);

impl Priorities {
    /// Entries in all.
    pub fn entries(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Different priorities.
    pub fn different(&self) -> usize {
        self.0.len()
    }

    /// How many there would be with one more.
    pub fn different_with(&self, priority: u16) -> usize {
        self.0.len() + usize::from(!self.0.contains_key(&priority))
    }

    /// Entries that have to move for a new one: those of strictly lower priority. (Cheng 2015, equation 4.2, sums to the priority itself, against its
    /// text, and against its own result that equal priorities move nothing.)
    pub fn below(&self, priority: u16) -> u64 {
        self.0.range(..priority).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// There is one more.
    pub fn add(&mut self, priority: u16) {
        self.add_many(priority, 1);
    }

    /// There are more.
    pub fn add_many(&mut self, priority: u16, entries: u64) {
        if entries > 0 {
            let count = self.0.entry(priority).or_default();
            *count = count.saturating_add(entries);
        }
    }

    /// There is one less, if there was one.
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
        let mut priorities = Priorities::default();
        [(501, 10), (600, 5), (700, 3)].into_iter().for_each(|(priority, count)| priorities.add_many(priority, count));
        assert_eq!([501, 600, 601, 65535].map(|new| priorities.below(new)), [0, 10, 15, 18]);
        (0..5).for_each(|_| priorities.remove(600));
        priorities.remove(600);
        assert_eq!((priorities.entries(), priorities.different(), priorities.different_with(600)), (13, 2, 3));
    }
}
