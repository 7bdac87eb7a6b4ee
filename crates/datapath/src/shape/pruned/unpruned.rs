//! Keeps the tuples that have no place in the columns: the one that every packet matches, which cannot be pruned and
//! is mostly the table-miss entry, and those for which there is no room. They are probed after all others.
use crate::shape::hash::{Probe, TupleId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Tuples without a place in the columns: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Unpruned {
    /// Probes by the tuples' highest priorities, highest first.
    probes: BTreeMap<(Reverse<u16>, TupleId), Probe>,
    /// Highest priority of all.
    best: Option<u16>,
}

impl Unpruned {
    /// Returns the highest priority of all, if there are tuples.
    #[inline(always)]
    pub(super) const fn best(&self) -> Option<u16> {
        self.best
    }

    /// Iterates over the tuples' highest priorities and probes, highest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Probe)> {
        self.probes.iter().map(|((Reverse(highest), _), probe)| (*highest, probe))
    }

    /// Returns the number of tuples.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn add(&mut self, highest: u16, probe: Probe) {
        self.probes.insert((Reverse(highest), probe.tuple()), probe);
        self.note_best();
    }

    /// Removes a tuple that was added with this priority.
    pub(super) fn remove(&mut self, highest: u16, tuple: TupleId) -> Option<Probe> {
        let probe = self.probes.remove(&(Reverse(highest), tuple));
        self.note_best();
        probe
    }

    fn note_best(&mut self) {
        self.best = self.probes.first_key_value().map(|((Reverse(highest), _), _)| *highest);
    }
}
