//! From bytes to a flow key.
//!
//! One pass, outside in: link ([`parse()`]), `ip`, `transport`. Each step reads a header whole or not at all, writes its
//! fields into the key's words and hands on to the next; nothing is written twice and absent fields stay zero.
pub(crate) mod common;
pub(crate) mod frequent;
pub(crate) mod ip;
pub(crate) mod transport;

use crate::bytes::{read, read_u16};
use crate::field::{VLAN_PRESENT, eth_type};
use crate::{Field, FlowKey, Frame, PacketType, PortNo, nsh};

pub use common::parse_common;
pub use frequent::{Written, parse_frequent};

/// VLAN tags looked behind; with more, `eth_type` is the next tag's TPID and parsing ends there.
pub const MAX_VLAN_TAGS: u8 = 8;

/// Smallest number that is a type and not, as in IEEE 802.3, a length.
pub(crate) const MIN_ETH_TYPE: u16 = 0x0600;

/// A packet's flow key, and where its headers lie. It begins a cache line, so that what [`parse_common`] writes at once is one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(align(64))]
pub struct Parsed {
    /// What tables match on. `metadata` and `tunnel_id` are zero, `in_port` and `in_phy_port` the port given.
    pub key: FlowKey,
    /// Where its headers lie.
    pub layers: Layers,
}

/// Where the headers of a packet lie, in bytes from the frame's start; what is absent or cut short has no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Number of VLAN tags (0x8100, 0x88a8) behind the addresses, at most [`MAX_VLAN_TAGS`].
    pub vlan_tags: u8,
    /// Where the first MPLS label stack entry lies.
    pub mpls: Option<u16>,
    /// Where the IPv4, IPv6, ARP or network service header lies, and which it is. Absent behind MPLS.
    pub network: Option<(Network, u16)>,
    /// Where the transport header lies, and which it is. Absent in later fragments.
    pub transport: Option<(Transport, u16)>,
}

/// A network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum Network {
    Ipv4,
    Ipv6,
    Arp,
    /// A network service header; what it carries is not looked at.
    Nsh,
}

/// A transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum Transport {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
}

/// A frame too short to hold an Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame of {0} bytes is shorter than an Ethernet header (14 bytes)")]
pub struct TooShort(pub usize);

/// Parses a frame once. A header that is cut short or malformed ends parsing: fields from there on are absent (zero), as in
/// any switch that must forward what it does not understand.
///
/// Behind MPLS, PBB and network service headers nothing is looked at (OpenFlow 1.3.5, 7.2.3.8: their `eth_type` is the one matched on). Bytes behind
/// the length that an IP header states are padding; a length beyond the frame's end counts as far as there are bytes.
///
/// # Errors
/// [`TooShort`] if there is no whole Ethernet header.
#[inline]
pub fn parse(frame: &[u8], in_port: PortNo) -> Result<Parsed, TooShort> {
    let mut parsed = Parsed::default();
    parse_into(frame, in_port, &mut parsed)?;
    Ok(parsed)
}

/// As [`parse`], into a place that is used again: what is there is small, but moving it stalls the processor for longer than
/// most of parsing takes, since its words were only just written.
///
/// # Errors
/// [`TooShort`] if there is no whole Ethernet header; `parsed` is as it was.
#[inline]
pub fn parse_into(frame: &[u8], in_port: PortNo, parsed: &mut Parsed) -> Result<(), TooShort> {
    let header: [u8; 14] = read(frame, 0).ok_or(TooShort(frame.len()))?;
    let [a, b, c, d, e, f, source @ ..] = header;
    let link = link(frame, u16::from_be_bytes([header[12], header[13]]));

    *parsed = Parsed::default();
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

/// Parses a frame with what is known of it beside its bytes: packets without Ethernet header, tunnels.
///
/// # Errors
/// [`TooShort`] if it should begin with an Ethernet header and that is not whole; `parsed` is as it was.
#[inline]
pub fn parse_frame(frame: &Frame, in_port: PortNo, parsed: &mut Parsed) -> Result<(), TooShort> {
    if frame.is_plain() { parse_into(frame.bytes(), in_port, parsed) } else { parse_special(frame, in_port, parsed) }
}

impl Parsed {
    /// Of a packet that has nothing.
    pub const EMPTY: Parsed =
        Parsed { key: FlowKey::EMPTY, layers: Layers { vlan_tags: 0, mpls: None, network: None, transport: None } };

    /// As [`parse_frame`], into a new place.
    ///
    /// # Errors
    /// [`TooShort`] as there.
    pub fn of(frame: &Frame, in_port: PortNo) -> Result<Parsed, TooShort> {
        let mut parsed = Parsed::default();
        parse_frame(frame, in_port, &mut parsed).map(|()| parsed)
    }
}

#[cold]
fn parse_special(frame: &Frame, in_port: PortNo, parsed: &mut Parsed) -> Result<(), TooShort> {
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

/// Parses a packet that begins with what `kind` says; the port is not known. Nothing if that is a frame too short to be one.
pub fn parse_as(packet: &[u8], kind: PacketType) -> Option<Parsed> {
    match kind.eth_type() {
        None => parse(packet, PortNo::ANY).ok(),
        Some(eth_type) => Some(without_ethernet(packet, eth_type)),
    }
}

/// Parses what `eth_type` names; the packet type tells so, and [`Field::EthType`] is absent as the other Ethernet fields are.
fn without_ethernet(packet: &[u8], eth_type: u16) -> Parsed {
    let mut parsed = Parsed::default();
    parsed.key.set(Field::PacketType, PacketType::of_eth_type(eth_type).to_bits().into());
    behind_link(packet, 0, eth_type, &mut parsed);
    parsed
}

/// What the link header says.
struct Link {
    eth_type: u16,
    /// The outermost tag as word 1 has it: priority, [`VLAN_PRESENT`], id; zero without.
    vlan: u16,
    /// The type of a tag behind the outermost one; zero without.
    second_tag: u16,
    tags: u8,
    /// Where what `eth_type` names begins.
    end: usize,
}

#[inline]
fn link(frame: &[u8], outer_type: u16) -> Link {
    let mut link = Link { eth_type: outer_type, vlan: 0, second_tag: 0, tags: 0, end: 14 };
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

/// Whether `eth_type` announces a VLAN tag.
#[inline]
pub(crate) fn is_vlan(eth_type: u16) -> bool {
    eth_type == eth_type::VLAN || eth_type == eth_type::QINQ
}

/// The type and the end of an IEEE 802.2 header at `at`: a SNAP header of organisation 0 names an EtherType (RFC 1042).
fn llc(frame: &[u8], at: usize) -> (u16, usize) {
    match read(frame, at) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) if high >= 6 => (u16::from_be_bytes([high, low]), at + 8),
        _ => (eth_type::NOT_ETH_TYPE, at),
    }
}

/// Reads what lies at `at` and is named by `eth_type`.
#[inline]
pub(crate) fn behind_link(frame: &[u8], at: usize, eth_type: u16, parsed: &mut Parsed) {
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

/// ARP for IPv4 over Ethernet (RFC 826); other kinds have no fields.
fn arp(frame: &[u8], at: usize, parsed: &mut Parsed) {
    let Some(packet) = read::<28>(frame, at) else { return };
    let (Some([0, 1, 8, 0, 6, 4]), Some(operation)) = (read(&packet, 0), read_u16(&packet, 6)) else { return };
    let number = |at, bytes| packet[at..at + bytes].iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    parsed.layers.network = Some((Network::Arp, position(at)));
    parsed.key.set(Field::ArpOp, operation.into());
    parsed.key.set(Field::ArpSha, number(8, 6));
    parsed.key.set(Field::ArpSpa, number(14, 4));
    parsed.key.set(Field::ArpTha, number(18, 6));
    parsed.key.set(Field::ArpTpa, number(24, 4));
}

/// The outermost label stack entry (RFC 3032): label 20, traffic class 3, bottom of stack 1, TTL 8.
fn mpls(frame: &[u8], at: usize, parsed: &mut Parsed) {
    let Some([a, b, c, _ttl]) = read(frame, at) else { return };
    parsed.layers.mpls = Some(position(at));
    parsed.key.words[7] = u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]);
}

/// The I-TAG (IEEE 802.1Q, 9.7): priority 3, drop eligible 1, use customer addresses 1, reserved 3, service id 24; then
/// the customer's addresses.
fn pbb(frame: &[u8], at: usize, parsed: &mut Parsed) {
    let Some(header) = read::<16>(frame, at) else { return };
    parsed.key.set(Field::PbbIsid, u32::from_be_bytes([0, header[1], header[2], header[3]]).into());
    parsed.key.set(Field::PbbUca, (header[0] >> 3 & 1).into());
}

/// A network service header; one that is malformed has no fields.
fn nsh(frame: &[u8], at: usize, parsed: &mut Parsed) {
    let Some(header) = frame.get(at..).and_then(nsh::Header::parse) else { return };
    parsed.layers.network = Some((Network::Nsh, position(at)));
    let [base, first, second] = header.words();
    parsed.key.words[25] = base;
    parsed.key.words[26] = first;
    parsed.key.words[27] = second;
}

/// An offset as [`Layers`] keeps it. Every chain of headers is bounded well below 64 KiB, whatever the frame's length.
#[inline]
pub(crate) fn position(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
