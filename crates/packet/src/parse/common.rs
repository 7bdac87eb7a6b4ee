//! The one shape that most packets have: Ethernet, at most one VLAN tag, IPv4 without options or fragments, TCP or UDP. It is
//! recognised at once and read at fixed places; everything else goes the general way.
use super::{Layers, Network, Parsed, Transport, position};
use crate::bytes::{read, read_u16};
use crate::field::{VLAN_PRESENT, eth_type, ip_proto};
use crate::{FrameBody, PortNo};

/// Bytes of an IPv4 header without options.
const IPV4_BYTES: usize = 20;

/// Parses a frame of which nothing is known but its bytes ([`FrameBody::is_plain`]) if it has the common shape; whether it has. What [`super::parse_frame`] finds is then in `parsed`, if that was
/// blank before, or holds what this function wrote there for another frame: it writes only words 0 to 7 and 16, and the layers.
/// Otherwise these are undefined.
#[inline(always)]
pub fn parse_common(frame: &FrameBody, in_port: PortNo, parsed: &mut Parsed) -> bool {
    let Some(head) = frame.head() else { return false };
    match u16::from_be_bytes([head[12], head[13]]) {
        eth_type::IPV4 => network::<14>(head, frame.len(), 0, in_port, parsed),
        eth_type::VLAN | eth_type::QINQ if read_u16(head, 16) == Some(eth_type::IPV4) => {
            let tag = u16::from_be_bytes([head[14], head[15]]);
            network::<18>(head, frame.len(), tag | VLAN_PRESENT, in_port, parsed)
        }
        _ => false,
    }
}

/// Goes on with an IPv4 header that would lie at `AT`, behind a tag or none.
#[inline(always)]
fn network<const AT: usize>(head: &[u8; 64], len: usize, vlan: u16, in_port: PortNo, parsed: &mut Parsed) -> bool {
    let at = |offset: usize| head[AT + offset];
    let number = |offset: usize| u16::from_be_bytes([at(offset), at(offset + 1)]);
    let end = len.min(AT + usize::from(number(2)));
    let transport_at = AT + IPV4_BYTES;
    // Version 4 and five words of header; neither more fragments nor an offset.
    if at(0) != 0x45 || number(6) & 0x3fff != 0 {
        return false;
    }
    let (kind, flags) = match at(9) {
        ip_proto::UDP if end >= transport_at + 8 => (Transport::Udp, 0),
        ip_proto::TCP if end >= transport_at + 20 => (Transport::Tcp, number(IPV4_BYTES + 12) & 0x0fff),
        _ => return false,
    };
    let eight = |at: usize| u64::from_be_bytes(read(head, at).unwrap_or_default());
    let words = &mut parsed.key.words;
    words[0] = eight(0) & !0xffff | u64::from(eth_type::IPV4);
    words[1] = eight(6) & !0xffff | u64::from(vlan);
    words[2] = eight(AT + 12);
    words[3] = eight(AT + 20) & !0xffff_ffff | u64::from(at(9)) << 24 | u64::from(at(1)) << 16 | u64::from(flags) << 4;
    words[4] = u64::from(in_port.0) << 32;
    words[5] = 0;
    words[6] = 0;
    words[7] = 0;
    words[16] = u64::from(in_port.0) << 32;
    parsed.layers = Layers {
        vlan_tags: u8::from(AT != 14),
        mpls: None,
        network: Some((Network::Ipv4, position(AT))),
        transport: Some((kind, position(transport_at))),
    };
    true
}
