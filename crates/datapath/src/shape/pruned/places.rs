//! What a search needs of the tuples, by their places in the columns.
use super::columns::MAX_PLACES;
use crate::shape::hash::Probe;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Places {
    /// By place; none without a tuple.
    probes: Vec<Option<Probe>>,
    /// By place: the tuple's highest priority, 0 without one.
    highest: Vec<u16>,
    /// By place: the highest of this and all later ones, where a search may end.
    bounds: Vec<u16>,
}

impl Default for Places {
    fn default() -> Places {
        // Address space for all there may ever be: growing moves nothing, and takes memory as it is used.
        Places {
            probes: Vec::with_capacity(MAX_PLACES),
            highest: Vec::with_capacity(MAX_PLACES),
            bounds: Vec::with_capacity(MAX_PLACES),
        }
    }
}

impl Places {
    /// What the tuple at a place is asked by.
    #[inline(always)]
    pub(super) fn probe(&self, place: usize) -> Option<&Probe> {
        self.probes.get(place)?.as_ref()
    }

    /// The highest priority of the tuple at a place.
    #[inline(always)]
    pub(super) fn highest(&self, place: usize) -> u16 {
        self.highest[place]
    }

    /// The highest priority of all tuples from this place on.
    #[inline(always)]
    pub(super) fn highest_from(&self, place: usize) -> u16 {
        self.bounds.get(place).copied().unwrap_or(0)
    }

    /// Whether some tuple has a later one of a higher priority, so that searches ask it, and go on, in vain.
    pub(super) fn are_disordered(&self) -> bool {
        let later = (1..).map(|place| self.highest_from(place));
        self.probes.iter().zip(&self.highest).zip(later).any(|((probe, own), later)| probe.is_some() && *own < later)
    }

    /// Puts a tuple at a place.
    pub(super) fn put(&mut self, place: usize, probe: Probe, highest: u16) {
        if self.probes.len() <= place {
            self.probes.resize(place + 1, None);
            self.highest.resize(place + 1, 0);
            self.bounds.resize(place + 1, 0);
        }
        self.probes[place] = Some(probe);
        self.set_highest(place, highest);
    }

    /// Takes the tuple at a place away.
    pub(super) fn clear(&mut self, place: usize) {
        self.set_highest(place, 0);
        self.probes[place] = None;
    }

    /// Notes the highest priority of the tuple at a place.
    pub(super) fn set_highest(&mut self, place: usize, highest: u16) {
        self.highest[place] = highest;
        let mut later = self.highest_from(place + 1);
        for (own, bound) in self.highest[..=place].iter().zip(&mut self.bounds[..=place]).rev() {
            later = later.max(*own);
            if *bound == later {
                // So those before it are right, too.
                return;
            }
            *bound = later;
        }
    }
}
