//! Port knocking: a server's port is closed until a host has sent UDP packets to some other ports in the right order.
//!
//! This is a whole application of a network, to be copied and changed. It shows what most applications do:
//!
//! 1. A switch comes up: ask for entries ([`PortKnocking::handle_event`]). They are kept in the switch from then on,
//!    also after it was restarted.
//! 2. A packet comes to the controller: look at it, and decide ([`PortKnocking::handle_packet`]).
//! 3. Something grows with what hosts send: give it a limit, and count what was beyond it ([`MAX_KNOCKING`]).
//! 4. The operator wants to know: events and counters.
//!
//! An application has no socket, no thread and no clock: it is told the time ([`Network::now`]), and it asks the
//! [`Network`] for what it wants. So the tests below need no network at all.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use weir_openflow::model::{Action, Instruction, Match, TableId};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, parse};
use weir_routing::app::{ACCESS_TABLE, REWRITE_TABLE};
use weir_routing::tables::DesiredEntry;
use weir_routing::{HostPacket, Network, NetworkApp, NetworkEvent, PacketDecision};
use weir_units::Instant;

/// Most hosts that are in the middle of knocking. A further one has to wait until another one is done or too late.
pub const MAX_KNOCKING: usize = 1024;
/// Time in which a host has to knock at all ports.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Priorities of the entries: a host that has knocked is let in before all others are kept out.
const OPEN: u16 = 3000;
const CLOSED: u16 = 2000;
const KNOCK: u16 = 1000;

/// Settings.
#[derive(Debug, Clone)]
pub struct KnockingConfig {
    /// IP address of the server.
    pub server: Ipv4Addr,
    /// TCP port that is closed.
    pub port: u16,
    /// UDP ports at which to knock, in this order.
    pub knocks: Vec<u16>,
    /// Seconds for which the port stays open for a host.
    pub open_s: u16,
}

/// The application.
#[derive(Debug)]
pub struct PortKnocking {
    config: KnockingConfig,
    /// Hosts in the middle of knocking: how many knocks were right, and when the first one was.
    knocking: BTreeMap<Ipv4Addr, (usize, Instant)>,
    opened: u64,
    wrong: u64,
    full: u64,
}

impl PortKnocking {
    /// Returns the application; no host has knocked.
    pub fn new(config: KnockingConfig) -> PortKnocking {
        PortKnocking { config, knocking: BTreeMap::new(), opened: 0, wrong: 0, full: 0 }
    }

    /// Returns the match of packets to the server over a protocol.
    fn to_server(&self, protocol: u8) -> Match {
        Match::any()
            .with(Field::EthType, eth_type::IPV4)
            .with(Field::IpProto, protocol)
            .with(Field::Ipv4Dst, self.config.server.to_bits())
    }

    /// Returns the match of packets to the closed port.
    fn to_port(&self) -> Match {
        self.to_server(ip_proto::TCP).with(Field::TcpDst, self.config.port)
    }

    /// Notes that a host has knocked at a port. Returns true if that was the last knock of all.
    fn knock(&mut self, host: Ipv4Addr, port: u16, now: Instant) -> bool {
        self.knocking.retain(|_, (_, first)| now.since(*first) < PATIENCE);
        let (right, first) = self.knocking.remove(&host).unwrap_or((0, now));
        if self.config.knocks.get(right) != Some(&port) {
            self.wrong += 1;
            return false;
        }
        if right + 1 == self.config.knocks.len() {
            return true;
        }
        if self.knocking.len() >= MAX_KNOCKING {
            self.full += 1;
        } else {
            self.knocking.insert(host, (right + 1, first));
        }
        false
    }

    /// Opens the port for a host, at all switches. The switches close it again: they remove the entry after its time,
    /// and an entry that a switch has removed is no longer asked for.
    fn open(&mut self, host: Ipv4Addr, network: &mut dyn Network) {
        let matching = self.to_port().with(Field::Ipv4Src, host.to_bits());
        let go_on = vec![Instruction::GotoTable(TableId(REWRITE_TABLE))];
        let entry = DesiredEntry::new(ACCESS_TABLE, OPEN, matching, go_on);
        let entry = DesiredEntry { hard_timeout: self.config.open_s, ..entry };
        for dpid in network.map().switches().keys().copied().collect::<Vec<_>>() {
            network.set_entry(dpid, entry.clone());
        }
        self.opened += 1;
        let KnockingConfig { server, port, open_s, .. } = self.config;
        network.report("port-opened", format!("port {port} of {server} is open for {host} for {open_s} s"), false);
    }
}

impl NetworkApp for PortKnocking {
    fn name(&self) -> &'static str {
        "port-knocking"
    }

    fn handle_event(&mut self, event: &NetworkEvent, network: &mut dyn Network) {
        let NetworkEvent::SwitchUp { dpid } = event else { return };
        // An entry without instructions drops its packets.
        network.set_entry(*dpid, DesiredEntry::new(ACCESS_TABLE, CLOSED, self.to_port(), Vec::new()));
        for port in &self.config.knocks {
            let matching = self.to_server(ip_proto::UDP).with(Field::UdpDst, *port);
            let to_controller = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
            network.set_entry(*dpid, DesiredEntry::new(ACCESS_TABLE, KNOCK, matching, to_controller));
        }
    }

    fn handle_packet(&mut self, packet: &HostPacket<'_>, network: &mut dyn Network) -> PacketDecision {
        // Packets are what hosts send: any bytes. The parser reads what is there; fields that are not are zero.
        let Ok(parsed) = parse(packet.data, packet.at.port) else { return PacketDecision::PassedOn };
        let number = |field| u32::try_from(parsed.key.get(field)).unwrap_or_default();
        let is_ipv4 = number(Field::EthType) == u32::from(eth_type::IPV4);
        let is_udp = is_ipv4 && number(Field::IpProto) == u32::from(ip_proto::UDP);
        let Ok(port) = u16::try_from(number(Field::UdpDst)) else { return PacketDecision::PassedOn };
        let is_for_server = Ipv4Addr::from(number(Field::Ipv4Dst)) == self.config.server;
        if !is_udp || !is_for_server || !self.config.knocks.contains(&port) {
            return PacketDecision::PassedOn;
        }
        let host = Ipv4Addr::from(number(Field::Ipv4Src));
        if self.knock(host, port, network.now()) {
            self.open(host, network);
        }
        // The server never sees a knock.
        PacketDecision::Taken
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("ports_opened", self.opened), ("wrong_knocks", self.wrong), ("knocks_full", self.full)]
    }
}

#[cfg(test)]
mod tests;
