//! Forwarding between hosts: admits their packets, and gives switches the entries by which packets reach their
//! destination.
//!
//! - Purpose: every host reaches every other on shortest ways, over any network, without loops while the network
//!   changes.
//! - Parameters: [`ForwardingConfig`].
//! - Entries: [admission] of links and of hosts at their ports; a tree of routes towards each host, or routes of pairs
//!   of hosts in the reactive modes; a spanning tree for group addresses.
//! - Limits: one network for all hosts. VLAN tags are carried and not looked at.
//! - Counters: packets sent to all hosts, dropped by reason, ARP answers, pairs.
pub mod admission;
mod broadcast;
mod config;
mod islands;
mod pairs;
mod recent;
mod resolution;
mod ways;

pub use config::{ForwardingConfig, ForwardingMode};

use crate::app::{FORWARDING_TABLE, HostPacket, Network, NetworkEvent};
use crate::map::{Host, SwitchPort};
use crate::paths::WaysTo;
use crate::platform::NetworkCore;
use crate::tables::{Hop, HopKind, HopOutput, HopPlace, Route, RouteId};
use broadcast::Broadcast;
use islands::IslandSides;
use pairs::HostPairs;
use recent::RecentPackets;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use ways::KeptWays;
use weir_openflow::model::Match;
use weir_packet::parse::parse_ethernet;
use weir_packet::{Field, MacAddr};
use weir_units::{Instant, RateLimit};

/// Priority of the routes to hosts.
pub const PRIORITY: u16 = 500;
/// Time for which packets are remembered that were sent through the tables again, and into islands.
const READMITTED_FOR: Duration = Duration::from_millis(100);
const COPIES_FOR: Duration = Duration::from_secs(1);

/// Forwarding between hosts.
#[derive(Debug)]
pub(crate) struct Forwarding {
    config: ForwardingConfig,
    broadcast: Broadcast,
    pairs: HostPairs,
    /// Routes to hosts, and what they were made of.
    routes: HashMap<MacAddr, RouteId>,
    /// Shortest ways to the switches that have hosts.
    ways: KeptWays,
    /// Version of the map's links to which routes are adapted.
    version: Option<u64>,
    last_route: u64,
    /// Time at which routes that switches have refused are asked for again.
    retry: Option<Instant>,
    retry_after: Duration,
    floods: RateLimit,
    /// Packets that were sent through the tables again lately.
    readmitted: RecentPackets,
    /// Packets that were sent into islands lately.
    into_islands: RecentPackets,
    sides: IslandSides,
    pub(super) counters: [u64; COUNTERS.len()],
}

const COUNTERS: [&str; 8] = [
    "forwarding_flooded",
    "forwarding_dropped_floods",
    "forwarding_dropped_unreachable",
    "forwarding_arp_answers",
    "forwarding_delivered",
    "forwarding_pairs",
    "forwarding_dropped_malformed",
    "forwarding_not_admitted",
];

#[derive(Debug, Clone, Copy)]
pub(super) enum ForwardingCounter {
    Flooded,
    DroppedFlood,
    Unreachable,
    ArpAnswers,
    Delivered,
    Pairs,
    Malformed,
    NotAdmitted,
}

impl Forwarding {
    /// Returns forwarding that asks again after `retry_after` for routes that switches have refused.
    pub(crate) fn new(config: ForwardingConfig, retry_after: Duration) -> Forwarding {
        Forwarding {
            floods: RateLimit::new(config.max_floods_per_s),
            pairs: HostPairs::new(config.max_pairs),
            config,
            broadcast: Broadcast::default(),
            routes: HashMap::new(),
            ways: KeptWays::default(),
            version: None,
            last_route: 0,
            retry: None,
            retry_after,
            readmitted: RecentPackets::new(READMITTED_FOR),
            into_islands: RecentPackets::new(COPIES_FOR),
            sides: IslandSides::new(),
            counters: [0; COUNTERS.len()],
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        COUNTERS.into_iter().zip(self.counters).collect()
    }

    fn count(&mut self, counter: ForwardingCounter) {
        self.counters[counter as usize] += 1;
    }

    fn next_route(&mut self) -> RouteId {
        self.last_route += 1;
        RouteId(self.last_route)
    }

    pub(crate) fn handle_event(&mut self, event: &NetworkEvent, core: &mut NetworkCore) {
        match event {
            NetworkEvent::SwitchUp { dpid } => admission::set_up(core, *dpid),
            NetworkEvent::HostAdded { host } => {
                admission::admit_host(core, host.mac, host.at);
                self.route_to(host, core);
            }
            NetworkEvent::HostMoved { host, from } => {
                admission::forget_host(core, host.mac, *from);
                admission::admit_host(core, host.mac, host.at);
                self.route_to(host, core);
                self.pairs.forget_host(host.mac, core);
            }
            NetworkEvent::HostRemoved { host } => {
                admission::forget_host(core, host.mac, host.at);
                if let Some(route) = self.routes.remove(&host.mac) {
                    core.keeper.remove_route(route);
                }
                self.pairs.forget_host(host.mac, core);
            }
            _ => {}
        }
    }

    /// Adapts routes after all events of a change.
    pub(crate) fn update(&mut self, core: &mut NetworkCore) {
        if self.version != Some(core.map.links_version) {
            self.version = Some(core.map.links_version);
            if self.config.mode == ForwardingMode::Proactive {
                for host in core.map.hosts().values().cloned().collect::<Vec<_>>() {
                    self.route_to(&host, core);
                }
            }
            self.reroute_pairs(core);
            self.teach_islands(core);
        }
        self.broadcast.update(core);
    }

    /// Returns the shortest ways to a switch.
    fn ways_to(&mut self, dpid: u64, core: &NetworkCore) -> &WaysTo {
        self.ways.to(dpid, &core.map)
    }

    /// Asks for the routes of all switches to a host.
    fn route_to(&mut self, host: &Host, core: &mut NetworkCore) {
        if self.config.mode != ForwardingMode::Proactive {
            return;
        }
        let ecmp = self.config.ecmp;
        let ways = self.ways_to(host.at.dpid, core);
        let hop = |(dpid, ports): (&u64, &Vec<SwitchPort>)| {
            let next = |at: &SwitchPort| HopOutput::new(at.port, ways.next_switch(&core.map, *at));
            let hop = match ports.as_slice() {
                [] => Hop::to(host.at.port, None),
                [only] => Hop { kind: HopKind::All, outputs: vec![next(only)] },
                [first, ..] if !ecmp => Hop { kind: HopKind::All, outputs: vec![next(first)] },
                several => Hop { kind: HopKind::Select, outputs: several.iter().map(next).collect() },
            };
            (HopPlace::at(*dpid), hop)
        };
        let hops: BTreeMap<_, _> = ways.next.iter().map(hop).collect();
        let id = *self.routes.entry(host.mac).or_insert_with(|| {
            self.last_route += 1;
            RouteId(self.last_route)
        });
        if hops.is_empty() {
            // The switch of the host is away. Its entries stay as they are until it is back or the host moves.
            return;
        }
        let matching = Match::any().with(Field::EthDst, host.mac.to_bits());
        core.set_route(id, Route { priority: PRIORITY, matching, idle_timeout: 0, hops });
    }

    /// Handles a packet that no application has taken. `table` is the table that sent it to the controller.
    pub(crate) fn handle_packet(&mut self, packet: &HostPacket<'_>, table: u8, core: &mut NetworkCore) {
        let Some(header) = parse_ethernet(packet.data) else { return self.count(ForwardingCounter::Malformed) };
        if self.resolve(packet, &header, core) {
            return;
        }
        if table != FORWARDING_TABLE && !packet.from_trunk && self.readmit(packet, core) {
            // The host was not known when the packet came; now it passes all tables.
            return;
        }
        if header.dst.is_multicast() {
            return self.flood(packet, core);
        }
        let Some(host) = core.map.hosts().get(&header.dst).cloned() else {
            return self.flood(packet, core);
        };
        if self.leads_back(packet.at, host.at, core) {
            // An island floods a packet whose destination it has not seen yet. This copy is not the one that arrives.
            return self.count(ForwardingCounter::DroppedFlood);
        }
        if self.config.mode == ForwardingMode::Proactive {
            // The switch has no entry yet. Without a way there will be none: the controller joins no parts.
            let is_reached = self.ways_to(host.at.dpid, core).next.contains_key(&packet.at.dpid);
            self.count(if is_reached { ForwardingCounter::Delivered } else { ForwardingCounter::Unreachable });
            if is_reached {
                self.deliver(header.src, host.at, packet.data.to_vec(), core);
            }
            return;
        }
        self.connect(packet, header.src, &host, core);
    }

    /// Lets a packet of a host that is known now pass the tables, once. Returns false if it did so before: the switch
    /// has refused the host's entry, so the controller has to carry it.
    fn readmit(&mut self, packet: &HostPacket<'_>, core: &mut NetworkCore) -> bool {
        if !self.readmitted.add(core.now, packet.at, packet.data) {
            self.count(ForwardingCounter::NotAdmitted);
            return false;
        }
        core.forward(packet.at, packet.data.to_vec());
        true
    }

    /// Sends a packet to all hosts of the sender's part of the network, as far as the limit allows. The controller
    /// joins no parts: hosts between which no way leads do not hear each other.
    fn flood(&mut self, packet: &HostPacket<'_>, core: &mut NetworkCore) {
        if packet.from_trunk || !self.floods.take(core.now) {
            return self.count(ForwardingCounter::DroppedFlood);
        }
        self.count(ForwardingCounter::Flooded);
        let part = &self.ways_to(packet.at.dpid, core).next;
        let is_meant = |at: &SwitchPort| *at != packet.at && part.contains_key(&at.dpid) && !core.is_joining(*at);
        let (shared, mut ports): (Vec<_>, Vec<_>) =
            core.map.edge_ports().filter(is_meant).partition(|at| core.map.is_shared(*at));
        if !shared.is_empty() {
            self.into_islands.note(core.now, packet.data);
        }
        ports.extend(shared.into_iter().filter_map(|at| self.side_of(packet.at, at, core)));
        core.send_to_ports(ports, packet.data);
    }

    /// Returns true if two switches are connected to the controller, but no way leads from one to the other.
    fn is_apart(&mut self, from: u64, to: u64, core: &NetworkCore) -> bool {
        let is_there = core.map.switches().contains_key(&to);
        is_there && !self.ways_to(to, core).next.contains_key(&from)
    }

    /// Handles that a switch has refused an entry of a route.
    pub(crate) fn handle_refused(&mut self, now: Instant) {
        self.retry.get_or_insert(now + self.retry_after);
    }

    /// Returns the time of the next call of [`Forwarding::handle_wake`].
    pub(crate) const fn next_wake(&self) -> Option<Instant> {
        self.retry
    }

    /// Asks again for routes that switches have refused, with the next [`Forwarding::update`].
    pub(crate) fn handle_wake(&mut self, now: Instant) {
        if self.retry.is_some_and(|at| at <= now) {
            (self.retry, self.version) = (None, None);
        }
    }

    /// Handles an entry that a switch removed because no packet used it.
    pub(crate) fn handle_expired(&mut self, id: RouteId, core: &mut NetworkCore) {
        self.pairs.forget_route(id, core);
    }
}
