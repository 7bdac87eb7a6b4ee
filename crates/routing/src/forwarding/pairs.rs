//! Routes of pairs of hosts, for the reactive modes.
use super::{Forwarding, ForwardingCounter, ForwardingMode};
use crate::app::{HostPacket, Network};
use crate::map::{Host, SwitchPort};
use crate::platform::NetworkCore;
use crate::tables::{Hop, HopPlace, Route, RouteId};
use std::collections::{BTreeMap, HashMap};
use weir_openflow::model::Match;
use weir_packet::{Field, MacAddr};

/// Priority of the routes of pairs, above routes to hosts.
const PRIORITY: u16 = 600;

/// Source and destination, and in the mode hop by hop the switch.
type Pair = (MacAddr, MacAddr, Option<u64>);

/// Pairs of hosts that have routes.
#[derive(Debug)]
pub(super) struct HostPairs {
    most: usize,
    routes: HashMap<Pair, RouteId>,
    /// Pairs by their routes, with the first port of their ways.
    pairs: BTreeMap<RouteId, (Pair, SwitchPort)>,
}

impl HostPairs {
    pub(super) fn new(most: usize) -> HostPairs {
        HostPairs { most, routes: HashMap::new(), pairs: BTreeMap::new() }
    }

    fn add(&mut self, pair: Pair, route: RouteId, next: SwitchPort) {
        self.routes.insert(pair, route);
        self.pairs.insert(route, (pair, next));
    }

    /// Withdraws the routes from and to a host.
    pub(super) fn forget_host(&mut self, mac: MacAddr, core: &mut NetworkCore) {
        let of_host: Vec<_> = self.routes.iter().filter(|((src, dst, _), _)| *src == mac || *dst == mac).collect();
        let routes: Vec<_> = of_host.into_iter().map(|(_, route)| *route).collect();
        routes.into_iter().for_each(|route| self.forget_route(route, core));
    }

    /// Withdraws a route, if it is one of these.
    pub(super) fn forget_route(&mut self, route: RouteId, core: &mut NetworkCore) {
        if let Some((pair, _)) = self.pairs.remove(&route) {
            self.routes.remove(&pair);
            core.keeper.remove_route(route);
        }
    }
}

impl Forwarding {
    /// Gives the pair of a packet's source and destination a route, and sends the packet on.
    pub(super) fn connect(&mut self, packet: &HostPacket<'_>, src: MacAddr, host: &Host, core: &mut NetworkCore) {
        let Some(path) = self.ways_to(host.at.dpid, core).path(&core.map, packet.at.dpid) else {
            return self.count(ForwardingCounter::Unreachable);
        };
        // A router's packets enter at many switches with one source: each switch asks for itself.
        let is_of_host = core.map.hosts().contains_key(&src);
        let by_hop = self.config.mode == ForwardingMode::ReactiveHop || !is_of_host;
        let next = path.first().copied().unwrap_or(host.at);
        let is_new = self.set_pair((src, host.mac, by_hop.then_some(packet.at.dpid)), &path, host.at, core);
        if is_new {
            self.count(ForwardingCounter::Pairs);
        }
        self.count(ForwardingCounter::Delivered);
        // The packet goes where its entry is not needed: to the next switch, which asks, too, or to the host.
        match by_hop && next != host.at {
            true => core.send(next, packet.data.to_vec()),
            false => self.deliver(src, host.at, packet.data.to_vec(), core),
        }
    }

    /// Asks for the route of a pair. Returns true if it is new.
    fn set_pair(&mut self, pair: Pair, path: &[SwitchPort], end: SwitchPort, core: &mut NetworkCore) -> bool {
        let known = self.pairs.routes.get(&pair).copied();
        if known.is_none() && self.pairs.routes.len() >= self.pairs.most {
            return false;
        }
        let id = known.unwrap_or_else(|| self.next_route());
        let matching = Match::any().with(Field::EthSrc, pair.0.to_bits()).with(Field::EthDst, pair.1.to_bits());
        let idle_timeout = u16::try_from(self.config.idle_timeout.as_secs()).unwrap_or(u16::MAX);
        let nexts = path.iter().skip(1).chain([&end]).map(|next| next.dpid);
        let to_next = |(at, next): (&SwitchPort, u64)| (HopPlace::at(at.dpid), Hop::to(at.port, Some(next)));
        let last = (HopPlace::at(end.dpid), Hop::to(end.port, None));
        let hops: Vec<_> = path.iter().zip(nexts).map(to_next).chain([last]).collect();
        let of_one = if pair.2.is_some() { 1 } else { hops.len() };
        let hops = hops.into_iter().take(of_one).collect();
        core.set_route(id, Route { priority: PRIORITY, matching, idle_timeout, hops });
        self.pairs.add(pair, id, path.first().copied().unwrap_or(end));
        known.is_none()
    }

    /// Leads pairs over other ways after the network has changed. Those without a way lose their routes. So do hops of
    /// single switches that change: the switches ask again, and none follows a former hop of another one.
    pub(super) fn reroute_pairs(&mut self, core: &mut NetworkCore) {
        let pairs: Vec<_> = self.pairs.pairs.iter().map(|(route, pair)| (*route, *pair)).collect();
        for (route, (pair, next)) in pairs {
            let (src, dst) = (core.map.hosts().get(&pair.0).cloned(), core.map.hosts().get(&pair.1).cloned());
            let ends = src.zip(dst).map(|(src, dst)| (pair.2.unwrap_or(src.at.dpid), dst.at));
            let path = ends.and_then(|(from, end)| Some((self.ways_to(end.dpid, core).path(&core.map, from)?, end)));
            match path {
                Some((path, end)) if pair.2.is_none() => _ = self.set_pair(pair, &path, end, core),
                Some((path, end)) if path.first().copied().unwrap_or(end) == next => {}
                _ => self.pairs.forget_route(route, core),
            }
        }
    }
}
