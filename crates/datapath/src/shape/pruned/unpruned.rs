//! Stores the tuples that are not pruned, because they have no place in the columns: the tuple that every packet
//! matches (usually the table-miss entry alone), and the tuples for which the columns have no room. Searches probe
//! these tuples after all others.
use crate::shape::hash::{TupleId, TupleProbe};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Tuples that have no place in the columns, so that every search must probe them: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct UnprunedTuples {
    /// Probes by the tuples' highest priorities, highest first.
    probes: BTreeMap<(Reverse<u16>, TupleId), TupleProbe>,
    /// Highest priority of all these tuples; `None` if there are none.
    best: Option<u16>,
}

impl UnprunedTuples {
    /// Returns the highest priority of all these tuples; `None` if there are none.
    #[inline(always)]
    pub(super) const fn best(&self) -> Option<u16> {
        self.best
    }

    /// Iterates over the tuples' highest priorities and probes, highest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &TupleProbe)> {
        self.probes.iter().map(|((Reverse(highest), _), probe)| (*highest, probe))
    }

    /// Returns the number of tuples.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn add(&mut self, highest: u16, probe: TupleProbe) {
        self.probes.insert((Reverse(highest), probe.tuple()), probe);
        self.note_best();
    }

    /// Removes a tuple that was added with the priority `highest`. Returns its probe, if it was present.
    pub(super) fn remove(&mut self, highest: u16, tuple: TupleId) -> Option<TupleProbe> {
        let probe = self.probes.remove(&(Reverse(highest), tuple));
        self.note_best();
        probe
    }

    fn note_best(&mut self) {
        self.best = self.probes.first_key_value().map(|((Reverse(highest), _), _)| *highest);
    }
}
