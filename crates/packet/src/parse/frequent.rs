//! Parses frequent shapes other than the most common one ([`super::common`]): after at most one VLAN tag, an MPLS
//! label stack, IPv6 without extension headers with TCP, UDP or ICMPv6, or ICMP over IPv4. Fields are read at fixed
//! offsets, too. This parser is not for the loop over all packets of a burst, but for the packets that the common
//! parser does not take.
use super::{Layers, NetworkProtocol, ParsedHeaders, TransportProtocol, position};
use crate::bytes::read;
use crate::field::icmpv6_type::{REDIRECT, ROUTER_SOLICITATION};
use crate::field::{VLAN_PRESENT, eth_type, ip_proto};
use crate::{FrameBody, PortNo};

/// Length in bytes of an IPv4 header without options; the next constant is that of the IPv6 header.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;

/// Words of a key that a parser wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenKeyWords {
    /// Words 0 to 7 and 16.
    Ordinary,
    /// Words 0 to 7 and 16, and the IPv6 addresses in words 8 to 11.
    WithIpv6,
}

/// The headers before the network header.
struct FrequentParser<'a> {
    head: &'a [u8; 64],
    frame: &'a FrameBody,
    in_port: PortNo,
    eth_type: u16,
    /// VLAN tag as in word 1.
    vlan: u16,
    /// Offset of the next header: 14 or 18.
    at: usize,
}

/// Parses a plain frame ([`FrameBody::is_plain`]) if it has one of the frequent shapes. Returns the words written, or
/// `None` for other shapes. As for [`super::parse_common`], the other words of `parsed` must be zero, except for
/// fields that are not in a frame.
pub fn parse_frequent(frame: &FrameBody, in_port: PortNo, parsed: &mut ParsedHeaders) -> Option<WrittenKeyWords> {
    let head = frame.head()?;
    let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let link = match number(12) {
        eth_type::VLAN | eth_type::QINQ => {
            FrequentParser { head, frame, in_port, eth_type: number(16), vlan: number(14) | VLAN_PRESENT, at: 18 }
        }
        eth_type => FrequentParser { head, frame, in_port, eth_type, vlan: 0, at: 14 },
    };
    match link.eth_type {
        eth_type::MPLS | eth_type::MPLS_MULTICAST => link.mpls(parsed),
        eth_type::IPV6 => link.ipv6(parsed),
        eth_type::IPV4 => link.icmp(parsed),
        _ => None,
    }
}

impl FrequentParser<'_> {
    /// Returns `N` bytes at offset `at`, which must be within the first 64 bytes of the frame; zeros otherwise.
    fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        read(self.head, at).unwrap_or([0; N])
    }

    /// Returns the end of a packet with the stated length, at most the end of the frame.
    fn end(&self, length: usize) -> usize {
        self.frame.len().min(self.at + length)
    }

    fn mpls(&self, parsed: &mut ParsedHeaders) -> Option<WrittenKeyWords> {
        if self.frame.len() < self.at + 4 {
            return None;
        }
        let entry = u32::from_be_bytes(self.read(self.at));
        let layers = Layers { mpls: Some(position(self.at)), ..Layers::default() };
        self.write(parsed, [0, 0, u64::from(entry >> 8) << 40], layers);
        Some(WrittenKeyWords::Ordinary)
    }

    fn icmp(&self, parsed: &mut ParsedHeaders) -> Option<WrittenKeyWords> {
        let [version, tos, high, low, _, _, f, g, _, proto] = self.read(self.at);
        let transport_at = self.at + IPV4_BYTES;
        let has_type = self.end(usize::from(u16::from_be_bytes([high, low]))) >= transport_at + 4;
        // A header of five words, and neither more fragments nor a fragment offset.
        let is_whole = version == 0x45 && f & 0x3f == 0 && g == 0 && has_type;
        if !is_whole || proto != ip_proto::ICMP {
            return None;
        }
        let [kind, code] = self.read(transport_at);
        let layers = Layers {
            network: Some((NetworkProtocol::Ipv4, position(self.at))),
            transport: Some((TransportProtocol::Icmpv4, position(transport_at))),
            ..Layers::default()
        };
        let addresses = u64::from_be_bytes(self.read(self.at + 12));
        self.write(parsed, [addresses, type_and_code(kind, code) | proto_and_class(proto, tos), 0], layers);
        Some(WrittenKeyWords::Ordinary)
    }

    fn ipv6(&self, parsed: &mut ParsedHeaders) -> Option<WrittenKeyWords> {
        let [a, b, c, d, high, low, proto] = self.read(self.at);
        let first = u32::from_be_bytes([a, b, c, d]);
        let transport_at = self.at + IPV6_BYTES;
        let end = self.end(IPV6_BYTES + usize::from(u16::from_be_bytes([high, low])));
        if first >> 28 != 6 {
            return None;
        }
        let (kind, bits) = match proto {
            ip_proto::UDP if end >= transport_at + 8 => (TransportProtocol::Udp, self.ports(transport_at)),
            ip_proto::TCP if end >= transport_at + 20 => {
                let [high, low] = read(self.frame.bytes(), transport_at + 12)?;
                let flags = u64::from(u16::from_be_bytes([high & 0x0f, low])) << 4;
                (TransportProtocol::Tcp, self.ports(transport_at) | flags)
            }
            ip_proto::ICMPV6 if end >= transport_at + 4 => match self.read(transport_at) {
                // Some messages of neighbour discovery have further fields.
                [ROUTER_SOLICITATION..=REDIRECT, _] => return None,
                [kind, code] => (TransportProtocol::Icmpv6, type_and_code(kind, code)),
            },
            _ => return None,
        };
        let layers = Layers {
            network: Some((NetworkProtocol::Ipv6, position(self.at))),
            transport: Some((kind, position(transport_at))),
            ..Layers::default()
        };
        let [class, ..] = (first << 4).to_be_bytes();
        self.write(parsed, [0, bits | proto_and_class(proto, class), 0], layers);
        let words = &mut parsed.key.words;
        words[4] |= u64::from(first & 0xf_ffff) << 12;
        let addresses: [u8; 32] = self.read(self.at + 8);
        for (word, bytes) in words[8..12].iter_mut().zip(addresses.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Some(WrittenKeyWords::WithIpv6)
    }

    /// Returns the ports as in word 3.
    fn ports(&self, at: usize) -> u64 {
        u64::from(u32::from_be_bytes(self.read(at))) << 32
    }

    /// Writes the ordinary words: those of the link header, and words 2, 3 and 7.
    fn write(&self, parsed: &mut ParsedHeaders, [two, three, seven]: [u64; 3], layers: Layers) {
        let [zero, one] = [0, 6].map(|at| u64::from_be_bytes(self.read(at)) & !0xffff);
        let port = u64::from(self.in_port.0) << 32;
        let words = &mut parsed.key.words;
        let ordinary = [zero | u64::from(self.eth_type), one | u64::from(self.vlan), two, three, port, 0, 0, seven];
        words[..8].copy_from_slice(&ordinary);
        words[16] = port;
        parsed.layers = Layers { vlan_tags: u8::from(self.at != 14), ..layers };
    }
}

fn type_and_code(kind: u8, code: u8) -> u64 {
    u64::from(kind) << 48 | u64::from(code) << 32
}

fn proto_and_class(proto: u8, class: u8) -> u64 {
    u64::from(proto) << 24 | u64::from(class) << 16
}
