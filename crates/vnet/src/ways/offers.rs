//! Finds changed requests that would be admitted in place of a refused one, and tries each.
use super::routing::{CandidateWays, ExaminedWays};
use super::{LinkRouting, MAX_SPLIT, VirtualLinkRequest, WayError, WayOffer, WayShare};
use std::time::Duration;
use weir_units::Bps;

impl LinkRouting {
    /// Returns what would be admitted in place of a request that was refused. Nothing is reserved in the end.
    pub(super) fn offers(
        &mut self,
        request: &VirtualLinkRequest,
        candidates: &mut CandidateWays,
        examined: &ExaminedWays,
    ) -> Result<Vec<WayOffer>, WayError> {
        let mut offers = Vec::new();
        if let Some(rate) = self.largest_rate(request, examined)? {
            let changed = VirtualLinkRequest { rate, ..request.clone() };
            offers.extend(self.tried(&changed, candidates)?.map(|_| WayOffer::Rate(rate)));
        }
        if let Some(delay) = self.least_delay(request, candidates, examined)? {
            let changed = request.clone().within(delay);
            offers.extend(self.tried(&changed, candidates)?.map(|_| WayOffer::Delay(delay)));
        }
        offers.extend(self.other_ways(request)?);
        if request.max_ways < MAX_SPLIT
            && let Ok(ways) = self.split(&request.clone().over_ways(MAX_SPLIT), &examined.lacking)?
        {
            self.give_back(&ways)?;
            let changed = request.clone().over_ways(ways.len());
            offers.extend(self.tried(&changed, candidates)?.map(|ways| WayOffer::MoreWays(ways.len())));
        }
        Ok(offers)
    }

    /// Returns the ways that a request would have, without reserving them; `None` if it would be refused.
    fn tried(
        &mut self,
        request: &VirtualLinkRequest,
        candidates: &mut CandidateWays,
    ) -> Result<Option<Vec<WayShare>>, WayError> {
        let Ok(ways) = self.route(request, candidates)? else { return Ok(None) };
        self.give_back(&ways)?;
        Ok(Some(ways))
    }

    /// Returns the largest rate that one of the examined ways carries, or that several do if the virtual link may be
    /// split.
    fn largest_rate(&self, request: &VirtualLinkRequest, examined: &ExaminedWays) -> Result<Option<Bps>, WayError> {
        let (most, promised) = (Bps(request.rate.0 - 1), request.promised_delay);
        let mut largest = Bps(0);
        for way in &examined.lacking {
            let demand = request.demand(request.name.clone(), self.substrate.names(way), request.rate);
            let trial = self.admission.trial(&demand)?;
            // Most ways are no better than the best one so far, which is quickly seen.
            if largest < most && trial.is_admitted(Bps(largest.0 + 1), promised) {
                largest = trial.largest_rate_to(most, promised).unwrap_or(largest);
            }
        }
        let largest = examined.most_split.into_iter().fold(largest, Bps::max);
        Ok(Some(largest).filter(|rate| rate.0 > 0))
    }

    /// Returns the least delay that can be promised on one of the examined ways, or else the one that several have if
    /// the virtual link may be split.
    fn least_delay(
        &mut self,
        request: &VirtualLinkRequest,
        candidates: &mut CandidateWays,
        examined: &ExaminedWays,
    ) -> Result<Option<Duration>, WayError> {
        if request.promised_delay.is_none() {
            return Ok(None);
        }
        let mut least: Option<Duration> = None;
        for way in &examined.lacking {
            let demand = request.demand(request.name.clone(), self.substrate.names(way), request.rate);
            least = least.into_iter().chain(self.admission.trial(&demand)?.least_delay(request.rate)).min();
        }
        if least.is_some() || request.max_ways == 1 {
            return Ok(least);
        }
        let without = VirtualLinkRequest { promised_delay: None, ..request.clone() };
        let Ok(ways) = self.route(&without, candidates)? else { return Ok(None) };
        let delay = ways.iter().filter_map(|way| self.admission.bound(&way.part)).map(|bound| bound.delay).max();
        self.give_back(&ways)?;
        Ok(delay)
    }

    /// Returns ways that the request excludes: those without `avoid`, those without `through`, or else those without
    /// both.
    fn other_ways(&mut self, request: &VirtualLinkRequest) -> Result<Vec<WayOffer>, WayError> {
        let (avoids, passes) = (!request.avoid.is_empty(), !request.through.is_empty());
        let mut offers = Vec::new();
        for (without_avoid, without_through) in [(true, false), (false, true), (true, true)] {
            let is_one = (!without_avoid || avoids) && (!without_through || passes);
            if !is_one || (without_avoid && without_through && !offers.is_empty()) {
                continue;
            }
            let mut changed = request.clone();
            if without_avoid {
                changed.avoid.clear();
            }
            if without_through {
                changed.through.clear();
            }
            // Without waypoints, both ends may be at one switch.
            let Ok(mut candidates) = self.candidates(&changed) else { continue };
            if let Some(ways) = self.tried(&changed, &mut candidates)? {
                let paths = ways.into_iter().map(|way| way.path).collect();
                offers.push(WayOffer::OtherWay { without_avoid, without_through, paths });
            }
        }
        Ok(offers)
    }
}
