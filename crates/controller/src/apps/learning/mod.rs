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
//! - Loops of links that the configuration names are broken: packets keep to a spanning tree, which changes when
//!   links go down and come up (`trunks`). Other links between switches must form a tree.
//! - Counters: [`LearningCounters`].
//! - Source: IEEE 802.1Q-2022, 8.7 and 8.8 (learning, ageing, the filtering database).
mod addresses;
mod config;
mod counters;
mod entries;
mod ports;
mod trunks;

pub use config::LearningConfig;
pub use counters::LearningCounters;

use crate::{ConnectionId, ControllerApp, ControllerOutbox};
use addresses::VlanMacTable;
use entries::EthernetFlow;
use ports::{PortUpdateOutcome, VlanId, VlanPorts};
use std::collections::HashMap;
use trunks::Trunks;
use weir_openflow::model::multipart::{FlowStats, MultipartReply, ReplyBody};
use weir_openflow::model::port::{PortStatus, PortStatusReason};
use weir_openflow::model::{Action, Body, FeaturesReply, FlowRemoved, PacketIn, PortDesc, PortNo};
use weir_openflow::{Message, Version};
use weir_packet::{Field, MacAddr, parse};
use weir_units::Instant;

/// Most VLANs of a switch in which stations are learned; packets of further ones are flooded.
const MAX_VLANS: usize = 128;
/// EtherType of LLDP (IEEE 802.1AB-2016, 8.3), whose frames are for the switch, whatever their destination.
const ETH_TYPE_LLDP: u128 = 0x88cc;

/// Learning switch application.
#[derive(Debug)]
pub struct LearningSwitch {
    config: LearningConfig,
    switches: HashMap<ConnectionId, LearnedSwitch>,
    trunks: Trunks,
    counters: LearningCounters,
}

#[derive(Debug)]
struct LearnedSwitch {
    dpid: u64,
    version: Version,
    ports: VlanPorts,
    vlans: HashMap<VlanId, VlanMacTable>,
}

/// Scope of a drop.
enum DropScope {
    /// Drops this packet only.
    Packet,
    /// Drops every packet of the flow for a while.
    Flow(EthernetFlow),
}

impl LearningSwitch {
    /// Returns a learning switch that knows no station.
    pub fn new(config: LearningConfig) -> LearningSwitch {
        let trunks = Trunks::new(config.links.clone());
        LearningSwitch { config, switches: HashMap::new(), trunks, counters: LearningCounters::default() }
    }

    /// Returns the counters since the start, over all switches.
    pub fn count(&self) -> LearningCounters {
        self.counters
    }
}

impl ControllerApp for LearningSwitch {
    fn handle_switch_up(
        &mut self,
        _now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.add(switch, version, features, out);
        send(switch, entries::setup(version, features.n_buffers), out);
    }

    /// Keeps the former master's entries, which continue to forward, and learns stations from them.
    fn take_over(
        &mut self,
        _now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.add(switch, version, features, out);
        send(switch, entries::take_over(features.n_buffers), out);
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        match message.body {
            Body::PacketIn(packet) => self.handle_packet_in(now, switch, packet, out),
            Body::FlowRemoved(removed) => self.handle_flow_removed(switch, &removed),
            Body::PortStatus(status) => self.handle_port_status(switch, &status, out),
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.learn_ports(switch, &ports, out);
            }
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => {
                self.learn_entries(now, switch, &entries, out);
            }
            Body::Error(_) => self.counters.errors += 1,
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, _now: Instant, switch: ConnectionId) {
        self.switches.remove(&switch);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.named()
    }
}

/// Handling of ports.
impl LearningSwitch {
    fn add(&mut self, switch: ConnectionId, version: Version, features: &FeaturesReply, out: &mut ControllerOutbox) {
        let of_this = self.config.access.iter().filter(|((dpid, _), _)| *dpid == features.datapath_id);
        let access = of_this.map(|((_, port), vlan)| (*port, *vlan)).collect();
        let dpid = features.datapath_id;
        let mut ports = VlanPorts::new(version, access, !self.config.access.is_empty());
        ports.block(self.trunks.blocked(dpid));
        self.switches.insert(switch, LearnedSwitch { dpid, version, ports, vlans: HashMap::new() });
        self.learn_ports(switch, &features.ports, out);
    }

    fn learn_ports(&mut self, id: ConnectionId, ports: &[PortDesc], out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(&id) else { return };
        let mut rerouted = false;
        for desc in ports {
            let change = switch.ports.set(desc);
            self.counters.ports_left_aside += u64::from(change == PortUpdateOutcome::TooMany);
            rerouted |= self.trunks.set(switch.dpid, desc.port_no, change != PortUpdateOutcome::Down);
        }
        if rerouted {
            self.reroute(out);
        }
    }

    /// Applies a new spanning tree: forgets the stations learned at the links' ports and deletes these ports'
    /// entries.
    fn reroute(&mut self, out: &mut ControllerOutbox) {
        for (id, switch) in &mut self.switches {
            switch.ports.block(self.trunks.blocked(switch.dpid));
            for port in self.trunks.ports(switch.dpid) {
                switch.vlans.values_mut().for_each(|addresses| addresses.forget_port(port));
                send(*id, entries::forget_port(port), out);
            }
        }
    }

    fn handle_port_status(&mut self, id: ConnectionId, status: &PortStatus, out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(&id) else {
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
            self.reroute(out);
        }
    }
}

/// Handling of packets.
impl LearningSwitch {
    fn handle_flow_removed(&mut self, id: ConnectionId, removed: &FlowRemoved) {
        let flow = EthernetFlow::of_entry(&removed.matching, removed.cookie);
        let Some((flow, switch)) = flow.zip(self.switches.get_mut(&id)) else {
            return;
        };
        if let Some(addresses) = switch.vlans.get_mut(&flow.vlan) {
            addresses.remove_flow(&flow);
        }
    }

    fn handle_packet_in(&mut self, now: Instant, id: ConnectionId, packet: PacketIn, out: &mut ControllerOutbox) {
        let in_port = packet.in_port();
        let (entry, actions) = match self.decide(now, id, &packet, out) {
            Ok((entry, actions)) => (entry, actions),
            Err(DropScope::Packet) => (None, Vec::new()),
            Err(DropScope::Flow(flow)) => (Some(entries::drop_for_a_while(&flow, self.config.priority)), Vec::new()),
        };
        send(id, entry, out);
        let forwarded = !actions.is_empty();
        match entries::packet_out(packet, in_port.unwrap_or(PortNo::CONTROLLER), actions) {
            Some(body) => send(id, [body], out),
            None if forwarded => self.counters.drop_truncated += 1,
            None => {}
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
        if let Some(switch) = self.switches.get_mut(&id) {
            flows.into_iter().for_each(|flow| switch.list(flow));
        }
    }

    /// Decides on a packet. Returns an entry for later packets of the flow, and the actions for this packet.
    fn decide(
        &mut self,
        now: Instant,
        id: ConnectionId,
        packet: &PacketIn,
        out: &mut ControllerOutbox,
    ) -> Result<(Option<Body>, Vec<Action>), DropScope> {
        let flow = self.admit(id, packet)?;
        self.learn(now, id, &flow, out);
        let Some(switch) = self.switches.get_mut(&id) else {
            return Err(DropScope::Packet);
        };
        let known = if flow.dst.is_multicast() { None } else { switch.port_of(flow.vlan, flow.dst) };
        let Some(port) = known else {
            let actions = switch.ports.flood(flow.vlan, flow.tag, flow.in_port);
            let counter = if actions.is_empty() { &mut self.counters.drop_no_port } else { &mut self.counters.flooded };
            *counter += 1;
            return Ok((None, actions));
        };
        if port == flow.in_port {
            self.counters.drop_same_port += 1;
            return Err(DropScope::Flow(flow));
        }
        let actions = switch.ports.send(flow.vlan, flow.tag, port);
        switch.list(flow);
        let entry = entries::forward(&flow, self.config.priority, self.config.idle_timeout, actions.clone());
        Ok((Some(entry), actions))
    }

    /// Returns the flow of a packet if the packet may be forwarded.
    #[expect(clippy::cast_possible_truncation, reason = "MAC addresses have 48 bits, VLAN ids 12")]
    fn admit(&mut self, id: ConnectionId, packet: &PacketIn) -> Result<EthernetFlow, DropScope> {
        let parsed = packet.in_port().and_then(|in_port| Some((in_port, parse(&packet.data.0, in_port).ok()?)));
        let (Some((in_port, parsed)), Some(switch)) = (parsed, self.switches.get(&id)) else {
            self.counters.drop_malformed += 1;
            return Err(DropScope::Packet);
        };
        let mac = |field| MacAddr::from_bits(parsed.key.get(field) as u64);
        let (src, dst) = (mac(Field::EthSrc), mac(Field::EthDst));
        if self.trunks.is_blocked(switch.dpid, in_port) {
            self.counters.drop_blocked += 1;
            return Err(DropScope::Packet);
        }
        if src.is_multicast() {
            self.counters.drop_multicast_source += 1;
            return Err(DropScope::Packet);
        }
        if is_reserved(dst) || parsed.key.get(Field::EthType) == ETH_TYPE_LLDP {
            self.counters.drop_reserved += 1;
            return Err(DropScope::Packet);
        }
        let tag = (parsed.layers.vlan_tags > 0).then(|| parsed.key.get(Field::VlanVid) as u16 & 0xfff);
        let vlan = switch.ports.vlan_of(in_port, tag);
        let flow = EthernetFlow { in_port, tag, vlan: vlan.unwrap_or(0), src, dst };
        if vlan.is_none() {
            self.counters.drop_tagged += 1;
            return Err(DropScope::Flow(flow));
        }
        Ok(flow)
    }

    fn learn(&mut self, now: Instant, id: ConnectionId, flow: &EthernetFlow, out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(&id) else {
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
    fn list(&mut self, flow: EthernetFlow) {
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
