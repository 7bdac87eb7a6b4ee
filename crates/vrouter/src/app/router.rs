//! A router at the controller: what it answers, learns and passes on. It returns frames; the application sends them.
use super::counts::RouterCounts;
use super::learned::LearnedNeighbours;
use super::neighbours::advertised;
use super::settings::VirtualRouterSettings;
use crate::config::{RouterPort, RouterPortId, VirtualRouterConfig};
use crate::entries::Neighbours;
use crate::forwarding::{ForwardingPath, RoutedFields, RoutingDecision, decide};
use crate::prefix::bits;
use std::net::IpAddr;
use std::time::Duration;
use weir_controller::waiting::{Queued, WaitingPacket, WaitingPackets};
use weir_packet::answer::{IcmpError, IpPacket};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, Frame, MacAddr, PortNo, edit, parse};
use weir_units::Instant;

/// A router without its switch.
#[derive(Debug)]
pub(super) struct RouterHost {
    pub(super) config: VirtualRouterConfig,
    pub(super) settings: VirtualRouterSettings,
    pub(super) learned: LearnedNeighbours,
    pub(super) waiting: WaitingPackets<RouterPortId>,
    /// Start of the second in which errors are counted, and their number.
    errors: (Instant, u32),
    pub(super) counts: RouterCounts,
}

/// Work that a router wants done.
#[derive(Debug, Default)]
pub(super) struct RouterEffects {
    /// Frames without VLAN tag, each with the port by which it leaves.
    pub(super) frames: Vec<(RouterPortId, Vec<u8>)>,
    /// Neighbours that are new, changed or gone.
    pub(super) changed: Vec<IpAddr>,
}

impl RouterHost {
    pub(super) fn new(config: VirtualRouterConfig, settings: VirtualRouterSettings) -> RouterHost {
        let (learned, waiting, counts) = Default::default();
        RouterHost { config, settings, learned, waiting, errors: (Instant::ZERO, 0), counts }
    }

    /// Takes another configuration. Neighbours that are still on a network of the router stay known.
    pub(super) fn set_config(&mut self, config: VirtualRouterConfig) {
        self.learned.retain(|addr| config.connected(addr).is_some_and(|port| !config.is_own(addr, port.port)));
        self.config = config;
    }

    /// Returns the neighbours that were learned.
    pub(super) fn learned(&self) -> Neighbours {
        self.learned.known()
    }

    /// Returns the Ethernet address of a neighbour that was learned.
    pub(super) fn learned_mac(&self, addr: IpAddr) -> Option<MacAddr> {
        self.learned.get(addr)
    }

    /// Handles a frame without VLAN tag that came by a port.
    pub(super) fn handle_frame(&mut self, now: Instant, input: RouterPortId, frame: &[u8]) -> RouterEffects {
        let mut effects = RouterEffects::default();
        let Some(port) = self.config.port(input).cloned() else { return effects };
        let Ok(parsed) = parse(frame, PortNo::ANY) else { return effects };
        if parsed.key.get(Field::EthType) == eth_type::ARP.into() {
            self.handle_arp(now, &port, &parsed, &mut effects);
        } else if let Some(packet) = IpPacket::of(frame) {
            if let Some(target) = packet.solicited() {
                self.handle_solicitation(now, &port, &packet, target, &mut effects);
            } else if let Some((target, mac)) = advertised(&packet) {
                self.handle_reply(now, &port, target.into(), mac, &mut effects);
            } else if packet.eth_destination == port.mac {
                self.handle_packet(now, &port, &packet, &mut effects);
            }
        }
        effects
    }

    /// Returns the time of the next call of [`RouterHost::handle_wake`].
    pub(super) fn next_wake(&self) -> Option<Instant> {
        [self.waiting.next(), self.learned.next()].into_iter().flatten().min()
    }

    /// Asks again for addresses, and gives up those that do not answer.
    pub(super) fn handle_wake(&mut self, now: Instant) -> RouterEffects {
        let mut effects = RouterEffects::default();
        let (again, silent) = self.waiting.due(now);
        let (aged, gone) = self.learned.due(now);
        effects.changed = gone;
        again.into_iter().chain(aged).for_each(|addr| self.ask(addr, &mut effects));
        for WaitingPacket { at, data } in silent.into_iter().flat_map(|(_, packets)| packets) {
            self.counts.drop_unreachable += 1;
            if let (Some(port), Some(packet)) = (self.config.port(at).cloned(), IpPacket::of(&data)) {
                self.send_error(now, &port, &packet, IcmpError::HostUnreachable, &mut effects);
            }
        }
        effects
    }

    /// Handles an IP packet that the switch did not send on.
    fn handle_packet(&mut self, now: Instant, port: &RouterPort, packet: &IpPacket<'_>, effects: &mut RouterEffects) {
        let path = match decide(&self.config, &RoutedFields::of(port.port, packet)) {
            RoutingDecision::Denied(_) => return self.counts.drop_denied += 1,
            RoutingDecision::Blackhole => return self.counts.drop_blackhole += 1,
            RoutingDecision::Local => return self.handle_local(now, port, packet, effects),
            RoutingDecision::NoRoute | RoutingDecision::Forward(_) if packet.ttl <= 1 => {
                self.counts.drop_expired += 1;
                return self.send_error(now, port, packet, IcmpError::TimeExceeded, effects);
            }
            RoutingDecision::NoRoute => {
                self.counts.drop_no_route += 1;
                return self.send_error(now, port, packet, IcmpError::NoRoute, effects);
            }
            RoutingDecision::Forward(path) => path,
        };
        let mtu = self.config.port(path.output).map_or(u16::MAX, |output| output.mtu);
        if packet.ip_bytes() > usize::from(mtu) && packet.is_whole_or_nothing() {
            self.counts.drop_too_big += 1;
            return self.send_error(now, port, packet, IcmpError::TooBig(mtu), effects);
        }
        if let Some(mac) = self.neighbour(path.next_hop) {
            // The switch had no entry when the packet came.
            return self.pass_on(packet, &path, mac, effects);
        }
        let waiting = WaitingPacket { at: port.port, data: packet.data.to_vec() };
        match self.waiting.add(path.next_hop, waiting, now) {
            Queued::New => self.ask(path.next_hop, effects),
            Queued::Waits => {}
            Queued::Full => self.counts.drop_queue_full += 1,
        }
    }

    fn handle_local(&mut self, now: Instant, port: &RouterPort, packet: &IpPacket<'_>, effects: &mut RouterEffects) {
        if let Some(reply) = packet.echo_reply(port.mac) {
            self.counts.echo_replies += 1;
            effects.frames.push((port.port, reply));
            return;
        }
        self.counts.drop_to_router += 1;
        if packet.parsed.key.get(Field::IpProto) == ip_proto::UDP.into() {
            self.send_error(now, port, packet, IcmpError::PortUnreachable, effects);
        }
    }

    fn neighbour(&self, addr: IpAddr) -> Option<MacAddr> {
        let mut fixed = self.config.ports.iter().flat_map(|port| &port.neighbours);
        let fixed = fixed.find(|known| known.address == addr).map(|known| known.mac);
        fixed.or_else(|| self.learned.get(addr))
    }

    /// Sends a packet to its next hop, as the switch would.
    pub(super) fn pass_on(
        &mut self,
        packet: &IpPacket<'_>,
        path: &ForwardingPath,
        mac: MacAddr,
        effects: &mut RouterEffects,
    ) {
        let Some(output) = self.config.port(path.output) else { return };
        let Some(frame) = packet.routed(output.mac, mac) else { return };
        let fields =
            if packet.source.is_ipv4() { [Field::Ipv4Src, Field::Ipv4Dst] } else { [Field::Ipv6Src, Field::Ipv6Dst] };
        let mut frame = Frame::from_bytes(&frame);
        let former = [packet.source, packet.destination];
        for ((field, addr), former) in fields.into_iter().zip([path.source, path.destination]).zip(former) {
            if addr != former {
                edit::set_field(&mut frame, &packet.parsed.layers, field, bits(addr));
            }
        }
        self.counts.routed_at_controller += 1;
        effects.frames.push((path.output, frame.bytes().to_vec()));
    }

    /// Tells the sender of a packet why it was not delivered.
    fn send_error(
        &mut self,
        now: Instant,
        port: &RouterPort,
        packet: &IpPacket<'_>,
        error: IcmpError,
        effects: &mut RouterEffects,
    ) {
        let own = port.address_for(packet.source);
        let Some(frame) = own.and_then(|own| packet.error(error, port.mac, own)) else { return };
        if now.since(self.errors.0) >= Duration::from_secs(1) {
            self.errors = (now, 0);
        }
        if self.errors.1 >= self.settings.errors_per_second {
            self.counts.icmp_errors_limited += 1;
            return;
        }
        self.errors.1 += 1;
        self.counts.icmp_errors += 1;
        effects.frames.push((port.port, frame));
    }
}
