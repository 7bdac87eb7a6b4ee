//! Packets that IP routers write: answers to ARP and neighbour discovery, echo replies, errors of ICMP.
//!
//! [`IpPacket`] reads a packet at a router; its methods return the frames with which the router answers, or the packet
//! as the router passes it on. [`question`] asks for the Ethernet address of an IP address.
use crate::craft::FrameBuilder;
use crate::field::{eth_type, icmpv6_type, ip_frag, ip_proto};
use crate::{Field, MacAddr, ParsedHeaders, PortNo, checksum, parse};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most bytes of a packet that an error of ICMP over IPv4 returns: the error stays below 576 bytes with its headers
/// (RFC 1812, 4.3.2.3).
const QUOTED_V4: usize = 548;
/// Most bytes over IPv6: the error stays below the least MTU of 1280 bytes (RFC 4443, 2.4).
const QUOTED_V6: usize = 1232;
/// Bytes of the header of ICMP's echo messages.
const ECHO_HEADER: usize = 8;

/// Types of ICMPv6 (RFC 4443, 4).
const V6_ECHO_REQUEST: u128 = 128;
const V6_ECHO_REPLY: u8 = 129;

/// An IP packet at a router.
#[derive(Debug, Clone, Copy)]
pub struct IpPacket<'a> {
    /// Frame without VLAN tag.
    pub data: &'a [u8],
    /// Headers of the frame.
    pub parsed: ParsedHeaders,
    /// Ethernet address of the sender.
    pub eth_source: MacAddr,
    /// Ethernet address of the receiver.
    pub eth_destination: MacAddr,
    /// IP address of the sender.
    pub source: IpAddr,
    /// IP address of the receiver.
    pub destination: IpAddr,
    /// TTL or hop limit as received.
    pub ttl: u8,
    /// Offset of the IP header, and of the end of the packet.
    at: usize,
    end: usize,
}

/// Error of ICMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpError {
    /// The TTL or hop limit has reached zero.
    TimeExceeded,
    /// No route leads to the destination's network.
    NoRoute,
    /// The destination's host does not answer ARP or neighbour discovery.
    HostUnreachable,
    /// The router has no service at the port.
    PortUnreachable,
    /// The packet is larger than the link of the next hop carries, in bytes, and must not be fragmented.
    TooBig(u16),
}

impl IcmpError {
    /// Returns type and code for IPv4 (RFC 792) or IPv6 (RFC 4443, 3).
    const fn numbers(self, is_ipv4: bool) -> (u8, u8) {
        match (self, is_ipv4) {
            (IcmpError::TimeExceeded, true) => (11, 0),
            (IcmpError::NoRoute, true) => (3, 0),
            (IcmpError::HostUnreachable, true) => (3, 1),
            (IcmpError::PortUnreachable, true) => (3, 3),
            (IcmpError::TooBig(_), true) => (3, 4),
            (IcmpError::TimeExceeded, false) => (3, 0),
            (IcmpError::NoRoute, false) => (1, 0),
            (IcmpError::HostUnreachable, false) => (1, 3),
            (IcmpError::PortUnreachable, false) => (1, 4),
            (IcmpError::TooBig(_), false) => (2, 0),
        }
    }

    /// Returns the four bytes after the checksum: the MTU in the last of them (RFC 1191, 4; RFC 4443, 3.2), else zeros.
    const fn rest(self) -> [u8; 4] {
        match self {
            IcmpError::TooBig(mtu) => (mtu as u32).to_be_bytes(),
            _ => [0; 4],
        }
    }
}

impl<'a> IpPacket<'a> {
    /// Reads a frame; `None` if it holds no whole IP header, or one of another packet behind a VLAN tag.
    pub fn of(data: &'a [u8]) -> Option<IpPacket<'a>> {
        let parsed = parse(data, PortNo::ANY).ok()?;
        let (_, at) = parsed.layers.network.filter(|_| parsed.layers.vlan_tags == 0)?;
        let at = usize::from(at);
        let number = |field| parsed.key.get(field);
        let low = |field| u32::try_from(parsed.key.get(field)).unwrap_or_default();
        let word = |offset: usize| {
            Some(usize::from(u16::from_be_bytes([*data.get(at + offset)?, *data.get(at + offset + 1)?])))
        };
        let (source, destination, ttl, length): (IpAddr, IpAddr, usize, usize) = match number(Field::EthType) {
            kind if kind == eth_type::IPV4.into() => {
                let [source, destination] =
                    [Field::Ipv4Src, Field::Ipv4Dst].map(|field| Ipv4Addr::from_bits(low(field)));
                (source.into(), destination.into(), 8, word(2)?)
            }
            kind if kind == eth_type::IPV6.into() => {
                let [source, destination] =
                    [Field::Ipv6Src, Field::Ipv6Dst].map(|field| Ipv6Addr::from_bits(number(field)));
                (source.into(), destination.into(), 7, word(4)? + 40)
            }
            _ => return None,
        };
        let mac = |field| MacAddr::from_bits(u64::try_from(number(field)).unwrap_or_default());
        Some(IpPacket {
            data,
            eth_source: mac(Field::EthSrc),
            eth_destination: mac(Field::EthDst),
            source,
            destination,
            ttl: *data.get(at + ttl)?,
            at,
            end: data.len().min(at + length),
            parsed,
        })
    }

    /// Returns the length of the packet in bytes, from its IP header on.
    pub fn ip_bytes(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// Returns true if routers must not fragment the packet: over IPv6 always (RFC 8200, 5), over IPv4 if it says so
    /// (RFC 791, 3.1).
    pub fn is_whole_or_nothing(&self) -> bool {
        self.source.is_ipv6() || self.data.get(self.at + 6).is_some_and(|flags| flags & 0x40 != 0)
    }

    /// Returns the target of a neighbour solicitation (RFC 4861, 4.3); `None` for other packets.
    pub fn solicited(&self) -> Option<Ipv6Addr> {
        let target = self.parsed.key.get(Field::Ipv6NdTarget);
        (self.icmp_type(false) == Some(icmpv6_type::NEIGHBOUR_SOLICITATION.into()) && self.ttl == u8::MAX)
            .then(|| Ipv6Addr::from_bits(target))
    }

    /// Returns the type of ICMP over IPv4 or IPv6; `None` for other packets and later fragments.
    fn icmp_type(&self, is_ipv4: bool) -> Option<u128> {
        let (protocol, field) = match is_ipv4 {
            true => (ip_proto::ICMP, Field::Icmpv4Type),
            false => (ip_proto::ICMPV6, Field::Icmpv6Type),
        };
        let key = &self.parsed.key;
        let is_icmp = self.source.is_ipv4() == is_ipv4 && key.get(Field::IpProto) == protocol.into();
        (is_icmp && self.parsed.layers.transport.is_some()).then(|| key.get(field))
    }

    /// Returns the reply to an echo request for one of the router's addresses.
    pub fn echo_reply(&self, router: MacAddr) -> Option<Vec<u8>> {
        let is_ipv4 = self.source.is_ipv4();
        let (request, reply) = if is_ipv4 { (8, 0) } else { (V6_ECHO_REQUEST, V6_ECHO_REPLY) };
        if self.icmp_type(is_ipv4) != Some(request) || self.parsed.key.get(Field::IpFrag) != 0 {
            return None;
        }
        let (_, at) = self.parsed.layers.transport?;
        let message = self.data.get(at.into()..self.end)?;
        let (header, payload) = message.split_at_checked(ECHO_HEADER)?;
        let rest = header.get(4..)?.try_into().ok()?;
        let frame = self.answer(router, self.destination)?.icmp(reply, 0, rest);
        Some(frame.payload(payload).build())
    }

    /// Returns the advertisement that answers a solicitation (RFC 4861, 4.4): of a router, asked for, in place of
    /// former addresses.
    pub fn advertisement(&self, router: MacAddr, target: Ipv6Addr) -> Option<Vec<u8>> {
        let (IpAddr::V6(source), false) = (self.source, self.source.is_unspecified()) else { return None };
        let mut options = target.octets().to_vec();
        options.extend([2, 1]);
        options.extend(router.0);
        let frame = FrameBuilder::ethernet(self.eth_source, router).ipv6(target, source).ttl(255);
        Some(frame.icmp(icmpv6_type::NEIGHBOUR_ADVERTISEMENT, 0, [0xe0, 0, 0, 0]).payload(&options).build())
    }

    /// Returns an error about the packet from one of the router's addresses; `None` if the packet must not have one: an
    /// error itself, a later fragment, to or from several hosts (RFC 1812, 4.3.2.7; RFC 4443, 2.4).
    pub fn error(&self, error: IcmpError, router: MacAddr, gateway: IpAddr) -> Option<Vec<u8>> {
        let is_ipv4 = self.source.is_ipv4();
        let is_error = match self.icmp_type(is_ipv4) {
            // Errors of ICMPv6 have the types below 128; of ICMP, the queries are known.
            Some(kind) if is_ipv4 => ![0, 8, 9, 10, 13, 14, 15, 16].contains(&kind),
            Some(kind) => kind < V6_ECHO_REQUEST,
            None => false,
        };
        let is_later = self.parsed.key.get(Field::IpFrag) & u128::from(ip_frag::LATER) != 0;
        let is_for_many =
            |ip: IpAddr| ip.is_multicast() || ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        if is_error || is_later || [self.source, self.destination].into_iter().any(is_for_many) {
            return None;
        }
        let most = if is_ipv4 { QUOTED_V4 } else { QUOTED_V6 };
        let quoted = self.data.get(self.at..self.end.min(self.at + most))?;
        let (kind, code) = error.numbers(is_ipv4);
        Some(self.answer(router, gateway)?.icmp(kind, code, error.rest()).payload(quoted).build())
    }

    /// Begins an answer to the packet's sender from one of the router's addresses.
    fn answer(&self, router: MacAddr, from: IpAddr) -> Option<FrameBuilder> {
        let frame = FrameBuilder::ethernet(self.eth_source, router);
        match (from, self.source) {
            (IpAddr::V4(from), IpAddr::V4(to)) => Some(frame.ipv4(from, to)),
            (IpAddr::V6(from), IpAddr::V6(to)) => Some(frame.ipv6(from, to)),
            _ => None,
        }
    }

    /// Returns the packet as the router passes it on to a host: from the router, one less to live.
    pub fn routed(&self, router: MacAddr, host: MacAddr) -> Option<Vec<u8>> {
        let ttl = self.ttl.checked_sub(1)?;
        let mut frame = self.data.to_vec();
        frame.get_mut(..6)?.copy_from_slice(&host.0);
        frame.get_mut(6..12)?.copy_from_slice(&router.0);
        let header = frame.get_mut(self.at..)?;
        if self.source.is_ipv6() {
            *header.get_mut(7)? = ttl;
            return Some(frame);
        }
        // TTL and protocol share a 16-bit word of the header's checksum.
        let protocol = *header.get(9)?;
        let old = u16::from_be_bytes([*header.get(10)?, *header.get(11)?]);
        let new = checksum::updated(old, &[self.ttl, protocol], &[ttl, protocol]);
        *header.get_mut(8)? = ttl;
        header.get_mut(10..12)?.copy_from_slice(&new.to_be_bytes());
        Some(frame)
    }
}

/// Returns the question for a host's Ethernet address, to all hosts: ARP, or a neighbour solicitation (RFC 4861, 4.3).
pub fn question(router: MacAddr, gateway: IpAddr, host: IpAddr) -> Option<Vec<u8>> {
    match (gateway, host) {
        (IpAddr::V4(gateway), IpAddr::V4(host)) => {
            let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, router);
            Some(frame.arp(1, (router, gateway), (MacAddr::default(), host)).build())
        }
        (IpAddr::V6(gateway), IpAddr::V6(host)) => {
            // The multicast address of the host's last 24 bits (RFC 4291, 2.7.1), and its Ethernet form (RFC 2464, 7).
            let [.., a, b, c] = host.octets();
            let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
            let mut options = host.octets().to_vec();
            options.extend([1, 1]);
            options.extend(router.0);
            let frame = FrameBuilder::ethernet(MacAddr([0x33, 0x33, 0xff, a, b, c]), router).ipv6(gateway, group);
            Some(frame.ttl(255).icmp(135, 0, [0; 4]).payload(&options).build())
        }
        _ => None,
    }
}
