//! Parses transport headers and neighbour discovery.
use super::{NetworkProtocol, ParsedHeaders, TransportProtocol, position};
use crate::Field;
use crate::bytes::read;
use crate::field::icmpv6_type::{NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION};
use crate::field::ip_proto;

/// Maximum number of neighbour discovery options to parse; further ones are ignored.
const MAX_ND_OPTIONS: usize = 16;

/// Parses the header of protocol `proto` at offset `at`. `packet` ends where the IP packet ends.
#[inline]
pub(crate) fn transport(packet: &[u8], at: usize, network: NetworkProtocol, proto: u8, parsed: &mut ParsedHeaders) {
    let (kind, bits) = match (proto, network) {
        (ip_proto::TCP, _) => (TransportProtocol::Tcp, tcp(packet, at)),
        (ip_proto::UDP, _) => (TransportProtocol::Udp, ports::<8>(packet, at)),
        (ip_proto::SCTP, _) => (TransportProtocol::Sctp, ports::<12>(packet, at)),
        (ip_proto::ICMP, NetworkProtocol::Ipv4) => (TransportProtocol::Icmpv4, type_and_code(packet, at)),
        (ip_proto::ICMPV6, NetworkProtocol::Ipv6) => (TransportProtocol::Icmpv6, type_and_code(packet, at)),
        _ => return,
    };
    let Some(bits) = bits else { return };
    parsed.key.words[3] |= bits;
    parsed.layers.transport = Some((kind, position(at)));
    if kind == TransportProtocol::Icmpv6 {
        neighbour_discovery(packet, at, parsed);
    }
}

/// Returns the ports as in word 3, if the header has at least `N` bytes.
#[inline]
fn ports<const N: usize>(packet: &[u8], at: usize) -> Option<u64> {
    let header: [u8; N] = read(packet, at)?;
    Some(u64::from(u32::from_be_bytes([header[0], header[1], header[2], header[3]])) << 32)
}

/// Returns the ports, and the twelve bits after the data offset: the reserved bits, and the flags from CWR to FIN.
#[inline]
fn tcp(packet: &[u8], at: usize) -> Option<u64> {
    let [high, low] = read(packet, at + 12)?;
    Some(ports::<20>(packet, at)? | u64::from(u16::from_be_bytes([high & 0x0f, low])) << 4)
}

/// Returns type and code, if the header includes its checksum.
fn type_and_code(packet: &[u8], at: usize) -> Option<u64> {
    let [kind, code, _, _] = read(packet, at)?;
    Some(u64::from(kind) << 48 | u64::from(code) << 32)
}

/// Parses the target address, and the link-layer address option of the message: source in a solicitation, target in
/// an advertisement. A packet with two such options, or one of length zero, has none of these fields, as in Open
/// vSwitch.
fn neighbour_discovery(packet: &[u8], at: usize, parsed: &mut ParsedHeaders) {
    let Some(nd) = nd_fields(packet, at) else { return };
    parsed.key.set(Field::Ipv6NdTarget, u128::from_be_bytes(nd.target));
    if let Some(address) = nd.link_address.and_then(|at| read::<6>(packet, at)) {
        let bits = address.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        parsed.key.set(nd.link_field, bits);
    }
}

/// Fields of a neighbour solicitation or advertisement.
pub(crate) struct NdFields {
    pub(crate) target: [u8; 16],
    /// Field of the link-layer address: [`Field::Ipv6NdSll`] or [`Field::Ipv6NdTll`].
    pub(crate) link_field: Field,
    /// Offset of the link-layer address, if the option is present.
    pub(crate) link_address: Option<usize>,
}

/// Reads the message whose ICMPv6 header is at offset `at`.
pub(crate) fn nd_fields(packet: &[u8], at: usize) -> Option<NdFields> {
    let (link_field, wanted) = match read(packet, at)? {
        [NEIGHBOUR_SOLICITATION, 0] => (Field::Ipv6NdSll, 1),
        [NEIGHBOUR_ADVERTISEMENT, 0] => (Field::Ipv6NdTll, 2),
        _ => return None,
    };
    let mut nd = NdFields { target: read(packet, at + 8)?, link_field, link_address: None };
    let mut option = at + 24;
    for _ in 0..MAX_ND_OPTIONS {
        let Some([kind, length]) = read(packet, option) else { break };
        let bytes = usize::from(length) * 8;
        if bytes == 0 || option + bytes > packet.len() {
            return None;
        }
        if kind == wanted && bytes == 8 && nd.link_address.replace(option + 2).is_some() {
            return None;
        }
        option += bytes;
    }
    Some(nd)
}
