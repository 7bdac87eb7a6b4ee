//! DHCP server for IPv4 (RFC 2131): gives addresses to hosts, and tells them router and DNS servers.
//!
//! Switches have entries in the admission table that send packets of DHCP to the controller; answers go out of the port
//! from which the client asked, so that no other host sees them. Each port, switch or the whole network has pools of
//! addresses. An address is offered if no client holds it and no other host of the map uses it.
//!
//! The server is the only one of its subnets: it refuses addresses that do not belong where the client is, and accepts
//! a client's former address that is free, because leases may not have been kept over a restart of the controller.
//! Answers of other servers that reach the controller raise an alarm and go no further.
//!
//! Leases are kept over a restart if the controller keeps what applications hand out ([`NetworkApp::kept`]).
//!
//! Requests of a relay (RFC 2131, 4.1: `giaddr`) are answered from the pool whose subnet has the relay's address.
mod config;
mod kept;
mod leases;
mod message;
mod server;

pub use config::{
    AddressRange, DhcpConfig, DhcpPool, LEASE_TIMES, MAX_DNS_SERVERS, MAX_POOL_ADDRESSES, MAX_POOLS, Reservation,
};
pub use server::{DECLINE_TIME, MAX_HOST_CHECKS, MAX_PROBES, OFFER_TIME};

use crate::app::{ADMISSION_TABLE, Network, NetworkApp, NetworkEvent};
use crate::forwarding::admission::{priority, to_controller};
use crate::map::SwitchPort;
use crate::tables::DesiredEntry;
use crate::{HostPacket, PacketDecision};
use leases::LeaseTable;
use message::{ClientMessage, DhcpMessageError};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_openflow::model::Match;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, MacAddr, ParsedHeaders, parse};
use weir_units::Instant;

/// UDP port of servers (RFC 2131, 4.1).
const SERVER_PORT: u16 = 67;
/// UDP port of clients.
const CLIENT_PORT: u16 = 68;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;
/// Shortest time between two events about other servers, and between two about empty pools.
const EVENT_INTERVAL: Duration = Duration::from_secs(10);

/// The application.
#[derive(Debug)]
pub struct DhcpServer {
    config: DhcpConfig,
    leases: LeaseTable,
    /// Numbers in the pools' ranges at which the next search for a free address begins.
    cursors: Vec<u32>,
    /// Time at which leases that ended were last removed because of a port's limit.
    cleaned: Option<Instant>,
    /// Times of the last events about another server, and about an empty pool.
    told: [Option<Instant>; 2],
    now: Instant,
    counters: DhcpCounters,
}

#[derive(Debug, Default)]
struct DhcpCounters {
    offers: u64,
    acks: u64,
    naks: u64,
    declines: u64,
    releases: u64,
    informs: u64,
    /// Dropped messages by reason.
    malformed: u64,
    spoofed: u64,
    other_servers: u64,
    over_trunk: u64,
    no_pool: u64,
    pool_empty: u64,
    port_full: u64,
}

/// Answer to a client: the message, and where it goes.
#[derive(Debug, PartialEq, Eq)]
struct DhcpAnswer {
    to_mac: MacAddr,
    to_ip: Ipv4Addr,
    to_port: u16,
    payload: Vec<u8>,
}

impl DhcpServer {
    /// Returns a server without leases.
    ///
    /// # Errors
    /// Fails for the reasons of [`DhcpConfig::check`].
    pub fn new(config: DhcpConfig) -> Result<DhcpServer, String> {
        config.check()?;
        let cursors = vec![0; config.pools.len()];
        let (leases, counters) = (LeaseTable::default(), DhcpCounters::default());
        Ok(DhcpServer { config, leases, cursors, cleaned: None, told: [None; 2], now: Instant::ZERO, counters })
    }

    /// Handles a message of a client in the payload of a UDP datagram to the server's port.
    fn handle_datagram(&mut self, packet: &HostPacket<'_>, source: MacAddr, payload: &[u8], network: &mut dyn Network) {
        let message = match ClientMessage::read(payload) {
            Ok(message) => message,
            Err(DhcpMessageError::Malformed) => {
                self.counters.malformed += 1;
                return;
            }
            Err(DhcpMessageError::FromServer) => return self.handle_other_server(packet.at, source, network),
        };
        // Without a relay, the frame's source is the client: a host that names others takes their addresses.
        if message.giaddr.is_unspecified() && message.mac != source || message.mac.is_multicast() {
            self.counters.spoofed += 1;
            return;
        }
        let Some(answer) = self.answer(&message, source, packet.at, network) else { return };
        let frame = FrameBuilder::ethernet(answer.to_mac, self.config.mac)
            .ipv4(self.config.address, answer.to_ip)
            .udp(SERVER_PORT, answer.to_port)
            .payload(&answer.payload);
        network.send(packet.at, frame.build());
    }

    /// Reports a host that answers as a server.
    fn handle_other_server(&mut self, at: SwitchPort, source: MacAddr, network: &mut dyn Network) {
        self.counters.other_servers += 1;
        if self.may_tell(0) {
            let text = format!("host {source} at {at} answers as a DHCP server");
            network.report("other-dhcp-server", text, true);
        }
    }

    /// Returns true if an event of a kind may be recorded now, and notes that it is.
    fn may_tell(&mut self, kind: usize) -> bool {
        let is_due = self.told[kind].is_none_or(|last| last + EVENT_INTERVAL <= self.now);
        if is_due {
            self.told[kind] = Some(self.now);
        }
        is_due
    }

    /// Answers a request for the server's Ethernet address.
    fn handle_arp(&self, packet: &HostPacket<'_>, parsed: &ParsedHeaders, network: &mut dyn Network) -> PacketDecision {
        let number = |field: Field| u32::try_from(parsed.key.get(field)).unwrap_or_default();
        let is_request = parsed.key.get(Field::ArpOp) == 1;
        if !is_request || Ipv4Addr::from(number(Field::ArpTpa)) != self.config.address {
            return PacketDecision::PassedOn;
        }
        let asking = (mac_of(parsed, Field::ArpSha), number(Field::ArpSpa).into());
        let answer = FrameBuilder::ethernet(mac_of(parsed, Field::EthSrc), self.config.mac);
        network.send(packet.at, answer.arp(2, (self.config.mac, self.config.address), asking).build());
        PacketDecision::Taken
    }
}

/// Returns an Ethernet address in a field.
fn mac_of(parsed: &ParsedHeaders, field: Field) -> MacAddr {
    MacAddr::from_bits(u64::try_from(parsed.key.get(field)).unwrap_or_default())
}

/// Returns the payload of a UDP datagram, as long as its header says at most.
fn udp_payload<'a>(data: &'a [u8], parsed: &ParsedHeaders) -> Option<&'a [u8]> {
    let (_, at) = parsed.layers.transport?;
    let datagram = data.get(usize::from(at)..)?;
    let length = usize::from(u16::from_be_bytes([*datagram.get(4)?, *datagram.get(5)?]));
    datagram.get(UDP_HEADER..length.min(datagram.len()))
}

impl NetworkApp for DhcpServer {
    fn name(&self) -> &'static str {
        "dhcp"
    }

    fn own_addresses(&self) -> (Vec<MacAddr>, Vec<IpAddr>) {
        (vec![self.config.mac], vec![self.config.address.into()])
    }

    fn handle_event(&mut self, event: &NetworkEvent, network: &mut dyn Network) {
        let NetworkEvent::SwitchUp { dpid } = event else { return };
        let udp = || Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpProto, ip_proto::UDP);
        let to_server = udp().with(Field::UdpDst, SERVER_PORT);
        let from_server = udp().with(Field::UdpSrc, SERVER_PORT).with(Field::UdpDst, CLIENT_PORT);
        for matching in [to_server, from_server] {
            let entry = DesiredEntry::new(ADMISSION_TABLE, priority::APPLICATION, matching, to_controller());
            network.set_entry(*dpid, entry);
        }
    }

    fn handle_packet(&mut self, packet: &HostPacket<'_>, network: &mut dyn Network) -> PacketDecision {
        let Ok(parsed) = parse(packet.data, packet.at.port) else { return PacketDecision::PassedOn };
        self.now = network.now();
        let get = |field| parsed.key.get(field);
        if get(Field::EthType) == eth_type::ARP.into() {
            return self.handle_arp(packet, &parsed, network);
        }
        let is_udp = get(Field::EthType) == eth_type::IPV4.into() && get(Field::IpProto) == ip_proto::UDP.into();
        if !is_udp || parsed.layers.transport.is_none() {
            return PacketDecision::PassedOn;
        }
        let source = mac_of(&parsed, Field::EthSrc);
        if get(Field::UdpSrc) == SERVER_PORT.into() && get(Field::UdpDst) == CLIENT_PORT.into() {
            self.handle_other_server(packet.at, source, network);
            return PacketDecision::Taken;
        }
        if get(Field::UdpDst) != SERVER_PORT.into() {
            return PacketDecision::PassedOn;
        }
        if packet.from_trunk {
            self.counters.over_trunk += 1;
            return PacketDecision::Taken;
        }
        match udp_payload(packet.data, &parsed) {
            Some(payload) => self.handle_datagram(packet, source, payload, network),
            None => self.counters.malformed += 1,
        }
        PacketDecision::Taken
    }

    fn kept(&self, now: Instant) -> Option<serde_json::Value> {
        self.kept_leases(now)
    }

    fn kept_changes(&self) -> u64 {
        self.leases.changes()
    }

    fn restore(&mut self, now: Instant, elapsed: Duration, kept: &serde_json::Value) -> Result<(), String> {
        self.restore_leases(now, elapsed, kept)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (bound, held) = self.leases.count(self.now);
        let counters = &self.counters;
        vec![
            ("leases", bound),
            ("offered_or_declined", held),
            ("offers", counters.offers),
            ("acks", counters.acks),
            ("naks", counters.naks),
            ("declines", counters.declines),
            ("releases", counters.releases),
            ("informs", counters.informs),
            ("drop_malformed", counters.malformed),
            ("drop_spoofed", counters.spoofed),
            ("drop_other_server", counters.other_servers),
            ("drop_over_trunk", counters.over_trunk),
            ("drop_no_pool", counters.no_pool),
            ("drop_pool_empty", counters.pool_empty),
            ("drop_port_full", counters.port_full),
        ]
    }
}

#[cfg(test)]
mod tests;
