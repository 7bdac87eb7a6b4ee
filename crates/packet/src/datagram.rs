//! Locates the IP packet in a frame, also behind MPLS, PBB and network service headers, where the flow key has no
//! fields.
use crate::bytes::{read, read_u16};
use crate::checksum::OnesComplementSum;
use crate::field::eth_type;
use crate::parse::ip::{ExtensionHeaders, extension_headers, ipv4_header, ipv6_header};
use crate::parse::{Layers, NetworkProtocol, ParsedHeaders, TransportProtocol, behind_link, parse_as};
use crate::{Field, PacketType, nsh};

/// Maximum number of label stack entries, backbone headers and network service headers to skip.
const MAX_ENCAPSULATIONS: usize = 16;

/// Location of an IP packet in a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpDatagram {
    /// Kind of the network header: IPv4 or IPv6.
    pub(crate) network: NetworkProtocol,
    pub(crate) network_at: usize,
    pub(crate) transport: Option<(TransportProtocol, usize)>,
    /// Offset of the packet's end; padding may follow.
    pub(crate) end: usize,
    /// True if the whole transport segment is in the frame: the packet is not a fragment and not truncated.
    pub(crate) whole: bool,
}

impl IpDatagram {
    /// Locates the outermost IP packet, whose headers `layers` describes.
    pub(crate) fn outermost(frame: &[u8], layers: &Layers) -> Option<IpDatagram> {
        let (network, at) = layers.network?;
        let at = usize::from(at);
        let (stated, fragment) = match network {
            NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
            NetworkProtocol::Ipv4 => {
                (at + usize::from(read_u16(frame, at + 2)?), read_u16(frame, at + 6)? & 0x3fff != 0)
            }
            NetworkProtocol::Ipv6 => {
                let frag = ipv6_extensions(frame, at).map(|chain| chain.frag);
                (at + 40 + usize::from(read_u16(frame, at + 4)?), frag != Some(0))
            }
        };
        let transport = layers.transport.map(|(kind, at)| (kind, usize::from(at)));
        let end = stated.min(frame.len());
        Some(IpDatagram { network, network_at: at, transport, end, whole: !fragment && stated == end })
    }

    /// Locates the IP packet behind all other headers. `kind` is the type of the frame's first header.
    pub(crate) fn innermost(frame: &[u8], mut kind: PacketType) -> Option<IpDatagram> {
        let mut start = 0;
        for _ in 0..MAX_ENCAPSULATIONS {
            let inner = frame.get(start..)?;
            let parsed = parse_as(inner, kind)?;
            let link_end = 14 + 4 * usize::from(parsed.layers.vlan_tags);
            if let Some(at) = parsed.layers.mpls {
                return behind_labels(inner, at.into()).map(|datagram| datagram.shifted_by(start));
            } else if parsed.key.get(Field::EthType) == eth_type::PBB.into() {
                start += link_end + 4;
            } else if let Some((NetworkProtocol::Nsh, at)) = parsed.layers.network {
                let header = nsh::ParsedNshHeader::parse(inner.get(usize::from(at)..)?)?;
                start += usize::from(at) + header.bytes;
                kind = header.payload()?;
            } else {
                return IpDatagram::outermost(inner, &parsed.layers).map(|datagram| datagram.shifted_by(start));
            }
        }
        None
    }

    fn shifted_by(self, by: usize) -> IpDatagram {
        IpDatagram {
            network_at: self.network_at + by,
            transport: self.transport.map(|(kind, at)| (kind, at + by)),
            end: self.end + by,
            ..self
        }
    }

    /// Returns the sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1) for a transport segment of `length` bytes.
    /// `None` if the packet's last destination, which is part of it, cannot be determined.
    pub(crate) fn pseudo_header(&self, frame: &[u8], length: usize) -> Option<OnesComplementSum> {
        let (at, length) = (self.network_at, u32::try_from(length).ok()?);
        let (addresses, proto) = match self.network {
            NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
            NetworkProtocol::Ipv4 => {
                (OnesComplementSum::default().plus(&read::<8>(frame, at + 12)?), *frame.get(at + 9)?)
            }
            NetworkProtocol::Ipv6 => {
                let chain = ipv6_extensions(frame, at)?;
                let destination = match chain.routing {
                    None => read(frame, at + 24)?,
                    Some(routing) => last_destination(frame, routing)?,
                };
                (OnesComplementSum::default().plus(&read::<16>(frame, at + 8)?).plus(&destination), chain.proto)
            }
        };
        Some(addresses.plus_u32(proto.into()).plus_u32(length))
    }
}

/// Reads the extension headers of the IPv6 packet at offset `at`.
pub(crate) fn ipv6_extensions(frame: &[u8], at: usize) -> Option<ExtensionHeaders> {
    let (_, end) = ipv6_header(frame, at)?;
    extension_headers(&frame[..end], at)
}

/// Locates the IP packet behind the label stack at offset `at`. IP is recognised by its version and lengths.
fn behind_labels(frame: &[u8], mut at: usize) -> Option<IpDatagram> {
    for _ in 0..MAX_ENCAPSULATIONS {
        let [_, _, bottom, _] = read(frame, at)?;
        at += 4;
        if bottom & 1 != 0 {
            let mut parsed = ParsedHeaders::default();
            behind_link(frame, at, ip_type(frame, at)?, &mut parsed);
            return IpDatagram::outermost(frame, &parsed.layers);
        }
    }
    None
}

/// Returns the EtherType of the IP header at offset `at`; `None` if there is no valid one.
pub(crate) fn ip_type(frame: &[u8], at: usize) -> Option<u16> {
    match frame.get(at)? >> 4 {
        4 => ipv4_header(frame, at).map(|_| eth_type::IPV4),
        6 => ipv6_header(frame, at).map(|_| eth_type::IPV6),
        _ => None,
    }
}

/// Returns the final destination of a packet with the routing header at offset `at`: the last address of types 0 and
/// 2 (RFC 8200, 4.4; RFC 6275, 6.4), the first listed one of a segment routing header (RFC 8754, 2). `None` for other
/// types.
fn last_destination(frame: &[u8], at: usize) -> Option<[u8; 16]> {
    match read(frame, at)? {
        [_, length, 0 | 2, _] => read(frame, at + 8 + (usize::from(length) / 2).checked_sub(1)? * 16),
        [_, length, 4, _] if length >= 2 => read(frame, at + 8),
        _ => None,
    }
}
