//! Learning switch for OpenFlow 1.0 and 1.3 that knows VLANs and keeps tenants apart.
//!
//! - Purpose: every station reaches every other of its VLAN without configuration of their places. The first packet
//!   of a pair of stations reaches the controller; later ones match an entry in the switch.
//! - Parameters: [`LearningConfig`], with ranges and defaults.
//! - With access ports configured, VLANs share switches and trunks but never see each other's frames, even if their
//!   stations have equal addresses. Frames of a VLAN are untagged on its access ports and tagged on every other port.
//! - Entries match `in_port`, VLAN, `eth_src` and `eth_dst`. A station is therefore always learned before its frames
//!   match, and a station that moves is noticed with its first frame. Its old entries are deleted before new ones are
//!   added. Without a MAC address in the match, a move would not be noticed.
//! - Loops of links that the configuration names, or that [discovery](super::discovery) has found, are broken: packets
//!   keep to a spanning tree, which changes when links go down and come up (`trunks`). Other links must form a tree.
//! - Counters: [`LearningCounters`].
//! - Source: IEEE 802.1Q-2022, 8.7 and 8.8 (learning, ageing, the filtering database).
mod addresses;
mod answer;
mod config;
mod counters;
mod entries;
mod flow_list;
mod ports;
pub(super) mod trunks;

pub use config::LearningConfig;
pub use counters::LearningCounters;

use crate::hub::table::ConnectionTable;
use crate::published::Published;
use crate::{AppWaker, ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use addresses::VlanMacTable;
use answer::{Answer, AnswerTemplates, SeenPacket};
use entries::EthernetFlow;
use foldhash::fast::RandomState;
use ports::{PortUpdateOutcome, VlanId, VlanPorts};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use trunks::{Trunks, TrunksReader};
use weir_openflow::model::multipart::{FlowStats, MultipartReply, ReplyBody};
use weir_openflow::model::port::{PortStatus, PortStatusReason};
use weir_openflow::model::{Body, FeaturesReply, FlowRemoved, PortDesc, PortNo};
use weir_openflow::{Message, PacketInView, Version};
use weir_packet::MacAddr;
use weir_packet::parse::{EthernetHeader, parse_ethernet};
use weir_units::Instant;

/// Most VLANs of a switch in which stations are learned; packets of further ones are flooded.
const MAX_VLANS: usize = 128;
/// Time after a loop is broken in which nothing is learned from links: frames that circled before still wait in sockets
/// and queues, and came by ways that are not the stations'.
const SETTLING: Duration = Duration::from_secs(1);

/// Learning switch application.
#[derive(Debug)]
pub struct LearningSwitch {
    config: LearningConfig,
    switches: ConnectionTable<LearnedSwitch>,
    trunks: TrunksReader,
    /// Time from which on links are learned from again, after so many loops were broken.
    settled: Instant,
    loops_broken: u64,
    counters: LearningCounters,
}

/// Learning switches of one network, one for each thread of a controller. What they learn of stations belongs to single
/// switches; the spanning tree of configured links they have in common.
#[derive(Debug, Clone)]
pub struct LearningSwitches {
    config: LearningConfig,
    trunks: Arc<Published<Trunks>>,
}

impl LearningSwitches {
    /// Returns the learning switches of a network.
    pub fn new(config: LearningConfig) -> LearningSwitches {
        let trunks = Trunks::publish(config.links.clone());
        LearningSwitches { config, trunks }
    }

    /// Returns a view of the trunks for another application of thread number `shard`, which wakes that thread, too.
    pub(super) fn trunks_reader(&self, shard: usize, waker: AppWaker) -> TrunksReader {
        TrunksReader::new(&self.trunks, shard, waker)
    }

    /// Returns the application of thread number `shard`, which knows no station. `waker` wakes its thread.
    pub fn make(&self, shard: usize, waker: AppWaker) -> LearningSwitch {
        let trunks = TrunksReader::new(&self.trunks, shard, waker);
        LearningSwitch {
            config: self.config.clone(),
            switches: ConnectionTable::default(),
            settled: Instant::ZERO,
            loops_broken: trunks.get().loops_broken(),
            trunks,
            counters: LearningCounters::default(),
        }
    }
}

#[derive(Debug)]
struct LearnedSwitch {
    dpid: u64,
    version: Version,
    ports: VlanPorts,
    vlans: HashMap<VlanId, VlanMacTable, RandomState>,
    /// Prepared answers; `None` if the version cannot carry them.
    templates: Option<AnswerTemplates>,
}

/// Decision on a packet.
enum PacketVerdict {
    /// An entry is added that sends the flow to a port, and the packet goes there.
    Forward(EthernetFlow, PortNo),
    /// Only this packet is sent to a port.
    Send(EthernetFlow, PortNo),
    /// The packet is sent to all ports of its VLAN.
    Flood(EthernetFlow),
    /// Only this packet is dropped.
    Drop,
    /// Every packet of the flow is dropped for a while.
    DropFlow(EthernetFlow),
}

impl LearningSwitch {
    /// Returns a learning switch that knows no station.
    pub fn new(config: LearningConfig) -> LearningSwitch {
        LearningSwitches::new(config).make(0, AppWaker::default())
    }

    /// Returns the counters since the start, over all switches.
    pub fn count(&self) -> LearningCounters {
        self.counters
    }
}

impl ControllerApp for LearningSwitch {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.add(now, switch, version, features, out);
        send(switch, entries::setup(version, features.n_buffers), out);
    }

    /// Keeps the former master's entries, which continue to forward, and learns stations from them.
    fn take_over(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.add(now, switch, version, features, out);
        send(switch, entries::take_over(features.n_buffers), out);
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let (in_port, buffer_id, total_len) = (packet.in_port(), packet.buffer_id(), packet.total_len());
        let packet = SeenPacket { in_port, buffer_id, total_len, data: packet.data() };
        self.handle_packet(now, switch, &packet, out);
        PacketDecision::Taken
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        match message.body {
            Body::PacketIn(packet) => {
                let (in_port, buffer_id, total_len) = (packet.in_port(), packet.buffer_id, packet.total_len);
                let packet = SeenPacket { in_port, buffer_id, total_len, data: &packet.data.0 };
                self.handle_packet(now, switch, &packet, out);
            }
            Body::FlowRemoved(removed) => self.handle_flow_removed(switch, &removed),
            Body::PortStatus(status) => self.handle_port_status(now, switch, &status, out),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.learn_ports(now, switch, &ports, out);
            }
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => {
                self.learn_entries(now, switch, &entries, out);
            }
            Body::Error(_) => self.counters.errors += 1,
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, _now: Instant, switch: ConnectionId) {
        self.switches.remove(switch);
    }

    /// Returns a time that is past if another thread has changed the spanning tree.
    fn next_wake(&self) -> Option<Instant> {
        self.trunks.is_stale().then_some(Instant::ZERO)
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        if self.trunks.refresh() {
            self.reroute(now, out);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.named()
    }

    fn name(&self) -> &'static str {
        "learning switch"
    }
}

/// Handling of ports.
impl LearningSwitch {
    fn add(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        let of_this = self.config.access.iter().filter(|((dpid, _), _)| *dpid == features.datapath_id);
        let access = of_this.map(|((_, port), vlan)| (*port, *vlan)).collect();
        let dpid = features.datapath_id;
        let mut ports = VlanPorts::new(version, access, !self.config.access.is_empty());
        ports.block(self.trunks.get().blocked(dpid));
        let templates = AnswerTemplates::new(version, self.config.priority, self.config.idle_timeout);
        self.switches.insert_as(switch, LearnedSwitch { dpid, version, ports, vlans: HashMap::default(), templates });
        self.learn_ports(now, switch, &features.ports, out);
    }

    fn learn_ports(&mut self, now: Instant, id: ConnectionId, ports: &[PortDesc], out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(id) else { return };
        let mut rerouted = false;
        for desc in ports {
            let change = switch.ports.set(desc);
            self.counters.ports_left_aside += u64::from(change == PortUpdateOutcome::TooMany);
            rerouted |= self.trunks.set(switch.dpid, desc.port_no, change != PortUpdateOutcome::Down);
        }
        if rerouted {
            self.reroute(now, out);
        }
    }

    /// Applies a new spanning tree: forgets the stations learned at the links' ports and deletes these ports'
    /// entries.
    fn reroute(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let loops_broken = self.trunks.get().loops_broken();
        if loops_broken > self.loops_broken {
            (self.loops_broken, self.settled) = (loops_broken, now + SETTLING);
        }
        for id in self.switches.ids() {
            let Some(switch) = self.switches.get_mut(id) else { continue };
            switch.ports.block(self.trunks.get().blocked(switch.dpid));
            for port in self.trunks.get().ports(switch.dpid) {
                switch.vlans.values_mut().for_each(|addresses| addresses.forget_port(port));
                send(id, entries::forget_port(port), out);
            }
        }
    }

    fn handle_port_status(&mut self, now: Instant, id: ConnectionId, status: &PortStatus, out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(id) else {
            return;
        };
        let port = status.desc.port_no;
        let change = if status.reason == PortStatusReason::Delete {
            switch.ports.remove(port);
            PortUpdateOutcome::Down
        } else {
            switch.ports.set(&status.desc)
        };
        match change {
            PortUpdateOutcome::Up => {}
            PortUpdateOutcome::TooMany => self.counters.ports_left_aside += 1,
            PortUpdateOutcome::Down => {
                switch.vlans.values_mut().for_each(|addresses| addresses.forget_port(port));
                send(id, entries::forget_port(port), out);
            }
        }
        if self.trunks.set(switch.dpid, port, change != PortUpdateOutcome::Down) {
            self.reroute(now, out);
        }
    }
}

/// Handling of packets.
impl LearningSwitch {
    fn handle_flow_removed(&mut self, id: ConnectionId, removed: &FlowRemoved) {
        let flow = EthernetFlow::of_entry(&removed.matching, removed.cookie);
        let Some((flow, switch)) = flow.zip(self.switches.get_mut(id)) else {
            return;
        };
        if let Some(addresses) = switch.vlans.get_mut(&flow.vlan) {
            addresses.remove_flow(&flow);
        }
    }

    /// Decides on a packet and answers.
    fn handle_packet(&mut self, now: Instant, id: ConnectionId, packet: &SeenPacket<'_>, out: &mut ControllerOutbox) {
        let verdict = self.decide(now, id, packet, out);
        let Some(switch) = self.switches.get(id) else { return };
        let answer = Answer { id, packet, ports: &switch.ports, templates: switch.templates.as_ref() };
        let config = &self.config;
        let is_whole = match verdict {
            PacketVerdict::Forward(flow, port) => answer.forward(&flow, port, config, out),
            PacketVerdict::Send(flow, port) => answer.send(&flow, port, out),
            PacketVerdict::Flood(flow) => answer.flood(&flow, out),
            PacketVerdict::DropFlow(flow) => answer.drop_flow(&flow, config, out),
            PacketVerdict::Drop => answer.drop(out),
        };
        if !is_whole {
            self.counters.drop_truncated += 1;
        }
    }

    /// Learns stations from the entries of a switch's former master: a station is on the port from which its frames
    /// come.
    fn learn_entries(&mut self, now: Instant, id: ConnectionId, found: &[FlowStats], out: &mut ControllerOutbox) {
        let flows: Vec<_> =
            found.iter().filter_map(|entry| EthernetFlow::of_entry(&entry.matching, entry.cookie)).collect();
        for flow in &flows {
            self.learn(now, id, flow, out);
        }
        if let Some(switch) = self.switches.get_mut(id) {
            flows.iter().for_each(|flow| switch.list(flow));
        }
    }

    /// Learns the source of a packet, and decides what is done with it.
    fn decide(
        &mut self,
        now: Instant,
        id: ConnectionId,
        packet: &SeenPacket<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketVerdict {
        let flow = match self.admit(id, packet) {
            Ok(flow) => flow,
            Err(verdict) => return verdict,
        };
        let is_settled = now >= self.settled || !self.is_trunk(id, flow.in_port);
        if is_settled && let Some(port) = self.forward_at_once(now, id, &flow) {
            return PacketVerdict::Forward(flow, port);
        }
        if is_settled {
            self.learn(now, id, &flow, out);
        }
        let Some(switch) = self.switches.get_mut(id) else {
            return PacketVerdict::Drop;
        };
        let known = if flow.dst.is_multicast() { None } else { switch.port_of(flow.vlan, flow.dst) };
        match known {
            None if switch.ports.has_flood_port(flow.vlan, flow.in_port) => {
                self.counters.flooded += 1;
                PacketVerdict::Flood(flow)
            }
            None => {
                self.counters.drop_no_port += 1;
                PacketVerdict::Drop
            }
            Some(port) if port == flow.in_port => {
                self.counters.drop_same_port += 1;
                if is_settled { PacketVerdict::DropFlow(flow) } else { PacketVerdict::Drop }
            }
            Some(port) if !is_settled => PacketVerdict::Send(flow, port),
            Some(port) => {
                switch.list(&flow);
                PacketVerdict::Forward(flow, port)
            }
        }
    }

    /// Returns the port to which a flow between known stations goes, and lists its entry. Most packets need no more.
    fn forward_at_once(&mut self, now: Instant, id: ConnectionId, flow: &EthernetFlow) -> Option<PortNo> {
        let addresses = self.switches.get_mut(id)?.vlans.get_mut(&flow.vlan)?;
        addresses.forward(now, now - self.config.max_age, flow)
    }

    /// Returns true if a port of a switch has a link to another switch.
    fn is_trunk(&self, id: ConnectionId, port: PortNo) -> bool {
        self.switches.get(id).is_some_and(|switch| self.trunks.get().has_link((switch.dpid, port)))
    }

    /// Returns the flow of a packet if the packet may be forwarded.
    fn admit(&mut self, id: ConnectionId, packet: &SeenPacket<'_>) -> Result<EthernetFlow, PacketVerdict> {
        let parsed = packet.in_port.and_then(|in_port| Some((in_port, parse_ethernet(packet.data)?)));
        let (Some((in_port, header)), Some(switch)) = (parsed, self.switches.get(id)) else {
            self.counters.drop_malformed += 1;
            return Err(PacketVerdict::Drop);
        };
        let EthernetHeader { src, dst, vlan: tag, eth_type } = header;
        if self.trunks.get().is_blocked(switch.dpid, in_port) {
            self.counters.drop_blocked += 1;
            return Err(PacketVerdict::Drop);
        }
        if src.is_multicast() {
            self.counters.drop_multicast_source += 1;
            return Err(PacketVerdict::Drop);
        }
        // Frames of LLDP are for the switch, whatever their destination.
        if is_reserved(dst) || eth_type == weir_packet::field::eth_type::LLDP {
            self.counters.drop_reserved += 1;
            return Err(PacketVerdict::Drop);
        }
        let vlan = switch.ports.vlan_of(in_port, tag);
        let flow = EthernetFlow { in_port, tag, vlan: vlan.unwrap_or(0), src, dst };
        if vlan.is_none() {
            self.counters.drop_tagged += 1;
            return Err(PacketVerdict::DropFlow(flow));
        }
        Ok(flow)
    }

    fn learn(&mut self, now: Instant, id: ConnectionId, flow: &EthernetFlow, out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(id) else {
            return;
        };
        let addresses = switch.vlans.get_mut(&flow.vlan);
        let aged = addresses.map(|addresses| addresses.expire(now, now - self.config.max_age)).unwrap_or_default();
        self.counters.aged += aged.len() as u64;
        let Some(addresses) = switch.find_or_add_addresses(flow.vlan, self.config.max_addresses) else {
            self.counters.unlearned_vlans += 1;
            return;
        };
        let learned = addresses.learn(now, flow.src, flow.in_port);
        self.counters.learned += u64::from(learned.new);
        self.counters.moved += u64::from(learned.moved.is_some());
        self.counters.pushed_out += u64::from(learned.evicted.is_some());
        for left in aged.into_iter().chain(learned.moved).chain(learned.evicted).filter(|left| left.used) {
            send(id, entries::forget_station(switch.version, flow.vlan, left.mac, left.port), out);
        }
    }
}

impl LearnedSwitch {
    fn port_of(&self, vlan: VlanId, mac: MacAddr) -> Option<PortNo> {
        self.vlans.get(&vlan)?.port_of(mac)
    }

    /// Lists the entry of `flow`, which is being sent to the switch.
    fn list(&mut self, flow: &EthernetFlow) {
        if let Some(addresses) = self.vlans.get_mut(&flow.vlan) {
            addresses.add_flow(flow);
        }
    }

    /// Returns the stations of a VLAN. Beyond [`MAX_VLANS`] a further VLAN replaces those without stations; `None` if
    /// there are none.
    fn find_or_add_addresses(&mut self, vlan: VlanId, max: usize) -> Option<&mut VlanMacTable> {
        if self.vlans.len() >= MAX_VLANS && !self.vlans.contains_key(&vlan) {
            self.vlans.retain(|_, addresses| !addresses.is_empty());
            if self.vlans.len() >= MAX_VLANS {
                return None;
            }
        }
        Some(self.vlans.entry(vlan).or_insert_with(|| VlanMacTable::new(max)))
    }
}

/// Returns true if bridges do not forward frames to this address (IEEE 802.1Q-2022, table 8-1).
fn is_reserved(mac: MacAddr) -> bool {
    mac.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && mac.0[5] < 0x10
}

fn send(switch: ConnectionId, bodies: impl IntoIterator<Item = Body>, out: &mut ControllerOutbox) {
    out.extend(bodies.into_iter().map(|body| (switch, Message { xid: 0, body })));
}
