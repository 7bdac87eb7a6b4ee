//! Reads and builds network service headers (RFC 8300): the path of a packet through service functions, and the
//! metadata that they exchange.
//!
//! | bytes | |
//! |---|---|
//! | 0, 1 | version 2, OAM 1, unassigned 1, TTL 6, length 6 (in words of four bytes, this header included) |
//! | 2 | unassigned 4, metadata type 4 |
//! | 3 | next protocol |
//! | 4 ... 7 | service path 24, service index 8 |
//! | 8 ... | metadata type 1: four words of context; type 2: type-length-values, possibly none |
use crate::PacketType;
use crate::bytes::{read, write};
use crate::field::eth_type;

/// Length in bytes of the base header and the service path header, which every network service header has.
pub const BASE_BYTES: usize = 8;
/// Length in bytes of a header with metadata of type 1.
pub const MD1_BYTES: usize = BASE_BYTES + 16;
/// Maximum length in bytes, limited by the length field.
pub const MAX_BYTES: usize = 63 * 4;
/// Maximum TTL: six bits.
pub const MAX_TTL: u8 = 63;
/// Maximum value of the flags in [`crate::Field::NshFlags`]: the OAM bit, and the unassigned bit after it.
pub const MAX_FLAGS: u8 = 3;
/// Metadata type 1: four words of context.
pub const MD1: u8 = 1;
/// Metadata type 2: type-length-values.
pub const MD2: u8 = 2;
/// Maximum length in bytes of a value in metadata of type 2, limited by seven bits.
pub const MAX_TLV_BYTES: usize = 127;

/// A well-formed network service header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedNshHeader {
    /// Flags, 2 bits: OAM is the high one, unassigned the low one.
    pub flags: u8,
    /// Remaining hops, 6 bits.
    pub ttl: u8,
    /// Metadata type, 1 or 2.
    pub md_type: u8,
    /// Next protocol number; [`payload_type`] translates the known ones.
    pub next: u8,
    /// Service path and, in the low eight bits, service index.
    pub path: u32,
    /// Context of metadata type 1; zeros for type 2.
    pub context: [u32; 4],
    /// Length of the header in bytes.
    pub bytes: usize,
}

impl ParsedNshHeader {
    /// Reads a header. Returns `None` unless the version is 0, the metadata type 1 or 2, and the length is valid for
    /// the type and within the packet.
    pub fn parse(packet: &[u8]) -> Option<ParsedNshHeader> {
        let [high, low, md_type, next, path @ ..]: [u8; BASE_BYTES] = read(packet, 0)?;
        let bytes = usize::from(low & 0x3f) * 4;
        let md_type = md_type & 0xf;
        let context = match md_type {
            MD1 if bytes == MD1_BYTES => contexts(read(packet, BASE_BYTES)?),
            MD2 if bytes >= BASE_BYTES && bytes <= packet.len() => [0; 4],
            _ => return None,
        };
        let ttl = (high & 0xf) << 2 | low >> 6;
        let header = ParsedNshHeader {
            flags: high >> 4 & 3,
            ttl,
            md_type,
            next,
            path: u32::from_be_bytes(path),
            context,
            bytes,
        };
        (high >> 6 == 0).then_some(header)
    }

    /// Returns the fields as in words 25 to 27 of a flow key.
    pub(crate) fn words(&self) -> [u64; 3] {
        let [md_type, next, flags, ttl] = [self.md_type, self.next, self.flags, self.ttl];
        let [a, b, c, d] = self.context.map(u64::from);
        [
            u64::from(self.path) << 32 | u64::from(u32::from_be_bytes([md_type, next, flags, ttl])),
            a << 32 | b,
            c << 32 | d,
        ]
    }

    /// Returns the type of the packet after the header; `None` if weir does not know it.
    pub fn payload(&self) -> Option<PacketType> {
        payload_type(self.next)
    }
}

fn contexts(bytes: [u8; 16]) -> [u32; 4] {
    let mut context = [0; 4];
    context.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_be_bytes(*bytes));
    context
}

/// Next protocol numbers and the packet types they denote (RFC 8300, 2.2).
const NEXT: [(u8, PacketType); 5] = [
    (1, PacketType::of_eth_type(eth_type::IPV4)),
    (2, PacketType::of_eth_type(eth_type::IPV6)),
    (3, PacketType::ETHERNET),
    (4, PacketType::NSH),
    (5, PacketType::of_eth_type(eth_type::MPLS)),
];

/// Returns the packet type for a next protocol number; `None` if weir does not know it.
pub fn payload_type(next: u8) -> Option<PacketType> {
    NEXT.iter().find(|(number, _)| *number == next).map(|(_, kind)| *kind)
}

/// Returns the next protocol number for a packet type; `None` if it has none.
pub fn next_protocol(kind: PacketType) -> Option<u8> {
    NEXT.iter().find(|(_, known)| *known == kind).map(|(number, _)| *number)
}

/// A value of metadata of type 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NshTlvRef<'a> {
    /// Class: the organisation that defines `kind`.
    pub class: u16,
    /// Type of the value, within its class.
    pub kind: u8,
    /// Content, at most [`MAX_TLV_BYTES`] bytes.
    pub value: &'a [u8],
}

/// Returns a header for pushing in front of a packet, with the values of Open vSwitch: TTL 63, path 0, index 255, no
/// flags, context zero. `None` if it would exceed [`MAX_BYTES`].
pub fn build<'a, T>(md_type: u8, next: u8, tlvs: T) -> Option<Vec<u8>>
where
    T: IntoIterator<Item = NshTlvRef<'a>, IntoIter: Clone>,
{
    let tlvs = tlvs.into_iter();
    let mut header = vec![0; header_bytes(md_type, tlvs.clone())?];
    write_header(&mut header, md_type, next, tlvs);
    Some(header)
}

/// Returns the length in bytes of a header with these values, which only metadata of type 2 has. `None` if there is
/// no such header.
pub fn header_bytes<'a>(md_type: u8, tlvs: impl Iterator<Item = NshTlvRef<'a>>) -> Option<usize> {
    match md_type {
        MD1 => Some(MD1_BYTES),
        MD2 => {
            let mut bytes = BASE_BYTES;
            for tlv in tlvs {
                bytes += 4 + tlv.value.len().next_multiple_of(4);
                if tlv.value.len() > MAX_TLV_BYTES || bytes > MAX_BYTES {
                    return None;
                }
            }
            Some(bytes)
        }
        _ => None,
    }
}

/// Writes a header into a slice of the length that [`header_bytes`] returns.
#[expect(clippy::cast_possible_truncation, reason = "`header_bytes` has seen to 63 words and 127 bytes")]
pub(crate) fn write_header<'a>(header: &mut [u8], md_type: u8, next: u8, tlvs: impl Iterator<Item = NshTlvRef<'a>>) {
    header.fill(0);
    write(header, 0, &[0x0f, 0xc0 | (header.len() / 4) as u8, md_type, next, 0, 0, 0, 255]);
    let mut at = BASE_BYTES;
    for tlv in tlvs.filter(|_| md_type == MD2) {
        let [high, low] = tlv.class.to_be_bytes();
        write(header, at, &[high, low, tlv.kind, tlv.value.len() as u8]);
        write(header, at + 4, tlv.value);
        at += 4 + tlv.value.len().next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_built_is_read() {
        let header = ParsedNshHeader::parse(&build(MD1, 3, []).unwrap()).unwrap();
        let expected =
            ParsedNshHeader { flags: 0, ttl: 63, md_type: 1, next: 3, path: 255, context: [0; 4], bytes: 24 };
        assert_eq!(header, expected);
        let value = [1, 2, 3, 4, 5];
        let tlv = NshTlvRef { class: 0x1000, kind: 10, value: &value };
        let bytes = build(MD2, 1, [tlv]).unwrap();
        assert_eq!(bytes[8..], [0x10, 0, 10, 5, 1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(ParsedNshHeader::parse(&bytes).map(|header| header.bytes), Some(20));
        assert_eq!(build(MD2, 1, []).map(|bytes| bytes.len()), Some(8));
        assert_eq!(build(MD2, 1, [NshTlvRef { class: 0, kind: 0, value: &[0; 128] }]), None, "too long a value");
        assert_eq!(build(MD2, 1, [NshTlvRef { class: 0, kind: 0, value: &[0; 127] }; 2]), None, "too long a header");
    }

    #[test]
    fn malformed_headers_are_none() {
        let good = build(MD1, 3, []).unwrap();
        for length in 0..good.len() {
            assert_eq!(ParsedNshHeader::parse(&good[..length]), None);
        }
        for (at, byte) in [(0, 0x4f), (1, 0xc5), (1, 0xc7), (2, 0), (2, 3), (2, 2)] {
            let mut bad = good.clone();
            bad[at] = byte;
            // The changed metadata type 2 allows this length, so the header stays valid.
            assert_eq!(ParsedNshHeader::parse(&bad).is_none(), (at, byte) != (2, 2), "{at} {byte:#x}");
        }
        assert_eq!(ParsedNshHeader::parse(&[0x0f, 0xc1, 2, 1, 0, 0, 0, 255]), None, "shorter than its base");
    }

    proptest! {
        #[test]
        fn fields_are_where_rfc_8300_has_them(packet in proptest::collection::vec(any::<u8>(), 0..300)) {
            let Some(header) = ParsedNshHeader::parse(&packet) else { return Ok(()) };
            // Checks the fields in another way: as a 64-bit number followed by a 128-bit number.
            let base = u64::from_be_bytes(packet[..8].try_into().unwrap());
            prop_assert_eq!(base >> 62, 0);
            prop_assert_eq!(u64::from(header.flags), base >> 60 & 3);
            prop_assert_eq!(u64::from(header.ttl), base >> 54 & 63);
            prop_assert_eq!(header.bytes as u64, (base >> 48 & 63) * 4);
            prop_assert_eq!(u64::from(header.md_type), base >> 40 & 15);
            prop_assert_eq!(u64::from(header.next), base >> 32 & 255);
            prop_assert_eq!(u64::from(header.path), base & 0xffff_ffff);
            prop_assert!(header.bytes <= packet.len());
            if header.md_type == MD1 {
                let context = u128::from_be_bytes(packet[8..24].try_into().unwrap());
                let [a, b, c, d] = header.context.map(u128::from);
                prop_assert_eq!(context, a << 96 | b << 64 | c << 32 | d);
            }
        }
    }
}
