//! Sets fields in the headers of a packet.
use super::rewrite::{ChecksumScope, HeaderBitRange, update_checksum, write_ipv4, write_segment};
use super::{EditEffect, tag};
use crate::bytes::{read, write};
use crate::datagram::ipv6_extensions;
use crate::parse::transport::nd_fields;
use crate::parse::{NetworkProtocol, TransportProtocol};
use crate::{Field, Frame, Layers, nsh};

/// Writes the low bits of `value` to a header field. Has no effect if the packet has no such header, on pipeline
/// fields (`in_port`, `metadata`, `tunnel_id`, ...), which are not in the frame, and on fields that only tell how the
/// packet is built ([`Field::is_settable`]).
///
/// Setting `ip_proto` adjusts the checksum of the existing transport header, because the pseudo header holds the
/// number.
pub fn set_field(frame: &mut Frame, layers: &Layers, field: Field, value: u128) -> EditEffect {
    let bytes = value.to_be_bytes();
    let done = set(frame, layers, field, value, &bytes[16 - field.bytes()..]);
    match (done, field) {
        (None, _) => EditEffect::Nothing,
        (_, Field::EthType | Field::IpProto | Field::Icmpv6Type | Field::Icmpv6Code) => EditEffect::Moved,
        // The header has fewer bits than the field, so the flow key may differ from the value.
        (_, Field::NshFlags | Field::NshTtl) => EditEffect::Moved,
        _ => EditEffect::InPlace,
    }
}

/// Sets a field as [`set_field`] does; `bytes` is the value in the field's width. Returns `None` if the packet has no
/// such header.
fn set(frame: &mut Frame, layers: &Layers, field: Field, value: u128, bytes: &[u8]) -> Option<()> {
    use TransportProtocol::{Icmpv4, Icmpv6, Sctp, Tcp, Udp};
    match field {
        Field::EthDst | Field::EthSrc if !frame.packet_type().is_ethernet() => None,
        Field::EthDst => write(frame.bytes_mut(), 0, bytes).then_some(()),
        Field::EthSrc => write(frame.bytes_mut(), 6, bytes).then_some(()),
        Field::EthType => {
            let at = tag::type_field(frame, layers)?.at;
            write(frame.bytes_mut(), at, bytes).then_some(())
        }
        Field::VlanVid | Field::VlanPcp | Field::PbbIsid | Field::PbbUca => {
            tag_bits(frame, layers, field)?.write(frame, value)
        }
        Field::MplsLabel | Field::MplsTc | Field::MplsBos => tag_bits(frame, layers, field)?.write(frame, value),
        Field::IpDscp | Field::IpEcn => set_traffic_class(frame, layers, field, value),
        Field::IpProto => set_proto(frame, layers, bytes[0]),
        Field::Ipv4Src => set_ipv4_address(frame, layers, 12, bytes),
        Field::Ipv4Dst => set_ipv4_address(frame, layers, 16, bytes),
        Field::Ipv6Src => set_ipv6_address(frame, layers, 8, bytes),
        Field::Ipv6Dst => set_ipv6_address(frame, layers, 24, bytes),
        Field::Ipv6Flabel => {
            HeaderBitRange { at: network(layers, NetworkProtocol::Ipv6)?, shift: 0, width: 20 }.write(frame, value)
        }
        Field::TcpSrc => set_port(frame, layers, Tcp, 0, bytes),
        Field::TcpDst => set_port(frame, layers, Tcp, 2, bytes),
        Field::UdpSrc => set_port(frame, layers, Udp, 0, bytes),
        Field::UdpDst => set_port(frame, layers, Udp, 2, bytes),
        Field::SctpSrc => set_port(frame, layers, Sctp, 0, bytes),
        Field::SctpDst => set_port(frame, layers, Sctp, 2, bytes),
        Field::Icmpv4Type => set_icmp(frame, layers, Icmpv4, 0, bytes[0]),
        Field::Icmpv4Code => set_icmp(frame, layers, Icmpv4, 1, bytes[0]),
        Field::Icmpv6Type => set_icmp(frame, layers, Icmpv6, 0, bytes[0]),
        Field::Icmpv6Code => set_icmp(frame, layers, Icmpv6, 1, bytes[0]),
        Field::ArpOp => set_arp(frame, layers, 6, bytes),
        Field::ArpSha => set_arp(frame, layers, 8, bytes),
        Field::ArpSpa => set_arp(frame, layers, 14, bytes),
        Field::ArpTha => set_arp(frame, layers, 18, bytes),
        Field::ArpTpa => set_arp(frame, layers, 24, bytes),
        Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::Ipv6NdTll => set_nd(frame, layers, field, bytes),
        Field::NshFlags | Field::NshTtl | Field::NshSpi | Field::NshSi => {
            nsh_bits(network(layers, NetworkProtocol::Nsh)?, field)?.write(frame, value)
        }
        Field::NshC1 => set_nsh_context(frame, layers, 0, bytes),
        Field::NshC2 => set_nsh_context(frame, layers, 4, bytes),
        Field::NshC3 => set_nsh_context(frame, layers, 8, bytes),
        Field::NshC4 => set_nsh_context(frame, layers, 12, bytes),
        // Pipeline fields are not in the frame; the other fields tell how the packet is built.
        _ => None,
    }
}

/// Returns the place of a field in a VLAN tag, label stack entry or I-TAG.
fn tag_bits(frame: &Frame, layers: &Layers, field: Field) -> Option<HeaderBitRange> {
    let (at, shift) = match field {
        Field::VlanVid | Field::VlanPcp if layers.vlan_tags == 0 => return None,
        // In the 32-bit number at 12, the tag's TPID is the high half.
        Field::VlanVid => return Some(HeaderBitRange { at: 12, shift: 0, width: 12 }),
        Field::VlanPcp => (12, 13),
        Field::MplsLabel => (usize::from(layers.mpls?), 12),
        Field::MplsTc => (usize::from(layers.mpls?), 9),
        Field::MplsBos => (usize::from(layers.mpls?), 8),
        Field::PbbIsid => (tag::service_tag(frame, layers)?, 0),
        Field::PbbUca => (tag::service_tag(frame, layers)?, 27),
        _ => return None,
    };
    Some(HeaderBitRange { at, shift, width: field.bits() })
}

/// Returns the place of a field in the network service header at offset `at`.
fn nsh_bits(at: usize, field: Field) -> Option<HeaderBitRange> {
    let (offset, shift, width) = match field {
        Field::NshFlags => (0, 28, 2),
        Field::NshTtl => (0, 22, 6),
        Field::NshSpi => (4, 8, 24),
        Field::NshSi => (4, 0, 8),
        _ => return None,
    };
    Some(HeaderBitRange { at: at + offset, shift, width })
}

/// Sets a word of context, which only metadata of type 1 has.
fn set_nsh_context(frame: &mut Frame, layers: &Layers, offset: usize, bytes: &[u8]) -> Option<()> {
    let at = network(layers, NetworkProtocol::Nsh)?;
    let is_context = frame.bytes().get(at + 2)? & 0xf == nsh::MD1;
    (is_context && write(frame.bytes_mut(), at + nsh::BASE_BYTES + offset, bytes)).then_some(())
}

/// Returns the offset of the network header, if it is of the wanted kind.
fn network(layers: &Layers, wanted: NetworkProtocol) -> Option<usize> {
    layers.network.filter(|(kind, _)| *kind == wanted).map(|(_, at)| at.into())
}

/// Returns the offset of the transport header, if it is of the wanted kind.
fn transport(layers: &Layers, wanted: TransportProtocol) -> Option<usize> {
    layers.transport.filter(|(kind, _)| *kind == wanted).map(|(_, at)| at.into())
}

fn set_traffic_class(frame: &mut Frame, layers: &Layers, field: Field, value: u128) -> Option<()> {
    let (network, at) = layers.network?;
    let at = usize::from(at);
    let low = if network == NetworkProtocol::Ipv4 { 16 } else { 20 };
    let shift = if field == Field::IpDscp { low + 2 } else { low };
    let bits = HeaderBitRange { at, shift, width: field.bits() };
    match network {
        NetworkProtocol::Arp | NetworkProtocol::Nsh => None,
        NetworkProtocol::Ipv4 => write_ipv4(frame, at, 0, bits.replaced(frame, value)?).map(|_| ()),
        NetworkProtocol::Ipv6 => bits.write(frame, value),
    }
}

/// Sets the protocol number. In IPv6, the last extension header may hold it.
fn set_proto(frame: &mut Frame, layers: &Layers, proto: u8) -> Option<()> {
    let (network, at) = layers.network?;
    let at = usize::from(at);
    let old = match network {
        NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
        NetworkProtocol::Ipv4 => {
            let ttl = *frame.bytes().get(at + 8)?;
            write_ipv4(frame, at, 8, [ttl, proto])?[1]
        }
        NetworkProtocol::Ipv6 => {
            let chain = ipv6_extensions(frame.bytes(), at)?;
            write(frame.bytes_mut(), chain.proto_at, &[proto]).then_some(chain.proto)?
        }
    };
    update_checksum(frame, layers, ChecksumScope::PseudoHeader, &[0, old], &[0, proto])
}

fn set_ipv4_address(frame: &mut Frame, layers: &Layers, offset: usize, bytes: &[u8]) -> Option<()> {
    let new: [u8; 4] = bytes.try_into().ok()?;
    let old = write_ipv4(frame, network(layers, NetworkProtocol::Ipv4)?, offset, new)?;
    update_checksum(frame, layers, ChecksumScope::PseudoHeader, &old, &new)
}

fn set_ipv6_address(frame: &mut Frame, layers: &Layers, offset: usize, bytes: &[u8]) -> Option<()> {
    let at = network(layers, NetworkProtocol::Ipv6)?;
    let old: [u8; 16] = read(frame.bytes(), at + offset)?;
    // The checksum covers the last destination, which is in the routing header.
    let on_the_way = offset == 24 && ipv6_extensions(frame.bytes(), at).is_some_and(|chain| chain.routing.is_some());
    write(frame.bytes_mut(), at + offset, bytes).then_some(())?;
    if on_the_way { Some(()) } else { update_checksum(frame, layers, ChecksumScope::PseudoHeader, &old, bytes) }
}

fn set_port(frame: &mut Frame, layers: &Layers, kind: TransportProtocol, offset: usize, bytes: &[u8]) -> Option<()> {
    transport(layers, kind)?;
    write_segment(frame, layers, offset, bytes)
}

/// Sets the ICMP type (`offset` 0) or code (1), which share a 16-bit number.
fn set_icmp(frame: &mut Frame, layers: &Layers, kind: TransportProtocol, offset: usize, value: u8) -> Option<()> {
    let mut both: [u8; 2] = read(frame.bytes(), transport(layers, kind)?)?;
    *both.get_mut(offset)? = value;
    write_segment(frame, layers, 0, &both)
}

fn set_arp(frame: &mut Frame, layers: &Layers, offset: usize, bytes: &[u8]) -> Option<()> {
    let at = network(layers, NetworkProtocol::Arp)?;
    write(frame.bytes_mut(), at + offset, bytes).then_some(())
}

fn set_nd(frame: &mut Frame, layers: &Layers, field: Field, bytes: &[u8]) -> Option<()> {
    let at = transport(layers, TransportProtocol::Icmpv6)?;
    let (_, end) = crate::parse::ip::ipv6_header(frame.bytes(), network(layers, NetworkProtocol::Ipv6)?)?;
    let nd = nd_fields(&frame.bytes()[..end], at)?;
    let offset = match field {
        Field::Ipv6NdTarget => 8,
        _ if field == nd.link_field => nd.link_address? - at,
        _ => return None,
    };
    write_segment(frame, layers, offset, bytes)
}
