//! Tuples that have no place in the columns: the one that every packet matches, which nothing can prune and which tables mostly keep
//! for what no other entry takes, and those for which there is no room. They are asked after all others.
use crate::shape::hash::{Probe, TupleId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Unpruned {
    /// By their highest priorities, highest first.
    probes: BTreeMap<(Reverse<u16>, TupleId), Probe>,
    /// The highest priority of all.
    best: Option<u16>,
}

impl Unpruned {
    /// The highest priority, if there are any.
    #[inline(always)]
    pub(super) const fn best(&self) -> Option<u16> {
        self.best
    }

    /// Highest priorities, highest first, and what the tuple is asked by.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Probe)> {
        self.probes.iter().map(|((Reverse(highest), _), probe)| (*highest, probe))
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn add(&mut self, highest: u16, probe: Probe) {
        self.probes.insert((Reverse(highest), probe.tuple()), probe);
        self.note_best();
    }

    /// Takes out a tuple that was added with this priority.
    pub(super) fn remove(&mut self, highest: u16, tuple: TupleId) -> Option<Probe> {
        let probe = self.probes.remove(&(Reverse(highest), tuple));
        self.note_best();
        probe
    }

    fn note_best(&mut self) {
        self.best = self.probes.first_key_value().map(|((Reverse(highest), _), _)| *highest);
    }
}
