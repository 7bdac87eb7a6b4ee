//! Stores the hash probe and the highest priority of each tuple, indexed by the tuple's place in the columns.
use super::columns::MAX_PLACES;
use crate::shape::hash::TupleProbe;

/// Probes and priorities of tuples, in arrays indexed by place.
#[derive(Debug)]
pub(super) struct ProbeTable {
    /// By place: the probe that looks a packet up in the tuple's hash table; `None` if the place is unused.
    probes: Vec<Option<TupleProbe>>,
    /// By place: the highest priority of the tuple's entries; 0 if the place is unused.
    highest: Vec<u16>,
    /// By place: the highest priority of the tuples at this place and all later ones. A search ends at a place where
    /// no entry of this or a later tuple can have a higher priority than the entry found.
    bounds: Vec<u16>,
}

impl Default for ProbeTable {
    fn default() -> ProbeTable {
        // Reserves address space for the maximum size: growing moves no data, and memory is taken as it is used.
        ProbeTable {
            probes: Vec::with_capacity(MAX_PLACES),
            highest: Vec::with_capacity(MAX_PLACES),
            bounds: Vec::with_capacity(MAX_PLACES),
        }
    }
}

impl ProbeTable {
    /// Returns the probe of the tuple at a place.
    #[inline(always)]
    pub(super) fn probe(&self, place: usize) -> Option<&TupleProbe> {
        self.probes.get(place)?.as_ref()
    }

    /// Returns the highest priority of the tuple at a place.
    #[inline(always)]
    pub(super) fn highest(&self, place: usize) -> u16 {
        self.highest[place]
    }

    /// Returns the highest priority of the tuples at this place and all later ones.
    #[inline(always)]
    pub(super) fn highest_from(&self, place: usize) -> u16 {
        self.bounds.get(place).copied().unwrap_or(0)
    }

    /// Returns true if some tuple precedes a tuple with a higher priority, so that searches probe more tuples than
    /// necessary.
    pub(super) fn are_disordered(&self) -> bool {
        let later = (1..).map(|place| self.highest_from(place));
        self.probes.iter().zip(&self.highest).zip(later).any(|((probe, own), later)| probe.is_some() && *own < later)
    }

    /// Puts a tuple at a place.
    pub(super) fn put(&mut self, place: usize, probe: TupleProbe, highest: u16) {
        if self.probes.len() <= place {
            self.probes.resize(place + 1, None);
            self.highest.resize(place + 1, 0);
            self.bounds.resize(place + 1, 0);
        }
        self.probes[place] = Some(probe);
        self.set_highest(place, highest);
    }

    /// Removes the tuple at a place.
    pub(super) fn clear(&mut self, place: usize) {
        self.set_highest(place, 0);
        self.probes[place] = None;
    }

    /// Sets the highest priority of the tuple at a place, and updates the bounds.
    pub(super) fn set_highest(&mut self, place: usize, highest: u16) {
        self.highest[place] = highest;
        let mut later = self.highest_from(place + 1);
        for (own, bound) in self.highest[..=place].iter().zip(&mut self.bounds[..=place]).rev() {
            later = later.max(*own);
            if *bound == later {
                // Earlier bounds are unchanged, too.
                return;
            }
            *bound = later;
        }
    }
}
