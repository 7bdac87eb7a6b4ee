//! Examines what would be if a virtual link was admitted.
use super::bound::{ArrivalCurve, MAX_PS, PS_PER_S, ServiceCurve};
use super::link_admission::LinkAdmission;
use super::network::{BoundChange, BoundedFlow, FlowBound, LinkServer};
use super::{BindingResource, BoundMethod, LinkDemand, MAX_DELAY, PathBound, PromiseError, QueuedLink};
use crate::allocation::MAX_LINKS;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Virtual link that is asked for, as numbers, beside those that were admitted.
pub(crate) struct Trial<'a> {
    state: &'a LinkAdmission,
    demand: &'a LinkDemand,
    flow: BoundedFlow,
    /// Places of the links in the order of feeds, if they change.
    ranks: Option<Vec<usize>>,
}

/// Virtual link that would be admitted, with all that this changes.
pub(super) struct AdmittedFlow {
    pub(super) flow: BoundedFlow,
    pub(super) ranks: Option<Vec<usize>>,
    pub(super) change: BoundChange,
}

impl<'a> Trial<'a> {
    /// Prepares a virtual link that is asked for.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub(super) fn new(state: &'a LinkAdmission, demand: &'a LinkDemand) -> Result<Trial<'a>, PromiseError> {
        demand.check()?;
        let name = demand.name.clone();
        if state.held.contains_key(&name) {
            return Err(PromiseError::Duplicate { kind: "virtual link", name });
        }
        let known = |link: &String| {
            let unknown = || PromiseError::UnknownLink { name: demand.name.clone(), link: link.clone() };
            state.places.get(link).copied().ok_or_else(unknown)
        };
        let path = demand.path.iter().map(known).collect::<Result<Vec<usize>, PromiseError>>()?;
        if state.held.len() == MAX_LINKS {
            return Err(PromiseError::TooMany { kind: "virtual link", found: MAX_LINKS + 1 });
        }
        let ranks = state.network.ranks_with(&path).map_err(|cycle| {
            let links = cycle.into_iter().map(|link| state.links[link].name.clone()).collect();
            PromiseError::Cycle { name, links }
        })?;
        Ok(Trial { state, demand, flow: flow(demand, state, path), ranks })
    }

    /// Returns what changes if the virtual link is admitted with this rate and this promise.
    ///
    /// # Errors
    /// A promise could not be kept. All resources that bind are listed; if rate is missing, those that lack it.
    pub(super) fn admit(&self, rate: Bps, promised: Option<Duration>) -> Result<AdmittedFlow, Vec<BindingResource>> {
        let flow = self.flow_of(rate);
        let short = self.rate_shortages(&flow);
        if !short.is_empty() {
            return Err(short);
        }
        let network = &self.state.network;
        let change = network.change_with(&flow, self.ranks.as_deref(), |_, _| true).expect("nothing ends it early");
        let mut binding = self.buffer_shortages(&change);
        let asked = network.next_slot();
        let is_broken = |slot: &usize| !self.is_kept(&flow, promised, &change, *slot);
        let mut broken: Vec<(bool, &LinkDemand, usize)> = network
            .affected(&change)
            .into_iter()
            .filter(is_broken)
            .map(|slot| (slot == asked, self.demand_of(slot), slot))
            .collect();
        broken.sort_by_key(|(is_asked, demand, _)| (*is_asked, &demand.name));
        for (is_asked, demand, slot) in broken {
            let bound = self.bound(&flow, &change, slot);
            let promised = if is_asked { promised } else { demand.promised_delay };
            match excess(&bound, promised) {
                Some(missing) if bound.hops.iter().all(|hop| *hop < MAX_PS) => {
                    binding.push(exceeded(demand, &bound, missing, is_asked));
                }
                _ => binding.push(BindingResource::Unbounded { virtual_link: demand.name.clone() }),
            }
        }
        if binding.is_empty() { Ok(AdmittedFlow { flow, ranks: self.ranks.clone(), change }) } else { Err(binding) }
    }

    /// Returns true if the virtual link would be admitted with this rate and this promise.
    pub(crate) fn is_admitted(&self, rate: Bps, promised: Option<Duration>) -> bool {
        let flow = self.flow_of(rate);
        if self.lacks_rate(&flow) {
            return false;
        }
        let network = &self.state.network;
        let fits = |link, backlog| self.buffer_excess(link, backlog) == 0;
        let Some(change) = network.change_with(&flow, self.ranks.as_deref(), fits) else { return false };
        network.affected(&change).into_iter().all(|slot| self.is_kept(&flow, promised, &change, slot))
    }

    /// Returns true if the delay of the virtual link in a slot has a bound with a change, and one that is promised.
    fn is_kept(&self, flow: &BoundedFlow, promised: Option<Duration>, change: &BoundChange, slot: usize) -> bool {
        let network = &self.state.network;
        let delays = network.delays(change, slot);
        if delays.clone().any(|delay| delay >= MAX_PS) {
            return false;
        }
        let is_asked = slot == network.next_slot();
        let Some(promised) = (if is_asked { promised } else { self.state.promised_in(slot) }) else {
            return true;
        };
        // The sum of the hops is at hand, and mostly enough.
        rounded_up(delays.sum()) <= promised || excess(&self.bound(flow, change, slot), Some(promised)).is_none()
    }

    /// Returns the bound of the virtual link in a slot with a change.
    fn bound(&self, asked: &BoundedFlow, change: &BoundChange, slot: usize) -> FlowBound {
        let network = &self.state.network;
        let flow = network.flow(slot).filter(|_| slot != network.next_slot()).unwrap_or(asked);
        network.bound(flow, slot, Some(change))
    }

    /// Returns the largest rate that is admitted, at most `most`. Bounds never fall if the rate rises, so that
    /// bisection finds it.
    pub(crate) fn largest_rate_to(&self, most: Bps, promised: Option<Duration>) -> Option<Bps> {
        self.large_rate_to(most, 1, promised)
    }

    /// Returns a rate that is admitted, at most `most`. Rates that are larger by `step` are refused, as are those that
    /// need more than is left of the rate of a link.
    pub(crate) fn large_rate_to(&self, most: Bps, step: u64, promised: Option<Duration>) -> Option<Bps> {
        // Rate alone is examined at little cost.
        let fits = bisected(most.0, 1, |rate| !self.lacks_rate(&self.flow_of(Bps(rate))));
        // A bound that does not depend on the rate decides at once.
        if fits == 0 || !self.is_admitted(Bps(1), promised) {
            return None;
        }
        if self.is_admitted(Bps(fits), promised) {
            return Some(Bps(fits));
        }
        Some(Bps(bisected(fits - 1, step, |rate| rate == 1 || self.is_admitted(Bps(rate), promised)).max(1)))
    }

    /// Returns the largest rate that is admitted.
    pub(super) fn largest_rate(&self, promised: Option<Duration>) -> Option<Bps> {
        let capacity = |link: &usize| self.state.links[*link].capacity;
        let most = self.flow.path.iter().map(capacity).min().expect("a path has a link");
        self.largest_rate_to(most, promised)
    }

    /// Returns the least delay that can be promised at a rate.
    pub(crate) fn least_delay(&self, rate: Bps) -> Option<Duration> {
        let admitted = self.admit(rate, None).ok()?;
        let bound = self.bound(&admitted.flow, &admitted.change, self.state.network.next_slot());
        Some(rounded_up(bound.least())).filter(|delay| *delay <= MAX_DELAY)
    }

    fn flow_of(&self, rate: Bps) -> BoundedFlow {
        let mut flow = self.flow.clone();
        flow.arrivals.rate = on_wire(u128::from(rate.0), self.demand, self.state.overhead.into());
        flow
    }

    fn demand_of(&self, slot: usize) -> &LinkDemand {
        self.state.demand_in(slot).unwrap_or(self.demand)
    }

    fn rate_excess(&self, link: usize, rate: u128) -> u128 {
        let capacity = u128::from(self.state.links[link].capacity.0);
        (self.state.network.load(link).rate + rate).saturating_sub(capacity)
    }

    fn lacks_rate(&self, flow: &BoundedFlow) -> bool {
        flow.path.iter().any(|link| self.rate_excess(*link, flow.arrivals.rate) > 0)
    }

    fn rate_shortages(&self, flow: &BoundedFlow) -> Vec<BindingResource> {
        let mut path = flow.path.clone();
        path.sort_unstable();
        let shortage = |link: usize| {
            let missing = Bps(u64::try_from(self.rate_excess(link, flow.arrivals.rate)).unwrap_or(u64::MAX));
            (missing.0 > 0).then(|| BindingResource::Rate { link: self.state.links[link].name.clone(), missing })
        };
        path.into_iter().filter_map(shortage).collect()
    }

    /// Returns the bytes by which a backlog of so many bits exceeds the buffer of a link.
    fn buffer_excess(&self, link: usize, unsent: u128) -> u128 {
        let own = if self.flow.path.contains(&link) { self.flow.longest } else { 0 };
        let longest = own.max(self.state.network.load(link).longest);
        if longest == 0 {
            return 0;
        }
        // The packet that is being sent is held until its end. Frames are held without overhead: the longest ones
        // have the smallest share of it.
        let wire = unsent.saturating_add(longest);
        let overhead = 8 * u128::from(self.state.overhead);
        let frames = wire.saturating_mul(longest - overhead).div_ceil(longest).div_ceil(8);
        frames.saturating_sub(u128::from(self.state.links[link].buffer.0))
    }

    fn buffer_shortages(&self, change: &BoundChange) -> Vec<BindingResource> {
        let shortage = |(link, unsent): (usize, u128)| {
            let missing = ByteSize(u64::try_from(self.buffer_excess(link, unsent)).unwrap_or(u64::MAX));
            (missing.0 > 0).then(|| BindingResource::Buffer { link: self.state.links[link].name.clone(), missing })
        };
        self.state.network.backlogs(change).filter_map(shortage).collect()
    }
}

/// Returns the largest number up to `most`, less at most `step` - 1, for which a condition holds that holds for all
/// lesser ones; 0 if there is none.
fn bisected(most: u64, step: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut admitted, mut refused) = (0, most + 1);
    while refused - admitted > step {
        let middle = admitted + (refused - admitted) / 2;
        if holds(middle) { admitted = middle } else { refused = middle }
    }
    admitted
}

/// Returns the bits on the wire of bits of frames, if all frames are as short as possible.
fn on_wire(bits: u128, demand: &LinkDemand, overhead: u128) -> u128 {
    let shortest = u128::from(demand.shortest_packet.0);
    (bits * (shortest + overhead)).div_ceil(shortest)
}

fn flow(demand: &LinkDemand, state: &LinkAdmission, path: Vec<usize>) -> BoundedFlow {
    let overhead = u128::from(state.overhead);
    let wire = |bits: u128| on_wire(bits, demand, overhead);
    let packet = |size: ByteSize| 8 * (u128::from(size.0) + overhead);
    BoundedFlow {
        least_ps: state.network.least_delays(&path, packet(demand.shortest_packet)),
        path,
        arrivals: ArrivalCurve { rate: wire(demand.rate.0.into()), burst: wire(8 * u128::from(demand.burst.0)) },
        longest: packet(demand.longest_packet),
    }
}

/// Returns a link as numbers.
pub(super) fn server(link: &QueuedLink, overhead: u64) -> LinkServer {
    let rate = u128::from(link.capacity.0);
    let service = ServiceCurve { rate, latency_ps: picoseconds(link.switch_latency) };
    let other = if link.other_packet.0 == 0 { 0 } else { 8 * (u128::from(link.other_packet.0) + u128::from(overhead)) };
    LinkServer {
        service: service.packetised(other),
        propagation_ps: picoseconds(link.propagation),
        multiplexing: link.multiplexing,
    }
}

/// Returns the time by which a bound exceeds a promise.
fn excess(bound: &FlowBound, promised: Option<Duration>) -> Option<Duration> {
    rounded_up(bound.least()).checked_sub(promised?).filter(|missing| !missing.is_zero())
}

/// Returns the delay that exceeds the promise of the virtual link that is asked for, or of another one.
fn exceeded(demand: &LinkDemand, bound: &FlowBound, missing: Duration, is_asked: bool) -> BindingResource {
    if !is_asked {
        return BindingResource::Promise { virtual_link: demand.name.clone(), missing };
    }
    let hops = demand.path.iter().zip(&bound.hops).rev();
    let slowest = hops.max_by_key(|(_, hop)| **hop).map(|(link, _)| link.clone()).unwrap_or_default();
    BindingResource::Delay { bound: rounded_up(bound.least()), missing, slowest }
}

/// Returns the bound of a path in nanoseconds.
pub(super) fn path_bound(bound: &FlowBound) -> PathBound {
    let method = if bound.once < bound.sum() { BoundMethod::PayBurstsOnce } else { BoundMethod::SumOfHops };
    let hops = bound.hops.iter().copied().map(rounded_up).collect();
    PathBound { delay: rounded_up(bound.least()), method, hops }
}

fn picoseconds(span: Duration) -> u128 {
    span.as_nanos() * (PS_PER_S / 1_000_000_000)
}

fn rounded_up(time_ps: u128) -> Duration {
    let ns = time_ps.div_ceil(PS_PER_S / 1_000_000_000);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
