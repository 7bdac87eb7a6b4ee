//! Finds links between switches by probes, for whichever application wants to know them.
mod probes;
#[cfg(test)]
mod tests;

use super::DiscoveryConfig;
use super::delay::ShortestDelay;
use super::links::{LinkTable, ProbeOrder};
use super::lldp::{self, ProbeForm};
use super::schedule::ProbeSchedule;
pub use crate::apps::learning::trunks::TrunkPort;
use crate::hub::table::ConnectionTable;
use crate::{ConnectionId, ControllerOutbox, PacketDecision};
use probes::ProbeCounters;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use weir_openflow::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::port::{PortStatusReason, bits};
use weir_openflow::model::{Body, Bytes, FeaturesReply, Match, PacketOut, PortDesc, PortNo};
use weir_openflow::{Message, PacketInView, Version};
use weir_packet::MacAddr;
use weir_packet::parse::parse_ethernet;
use weir_units::Instant;

/// Quarters of an interval without a probe after which a link is gone: three intervals, and some time for the last
/// probe to arrive.
const QUARTERS_OF_A_LINK: u32 = 13;
/// A silent link is lost if both its switches have handled probes that were sent so many intervals after the newest one
/// that came over the link. Otherwise a switch is late with all probes, for example because it has no processor time.
const MISSING_PROBES: u32 = 2;
/// Most ports of a switch by which probes are sent.
const MAX_PORTS: usize = 8192;
/// Age from which on a probe was kept on its way, and says nothing of a link.
pub(super) const MAX_AGE: Duration = Duration::from_secs(1);
/// Change of a link, by its lesser and its greater end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedLinkEvent {
    /// A probe has come over a link that was not known, or was lost.
    Found([TrunkPort; 2]),
    /// A link is silent, leads elsewhere, or has a port or a switch that went down.
    Lost([TrunkPort; 2]),
    /// A link that was found by broadcasts is a direct one: a probe came over it that other switches do not pass on.
    Direct([TrunkPort; 2]),
    /// A link was lost again and again. It stays damped until it is released, whether it is known or not.
    Damped([TrunkPort; 2]),
    /// A damped link has not been lost for a while.
    Released([TrunkPort; 2]),
}

/// Link that probes have found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbedLink {
    /// Lesser and greater end.
    pub ends: [TrunkPort; 2],
    /// Time at which the newest probe came over it.
    pub heard: Instant,
    /// Shortest time that one of the latest probes took over it; `None` if it is not known.
    pub delay: Option<Duration>,
    /// True if it was lost again and again.
    pub damped: bool,
    /// True if only broadcasts come over it: there are other switches in between, and its ports may have more links.
    pub indirect: bool,
}

/// Effect that a port or a switch which goes down has on its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortDown {
    /// The links are lost at once.
    LosesLinks,
    /// The links are known until they are silent: the user handles ports itself. Without a switch, the links are lost
    /// whose greater end it was.
    KeepsLinks,
}

/// Finds links between the switches of one thread, and to those of others.
///
/// The methods are those of [`ControllerApp`](crate::ControllerApp). After each call of one,
/// [`LinkProber::take_events`] says what has changed.
#[derive(Debug)]
pub struct LinkProber {
    /// Makes the authentication codes of probes (SipHash).
    key: RandomState,
    port_down: PortDown,
    broadcasts: bool,
    switches: ConnectionTable<ProbedSwitch>,
    /// Newest connection of each switch.
    by_dpid: BTreeMap<u64, ConnectionId>,
    /// Turns of the ports; [`PortNo::CONTROLLER`] for the probe to the switch and back.
    schedule: ProbeSchedule,
    /// Time at which silent links are looked for; `None` without switches and links.
    next_check: Option<Instant>,
    links: LinkTable,
    /// Number of probes sent.
    n_sent: u64,
    counters: ProbeCounters,
}

/// Switch whose ports are probed.
#[derive(Debug)]
struct ProbedSwitch {
    dpid: u64,
    /// Ports that are up, with their addresses.
    ports: BTreeMap<PortNo, MacAddr>,
    /// Times of probes from the controller to the switch and back.
    round_trips: ShortestDelay,
    /// Time of the newest probe that this switch has sent, of those that have come back to the controller.
    sent_on: Instant,
    /// Time of the newest probe that this switch has passed to the controller.
    handed_in: Instant,
}

impl ProbedSwitch {
    fn new(dpid: u64) -> ProbedSwitch {
        let (ports, round_trips) = (BTreeMap::new(), ShortestDelay::default());
        ProbedSwitch { dpid, ports, round_trips, sent_on: Instant::ZERO, handed_in: Instant::ZERO }
    }

    /// Returns the time from the controller to the switch, or back, as far as is known.
    fn one_way(&self) -> Duration {
        self.round_trips.get().unwrap_or_default() / 2
    }
}

impl LinkProber {
    /// Returns a prober for all switches of a network. A port or a switch that goes down loses its links at once.
    pub fn new(config: DiscoveryConfig) -> LinkProber {
        LinkProber::with_key(&config, RandomState::new(), PortDown::LosesLinks)
    }

    /// Returns a prober of one of several threads, which all have the same key.
    pub(super) fn with_key(config: &DiscoveryConfig, key: RandomState, port_down: PortDown) -> LinkProber {
        let turns_per_s = if config.broadcast { config.max_probes_per_s / 2 } else { config.max_probes_per_s };
        LinkProber {
            key,
            port_down,
            broadcasts: config.broadcast,
            switches: ConnectionTable::default(),
            by_dpid: BTreeMap::new(),
            schedule: ProbeSchedule::new(config.interval, turns_per_s),
            next_check: None,
            links: LinkTable::default(),
            n_sent: 0,
            counters: ProbeCounters::default(),
        }
    }

    /// Returns what happened to links since the last call, in its order.
    pub fn take_events(&mut self) -> Vec<ProbedLinkEvent> {
        self.links.take_events()
    }

    /// Returns the link between a lesser and a greater end, if it is known.
    pub fn link(&self, ends: [TrunkPort; 2]) -> Option<ProbedLink> {
        self.links.get(ends)
    }

    /// Returns the links that are known, by their greater ends.
    pub fn links(&self) -> impl Iterator<Item = ProbedLink> + '_ {
        self.links.iter()
    }

    /// Handles a switch that has come up: asks for its ports, and probes those that are known.
    pub fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        let dpid = features.datapath_id;
        self.schedule.remove_switch(switch);
        self.switches.insert_as(switch, ProbedSwitch::new(dpid));
        self.by_dpid.insert(dpid, switch);
        self.schedule.add(now, switch, PortNo::CONTROLLER);
        self.next_check.get_or_insert(now + self.schedule.interval() / 4);
        self.set_ports(now, switch, &features.ports);
        if version > Version::V10 {
            let body = RequestBody::PortDesc(PortNo::ANY);
            let ask = Body::MultipartRequest(MultipartRequest { more: false, body });
            out.push((switch, Message { xid: 0, body: ask }));
        }
    }

    /// Handles a packet-in. Takes probes of this controller, and passes other packets on.
    pub fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let form = parse_ethernet(packet.data()).and_then(|header| ProbeForm::of(header.eth_type));
        let Some((form, (probe, code))) = form.and_then(|form| Some((form, lldp::read(packet.data())?))) else {
            return PacketDecision::PassedOn;
        };
        if code != self.key.hash_one((form, probe)) {
            self.counters.forged += 1;
        } else if let Some(in_port) = packet.in_port() {
            self.hear(now, form, &probe, (switch, in_port));
        }
        if packet.buffer_id().is_some() {
            // Without actions the switch gives its buffer back.
            let in_port = packet.in_port().unwrap_or(PortNo::CONTROLLER);
            let (matching, actions, data) = (Match::any(), Vec::new(), Bytes::default());
            let body = Body::PacketOut(PacketOut { buffer_id: packet.buffer_id(), in_port, matching, actions, data });
            out.push((switch, Message { xid: 0, body }));
        }
        PacketDecision::Taken
    }

    /// Handles a message: follows which ports are up.
    pub fn handle_message(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        message: Message,
        _out: &mut ControllerOutbox,
    ) {
        match message.body {
            Body::PortStatus(status) if status.reason == PortStatusReason::Delete => {
                self.lose_port(now, switch, status.desc.port_no);
            }
            Body::PortStatus(status) => self.set_ports(now, switch, &[status.desc]),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.set_ports(now, switch, &ports);
            }
            _ => {}
        }
    }

    /// Handles a switch that is gone.
    pub fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        let Some(gone) = self.switches.remove(switch) else { return };
        self.schedule.remove_switch(switch);
        if self.by_dpid.get(&gone.dpid) == Some(&switch) {
            self.by_dpid.remove(&gone.dpid);
        }
        let (of_either, last) = (self.port_down == PortDown::LosesLinks, self.last_probe(now));
        self.links.lose(last, |[from, at]| at.0 == gone.dpid || of_either && from.0 == gone.dpid);
    }

    /// Returns the time of the next call of [`LinkProber::handle_wake`]; `None` if there is nothing to do.
    pub fn next_wake(&self) -> Option<Instant> {
        [self.schedule.next_wake(), self.next_check].into_iter().flatten().min()
    }

    /// Sends the probes that are due, and loses links that are silent.
    pub fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        if self.next_check.is_some_and(|at| at <= now) {
            let silence = self.schedule.interval() / 4 * QUARTERS_OF_A_LINK;
            let missing = self.schedule.stretched_interval() * MISSING_PROBES;
            let (switches, by_dpid) = (&self.switches, &self.by_dpid);
            let switch = |dpid: u64| by_dpid.get(&dpid).and_then(|id| switches.get(*id));
            let is_certain = |ends: &[TrunkPort; 2], sent: Instant| {
                let [from, at] = ends.map(|end| switch(end.0));
                // Switches of other threads, and those that are gone, say nothing.
                from.is_none_or(|from| from.sent_on >= sent + missing)
                    && at.is_none_or(|at| at.handed_in >= sent + missing)
            };
            self.links.lose_silent(self.last_probe(now), self.schedule.probing(), silence, is_certain);
            self.links.release(now);
            let goes_on = self.switches.len() > 0 || !self.links.is_idle();
            self.next_check = goes_on.then(|| now + self.schedule.stretched_interval() / 4);
        }
        for (switch, port) in self.schedule.take_due(now) {
            self.send_probe(now, ProbeForm::Direct, (switch, port), out);
            if self.broadcasts && port != PortNo::CONTROLLER {
                self.send_probe(now, ProbeForm::Broadcast, (switch, port), out);
            }
        }
    }

    /// Returns the counters by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let (links, probes) = (&self.links.counts, &self.counters);
        vec![
            ("discovery_sent", self.n_sent),
            ("discovery_received", probes.received),
            ("discovery_links_found", links.found),
            ("discovery_links_lost", links.lost),
            ("discovery_links_damped", links.damped),
            ("discovery_links_refused", links.refused),
            ("discovery_forged", probes.forged),
            ("discovery_replayed", probes.replayed),
            ("discovery_contradicted", links.contradicted),
            ("discovery_unknown_port", probes.unknown_port),
        ]
    }

    /// Notes which ports are up.
    fn set_ports(&mut self, now: Instant, id: ConnectionId, descs: &[PortDesc]) {
        for desc in descs {
            let port = desc.port_no;
            if !is_up(desc) || !port.is_ordinary() {
                self.lose_port(now, id, port);
            } else if let Some(switch) = self.switches.get_mut(id)
                && (switch.ports.len() < MAX_PORTS || switch.ports.contains_key(&port))
            {
                switch.ports.insert(port, desc.hw_addr);
                self.schedule.add(now, id, port);
            }
        }
    }

    /// Notes that a port went down or is gone.
    fn lose_port(&mut self, now: Instant, id: ConnectionId, port: PortNo) {
        let last = self.last_probe(now);
        let Some(switch) = self.switches.get_mut(id) else { return };
        if switch.ports.remove(&port).is_none() {
            return;
        }
        let lost = (switch.dpid, port);
        self.schedule.remove(id, port);
        match self.port_down {
            PortDown::LosesLinks => self.links.lose(last, |ends| ends.contains(&lost)),
            PortDown::KeepsLinks => self.links.note_port_down(now, lost),
        }
    }

    /// Returns the order of the last probe that may have been sent so far.
    fn last_probe(&self, now: Instant) -> ProbeOrder {
        (now, self.n_sent.saturating_sub(1))
    }
}

fn is_up(port: &PortDesc) -> bool {
    port.config & bits::PORT_DOWN == 0 && port.state & bits::LINK_DOWN == 0
}
