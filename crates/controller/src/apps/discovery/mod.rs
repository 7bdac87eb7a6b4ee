//! Finds links between switches by LLDP, so that loops of them are broken.
//!
//! - Purpose: networks whose links are not configured. Links found become trunks of the [learning
//!   switches](super::learning), which keep to a spanning tree of them.
//! - How: a frame of LLDP is sent by every port of every switch, at once when it comes up and then at an interval. A
//!   frame that arrives at another switch shows a link. A link of which nothing is heard for three intervals is gone.
//!   One more frame goes to each switch and back, and says how long that takes; what a frame between two switches takes
//!   longer is the link's delay. Links that are lost again and again are used only where no other way is.
//! - Parameters: [`DiscoveryConfig`].
//! - Limits: a port has one link, the newest found. Until a loop's links are found, what is flooded goes round. A host
//!   that passes a frame on at once, to a host at another switch, makes up a link between their ports.
//! - Counters: frames sent and received, links found, lost and damped, frames that were forged or sent once more.
//! - Place in a chain: in front, because it takes its own LLDP. LLDP of others is passed on.
//! - Source: IEEE 802.1AB-2016.
mod damping;
mod delay;
mod lldp;
#[cfg(test)]
mod tests;

use super::learning::LearningSwitches;
use super::learning::trunks::{TrunkPort, TrunksReader};
use crate::hub::table::ConnectionTable;
use crate::status::LinkStatus;
use crate::{AppWaker, ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use damping::LinkDamping;
use delay::ShortestDelay;
use lldp::LinkProbe;
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
/// Age from which on a frame was kept on its way, and says nothing of a link.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Source of the frames that do not leave the switch; a locally administered address.
const CONTROLLER_ADDRESS: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0]);

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
    /// Makes the authentication codes of frames (SipHash). All threads have the same key, which stays in the program.
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
            damping: LinkDamping::default(),
            n_sent: 0,
            counters: [0; COUNTERS.len()],
        }
    }
}

/// Names of the counters, by [`Counter`].
const COUNTERS: [&str; 7] = [
    "discovery_sent",
    "discovery_received",
    "discovery_links_found",
    "discovery_links_lost",
    "discovery_links_damped",
    "discovery_forged",
    "discovery_replayed",
];

/// Number of a counter.
#[derive(Clone, Copy)]
enum Counter {
    Sent,
    Received,
    Found,
    Lost,
    Damped,
    Forged,
    Replayed,
}

/// Discovery of links at the switches of one thread.
#[derive(Debug)]
pub struct LinkDiscovery {
    interval: Duration,
    key: RandomState,
    trunks: TrunksReader,
    switches: ConnectionTable<ProbedSwitch>,
    /// Ports by which a frame is to be sent; [`PortNo::CONTROLLER`] for the frame to the switch and back.
    due: BTreeSet<(ConnectionId, PortNo)>,
    /// Time at which the next of these are sent.
    send_at: Instant,
    /// Time at which all ports are due again; `None` without switches and damped links.
    next_round: Option<Instant>,
    /// Links whose greater end is a switch of this thread, by that end.
    heard: BTreeMap<TrunkPort, HeardLink>,
    /// Links whose greater end is a switch of this thread, by both ends.
    damping: LinkDamping<[TrunkPort; 2]>,
    /// Number of frames sent.
    n_sent: u64,
    counters: [u64; COUNTERS.len()],
}

#[derive(Debug)]
struct ProbedSwitch {
    dpid: u64,
    /// Ports that are up, with their addresses.
    ports: BTreeMap<PortNo, MacAddr>,
    /// Times from the controller to the switch and back.
    round_trips: ShortestDelay,
}

impl ProbedSwitch {
    /// Returns the time from the controller to the switch, or back, as far as is known.
    fn one_way(&self) -> Duration {
        self.round_trips.get().unwrap_or_default() / 2
    }
}

/// Link of which a frame has come.
#[derive(Debug)]
struct HeardLink {
    /// Lesser end.
    from: TrunkPort,
    /// Time at which the newest frame came.
    heard: Instant,
    /// Time at which it was sent, and its number among those of that time.
    newest: (Instant, u64),
    delays: ShortestDelay,
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
        let (dpid, ports, round_trips) = (features.datapath_id, BTreeMap::new(), ShortestDelay::default());
        self.switches.insert_as(switch, ProbedSwitch { dpid, ports, round_trips });
        self.due.insert((switch, PortNo::CONTROLLER));
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
        let Some((probe, code)) = is_lldp.then(|| lldp::read(packet.data())).flatten() else {
            return PacketDecision::PassedOn;
        };
        if let Some(in_port) = packet.in_port() {
            self.hear(now, &probe, code, (switch, in_port));
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

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, _out: &mut ControllerOutbox) {
        match message.body {
            Body::PortStatus(status) if status.reason == PortStatusReason::Delete => {
                self.lose_port(now, switch, status.desc.port_no);
            }
            Body::PortStatus(status) if !is_up(&status.desc) => self.lose_port(now, switch, status.desc.port_no),
            Body::PortStatus(status) => self.add_ports(switch, &[status.desc]),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.add_ports(switch, &ports);
            }
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        let Some(gone) = self.switches.remove(switch) else { return };
        self.due.retain(|(of, _)| *of != switch);
        self.lose(now, |(dpid, _), _| dpid == gone.dpid);
    }

    fn next_wake(&self) -> Option<Instant> {
        let sends = (!self.due.is_empty()).then_some(self.send_at);
        [sends, self.next_round].into_iter().flatten().min()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        if self.next_round.is_some_and(|at| at <= now) {
            let ports = |(id, switch): (ConnectionId, &ProbedSwitch)| {
                switch.ports.keys().chain([&PortNo::CONTROLLER]).map(move |port| (id, *port)).collect::<Vec<_>>()
            };
            self.due.extend(self.switches.iter().flat_map(ports));
            let before = now - self.interval * INTERVALS_OF_A_LINK;
            self.lose(now, |_, heard| heard < before);
            for link in self.damping.release(now) {
                self.trunks.set_damped(link, false);
            }
            let goes_on = self.switches.len() > 0 || !self.damping.is_empty();
            self.next_round = goes_on.then_some(now + self.interval);
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
        let link = |(to, link): (&TrunkPort, &HeardLink)| LinkStatus {
            from: link.from.0,
            from_port: link.from.1,
            to: to.0,
            to_port: to.1,
            heard_s: now.since(link.heard).as_secs_f64(),
            delay_us: link.delays.get().map(|delay| delay.as_secs_f64() * 1e6),
            blocked: trunks.is_blocked(to.0, to.1),
            down: [link.from, *to].into_iter().any(|end| trunks.is_down(end)),
            damped: self.damping.is_damped([link.from, *to]),
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
            if !is_up(desc) || !port.is_ordinary() {
                self.remove_port(id, port);
            } else if let Some(switch) = self.switches.get_mut(id)
                && (switch.ports.len() < MAX_PORTS || switch.ports.contains_key(&port))
            {
                switch.ports.insert(port, desc.hw_addr);
                self.due.insert((id, port));
            }
        }
    }

    /// Notes that a port went down. Its link is known until it is silent, in case it comes up again.
    fn lose_port(&mut self, now: Instant, id: ConnectionId, port: PortNo) {
        let was_up = self.switches.get(id).is_some_and(|switch| switch.ports.contains_key(&port));
        self.remove_port(id, port);
        if was_up && let Some(switch) = self.switches.get(id) {
            let at = (switch.dpid, port);
            if let Some(link) = self.heard.get(&at) {
                self.note_loss(now, [link.from, at]);
            }
        }
    }

    /// Notes that a link went down or was lost.
    fn note_loss(&mut self, now: Instant, link: [TrunkPort; 2]) {
        if self.damping.note_loss(now, link) {
            self.trunks.set_damped(link, true);
            self.count(Counter::Damped);
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
            let (src, action) = match switch.ports.get(&port) {
                _ if port == PortNo::CONTROLLER => (CONTROLLER_ADDRESS, Action::to_controller()),
                Some(src) => (*src, Action::output(port)),
                None => continue,
            };
            let (from, number) = ((switch.dpid, port), self.n_sent);
            let to_switch_ns = u64::try_from(switch.one_way().as_nanos()).unwrap_or(u64::MAX);
            let probe = LinkProbe { from, number, sent: now, to_switch_ns };
            let data = Bytes(lldp::frame(&probe, src, seconds, self.key.hash_one(probe)));
            self.n_sent += 1;
            let (in_port, actions) = (PortNo::CONTROLLER, vec![action]);
            let body = Body::PacketOut(PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data });
            out.push((id, Message { xid: 0, body }));
            self.count(Counter::Sent);
        }
        self.send_at = now + SEND_PAUSE;
    }

    /// Handles a frame of this controller that arrived at a port of a switch. Each link is noticed at its greater end
    /// only, so that one thread has it.
    fn hear(&mut self, now: Instant, probe: &LinkProbe, code: u64, (id, in_port): (ConnectionId, PortNo)) {
        if code != self.key.hash_one(probe) {
            return self.count(Counter::Forged);
        }
        let Some(switch) = self.switches.get_mut(id) else { return };
        let (from, at, age) = (probe.from, (switch.dpid, in_port), now.since(probe.sent));
        let newest = (probe.sent, probe.number);
        let is_newest = |link: &HeardLink| link.from != from || link.newest < newest;
        if age > MAX_AGE || !self.heard.get(&at).is_none_or(is_newest) {
            return self.count(Counter::Replayed);
        }
        if from.1 == PortNo::CONTROLLER {
            if from.0 == at.0 {
                switch.round_trips.add(age);
            }
            return self.count(Counter::Received);
        }
        let delay = age.saturating_sub(switch.one_way()).saturating_sub(Duration::from_nanos(probe.to_switch_ns));
        self.count(Counter::Received);
        if from >= at {
            return;
        }
        match self.heard.get_mut(&at).filter(|link| link.from == from) {
            Some(link) => {
                (link.heard, link.newest) = (now, newest);
                link.delays.add(delay);
            }
            None => {
                let mut delays = ShortestDelay::default();
                delays.add(delay);
                if let Some(former) = self.heard.insert(at, HeardLink { from, heard: now, newest, delays }) {
                    self.trunks.remove_discovered([former.from, at]);
                    self.count(Counter::Lost);
                }
                self.trunks.add_discovered([from, at]);
                self.count(Counter::Found);
            }
        }
    }

    /// Forgets the links that `is_lost` accepts, by their greater end and when they were heard.
    fn lose(&mut self, now: Instant, is_lost: impl Fn(TrunkPort, Instant) -> bool) {
        let lost: Vec<_> =
            self.heard.iter().filter(|(at, link)| is_lost(**at, link.heard)).map(|(at, _)| *at).collect();
        for at in lost {
            if let Some(link) = self.heard.remove(&at) {
                self.trunks.remove_discovered([link.from, at]);
                self.count(Counter::Lost);
                self.note_loss(now, [link.from, at]);
            }
        }
    }
}

fn is_up(port: &PortDesc) -> bool {
    port.config & bits::PORT_DOWN == 0 && port.state & bits::LINK_DOWN == 0
}
