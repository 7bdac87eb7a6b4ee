//! Router between subnets: hosts of different subnets reach each other through it, wherever they are.
//!
//! The router is at all switches at once, with one Ethernet address and one IP address in each subnet. It answers ARP,
//! neighbour solicitations and echo requests for its addresses. Packets to known hosts never come to the controller:
//! each switch has an entry for each of them in [`REWRITE_TABLE`](crate::app::REWRITE_TABLE), which decrements the TTL,
//! writes the Ethernet addresses and sends the packet on to the forwarding table. So a packet is routed by the first
//! switch that it meets.
//!
//! Packets to the router that no such entry matches come to the controller. Those to unknown hosts of a connected
//! subnet wait, up to [`MAX_WAITING`] for a host, while ARP or neighbour discovery asks all hosts. If the host does not
//! answer, the sender is told by ICMP, as it is when no subnet has the destination. Errors are limited to
//! [`ERRORS_PER_SECOND`] (RFC 1812, 4.3.2.8).
//!
//! A match cannot ask for a TTL in OpenFlow. A switch finds an expired one when it decrements it, and sends the packet
//! to the controller with the reason invalid TTL, if the controller has asked for such packets (OpenFlow 1.3.5,
//! 7.3.10). The TTL is the first thing that entries change, so that the packet arrives as the host sent it.
//!
//! Not here: VLAN tags, routes to other routers, router advertisements for IPv6, fragmentation.
mod config;
mod hosts;

pub use config::{MAX_SUBNETS, RouterConfig};
pub use hosts::MAX_ROUTED;
pub use weir_controller::waiting::{ASK_INTERVAL, MAX_DESTINATIONS, MAX_REQUESTS, MAX_WAITING};

use crate::app::{Network, NetworkApp, NetworkEvent};
use crate::map::SwitchPort;
use crate::{HostPacket, PacketDecision};
use hosts::RoutedHosts;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_controller::waiting::{Queued, WaitingPacket, WaitingPackets};
use weir_packet::answer::{IcmpError, IpPacket, question};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr, ParsedHeaders, parse};
use weir_units::Instant;

/// Most errors of ICMP in a second.
pub const ERRORS_PER_SECOND: u32 = 100;
/// Shortest time between two events about hosts that use the router's addresses.
const EVENT_INTERVAL: Duration = Duration::from_secs(10);

/// The application.
#[derive(Debug)]
pub struct Router {
    config: RouterConfig,
    hosts: RoutedHosts,
    waiting: WaitingPackets<SwitchPort>,
    /// Start of the second in which errors are counted, and their number.
    errors: (Instant, u32),
    /// Time of the last event about a host that uses one of the router's addresses.
    told: Option<Instant>,
    counters: RouterCounters,
}

#[derive(Debug, Default)]
struct RouterCounters {
    arp_replies: u64,
    advertisements: u64,
    echo_replies: u64,
    routed: u64,
    questions: u64,
    icmp_errors: u64,
    claims: u64,
    /// Dropped packets by reason.
    expired: u64,
    no_route: u64,
    unreachable: u64,
    queue_full: u64,
    to_router: u64,
    over_trunk: u64,
    errors_limited: u64,
}

impl Router {
    /// Returns a router that knows no hosts.
    ///
    /// # Errors
    /// Fails for the reasons of [`RouterConfig::check`].
    pub fn new(config: RouterConfig) -> Result<Router, String> {
        config.check()?;
        let hosts = RoutedHosts::new(config.mac);
        let (waiting, counters) = (WaitingPackets::default(), RouterCounters::default());
        Ok(Router { config, hosts, waiting, errors: (Instant::ZERO, 0), told: None, counters })
    }

    /// Handles ARP: answers requests for the router's addresses, and takes replies to it.
    fn handle_arp(&mut self, at: SwitchPort, parsed: &ParsedHeaders, network: &mut dyn Network) -> PacketDecision {
        let ip = |field| Ipv4Addr::from_bits(u32::try_from(parsed.key.get(field)).unwrap_or_default());
        let mac = |field| MacAddr::from_bits(u64::try_from(parsed.key.get(field)).unwrap_or_default());
        let (sender, target) = ((mac(Field::ArpSha), ip(Field::ArpSpa)), ip(Field::ArpTpa));
        if self.config.is_gateway(sender.1.into()) && sender.0 != self.config.mac {
            self.claim(at, sender.0, sender.1.into(), network);
            return PacketDecision::Taken;
        }
        if parsed.key.get(Field::ArpOp) != 1 {
            let is_own = mac(Field::EthDst) == self.config.mac;
            return if is_own { PacketDecision::Taken } else { PacketDecision::PassedOn };
        }
        if !self.config.is_gateway(target.into()) {
            return PacketDecision::PassedOn;
        }
        let reply = FrameBuilder::ethernet(mac(Field::EthSrc), self.config.mac);
        network.send(at, reply.arp(2, (self.config.mac, target), sender).build());
        self.counters.arp_replies += 1;
        PacketDecision::Taken
    }

    /// Notes that a host uses an address of the router.
    fn claim(&mut self, at: SwitchPort, mac: MacAddr, ip: IpAddr, network: &mut dyn Network) {
        self.counters.claims += 1;
        if self.told.is_none_or(|last| last + EVENT_INTERVAL <= network.now()) {
            self.told = Some(network.now());
            network.report("gateway-claimed", format!("host {mac} at {at} uses {ip}, an address of the router"), true);
        }
    }

    /// Handles an IP packet to the router's Ethernet address.
    fn handle_ip(&mut self, at: SwitchPort, packet: &IpPacket<'_>, network: &mut dyn Network) {
        if self.config.is_gateway(packet.destination) {
            match packet.echo_reply(self.config.mac) {
                Some(reply) => {
                    self.counters.echo_replies += 1;
                    network.send(at, reply);
                }
                None => self.counters.to_router += 1,
            }
            return;
        }
        if packet.ttl <= 1 {
            self.counters.expired += 1;
            return self.send_error(at, packet, IcmpError::TimeExceeded, network);
        }
        let Some(gateway) = self.config.gateway_of(packet.destination) else {
            self.counters.no_route += 1;
            return self.send_error(at, packet, IcmpError::NoRoute, network);
        };
        if let Some(host) = self.hosts.get(packet.destination) {
            // The switch had no entry when the packet came.
            return self.pass_on(packet, host, network);
        }
        let waiting = WaitingPacket { at, data: packet.data.to_vec() };
        match self.waiting.add(packet.destination, waiting, network.now()) {
            Queued::New => self.ask(gateway, packet.destination, network),
            Queued::Waits => {}
            Queued::Full => self.counters.queue_full += 1,
        }
    }

    /// Sends a packet out of its host's port. Through the tables it would be one of an unknown source.
    fn pass_on(&mut self, packet: &IpPacket<'_>, host: MacAddr, network: &mut dyn Network) {
        let to = network.map().hosts().get(&host).map(|host| host.at);
        if let (Some(to), Some(frame)) = (to, packet.routed(self.config.mac, host)) {
            self.counters.routed += 1;
            network.send(to, frame);
        }
    }

    /// Asks all hosts for the Ethernet address of an IP address.
    fn ask(&mut self, gateway: IpAddr, host: IpAddr, network: &mut dyn Network) {
        if let Some(frame) = question(self.config.mac, gateway, host) {
            self.counters.questions += 1;
            network.send_to_hosts(None, frame);
        }
    }

    /// Tells the sender of a packet why it was not delivered.
    fn send_error(&mut self, at: SwitchPort, packet: &IpPacket<'_>, error: IcmpError, network: &mut dyn Network) {
        let from = self.config.gateway_of(packet.source);
        let Some(frame) = from.and_then(|gateway| packet.error(error, self.config.mac, gateway)) else { return };
        let now = network.now();
        if now.since(self.errors.0) >= Duration::from_secs(1) {
            self.errors = (now, 0);
        }
        if self.errors.1 >= ERRORS_PER_SECOND {
            self.counters.errors_limited += 1;
            return;
        }
        self.errors.1 += 1;
        self.counters.icmp_errors += 1;
        network.send(at, frame);
    }

    /// Takes up the addresses of a host, and sends on the packets that waited for them.
    fn update_host(&mut self, host: &crate::map::Host, network: &mut dyn Network) {
        if let Some(ip) = host.ips.iter().copied().find(|ip| self.config.is_gateway(*ip)) {
            self.claim(host.at, host.mac, ip, network);
        }
        if host.mac == self.config.mac {
            return;
        }
        let config = &self.config;
        let is_routed = |ip: &IpAddr| config.gateway_of(*ip).is_some() && !config.is_gateway(*ip);
        let ips = host.ips.iter().copied().filter(is_routed).collect();
        for ip in self.hosts.update(host.mac, ips, network) {
            for WaitingPacket { data, .. } in self.waiting.take(ip) {
                if let Some(packet) = IpPacket::of(&data) {
                    self.pass_on(&packet, host.mac, network);
                }
            }
        }
    }
}

impl NetworkApp for Router {
    fn name(&self) -> &'static str {
        "router"
    }

    fn own_addresses(&self) -> (Vec<MacAddr>, Vec<IpAddr>) {
        (vec![self.config.mac], self.config.gateways.iter().map(|gateway| gateway.addr).collect())
    }

    fn handle_event(&mut self, event: &NetworkEvent, network: &mut dyn Network) {
        match event {
            NetworkEvent::SwitchUp { dpid } => self.hosts.install(*dpid, network),
            NetworkEvent::HostAdded { host } | NetworkEvent::HostChanged { host } => self.update_host(host, network),
            NetworkEvent::HostRemoved { host } => self.hosts.remove(host.mac, network),
            _ => {}
        }
    }

    fn handle_packet(&mut self, packet: &HostPacket<'_>, network: &mut dyn Network) -> PacketDecision {
        let Ok(parsed) = parse(packet.data, packet.at.port) else { return PacketDecision::PassedOn };
        if parsed.key.get(Field::EthType) == eth_type::ARP.into() {
            return self.handle_arp(packet.at, &parsed, network);
        }
        let Some(ip) = IpPacket::of(packet.data) else { return PacketDecision::PassedOn };
        if let Some(target) = ip.solicited().filter(|target| self.config.is_gateway((*target).into())) {
            if let Some(reply) = ip.advertisement(self.config.mac, target) {
                self.counters.advertisements += 1;
                network.send(packet.at, reply);
            }
            return PacketDecision::Taken;
        }
        if ip.eth_destination != self.config.mac {
            return PacketDecision::PassedOn;
        }
        if packet.from_trunk {
            // The switch where the packet entered has routed it or asked; a second answer could go round.
            self.counters.over_trunk += 1;
            return PacketDecision::Taken;
        }
        self.handle_ip(packet.at, &ip, network);
        PacketDecision::Taken
    }

    fn next_wake(&self) -> Option<Instant> {
        self.waiting.next()
    }

    fn handle_wake(&mut self, network: &mut dyn Network) {
        let (again, silent) = self.waiting.due(network.now());
        for host in again {
            if let Some(gateway) = self.config.gateway_of(host) {
                self.ask(gateway, host, network);
            }
        }
        for (_, packets) in silent {
            for WaitingPacket { at, data } in packets {
                self.counters.unreachable += 1;
                if let Some(packet) = IpPacket::of(&data) {
                    self.send_error(at, &packet, IcmpError::HostUnreachable, network);
                }
            }
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counters = &self.counters;
        vec![
            ("hosts", self.hosts.len()),
            ("hosts_full", self.hosts.full),
            ("address_conflicts", self.hosts.conflicts),
            ("arp_replies", counters.arp_replies),
            ("advertisements", counters.advertisements),
            ("echo_replies", counters.echo_replies),
            ("routed_at_controller", counters.routed),
            ("questions", counters.questions),
            ("icmp_errors", counters.icmp_errors),
            ("icmp_errors_limited", counters.errors_limited),
            ("gateway_claims", counters.claims),
            ("drop_expired", counters.expired),
            ("drop_no_route", counters.no_route),
            ("drop_unreachable", counters.unreachable),
            ("drop_queue_full", counters.queue_full),
            ("drop_to_router", counters.to_router),
            ("drop_over_trunk", counters.over_trunk),
        ]
    }
}

#[cfg(test)]
mod tests;
