//! Parses frames to flow keys.
//!
//! One pass from the outside in: link header ([`parse()`]), `ip`, `transport`. Each step reads a whole header or
//! nothing, writes its fields into the key's words, and calls the next step. No word is written twice, and absent
//! fields stay zero.
pub(crate) mod common;
pub(crate) mod frequent;
pub(crate) mod ip;
pub(crate) mod transport;

use crate::bytes::{read, read_u16};
use crate::field::{VLAN_PRESENT, eth_type};
use crate::{Field, FlowKey, Frame, MacAddr, PacketType, PortNo, nsh};

pub use common::parse_common;
pub use frequent::{WrittenKeyWords, parse_frequent};

/// Maximum number of VLAN tags to parse. For a frame with more, `eth_type` is the next tag's TPID, and parsing ends
/// there.
pub const MAX_VLAN_TAGS: u8 = 8;

/// Smallest value of a type field; below, the field is a length as in IEEE 802.3.
pub(crate) const MIN_ETH_TYPE: u16 = 0x0600;

/// Flow key of a packet, and the offsets of its headers. Aligned to a cache line, so that [`parse_common`] writes
/// whole lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(align(64))]
pub struct ParsedHeaders {
    /// Fields that tables match on. `metadata` and `tunnel_id` are zero; `in_port` and `in_phy_port` are the given
    /// port.
    pub key: FlowKey,
    /// Offsets of the headers.
    pub layers: Layers,
}

/// Offsets of a packet's headers, in bytes from the frame's start. Headers that are absent or truncated have no
/// offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Number of VLAN tags (0x8100, 0x88a8) after the addresses, at most [`MAX_VLAN_TAGS`].
    pub vlan_tags: u8,
    /// Offset of the first MPLS label stack entry.
    pub mpls: Option<u16>,
    /// Kind and offset of the IPv4, IPv6, ARP or network service header. Absent behind MPLS.
    pub network: Option<(NetworkProtocol, u16)>,
    /// Kind and offset of the transport header. Absent in later fragments.
    pub transport: Option<(TransportProtocol, u16)>,
}

/// Kind of a network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum NetworkProtocol {
    Ipv4,
    Ipv6,
    Arp,
    /// Network service header; the packet it carries is not parsed.
    Nsh,
}

/// Kind of a transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum TransportProtocol {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
}

/// Error: the frame is too short for an Ethernet header. Holds the frame's length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame of {0} bytes is shorter than an Ethernet header (14 bytes)")]
pub struct FrameTooShort(pub usize);

/// Parses a frame. A header that is truncated or malformed ends parsing: its fields and all later ones are absent
/// (zero), because a switch must also forward frames that it does not understand.
///
/// Nothing behind MPLS, PBB and network service headers is parsed: their `eth_type` is the one to match on (OpenFlow
/// 1.3.5, 7.2.3.8). Bytes beyond the length in an IP header are padding. A length beyond the frame's end is cut to
/// it.
///
/// # Errors
/// [`FrameTooShort`] if there is no whole Ethernet header.
#[inline]
pub fn parse(frame: &[u8], in_port: PortNo) -> Result<ParsedHeaders, FrameTooShort> {
    let mut parsed = ParsedHeaders::default();
    parse_into(frame, in_port, &mut parsed)?;
    Ok(parsed)
}

/// Parses a frame like [`parse`], into a variable that is reused. Moving the small result would stall the processor
/// for longer than most of parsing takes, because its words were just written.
///
/// # Errors
/// [`FrameTooShort`] if there is no whole Ethernet header; `parsed` is then unchanged.
#[inline]
pub fn parse_into(frame: &[u8], in_port: PortNo, parsed: &mut ParsedHeaders) -> Result<(), FrameTooShort> {
    let header: [u8; 14] = read(frame, 0).ok_or(FrameTooShort(frame.len()))?;
    let [a, b, c, d, e, f, source @ ..] = header;
    let link = link(frame, u16::from_be_bytes([header[12], header[13]]));

    *parsed = ParsedHeaders::default();
    let words = &mut parsed.key.words;
    words[0] = u64::from_be_bytes([a, b, c, d, e, f, 0, 0]) | u64::from(link.eth_type);
    words[1] = u64::from_be_bytes(source) & !0xffff | u64::from(link.vlan);
    words[4] = u64::from(in_port.0) << 32;
    words[16] = u64::from(in_port.0) << 32;
    parsed.layers.vlan_tags = link.tags;
    behind_link(frame, link.end, link.eth_type, parsed);
    if link.second_tag != 0 {
        parsed.key.set_second_tag(link.second_tag);
    }
    Ok(())
}

/// Parses a frame including its properties that are not in the bytes: packets without Ethernet header, tunnels.
///
/// # Errors
/// [`FrameTooShort`] if the packet's type is Ethernet and the Ethernet header is not whole; `parsed` is then unchanged.
#[inline]
pub fn parse_frame(frame: &Frame, in_port: PortNo, parsed: &mut ParsedHeaders) -> Result<(), FrameTooShort> {
    if frame.is_plain() { parse_into(frame.bytes(), in_port, parsed) } else { parse_special(frame, in_port, parsed) }
}

impl ParsedHeaders {
    /// Result for a packet without any field.
    pub const EMPTY: ParsedHeaders = ParsedHeaders {
        key: FlowKey::EMPTY,
        layers: Layers { vlan_tags: 0, mpls: None, network: None, transport: None },
    };

    /// Parses a frame like [`parse_frame`], and returns the result.
    ///
    /// # Errors
    /// [`FrameTooShort`] if the packet's type is Ethernet and the Ethernet header is not whole.
    pub fn of(frame: &Frame, in_port: PortNo) -> Result<ParsedHeaders, FrameTooShort> {
        let mut parsed = ParsedHeaders::default();
        parse_frame(frame, in_port, &mut parsed).map(|()| parsed)
    }
}

#[cold]
fn parse_special(frame: &Frame, in_port: PortNo, parsed: &mut ParsedHeaders) -> Result<(), FrameTooShort> {
    match frame.packet_type().eth_type() {
        None => parse_into(frame.bytes(), in_port, parsed)?,
        Some(eth_type) => {
            *parsed = without_ethernet(frame.bytes(), eth_type);
            parsed.key.set(Field::InPort, in_port.0.into());
            parsed.key.set(Field::InPhyPort, in_port.0.into());
        }
    }
    parsed.key.set(Field::TunnelId, frame.tunnel.id.into());
    parsed.key.set(Field::TunSrc, frame.tunnel.src.into());
    parsed.key.set(Field::TunDst, frame.tunnel.dst.into());
    Ok(())
}

/// Parses a packet whose first header is of type `kind`, without input port. Returns `None` for an Ethernet frame
/// without whole Ethernet header.
pub fn parse_as(packet: &[u8], kind: PacketType) -> Option<ParsedHeaders> {
    match kind.eth_type() {
        None => parse(packet, PortNo::ANY).ok(),
        Some(eth_type) => Some(without_ethernet(packet, eth_type)),
    }
}

/// Parses a packet that starts with the header of `eth_type`. The packet type holds this number; [`Field::EthType`]
/// is absent like the other Ethernet fields.
fn without_ethernet(packet: &[u8], eth_type: u16) -> ParsedHeaders {
    let mut parsed = ParsedHeaders::default();
    parsed.key.set(Field::PacketType, PacketType::of_eth_type(eth_type).to_bits().into());
    behind_link(packet, 0, eth_type, &mut parsed);
    parsed
}

/// Addresses, tag and type of a frame: what a bridge needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination of the frame.
    pub dst: MacAddr,
    /// Source of the frame.
    pub src: MacAddr,
    /// VLAN id of the outermost tag; `None` without a tag.
    pub vlan: Option<u16>,
    /// Type behind all tags, as [`Field::EthType`] of [`parse()`].
    pub eth_type: u16,
}

/// Parses the Ethernet header of a frame only, with its tags. Returns `None` if it is not whole.
#[inline]
pub fn parse_ethernet(frame: &[u8]) -> Option<EthernetHeader> {
    let header: [u8; 14] = read(frame, 0)?;
    let [a, b, c, d, e, f, s @ ..] = header;
    let link = link(frame, u16::from_be_bytes([header[12], header[13]]));
    let vlan = (link.tags > 0).then_some(link.vlan & !VLAN_PRESENT & 0xfff);
    let (dst, src) = (MacAddr([a, b, c, d, e, f]), MacAddr([s[0], s[1], s[2], s[3], s[4], s[5]]));
    Some(EthernetHeader { dst, src, vlan, eth_type: link.eth_type })
}

/// Content of the link header.
struct LinkHeader {
    eth_type: u16,
    /// Outermost tag as in word 1: priority, [`VLAN_PRESENT`], id; zero without a tag.
    vlan: u16,
    /// Type of the tag after the outermost one; zero without a second tag.
    second_tag: u16,
    tags: u8,
    /// Offset of the header that `eth_type` names.
    end: usize,
}

#[inline]
fn link(frame: &[u8], outer_type: u16) -> LinkHeader {
    let mut link = LinkHeader { eth_type: outer_type, vlan: 0, second_tag: 0, tags: 0, end: 14 };
    while is_vlan(link.eth_type) && link.tags < MAX_VLAN_TAGS {
        let Some([high, low, type_high, type_low]) = read(frame, link.end) else { break };
        if link.tags == 0 {
            link.vlan = u16::from_be_bytes([high, low]) | VLAN_PRESENT;
        }
        link.eth_type = u16::from_be_bytes([type_high, type_low]);
        link.tags += 1;
        link.end += 4;
        if link.tags == 1 && is_vlan(link.eth_type) {
            link.second_tag = link.eth_type;
        }
    }
    if link.eth_type < MIN_ETH_TYPE {
        (link.eth_type, link.end) = llc(frame, link.end);
    }
    link
}

/// Returns true if `eth_type` is that of a VLAN tag.
#[inline]
pub(crate) fn is_vlan(eth_type: u16) -> bool {
    eth_type == eth_type::VLAN || eth_type == eth_type::QINQ
}

/// Returns the type and the end of an IEEE 802.2 header at offset `at`. A SNAP header of organisation 0 holds an
/// EtherType (RFC 1042).
fn llc(frame: &[u8], at: usize) -> (u16, usize) {
    match read(frame, at) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) if high >= 6 => (u16::from_be_bytes([high, low]), at + 8),
        _ => (eth_type::NOT_ETH_TYPE, at),
    }
}

/// Parses the header at offset `at` that `eth_type` names.
#[inline]
pub(crate) fn behind_link(frame: &[u8], at: usize, eth_type: u16, parsed: &mut ParsedHeaders) {
    match eth_type {
        eth_type::IPV4 => ip::ipv4(frame, at, parsed),
        eth_type::IPV6 => ip::ipv6(frame, at, parsed),
        eth_type::ARP | eth_type::RARP => arp(frame, at, parsed),
        eth_type::MPLS | eth_type::MPLS_MULTICAST => mpls(frame, at, parsed),
        eth_type::PBB => pbb(frame, at, parsed),
        eth_type::NSH => nsh(frame, at, parsed),
        _ => {}
    }
}

/// Parses ARP for IPv4 over Ethernet (RFC 826); other kinds have no fields.
fn arp(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some(packet) = read::<28>(frame, at) else { return };
    let (Some([0, 1, 8, 0, 6, 4]), Some(operation)) = (read(&packet, 0), read_u16(&packet, 6)) else { return };
    let number = |at, bytes| packet[at..at + bytes].iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    parsed.layers.network = Some((NetworkProtocol::Arp, position(at)));
    parsed.key.set(Field::ArpOp, operation.into());
    parsed.key.set(Field::ArpSha, number(8, 6));
    parsed.key.set(Field::ArpSpa, number(14, 4));
    parsed.key.set(Field::ArpTha, number(18, 6));
    parsed.key.set(Field::ArpTpa, number(24, 4));
}

/// Parses the outermost label stack entry (RFC 3032): label 20, traffic class 3, bottom of stack 1, TTL 8.
fn mpls(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some([a, b, c, _ttl]) = read(frame, at) else { return };
    parsed.layers.mpls = Some(position(at));
    parsed.key.words[7] = u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]);
}

/// Parses the I-TAG (IEEE 802.1Q, 9.7): priority 3, drop eligible 1, use customer addresses 1, reserved 3, service id
/// 24, followed by the customer's addresses.
fn pbb(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some(header) = read::<16>(frame, at) else { return };
    parsed.key.set(Field::PbbIsid, u32::from_be_bytes([0, header[1], header[2], header[3]]).into());
    parsed.key.set(Field::PbbUca, (header[0] >> 3 & 1).into());
}

/// Parses a network service header; a malformed one has no fields.
fn nsh(frame: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some(header) = frame.get(at..).and_then(nsh::ParsedNshHeader::parse) else { return };
    parsed.layers.network = Some((NetworkProtocol::Nsh, position(at)));
    let [base, first, second] = header.words();
    parsed.key.words[25] = base;
    parsed.key.words[26] = first;
    parsed.key.words[27] = second;
}

/// Returns an offset as [`Layers`] stores it. Every chain of headers is far shorter than 64 KiB, whatever the frame's
/// length.
#[inline]
pub(crate) fn position(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
