//! VLAN ids by which packets of intents are told between switches.
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Labels that are in use and free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labels {
    all: RangeInclusive<u16>,
    free: BTreeSet<u16>,
}

impl Labels {
    /// Returns labels, all of them free.
    pub(super) fn new(all: RangeInclusive<u16>) -> Labels {
        Labels { free: all.clone().collect(), all }
    }

    /// Returns the number of labels.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes the least free label; `None` if there is none.
    pub(super) fn take(&mut self) -> Option<u16> {
        self.free.pop_first()
    }

    /// Frees a label.
    pub(super) fn release(&mut self, label: u16) {
        if self.all.contains(&label) {
            self.free.insert(label);
        }
    }

    /// Returns true if all labels are free.
    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        self.free.len() == self.len()
    }
}
