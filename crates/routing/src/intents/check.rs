//! Checks ways that were found: that there is enough bandwidth on them, and that bounds of delay hold.
use super::delay::{self, DelayInput};
use super::find::FoundWays;
use super::intent::IntentNo;
use super::lanes::{Demand, Lane};
use super::plan::PlanInput;
use super::spec::DelayBound;
use super::wanted::Wanted;
use super::way::DirectedLink;
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Bps;

/// Links that have not enough of something, and what that is.
pub(super) struct Shortage {
    pub(super) links: BTreeSet<DirectedLink>,
    pub(super) reason: String,
    /// True if the intent's own bound of delay does not hold, and another way may keep it.
    pub(super) is_delay: bool,
}

impl Shortage {
    fn of(links: BTreeSet<DirectedLink>, reason: String) -> Shortage {
        Shortage { links, reason, is_delay: false }
    }
}

impl PlanInput<'_> {
    /// Returns the delay of the worst way in seconds, or what there is not enough of.
    pub(super) fn check(&self, wanted: &Wanted, found: &FoundWays, demand: &Demand) -> Result<Option<f64>, Shortage> {
        self.check_bandwidth(found, demand)?;
        let load = |lane: Lane| self.load(lane, demand);
        let input = DelayInput { map: self.map, config: self.config, load: &load };
        let delay_s = match &wanted.delay {
            None => None,
            Some(bound) => Some(check_delay(&input, found, bound)?),
        };
        for other in self.bounded.on(demand.keys()).into_iter().filter(|other| *other != self.own) {
            self.check_other(&input, other, demand)?;
        }
        Ok(delay_s)
    }

    /// Checks that the delay of another intent keeps its bound.
    fn check_other(&self, input: &DelayInput<'_>, other: IntentNo, demand: &Demand) -> Result<(), Shortage> {
        let intent = self.intents.get(&other);
        let bounded = intent.and_then(|intent| Some((&intent.laid.as_ref()?.plan, intent.wanted.delay.as_ref()?)));
        let Some((plan, bound)) = bounded else { return Ok(()) };
        let ways = || plan.ways.iter().chain(&plan.spare);
        let why = match delay::largest(input, ways(), bound.kind) {
            Err(reason) => Some(reason),
            Ok(largest) => largest.and_then(|largest| delay::excess(&largest, bound)),
        };
        let Some(why) = why else { return Ok(()) };
        let links = ways().flat_map(|way| &way.links);
        let links = links.filter(|link| demand.contains_key(&Lane::From(link[0]))).copied().collect();
        Err(Shortage::of(links, format!("the bound of intent `{}` would not hold: {why}", self.key_of(other))))
    }

    fn check_bandwidth(&self, found: &FoundWays, demand: &Demand) -> Result<(), Shortage> {
        let (mut links, mut reason) = (BTreeSet::new(), None);
        for (lane, asked) in demand {
            let Some(text) = self.lacking(*lane, *asked) else { continue };
            reason.get_or_insert(text);
            let all = found.ways.iter().chain(&found.spare).flat_map(|way| &way.links);
            let here = all.filter(|link| Lane::From(link[0]) == *lane).copied().collect::<Vec<_>>();
            if here.is_empty() {
                // The connection of an end: no other way avoids it.
                let reason = self.lacking(*lane, *asked).unwrap_or_default();
                return Err(Shortage::of(BTreeSet::new(), reason));
            }
            links.extend(here);
        }
        match reason {
            None => Ok(()),
            Some(reason) => Err(Shortage::of(links, reason)),
        }
    }

    /// Returns what a lane has not enough of for more bandwidth, in bit/s; `None` if it has.
    pub(super) fn lacking(&self, lane: Lane, asked: u64) -> Option<String> {
        let Some(rate) = lane.rate(self.map, self.config.assumed_rate) else {
            return Some(format!("bandwidth: the rate {lane} is not known"));
        };
        let left = rate.saturating_sub(self.reserved.of(lane));
        let text = || {
            let (left, rate, asked) = (Bps(left), Bps(rate), Bps(asked));
            format!("bandwidth: {left} of {rate} left {lane}, {asked} asked for")
        };
        (asked > left).then(text)
    }

    /// Returns the load of a lane in bit/s: what is reserved with the demand, or what was measured if it is more.
    pub(super) fn load(&self, lane: Lane, demand: &Demand) -> f64 {
        let reserved = self.reserved.of(lane).saturating_add(demand.get(&lane).copied().unwrap_or(0));
        measured(self.loads, lane).max(reserved as f64)
    }
}

/// Returns the measured load of a lane in bit/s.
pub(super) fn measured(loads: &BTreeMap<SwitchPort, f64>, lane: Lane) -> f64 {
    let Lane::From(at) = lane else { return 0.0 };
    loads.get(&at).copied().unwrap_or(0.0)
}

fn check_delay(input: &DelayInput<'_>, found: &FoundWays, bound: &DelayBound) -> Result<f64, Shortage> {
    let none = |reason| Shortage::of(BTreeSet::new(), reason);
    let ways = found.ways.iter().chain(&found.spare);
    let largest = delay::largest(input, ways, bound.kind).map_err(|reason| none(format!("delay: {reason}")))?;
    let Some(largest) = largest else { return Ok(0.0) };
    match delay::excess(&largest, bound) {
        None => Ok(largest.delay_s),
        Some(reason) => {
            let all = found.ways.iter().chain(&found.spare).flat_map(|way| &way.links);
            let links = all.filter(|link| Some(Lane::From(link[0])) == largest.worst).copied().collect();
            Err(Shortage { links, reason, is_delay: true })
        }
    }
}
