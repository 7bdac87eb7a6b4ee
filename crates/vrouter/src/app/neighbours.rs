//! ARP and neighbour discovery of a router: answers, questions, and what it learns from others.
use super::learned::Heard;
use super::router::{RouterEffects, RouterHost};
use crate::config::{AddressPair, RouterPort};
use crate::forwarding::{RoutedFields, RoutingDecision, decide};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_controller::waiting::WaitingPacket;
use weir_packet::answer::{IpPacket, question};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{icmpv6_type, ip_proto};
use weir_packet::{Field, MacAddr, ParsedHeaders};
use weir_units::Instant;

/// Operations of ARP (RFC 826).
const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;

impl RouterHost {
    pub(super) fn handle_arp(
        &mut self,
        now: Instant,
        port: &RouterPort,
        parsed: &ParsedHeaders,
        effects: &mut RouterEffects,
    ) {
        let ip = |field| Ipv4Addr::from_bits(u32::try_from(parsed.key.get(field)).unwrap_or_default());
        let mac = |field| MacAddr::from_bits(u64::try_from(parsed.key.get(field)).unwrap_or_default());
        let (sender, target) = ((mac(Field::ArpSha), ip(Field::ArpSpa)), ip(Field::ArpTpa));
        if self.answers_for(port, sender.1.into()) {
            self.counts.claims += u64::from(sender.0 != port.mac);
            return;
        }
        let operation = parsed.key.get(Field::ArpOp);
        if operation == ARP_REPLY.into() {
            return self.handle_reply(now, port, sender.1.into(), sender.0, effects);
        }
        if operation != ARP_REQUEST.into() || !self.answers_for(port, target.into()) {
            return;
        }
        self.counts.arp_replies += 1;
        let reply = FrameBuilder::ethernet(mac(Field::EthSrc), port.mac);
        let reply = reply.arp(ARP_REPLY, (port.mac, target), sender).build();
        effects.frames.push((port.port, reply));
        self.learn(now, port, sender.1.into(), sender.0, effects);
    }

    pub(super) fn handle_solicitation(
        &mut self,
        now: Instant,
        port: &RouterPort,
        packet: &IpPacket<'_>,
        target: Ipv6Addr,
        effects: &mut RouterEffects,
    ) {
        if self.answers_for(port, packet.source) {
            self.counts.claims += u64::from(packet.eth_source != port.mac);
            return;
        }
        if !self.answers_for(port, target.into()) {
            return;
        }
        if let Some(reply) = packet.advertisement(port.mac, target) {
            self.counts.advertisements += 1;
            effects.frames.push((port.port, reply));
        }
        if let Some(mac) = link_layer(packet, Field::Ipv6NdSll) {
            self.learn(now, port, packet.source, mac, effects);
        }
    }

    /// Takes the reply of a neighbour that was asked, or is known.
    pub(super) fn handle_reply(
        &mut self,
        now: Instant,
        port: &RouterPort,
        addr: IpAddr,
        mac: MacAddr,
        effects: &mut RouterEffects,
    ) {
        if self.waiting.is_wanted(addr) || self.learned.get(addr).is_some() {
            self.learn(now, port, addr, mac, effects);
        }
    }

    /// Returns true if the router has an address at a port, for itself or for a host behind it.
    fn answers_for(&self, port: &RouterPort, addr: IpAddr) -> bool {
        let stands_for = |pair: &AddressPair| pair.port == port.port && pair.outside == addr;
        port.is_own(addr) || self.config.translations.iter().any(stands_for)
    }

    /// Learns a neighbour, and sends on the packets that waited for it.
    fn learn(&mut self, now: Instant, port: &RouterPort, addr: IpAddr, mac: MacAddr, effects: &mut RouterEffects) {
        let is_near = self.config.connected(addr).is_some_and(|near| near.port == port.port);
        let is_fixed = port.neighbours.iter().any(|known| known.address == addr);
        if !is_near || is_fixed || mac.is_multicast() || mac == MacAddr::default() || self.answers_for(port, addr) {
            return;
        }
        match self.learned.hear(now, addr, mac, self.settings.neighbour_age, self.settings.max_neighbours) {
            Heard::Changed => effects.changed.push(addr),
            Heard::Confirmed => {}
            Heard::Full => self.counts.neighbours_full += 1,
        }
        for WaitingPacket { at, data } in self.waiting.take(addr) {
            let Some(packet) = IpPacket::of(&data) else { continue };
            if let RoutingDecision::Forward(path) = decide(&self.config, &RoutedFields::of(at, &packet)) {
                self.pass_on(&packet, &path, mac, effects);
            }
        }
    }

    /// Asks for the Ethernet address of a neighbour.
    pub(super) fn ask(&mut self, addr: IpAddr, effects: &mut RouterEffects) {
        let Some(port) = self.config.connected(addr) else { return };
        let own = port.address_for(addr);
        if let Some(frame) = own.and_then(|own| question(port.mac, own, addr)) {
            self.counts.questions += 1;
            effects.frames.push((port.port, frame));
        }
    }
}

/// Returns the address and Ethernet address of a neighbour advertisement (RFC 4861, 4.4).
pub(super) fn advertised(packet: &IpPacket<'_>) -> Option<(Ipv6Addr, MacAddr)> {
    let key = &packet.parsed.key;
    let is_advertisement = packet.source.is_ipv6()
        && key.get(Field::IpProto) == ip_proto::ICMPV6.into()
        && key.get(Field::Icmpv6Type) == icmpv6_type::NEIGHBOUR_ADVERTISEMENT.into()
        && packet.ttl == u8::MAX;
    let target = Ipv6Addr::from_bits(key.get(Field::Ipv6NdTarget));
    is_advertisement.then(|| Some((target, link_layer(packet, Field::Ipv6NdTll)?))).flatten()
}

/// Returns the Ethernet address in an option of neighbour discovery.
fn link_layer(packet: &IpPacket<'_>, field: Field) -> Option<MacAddr> {
    let mac = MacAddr::from_bits(u64::try_from(packet.parsed.key.get(field)).ok()?);
    (mac != MacAddr::default()).then_some(mac)
}
