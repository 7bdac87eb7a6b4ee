//! Parses the most frequent shape of packets: Ethernet, at most one VLAN tag, IPv4 without options or fragments, TCP
//! or UDP. The shape is recognised with a few comparisons, and fields are read at fixed offsets. All other packets
//! use the general parser.
use super::{Layers, NetworkProtocol, ParsedHeaders, TransportProtocol, position};
use crate::bytes::read;
use crate::field::{VLAN_PRESENT, eth_type, ip_proto};
use crate::{FrameBody, PortNo};
use weir_memory::SimdInstructions;

/// Length in bytes of an IPv4 header without options.
const IPV4_BYTES: usize = 20;

/// Parses a plain frame ([`FrameBody::is_plain`]) if it has the common shape; returns true if it has.
///
/// `parsed` then equals the result of [`super::parse_frame`], provided that it was blank before or was only written
/// by this function: the function writes only words 0 to 7 and 16 of the key, and the layers. If the function returns
/// false, these are undefined.
#[inline(always)]
pub fn parse_common<W: SimdInstructions>(
    wide: W,
    frame: &FrameBody,
    in_port: PortNo,
    parsed: &mut ParsedHeaders,
) -> bool {
    let Some(head) = frame.head() else { return false };
    match u16::from_be_bytes([head[12], head[13]]) {
        eth_type::IPV4 => network::<14, W>(wide, head, frame.len(), in_port, parsed),
        eth_type::VLAN | eth_type::QINQ if [head[16], head[17]] == eth_type::IPV4.to_be_bytes() => {
            network::<18, W>(wide, head, frame.len(), in_port, parsed)
        }
        _ => false,
    }
}

/// Parses the IPv4 header at offset `AT`, which depends on the presence of a tag.
#[inline(always)]
fn network<const AT: usize, W: SimdInstructions>(
    wide: W,
    head: &[u8; 64],
    len: usize,
    in_port: PortNo,
    parsed: &mut ParsedHeaders,
) -> bool {
    let at = |offset: usize| head[AT + offset];
    let number = |offset: usize| u16::from_be_bytes([at(offset), at(offset + 1)]);
    let end = len.min(AT + usize::from(number(2)));
    let transport_at = AT + IPV4_BYTES;
    // Version 4, a header of five words, and neither more fragments nor a fragment offset.
    if at(0) != 0x45 || number(6) & 0x3fff != 0 {
        return false;
    }
    let (kind, flags) = match at(9) {
        ip_proto::UDP if end >= transport_at + 8 => (TransportProtocol::Udp, 0),
        ip_proto::TCP if end >= transport_at + 20 => (TransportProtocol::Tcp, number(IPV4_BYTES + 12) & 0x0fff),
        _ => return false,
    };
    let words = &mut parsed.key.words;
    let Some(first) = words.first_chunk_mut() else { return false };
    if W::PICKS {
        wide.pick(head, const { &places::<AT>() }, const { kept(&places::<AT>()) }, first);
    } else {
        *first = words_of::<AT>(head);
    }
    words[4] = u64::from(in_port.0) << 32;
    words[16] = u64::from(in_port.0) << 32;
    if AT != 14 {
        words[1] |= u64::from(VLAN_PRESENT);
    }
    if flags != 0 {
        words[3] |= u64::from(flags) << 4;
    }
    parsed.layers = Layers {
        vlan_tags: u8::from(AT != 14),
        mpls: None,
        network: Some((NetworkProtocol::Ipv4, position(AT))),
        transport: Some((kind, position(transport_at))),
    };
    true
}

/// Returns the first eight words of a key, except for the port, the presence of a tag and the TCP flags.
#[inline(always)]
fn words_of<const AT: usize>(head: &[u8; 64]) -> [u64; 8] {
    let eight = |at: usize| u64::from_be_bytes(read(head, at).unwrap_or_default());
    let tag = if AT == 14 { 0 } else { u16::from_be_bytes([head[14], head[15]]) };
    let [tos, proto] = [head[AT + 1], head[AT + 9]].map(u64::from);
    [
        eight(0) & !0xffff | u64::from(eth_type::IPV4),
        eight(6) & !0xffff | u64::from(tag),
        eight(AT + 12),
        eight(AT + 20) & !0xffff_ffff | proto << 24 | tos << 16,
        0,
        0,
        0,
        0,
    ]
}

/// Marks a byte of a word that is not in the frame.
const NONE: u8 = 0xff;

/// Returns the offset in the frame of each byte of the words that [`words_of`] returns, lowest byte first.
const fn places<const AT: usize>() -> [u8; 64] {
    let mut places = [NONE; 64];
    #[expect(clippy::cast_possible_truncation, reason = "places in 64 bytes")]
    const fn put(places: &mut [u8; 64], at: usize, frame: usize) {
        places[at] = frame as u8;
    }
    let mut byte = 0;
    while byte < 8 {
        // The highest byte of a word comes first in the frame, the lowest first in memory.
        let back = 7 - byte;
        if back < 6 {
            put(&mut places, byte, back);
            put(&mut places, 8 + byte, 6 + back);
        } else {
            // The last type field, which follows the tag if there is one, and the tag.
            put(&mut places, byte, AT - 2 + back - 6);
            if AT != 14 {
                put(&mut places, 8 + byte, 14 + back - 6);
            }
        }
        put(&mut places, 16 + byte, AT + 12 + back);
        if back < 4 {
            put(&mut places, 24 + byte, AT + 20 + back);
        }
        byte += 1;
    }
    put(&mut places, 24 + 3, AT + 9);
    put(&mut places, 24 + 2, AT + 1);
    places
}

/// Returns a bit for each byte that is in the frame.
const fn kept(places: &[u8; 64]) -> u64 {
    let (mut kept, mut at) = (0, 0);
    while at < 64 {
        kept |= ((places[at] != NONE) as u64) << at;
        at += 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_memory::PortableSimd;

    #[test]
    fn the_table_says_what_the_code_does() {
        let mut head: [u8; 64] = std::array::from_fn(|n| u8::try_from(n + 100).unwrap());
        for (at, places, words) in
            [(12, places::<14>(), words_of::<14> as fn(&_) -> _), (16, places::<18>(), words_of::<18>)]
        {
            [head[at], head[at + 1]] = eth_type::IPV4.to_be_bytes();
            let mut picked = [0; 8];
            PortableSimd.pick(&head, &places, kept(&places), &mut picked);
            assert_eq!(picked, words(&head));
        }
    }
}
