//! Parses IPv4 and IPv6 headers, including IPv6's chain of extension headers.
use super::{NetworkProtocol, ParsedHeaders, position, transport};
use crate::Field;
use crate::bytes::{read, read_u16};
use crate::field::{ip_frag, ip_proto, ipv6_exthdr};

/// Maximum number of extension headers; a longer chain counts as malformed.
const MAX_EXTENSION_HEADERS: usize = 16;

/// Length in bytes of the IPv6 header.
const IPV6_BYTES: usize = 40;

/// Shift of [`Field::IpFrag`] in word 3.
const FRAG_SHIFT: u32 = Field::IpFrag.key_position().shift;

#[inline]
pub(crate) fn ipv4(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some((header, end)) = ipv4_header(frame, at) else { return };
    let [_, tos, _, _, _, _, fragment_high, fragment_low, _ttl, proto, _, _, addresses @ ..] = header;
    let frag = frag_bits(u16::from_be_bytes([fragment_high & 0x3f, fragment_low]), 0x1fff);
    parsed.layers.network = Some((NetworkProtocol::Ipv4, position(at)));
    parsed.key.words[2] = u64::from_be_bytes(addresses);
    parsed.key.words[3] = u64::from(proto) << 24 | u64::from(tos) << 16 | frag << FRAG_SHIFT;
    if frag & ip_frag::LATER == 0 {
        let start = at + usize::from(header[0] & 15) * 4;
        transport::transport(&frame[..end], start, NetworkProtocol::Ipv4, proto, parsed);
    }
}

/// Returns the fixed part of a well-formed IPv4 header, and the packet's end in the frame.
#[inline]
pub(crate) fn ipv4_header(frame: &[u8], at: usize) -> Option<([u8; 20], usize)> {
    let header: [u8; 20] = read(frame, at)?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let well_formed = header[0] >> 4 == 4 && header_bytes >= 20 && total >= header_bytes;
    let end = frame.len().min(at + total);
    (well_formed && at + header_bytes <= end).then_some((header, end))
}

/// Returns the bits of [`Field::IpFrag`] for a fragment field: any bit set means a fragment, a nonzero offset a later
/// one.
fn frag_bits(fragment: u16, offset_mask: u16) -> u64 {
    match fragment {
        0 => 0,
        first if first & offset_mask == 0 => ip_frag::ANY,
        _ => ip_frag::ANY | ip_frag::LATER,
    }
}

#[inline]
pub(crate) fn ipv6(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some((header, end)) = ipv6_header(frame, at) else { return };
    let words = &mut parsed.key.words;
    let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    words[3] = u64::from(first >> 20 & 0xff) << 16;
    words[4] |= u64::from(first & 0xf_ffff) << 12;
    for (word, bytes) in words[8..12].iter_mut().zip(header[8..].as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    parsed.layers.network = Some((NetworkProtocol::Ipv6, position(at)));
    let Some(chain) = extension_headers(&frame[..end], at) else { return };
    words[3] |= u64::from(chain.proto) << 24 | chain.frag << FRAG_SHIFT;
    words[14] |= chain.exthdr << Field::Ipv6Exthdr.key_position().shift;
    if chain.frag & ip_frag::LATER == 0 {
        transport::transport(&frame[..end], chain.end, NetworkProtocol::Ipv6, chain.proto, parsed);
    }
}

/// Returns a well-formed IPv6 header, and the packet's end in the frame.
#[inline]
pub(crate) fn ipv6_header(frame: &[u8], at: usize) -> Option<([u8; IPV6_BYTES], usize)> {
    let header: [u8; IPV6_BYTES] = read(frame, at)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    (header[0] >> 4 == 6).then(|| (header, frame.len().min(at + IPV6_BYTES + payload)))
}

/// Content of IPv6's extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtensionHeaders {
    /// Protocol number after the extension headers. For a later fragment 44, as in Open vSwitch: the fragment header
    /// names only the first header of the original packet, which need not be the transport header.
    pub(crate) proto: u8,
    /// Offset of the byte that holds `proto`.
    pub(crate) proto_at: usize,
    /// Offset of the end of the extension headers.
    pub(crate) end: usize,
    /// Headers present, [`ipv6_exthdr`] bits.
    pub(crate) exthdr: u64,
    /// Fragment bits, [`ip_frag`].
    pub(crate) frag: u64,
    /// Offset of a routing header with segments left. In this case, the IPv6 header does not hold the packet's last
    /// destination.
    pub(crate) routing: Option<usize>,
}

/// Reads the extension headers of the IPv6 header at offset `at`. Returns `None` if one is truncated or there are
/// more than [`MAX_EXTENSION_HEADERS`].
#[inline]
pub(crate) fn extension_headers(packet: &[u8], at: usize) -> Option<ExtensionHeaders> {
    let proto = *packet.get(at + 6)?;
    let mut chain =
        ExtensionHeaders { proto, proto_at: at + 6, end: at + IPV6_BYTES, exthdr: 0, frag: 0, routing: None };
    let mut order = ExtensionHeaderOrder::default();
    for _ in 0..MAX_EXTENSION_HEADERS {
        let Some(bit) = extension_bit(chain.proto) else { return Some(chain) };
        chain.exthdr |= order.see(bit);
        match chain.proto {
            ip_proto::ESP | ip_proto::NO_NEXT => return Some(chain),
            ip_proto::FRAGMENT => {
                let fragment = read_u16(packet, chain.end + 2)?;
                chain.frag = frag_bits(fragment & !6, !7);
                if chain.frag & ip_frag::LATER != 0 {
                    return Some(chain);
                }
            }
            ip_proto::ROUTING if *packet.get(chain.end + 3)? > 0 => chain.routing = Some(chain.end),
            _ => {}
        }
        let [next, length] = read(packet, chain.end)?;
        let bytes = match chain.proto {
            ip_proto::FRAGMENT => 8,
            ip_proto::AH => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        if chain.end + bytes > packet.len() {
            return None;
        }
        chain = ExtensionHeaders { proto: next, proto_at: chain.end, end: chain.end + bytes, ..chain };
    }
    extension_bit(chain.proto).is_none().then_some(chain)
}

/// Returns the [`ipv6_exthdr`] bit of an extension header; `None` for a header that ends the chain.
#[inline]
fn extension_bit(proto: u8) -> Option<u64> {
    Some(match proto {
        ip_proto::HOP_BY_HOP => ipv6_exthdr::HOP,
        ip_proto::ROUTING => ipv6_exthdr::ROUTER,
        ip_proto::FRAGMENT => ipv6_exthdr::FRAG,
        ip_proto::ESP => ipv6_exthdr::ESP,
        ip_proto::AH => ipv6_exthdr::AUTH,
        ip_proto::NO_NEXT => ipv6_exthdr::NONEXT,
        ip_proto::DESTINATION => ipv6_exthdr::DEST,
        _ => return None,
    })
}

/// Checks whether extension headers have the order and number that RFC 8200 recommends (4.1): hop-by-hop, destination
/// options, routing, fragment, authentication, encapsulation, destination options again.
#[derive(Default)]
struct ExtensionHeaderOrder {
    seen: u64,
    rank: u8,
    destinations: u8,
}

impl ExtensionHeaderOrder {
    const LAST: u8 = 7;

    /// Records the next extension header, whose bit in the flow key is `bit`. Returns the bits to set for it: its own,
    /// and those that say that it was repeated or out of order.
    fn see(&mut self, bit: u64) -> u64 {
        let (rank, repeated) = match bit {
            ipv6_exthdr::HOP => (1, self.seen & bit != 0),
            ipv6_exthdr::DEST => {
                self.destinations = self.destinations.saturating_add(1);
                (if self.rank < 2 { 2 } else { Self::LAST }, self.destinations > 2)
            }
            ipv6_exthdr::ROUTER => (3, self.seen & bit != 0),
            ipv6_exthdr::FRAG => (4, self.seen & bit != 0),
            ipv6_exthdr::AUTH => (5, self.seen & bit != 0),
            ipv6_exthdr::ESP => (6, false),
            _ => (Self::LAST, false),
        };
        let unsequenced = rank < self.rank;
        self.rank = self.rank.max(rank);
        self.seen |= bit;
        bit | if repeated { ipv6_exthdr::UNREP } else { 0 } | if unsequenced { ipv6_exthdr::UNSEQ } else { 0 }
    }
}
