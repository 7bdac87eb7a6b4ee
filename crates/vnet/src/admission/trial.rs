//! Examines what would be if a virtual link was admitted.
use super::bound::{ArrivalCurve, MAX_PS, PS_PER_S, ServiceCurve};
use super::feed_forward::{BoundedFlow, FlowBound, LinkServer, NetworkBounds, calculate, feed_forward_order};
use super::{BindingResource, BoundMethod, LinkAdmission, LinkDemand, MAX_DELAY, PathBound, PromiseError, QueuedLink};
use crate::allocation::MAX_LINKS;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Admitted virtual links as numbers, and one that is asked for behind them.
pub(super) struct Trial<'a> {
    overhead: u128,
    links: Vec<&'a QueuedLink>,
    servers: Vec<LinkServer>,
    order: Vec<usize>,
    demands: Vec<&'a LinkDemand>,
    flows: Vec<BoundedFlow>,
}

impl<'a> Trial<'a> {
    /// Returns the state with the virtual link that is asked for, if there is one.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub(super) fn new(state: &'a LinkAdmission, asked: Option<&'a LinkDemand>) -> Result<Trial<'a>, PromiseError> {
        let place: BTreeMap<&str, usize> = state.links.keys().map(String::as_str).zip(0..).collect();
        if let Some(demand) = asked {
            demand.check()?;
            let name = demand.name.clone();
            if state.held.contains_key(&name) {
                return Err(PromiseError::Duplicate { kind: "virtual link", name });
            }
            if let Some(link) = demand.path.iter().find(|link| !place.contains_key(link.as_str())) {
                return Err(PromiseError::UnknownLink { name, link: link.clone() });
            }
            if state.held.len() == MAX_LINKS {
                return Err(PromiseError::TooMany { kind: "virtual link", found: MAX_LINKS + 1 });
            }
        }
        let overhead = u128::from(state.overhead);
        let links: Vec<&QueuedLink> = state.links.values().collect();
        let demands: Vec<&LinkDemand> = state.held.values().chain(asked).collect();
        let flow = |demand: &&LinkDemand| flow(demand, overhead, &place);
        let flows: Vec<BoundedFlow> = demands.iter().map(flow).collect();
        let order = feed_forward_order(links.len(), flows.iter().map(|flow| &flow.path)).map_err(|cycle| {
            let name = asked.map(|demand| demand.name.clone()).unwrap_or_default();
            PromiseError::Cycle { name, links: cycle.into_iter().map(|link| links[link].name.clone()).collect() }
        })?;
        let servers = links.iter().map(|link| server(link, overhead)).collect();
        Ok(Trial { overhead, links, servers, order, demands, flows })
    }

    /// Returns the bounds of all virtual links if the one that is asked for has this rate and this promise.
    ///
    /// # Errors
    /// A promise could not be kept. All resources that bind are listed; if rate is missing, those that lack it.
    pub(super) fn bounds(
        &self,
        rate: Bps,
        promised: Option<Duration>,
    ) -> Result<BTreeMap<String, PathBound>, Vec<BindingResource>> {
        let mut flows = self.flows.clone();
        let (asked, last) = (self.demands.len() - 1, flows.last_mut().expect("one is asked for"));
        last.arrivals.rate = on_wire(u128::from(rate.0), self.demands[asked], self.overhead);
        let short = self.rate_shortages(&flows);
        if !short.is_empty() {
            return Err(short);
        }
        let found = calculate(&self.servers, &self.order, &flows);
        let mut binding = self.buffer_shortages(&flows, &found);
        for (index, (demand, bound)) in self.demands.iter().zip(&found.flows).enumerate() {
            let promised = if index == asked { promised } else { demand.promised_delay };
            let missing = promised.and_then(|promised| rounded_up(bound.least()).checked_sub(promised));
            if bound.hops.iter().any(|hop| *hop >= MAX_PS) {
                binding.push(BindingResource::Unbounded { virtual_link: demand.name.clone() });
            } else if let Some(missing) = missing.filter(|missing| !missing.is_zero()) {
                binding.push(exceeded(demand, bound, missing, index == asked));
            }
        }
        if binding.is_empty() { Ok(self.named(&found)) } else { Err(binding) }
    }

    /// Returns the bounds of virtual links that were all admitted.
    pub(super) fn held_bounds(&self) -> BTreeMap<String, PathBound> {
        self.named(&calculate(&self.servers, &self.order, &self.flows))
    }

    /// Returns the largest rate that is admitted. Bounds never fall if the rate rises, so that bisection finds it.
    pub(super) fn largest_rate(&self, promised: Option<Duration>) -> Option<Bps> {
        let path = &self.flows.last().expect("one is asked for").path;
        let mut refused = path.iter().map(|link| self.links[*link].capacity.0).min().expect("a path has a link") + 1;
        let mut admitted = 0;
        while refused - admitted > 1 {
            let rate = admitted + (refused - admitted) / 2;
            if self.bounds(Bps(rate), promised).is_ok() { admitted = rate } else { refused = rate }
        }
        (admitted > 0).then_some(Bps(admitted))
    }

    /// Returns the least delay that can be promised at a rate.
    pub(super) fn least_delay(&self, rate: Bps) -> Option<Duration> {
        let bounds = self.bounds(rate, None).ok()?;
        Some(bounds[&self.demands.last()?.name].delay).filter(|delay| *delay <= MAX_DELAY)
    }

    fn rate_shortages(&self, flows: &[BoundedFlow]) -> Vec<BindingResource> {
        let mut rates = vec![0; self.links.len()];
        for flow in flows {
            flow.path.iter().for_each(|link| rates[*link] += flow.arrivals.rate);
        }
        let shortage = |(link, rate): (&&QueuedLink, u128)| {
            let missing = rate.saturating_sub(u128::from(link.capacity.0));
            let missing = Bps(u64::try_from(missing).unwrap_or(u64::MAX));
            (missing.0 > 0).then(|| BindingResource::Rate { link: link.name.clone(), missing })
        };
        self.links.iter().zip(rates).filter_map(shortage).collect()
    }

    fn buffer_shortages(&self, flows: &[BoundedFlow], found: &NetworkBounds) -> Vec<BindingResource> {
        let mut longest = vec![0; self.links.len()];
        for flow in flows {
            flow.path.iter().for_each(|link| longest[*link] = flow.longest.max(longest[*link]));
        }
        let shortage = |((link, longest), unsent): ((&&QueuedLink, u128), &u128)| {
            if longest == 0 {
                return None;
            }
            // The packet that is being sent is held until its end. Frames are held without overhead: the longest ones
            // have the smallest share of it.
            let wire = unsent.saturating_add(longest);
            let frames = wire.saturating_mul(longest - 8 * self.overhead).div_ceil(longest).div_ceil(8);
            let missing = frames.saturating_sub(u128::from(link.buffer.0));
            let missing = ByteSize(u64::try_from(missing).unwrap_or(u64::MAX));
            (missing.0 > 0).then(|| BindingResource::Buffer { link: link.name.clone(), missing })
        };
        self.links.iter().zip(longest).zip(&found.backlogs).filter_map(shortage).collect()
    }

    fn named(&self, found: &NetworkBounds) -> BTreeMap<String, PathBound> {
        let named = |(demand, bound): (&&LinkDemand, &FlowBound)| (demand.name.clone(), path_bound(bound));
        self.demands.iter().zip(&found.flows).map(named).collect()
    }
}

/// Returns the bits on the wire of bits of frames, if all frames are as short as possible.
fn on_wire(bits: u128, demand: &LinkDemand, overhead: u128) -> u128 {
    let shortest = u128::from(demand.shortest_packet.0);
    (bits * (shortest + overhead)).div_ceil(shortest)
}

fn flow(demand: &LinkDemand, overhead: u128, place: &BTreeMap<&str, usize>) -> BoundedFlow {
    let wire = |bits: u128| on_wire(bits, demand, overhead);
    let packet = |size: ByteSize| 8 * (u128::from(size.0) + overhead);
    BoundedFlow {
        path: demand.path.iter().map(|link| place[link.as_str()]).collect(),
        arrivals: ArrivalCurve { rate: wire(demand.rate.0.into()), burst: wire(8 * u128::from(demand.burst.0)) },
        shortest: packet(demand.shortest_packet),
        longest: packet(demand.longest_packet),
    }
}

fn server(link: &QueuedLink, overhead: u128) -> LinkServer {
    let rate = u128::from(link.capacity.0);
    let service = ServiceCurve { rate, latency_ps: picoseconds(link.switch_latency) };
    let other = if link.other_packet.0 == 0 { 0 } else { 8 * (u128::from(link.other_packet.0) + overhead) };
    LinkServer {
        service: service.packetised(other),
        propagation_ps: picoseconds(link.propagation),
        multiplexing: link.multiplexing,
    }
}

/// Returns the delay that exceeds the promise of the virtual link that is asked for, or of another one.
fn exceeded(demand: &LinkDemand, bound: &FlowBound, missing: Duration, is_asked: bool) -> BindingResource {
    if !is_asked {
        return BindingResource::Promise { virtual_link: demand.name.clone(), missing };
    }
    let hops = demand.path.iter().zip(&bound.hops).rev();
    let slowest = hops.max_by_key(|(_, delay)| **delay).map(|(link, _)| link.clone()).unwrap_or_default();
    BindingResource::Delay { bound: rounded_up(bound.least()), missing, slowest }
}

fn path_bound(bound: &FlowBound) -> PathBound {
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
