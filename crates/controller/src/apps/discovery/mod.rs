//! Finds links between switches by LLDP, so that loops of them are broken.
//!
//! - Purpose: networks whose links are not configured. Links found become trunks of the [learning
//!   switches](super::learning), which keep to a spanning tree of them.
//! - How: a frame of LLDP is sent by every port of every switch, at once when it comes up and then at an interval. A
//!   frame that arrives at another switch shows a link. A link of which nothing is heard for three intervals is gone.
//! - Parameters: [`DiscoveryConfig`].
//! - Limits: a port has one link, the newest found. Until a loop's links are found, what is flooded goes round.
//! - Counters: frames sent and received, links found and lost, frames that were forged.
//! - Place in a chain: in front, because it takes its own LLDP. LLDP of others is passed on.
//! - Source: IEEE 802.1AB-2016.
mod lldp;

use super::learning::LearningSwitches;
use super::learning::trunks::{TrunkPort, TrunksReader};
use crate::hub::table::ConnectionTable;
use crate::status::LinkStatus;
use crate::{AppWaker, ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use weir_openflow::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::port::{PortStatusReason, bits};
use weir_openflow::model::{Action, Body, Bytes, FeaturesReply, Match, PacketOut, PortDesc, PortNo};
use weir_openflow::{Message, PacketInView, Version};
use weir_packet::MacAddr;
use weir_packet::parse::parse_ethernet;
use weir_units::Instant;

/// Most frames sent at once, and the time until the next ones.
const SENT_AT_ONCE: usize = 64;
const SEND_PAUSE: Duration = Duration::from_millis(1);
/// Intervals without a frame after which a link is gone.
const INTERVALS_OF_A_LINK: u32 = 3;
/// Most ports of a switch by which frames are sent.
const MAX_PORTS: usize = 8192;

/// Configuration of the discovery of links.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// Time between two frames by one port, at least 10 ms. Default: 5 s.
    pub interval: Duration,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        DiscoveryConfig { interval: Duration::from_secs(5) }
    }
}

/// Discoveries of one network, one for each thread of a controller.
#[derive(Debug)]
pub struct LinkDiscoveries {
    config: DiscoveryConfig,
    learning: LearningSwitches,
    /// Makes the numbers in frames. All threads have the same key, which stays in the program.
    key: RandomState,
}

impl LinkDiscoveries {
    /// Returns discoveries that give what they find to `learning`.
    pub fn new(config: DiscoveryConfig, learning: &LearningSwitches) -> LinkDiscoveries {
        LinkDiscoveries { config, learning: learning.clone(), key: RandomState::new() }
    }

    /// Returns the application of thread number `shard`. It belongs in front of that thread's learning switch.
    pub fn make(&self, shard: usize, waker: AppWaker) -> LinkDiscovery {
        LinkDiscovery {
            interval: self.config.interval.max(Duration::from_millis(10)),
            key: self.key.clone(),
            trunks: self.learning.trunks_reader(shard, waker),
            switches: ConnectionTable::default(),
            due: BTreeSet::new(),
            send_at: Instant::ZERO,
            next_round: None,
            heard: BTreeMap::new(),
            counters: [0; COUNTERS.len()],
        }
    }
}

/// Names of the counters, by [`Counter`].
const COUNTERS: [&str; 5] =
    ["discovery_sent", "discovery_received", "discovery_links_found", "discovery_links_lost", "discovery_forged"];

/// Number of a counter.
#[derive(Clone, Copy)]
enum Counter {
    Sent,
    Received,
    Found,
    Lost,
    Forged,
}

/// Discovery of links at the switches of one thread.
#[derive(Debug)]
pub struct LinkDiscovery {
    interval: Duration,
    key: RandomState,
    trunks: TrunksReader,
    switches: ConnectionTable<ProbedSwitch>,
    /// Ports by which a frame is to be sent.
    due: BTreeSet<(ConnectionId, PortNo)>,
    /// Time at which the next of these are sent.
    send_at: Instant,
    /// Time at which all ports are due again; `None` without switches.
    next_round: Option<Instant>,
    /// Links whose greater end is a switch of this thread, by that end: the other end, and when it was heard.
    heard: BTreeMap<TrunkPort, (TrunkPort, Instant)>,
    counters: [u64; COUNTERS.len()],
}

#[derive(Debug)]
struct ProbedSwitch {
    dpid: u64,
    /// Ports that are up, with their addresses.
    ports: BTreeMap<PortNo, MacAddr>,
}

impl ControllerApp for LinkDiscovery {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.switches.insert_as(switch, ProbedSwitch { dpid: features.datapath_id, ports: BTreeMap::new() });
        self.next_round.get_or_insert(now + self.interval);
        self.add_ports(switch, &features.ports);
        if version > Version::V10 {
            let body = RequestBody::PortDesc(PortNo::ANY);
            let ask = Body::MultipartRequest(MultipartRequest { more: false, body });
            out.push((switch, Message { xid: 0, body: ask }));
        }
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let is_lldp = parse_ethernet(packet.data()).is_some_and(|header| header.eth_type == lldp::ETH_TYPE_LLDP);
        let Some((from, token)) = is_lldp.then(|| lldp::read(packet.data())).flatten() else {
            return PacketDecision::PassedOn;
        };
        if let Some((dpid, in_port)) = self.switches.get(switch).map(|found| found.dpid).zip(packet.in_port()) {
            self.hear(now, from, token, (dpid, in_port));
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

    fn handle_message(&mut self, _now: Instant, switch: ConnectionId, message: Message, _out: &mut ControllerOutbox) {
        match message.body {
            Body::PortStatus(status) if status.reason == PortStatusReason::Delete => {
                self.remove_port(switch, status.desc.port_no);
            }
            Body::PortStatus(status) => self.add_ports(switch, &[status.desc]),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.add_ports(switch, &ports);
            }
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, _now: Instant, switch: ConnectionId) {
        let Some(gone) = self.switches.remove(switch) else { return };
        self.due.retain(|(of, _)| *of != switch);
        self.lose(|(dpid, _), _| dpid == gone.dpid);
        if self.switches.len() == 0 {
            self.next_round = None;
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let sends = (!self.due.is_empty()).then_some(self.send_at);
        [sends, self.next_round].into_iter().flatten().min()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        if self.next_round.is_some_and(|at| at <= now) {
            self.next_round = Some(now + self.interval);
            let ports = |(id, switch): (ConnectionId, &ProbedSwitch)| {
                switch.ports.keys().map(move |port| (id, *port)).collect::<Vec<_>>()
            };
            self.due.extend(self.switches.iter().flat_map(ports));
            let before = now - self.interval * INTERVALS_OF_A_LINK;
            self.lose(|_, heard| heard < before);
        }
        if self.send_at <= now {
            self.send_due(now, out);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        COUNTERS.into_iter().zip(self.counters).collect()
    }

    fn name(&self) -> &'static str {
        "link discovery"
    }

    fn links(&self, now: Instant) -> Option<Vec<LinkStatus>> {
        let trunks = self.trunks.newest();
        let link = |(to, (from, heard)): (&TrunkPort, &(TrunkPort, Instant))| LinkStatus {
            from: from.0,
            from_port: from.1,
            to: to.0,
            to_port: to.1,
            heard_s: now.since(*heard).as_secs_f64(),
            blocked: trunks.is_blocked(to.0, to.1),
        };
        Some(self.heard.iter().map(link).collect())
    }
}

impl LinkDiscovery {
    fn count(&mut self, counter: Counter) {
        self.counters[counter as usize] += 1;
    }

    fn add_ports(&mut self, id: ConnectionId, descs: &[PortDesc]) {
        for desc in descs {
            let port = desc.port_no;
            let is_up = desc.config & bits::PORT_DOWN == 0 && desc.state & bits::LINK_DOWN == 0;
            if !is_up || !port.is_ordinary() {
                self.remove_port(id, port);
            } else if let Some(switch) = self.switches.get_mut(id)
                && (switch.ports.len() < MAX_PORTS || switch.ports.contains_key(&port))
            {
                switch.ports.insert(port, desc.hw_addr);
                self.due.insert((id, port));
            }
        }
    }

    fn remove_port(&mut self, id: ConnectionId, port: PortNo) {
        self.due.remove(&(id, port));
        if let Some(switch) = self.switches.get_mut(id) {
            switch.ports.remove(&port);
        }
    }

    fn send_due(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let interval = u16::try_from(self.interval.as_secs()).unwrap_or(u16::MAX);
        let seconds = interval.saturating_mul(3).max(1);
        for _ in 0..SENT_AT_ONCE {
            let Some((id, port)) = self.due.pop_first() else { return };
            let Some(switch) = self.switches.get(id) else { continue };
            let Some(src) = switch.ports.get(&port) else { continue };
            let from = (switch.dpid, port);
            let data = Bytes(lldp::frame(from, *src, seconds, self.key.hash_one(from)));
            let (in_port, actions) = (PortNo::CONTROLLER, vec![Action::output(port)]);
            let body = Body::PacketOut(PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data });
            out.push((id, Message { xid: 0, body }));
            self.count(Counter::Sent);
        }
        self.send_at = now + SEND_PAUSE;
    }

    /// Handles a frame of this controller that arrived at a port. Each link is noticed at its greater end only, so that
    /// one thread has it.
    fn hear(&mut self, now: Instant, from: TrunkPort, token: u64, at: TrunkPort) {
        if token != self.key.hash_one(from) {
            return self.count(Counter::Forged);
        }
        self.count(Counter::Received);
        if from >= at {
            return;
        }
        let former = self.heard.insert(at, (from, now)).map(|(from, _)| from);
        if former == Some(from) {
            return;
        }
        if let Some(former) = former {
            self.trunks.remove_discovered([former, at]);
            self.count(Counter::Lost);
        }
        self.trunks.add_discovered([from, at]);
        self.count(Counter::Found);
    }

    /// Forgets the links that `is_lost` accepts, by their greater end and when they were heard.
    fn lose(&mut self, is_lost: impl Fn(TrunkPort, Instant) -> bool) {
        let lost: Vec<_> =
            self.heard.iter().filter(|(at, (_, heard))| is_lost(**at, *heard)).map(|(at, _)| *at).collect();
        for at in lost {
            if let Some((from, _)) = self.heard.remove(&at) {
                self.trunks.remove_discovered([from, at]);
                self.count(Counter::Lost);
            }
        }
    }
}
