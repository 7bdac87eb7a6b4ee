//! Splits a virtual link over as few ways as possible.
//!
//! One way after the other takes the most that it can, up to what is left of the rate, so that the rates add up to the
//! rate that was asked for without a rest. Sets of two ways are examined in all orders, then those of three, and so on.
//! If two ways lack only rate, their order does not matter: what they carry is the most that they can together. The
//! rates that fit have upper limits for each way and for both, and so are a polymatroid (J. Edmonds, "Submodular
//! functions, matroids, and certain polyhedra", 1970). Ways that lack delay or buffer, and three or more ways, might
//! carry more with other shares (what a delay allows is found to a 64th of the rate); a set of ways that only such
//! shares let carry the rate is not found.
//!
//! Each part has the burst and the promise of delay of the whole. A packet takes one of the ways: the delay of the
//! whole is the largest one of the ways. Packets on different ways may overtake each other.
use super::{MAX_SPLIT, VirtualLinkRequest, WayError, WayShare};
use crate::admission::{LinkAdmission, LinkDemand, PromiseError};
use std::cmp::Reverse;
use weir_units::Bps;

/// Most ways among which a virtual link is split: those that carry most alone.
const SPLIT_WAYS: usize = 8;
/// Part of the rate by which the share of a way may be less than the most that its delay allows.
const FINENESS: u64 = 64;
/// Most ways that are tried beside others for one virtual link.
const ATTEMPTS: usize = 32;

/// Search for ways that carry a virtual link together. Parts are reserved while the search lasts.
pub(super) struct SplitSearch<'a> {
    admission: &'a mut LinkAdmission,
    request: &'a VirtualLinkRequest,
    /// Ways with the rates that each would carry alone, the largest first.
    ways: Vec<(Vec<String>, u64)>,
    /// Ways that are used, with their rates.
    used: Vec<(usize, Bps)>,
    attempts: usize,
    most: u64,
}

impl<'a> SplitSearch<'a> {
    /// Prepares a search over ways, none of which carries the virtual link alone.
    pub(super) fn new(
        admission: &'a mut LinkAdmission,
        request: &'a VirtualLinkRequest,
        paths: Vec<Vec<String>>,
    ) -> Result<SplitSearch<'a>, WayError> {
        let mut search =
            SplitSearch { admission, request, ways: Vec::new(), used: Vec::new(), attempts: ATTEMPTS, most: 0 };
        for path in paths {
            let alone = search.carried(&path, 1, request.rate.0)?;
            search.ways.push((path, alone));
        }
        search.ways.retain(|(_, alone)| *alone > 0);
        search.ways.sort_by_key(|(_, alone)| Reverse(*alone));
        search.ways.truncate(SPLIT_WAYS);
        Ok(search)
    }

    /// Reserves the virtual link on as few ways as possible. Returns false, with nothing reserved, if no ways were
    /// found.
    pub(super) fn run(&mut self) -> Result<bool, WayError> {
        for ways in 2..=self.request.max_ways.min(MAX_SPLIT).min(self.ways.len()) {
            if self.extend(self.request.rate.0, ways)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the largest rate that ways together were found to carry.
    pub(super) fn most(&self) -> Bps {
        Bps(self.most)
    }

    /// Returns the ways that are used.
    pub(super) fn shares(&self) -> Vec<WayShare> {
        let share = |(number, (way, rate)): (usize, &(usize, Bps))| WayShare {
            path: self.ways[*way].0.clone(),
            rate: *rate,
            part: self.part(number),
        };
        self.used.iter().enumerate().map(share).collect()
    }

    /// Returns the name of a part.
    fn part(&self, number: usize) -> String {
        format!("{}[{}]", self.request.name, number + 1)
    }

    fn demand(&self, path: &[String], rate: Bps) -> LinkDemand {
        self.request.demand(self.part(self.used.len()), path.to_vec(), rate)
    }

    /// Returns the largest rate from `least` to `most` that a way carries beside the used ones; 0 if there is none.
    fn carried(&self, path: &[String], least: u64, most: u64) -> Result<u64, WayError> {
        let promised = self.request.promised_delay;
        match self.admission.trial(&self.demand(path, Bps(most))) {
            Ok(trial) if trial.is_admitted(Bps(least), promised) => Ok(trial
                .large_rate_to(Bps(most), most.div_ceil(FINENESS), promised)
                .map_or(0, |rate| rate.0.max(least))),
            // Ways that close no cycle alone may close one together.
            Ok(_) | Err(PromiseError::Cycle { .. }) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds at most `ways` more ways for what is left of the rate.
    fn extend(&mut self, left: u64, ways: usize) -> Result<bool, WayError> {
        let asked = self.request.rate.0;
        for way in 0..self.ways.len() {
            let is_used = |one: usize| self.used.iter().any(|(used, _)| *used == one);
            if is_used(way) {
                continue;
            }
            // No way carries more beside others than alone.
            let others = (0..self.ways.len()).filter(|one| *one != way && !is_used(*one)).take(ways - 1);
            let others = others.map(|one| u128::from(self.ways[one].1)).sum::<u128>();
            let others = u64::try_from(others).unwrap_or(u64::MAX);
            // With less than this, no more is carried than was found to be.
            let least = (self.most + 1).saturating_sub(asked - left).saturating_sub(others).max(1);
            if least > left.min(self.ways[way].1) {
                continue;
            }
            let path = self.ways[way].0.clone();
            let rate = if self.used.is_empty() {
                self.ways[way].1
            } else if self.attempts == 0 {
                return Ok(false);
            } else {
                self.attempts -= 1;
                self.carried(&path, least, left)?
            };
            if rate == 0 {
                continue;
            }
            self.most = self.most.max(asked - left + rate);
            if ways == 1 && rate < left {
                continue;
            }
            let demand = self.demand(&path, Bps(rate));
            let part = demand.name.clone();
            if self.admission.request_without_offers(demand)?.is_err() {
                continue;
            }
            self.used.push((way, Bps(rate)));
            if rate == left || self.extend(left - rate, ways - 1)? {
                return Ok(true);
            }
            self.used.pop();
            self.admission.release(&part)?;
        }
        Ok(false)
    }
}
