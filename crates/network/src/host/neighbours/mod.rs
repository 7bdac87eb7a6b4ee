//! Resolves addresses on a host's link: ARP (RFC 826) and neighbour discovery (RFC 4861, addresses only).
//!
//! The network stack's own resolution knows at most eight neighbours and sends one request a second, but a scenario's
//! server has hundreds of neighbours. Frames to an unresolved address wait here, as in a kernel.
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr,
    NdiscNeighborFlags, NdiscRepr, RawHardwareAddress,
};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use weir_packet::field::{icmpv6_type, ip_proto};
use weir_packet::{Frame, IpNet, MacAddr};
use weir_units::Instant;

/// Length of an Ethernet header in bytes.
pub(super) const ETHERNET_BYTES: usize = 14;
/// Limit on known neighbours, and on addresses being resolved. A new neighbour replaces the one not heard of for
/// longest; a frame to a further address to be resolved is dropped and counted.
const MAX_NEIGHBOURS: usize = 4096;
/// Most frames that wait for one address; a new frame replaces the oldest.
const MAX_WAITING: usize = 64;
/// Time since the last message of a neighbour after which its address is resolved again.
const LIFETIME: Duration = Duration::from_secs(60);
/// Time between two requests, and the number of requests after which waiting frames are dropped.
const RETRY: Duration = Duration::from_secs(1);
const REQUESTS: u32 = 3;

/// Group of all nodes of a link (RFC 4291, 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const ARP: [u8; 2] = [0x08, 0x06];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// Neighbours of a host.
#[derive(Debug)]
pub(super) struct NeighbourCache {
    mac: MacAddr,
    own: Vec<IpNet>,
    known: HashMap<IpAddr, NeighbourEntry>,
    asked: HashMap<IpAddr, PendingResolution>,
    /// Frames dropped because their receiver did not answer, or too many frames waited for it.
    unresolved: u64,
}

#[derive(Debug)]
struct NeighbourEntry {
    mac: MacAddr,
    heard: Instant,
}

#[derive(Debug)]
struct PendingResolution {
    requests: u32,
    retry: Instant,
    waiting: VecDeque<Frame>,
}

/// Kind of a frame from the link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IncomingFrameKind {
    /// IP packet for the stack, behind the Ethernet header.
    Packet,
    /// Handled here, or not for this host.
    Other,
}

impl NeighbourCache {
    pub(super) fn new(mac: MacAddr, own: &[IpNet]) -> NeighbourCache {
        NeighbourCache { mac, own: own.to_vec(), known: HashMap::new(), asked: HashMap::new(), unresolved: 0 }
    }

    /// Returns the number of frames not sent because their receiver is unresolved: dropped or still waiting.
    pub(super) fn unresolved(&self) -> u64 {
        self.unresolved + self.asked.values().map(|asked| asked.waiting.len() as u64).sum::<u64>()
    }

    /// Returns the time at which to call [`NeighbourCache::retry`] next.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.asked.values().map(|asked| asked.retry).min()
    }

    /// Sends a frame, now or when its receiver is resolved. The frame has an IP packet behind room for an Ethernet
    /// header.
    pub(super) fn send(&mut self, now: Instant, mut frame: Frame, out: &mut Vec<Frame>) {
        let Some((to, ethertype)) = destination(frame.bytes()) else { return };
        let known = self.known.get(&to).filter(|known| now - known.heard < LIFETIME).map(|known| known.mac);
        if let Some(mac) = group_mac(to).or(known) {
            self.address(&mut frame, mac, ethertype);
            out.push(frame);
            return;
        }
        self.ask(now, to, out);
        let Some(asked) = self.asked.get_mut(&to) else {
            self.unresolved += 1;
            return;
        };
        if asked.waiting.len() >= MAX_WAITING {
            asked.waiting.pop_front();
            self.unresolved += 1;
        }
        asked.waiting.push_back(frame);
    }

    /// Tells all neighbours the own addresses: by ARP (RFC 5227, 2.3) and by unsolicited neighbour advertisements
    /// (RFC 4861, 7.2.6).
    pub(super) fn announce(&self, out: &mut Vec<Frame>) {
        for own in &self.own {
            out.push(match own.addr {
                IpAddr::V4(own) => self.arp_frame(ArpOperation::Request, own, MacAddr::BROADCAST, own),
                IpAddr::V6(own) => {
                    let lladdr = Some(RawHardwareAddress::from_bytes(&self.mac.0));
                    let flags = NdiscNeighborFlags::OVERRIDE;
                    let repr = NdiscRepr::NeighborAdvert { flags, target_addr: own, lladdr };
                    let to = group_mac(ALL_NODES.into()).unwrap_or(MacAddr::BROADCAST);
                    self.discovery_frame(repr, own, to, ALL_NODES)
                }
            });
        }
    }

    /// Repeats requests that were not answered in time, or drops the waiting frames after the last request.
    pub(super) fn retry(&mut self, now: Instant, out: &mut Vec<Frame>) {
        let due: Vec<IpAddr> = self.asked.iter().filter(|(_, asked)| asked.retry <= now).map(|(to, _)| *to).collect();
        for to in due {
            let Some(asked) = self.asked.get_mut(&to) else { continue };
            if asked.requests >= REQUESTS {
                self.unresolved += asked.waiting.len() as u64;
                self.asked.remove(&to);
                continue;
            }
            asked.requests += 1;
            asked.retry = now + RETRY;
            out.extend(self.request(to));
        }
    }

    /// Handles a frame from the link: learns its sender, answers requests, and sends frames that waited for the
    /// sender.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Frame>) -> IncomingFrameKind {
        let Some((header, payload)) = frame.split_at_checked(ETHERNET_BYTES) else { return IncomingFrameKind::Other };
        // Accepts only the own address and groups; other flooded frames are ignored.
        if header[..6] != self.mac.0 && header[0] & 1 == 0 {
            return IncomingFrameKind::Other;
        }
        match [header[12], header[13]] {
            ARP => self.arp(now, payload, out),
            IPV6 if is_discovery(payload) => self.discovery(now, payload, out),
            IPV4 | IPV6 => return IncomingFrameKind::Packet,
            _ => {}
        }
        IncomingFrameKind::Other
    }

    fn arp(&mut self, now: Instant, payload: &[u8], out: &mut Vec<Frame>) {
        let Ok(packet) = ArpPacket::new_checked(payload) else { return };
        let Ok(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        }) = ArpRepr::parse(&packet)
        else {
            return;
        };
        if !self.is_own(target_protocol_addr.into()) {
            return;
        }
        let sender = MacAddr(source_hardware_addr.0);
        self.learn(now, source_protocol_addr.into(), sender, out);
        if operation == ArpOperation::Request {
            out.push(self.arp_frame(ArpOperation::Reply, target_protocol_addr, sender, source_protocol_addr));
        }
    }

    fn discovery(&mut self, now: Instant, payload: &[u8], out: &mut Vec<Frame>) {
        let Ok(ip) = Ipv6Packet::new_checked(payload) else { return };
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let message = Icmpv6Packet::new_checked(ip.payload());
        let read = |message| Icmpv6Repr::parse(&from, &to, &message, &ChecksumCapabilities::default());
        match message.and_then(read) {
            // A hop limit of 255 shows that no router forwarded the message (RFC 4861, 7.1).
            _ if ip.hop_limit() != 255 => {}
            Ok(Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, lladdr }))
                if self.is_own(target_addr.into()) =>
            {
                let Some(sender) = lladdr.as_ref().and_then(link_address) else { return };
                self.learn(now, from.into(), sender, out);
                out.push(self.advertisement(target_addr, sender, from));
            }
            Ok(Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert { target_addr, lladdr, .. })) => {
                if let Some(mac) = lladdr.as_ref().and_then(link_address) {
                    self.learn(now, target_addr.into(), mac, out);
                }
            }
            _ => {}
        }
    }

    /// Records a neighbour and sends the frames that waited for it.
    fn learn(&mut self, now: Instant, address: IpAddr, mac: MacAddr, out: &mut Vec<Frame>) {
        if address.is_unspecified() || address.is_multicast() || mac.is_multicast() {
            return;
        }
        if self.known.len() >= MAX_NEIGHBOURS && !self.known.contains_key(&address) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.heard).map(|(address, _)| *address);
            oldest.map(|oldest| self.known.remove(&oldest));
        }
        self.known.insert(address, NeighbourEntry { mac, heard: now });
        let Some(asked) = self.asked.remove(&address) else { return };
        for mut frame in asked.waiting {
            if let Some((_, ethertype)) = destination(frame.bytes()) {
                self.address(&mut frame, mac, ethertype);
                out.push(frame);
            }
        }
    }

    /// Sends a first request, unless one is under way or too many addresses are being resolved.
    fn ask(&mut self, now: Instant, to: IpAddr, out: &mut Vec<Frame>) {
        if self.asked.contains_key(&to) || self.asked.len() >= MAX_NEIGHBOURS {
            return;
        }
        self.asked.insert(to, PendingResolution { requests: 1, retry: now + RETRY, waiting: VecDeque::new() });
        out.extend(self.request(to));
    }

    /// Returns a request for an address; `None` if no own address is in its network.
    fn request(&self, to: IpAddr) -> Option<Frame> {
        let own = self.own.iter().find(|own| own.contains(to))?.addr;
        match (own, to) {
            (IpAddr::V4(own), IpAddr::V4(to)) => {
                Some(self.arp_frame(ArpOperation::Request, own, MacAddr::BROADCAST, to))
            }
            (IpAddr::V6(own), IpAddr::V6(to)) => Some(self.solicitation(own, to)),
            _ => None,
        }
    }

    fn arp_frame(&self, operation: ArpOperation, own: Ipv4Addr, to: MacAddr, to_address: Ipv4Addr) -> Frame {
        // The target's hardware address of a request is unknown.
        let target = if operation == ArpOperation::Request { MacAddr::default() } else { to };
        let repr = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(self.mac.0),
            source_protocol_addr: own,
            target_hardware_addr: EthernetAddress(target.0),
            target_protocol_addr: to_address,
        };
        let mut bytes = vec![0; ETHERNET_BYTES + repr.buffer_len()];
        repr.emit(&mut ArpPacket::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
        self.frame(&bytes, to, ARP)
    }

    fn solicitation(&self, own: Ipv6Addr, to: Ipv6Addr) -> Frame {
        // Solicited-node group of the last three bytes of the address (RFC 4291, 2.7.1).
        let group = Ipv6Addr::from_bits(0xff02 << 112 | 0x01_ff00_0000 | to.to_bits() & 0xff_ffff);
        let lladdr = Some(RawHardwareAddress::from_bytes(&self.mac.0));
        let repr = NdiscRepr::NeighborSolicit { target_addr: to, lladdr };
        self.discovery_frame(repr, own, group_mac(group.into()).unwrap_or(MacAddr::BROADCAST), group)
    }

    fn advertisement(&self, own: Ipv6Addr, to: MacAddr, to_address: Ipv6Addr) -> Frame {
        let lladdr = Some(RawHardwareAddress::from_bytes(&self.mac.0));
        let flags = NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE;
        self.discovery_frame(NdiscRepr::NeighborAdvert { flags, target_addr: own, lladdr }, own, to, to_address)
    }

    fn discovery_frame(&self, repr: NdiscRepr<'_>, own: Ipv6Addr, to: MacAddr, to_address: Ipv6Addr) -> Frame {
        let message = Icmpv6Repr::Ndisc(repr);
        let ip = Ipv6Repr {
            src_addr: own,
            dst_addr: to_address,
            next_header: IpProtocol::Icmpv6,
            payload_len: message.buffer_len(),
            hop_limit: 255,
        };
        let mut bytes = vec![0; ETHERNET_BYTES + ip.buffer_len() + message.buffer_len()];
        let (header, payload) = bytes[ETHERNET_BYTES..].split_at_mut(ip.buffer_len());
        ip.emit(&mut Ipv6Packet::new_unchecked(header));
        let checksums = ChecksumCapabilities::default();
        message.emit(&own, &to_address, &mut Icmpv6Packet::new_unchecked(payload), &checksums);
        self.frame(&bytes, to, IPV6)
    }

    fn frame(&self, bytes: &[u8], to: MacAddr, ethertype: [u8; 2]) -> Frame {
        let mut frame = Frame::from_bytes(bytes);
        self.address(&mut frame, to, ethertype);
        frame
    }

    /// Writes the Ethernet header.
    fn address(&self, frame: &mut Frame, to: MacAddr, ethertype: [u8; 2]) {
        if let Some(header) = frame.bytes_mut().first_chunk_mut::<ETHERNET_BYTES>() {
            header[..6].copy_from_slice(&to.0);
            header[6..12].copy_from_slice(&self.mac.0);
            header[12..].copy_from_slice(&ethertype);
        }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own.iter().any(|own| own.addr == address)
    }
}

/// Returns the destination address and the EtherType of the IP packet behind the Ethernet header.
fn destination(frame: &[u8]) -> Option<(IpAddr, [u8; 2])> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    match packet.first()? >> 4 {
        4 => Some((Ipv4Addr::from(*packet.get(16..)?.first_chunk::<4>()?).into(), IPV4)),
        6 => Some((Ipv6Addr::from(*packet.get(24..)?.first_chunk::<16>()?).into(), IPV6)),
        _ => None,
    }
}

/// Returns the Ethernet group address of an IP group or broadcast address (RFC 1112, 6.4; RFC 2464, 7).
fn group_mac(to: IpAddr) -> Option<MacAddr> {
    match to {
        IpAddr::V4(to) if to.is_broadcast() => Some(MacAddr::BROADCAST),
        IpAddr::V4(to) if to.is_multicast() => {
            let [_, b, c, d] = to.octets();
            Some(MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
        }
        IpAddr::V6(to) if to.is_multicast() => {
            let [.., a, b, c, d] = to.octets();
            Some(MacAddr([0x33, 0x33, a, b, c, d]))
        }
        _ => None,
    }
}

/// Returns true if an IPv6 packet is a neighbour solicitation or advertisement.
fn is_discovery(packet: &[u8]) -> bool {
    let is_one = |kind: &u8| [icmpv6_type::NEIGHBOUR_SOLICITATION, icmpv6_type::NEIGHBOUR_ADVERTISEMENT].contains(kind);
    packet.get(6) == Some(&ip_proto::ICMPV6) && packet.get(40).is_some_and(is_one)
}

fn link_address(raw: &RawHardwareAddress) -> Option<MacAddr> {
    raw.as_bytes().try_into().ok().map(MacAddr)
}

#[cfg(test)]
mod tests;
