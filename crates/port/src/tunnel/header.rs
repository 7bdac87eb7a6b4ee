//! Encodes and decodes tunnel headers: VXLAN (RFC 7348), VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe-13), GRE (RFC 2784, RFC
//! 2890).
use crate::sys::datagrams::HEADER_MAX;
use weir_packet::PacketType;
use weir_packet::checksum::internet;
use weir_packet::field::eth_type;

/// Encapsulation of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Encapsulation {
    /// Ethernet frames in UDP.
    Vxlan,
    /// Any packet in UDP.
    VxlanGpe,
    /// Any packet in IP protocol 47.
    Gre,
}

/// Contents of a tunnel header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TunnelHeader {
    /// VXLAN network identifier or GRE key; `None` for GRE without a key.
    pub(super) key: Option<u32>,
    /// Type of the packet that follows.
    pub(super) packet_type: PacketType,
    /// Length of the header in bytes.
    pub(super) bytes: usize,
}

const VXLAN_BYTES: usize = 8;
/// VXLAN flag: the network identifier is valid.
const VNI: u8 = 0x08;
/// VXLAN-GPE flag: the next protocol is valid.
const NEXT: u8 = 0x04;
/// VXLAN-GPE bits that must be zero: the version, of which only 0 is known, and the flag of packets for the tunnel's
/// ends.
const NOT_DATA: u8 = 0x31;

/// Next protocol numbers of VXLAN-GPE.
const NEXT_PROTOCOLS: [(u8, PacketType); 5] = [
    (1, PacketType::of_eth_type(eth_type::IPV4)),
    (2, PacketType::of_eth_type(eth_type::IPV6)),
    (3, PacketType::ETHERNET),
    (4, PacketType::NSH),
    (5, PacketType::of_eth_type(eth_type::MPLS)),
];

/// GRE flags in the first byte: checksum, key, sequence number.
const CHECKSUM: u8 = 0x80;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;
/// EtherType of an Ethernet frame in GRE (transparent Ethernet bridging).
const TEB: u16 = 0x6558;

impl Encapsulation {
    /// Parses the header in front of a packet. Returns `None` if the header is truncated, damaged, or uses features
    /// that weir does not support; the receiver drops such packets.
    pub(super) fn read(self, packet: &[u8]) -> Option<TunnelHeader> {
        match self {
            Encapsulation::Vxlan => {
                let [flags, _, _, _, key @ .., _] = *packet.first_chunk::<VXLAN_BYTES>()?;
                (flags & VNI != 0).then(|| vxlan(key, PacketType::ETHERNET))
            }
            Encapsulation::VxlanGpe => {
                let [flags, _, _, next, key @ .., _] = *packet.first_chunk::<VXLAN_BYTES>()?;
                let known = || NEXT_PROTOCOLS.iter().find(|(number, _)| *number == next).map(|(_, kind)| *kind);
                let kind = if flags & NEXT == 0 { PacketType::ETHERNET } else { known()? };
                (flags & VNI != 0 && flags & NOT_DATA == 0).then(|| vxlan(key, kind))
            }
            Encapsulation::Gre => read_gre(packet),
        }
    }

    /// Writes the header in front of a packet of `packet_type` and returns its length in bytes. If `payload` is
    /// given, a GRE header carries a checksum that covers it. Returns `None` if the tunnel does not carry such
    /// packets.
    pub(super) fn write(
        self,
        header: &mut [u8; HEADER_MAX],
        key: Option<u32>,
        packet_type: PacketType,
        payload: Option<&[u8]>,
    ) -> Option<usize> {
        let next = || NEXT_PROTOCOLS.iter().find(|(_, kind)| *kind == packet_type).map(|(number, _)| *number);
        let (flags, next) = match self {
            Encapsulation::Vxlan => (VNI, packet_type.is_ethernet().then_some(0)?),
            Encapsulation::VxlanGpe => (VNI | NEXT, next()?),
            Encapsulation::Gre => return write_gre(header, key, packet_type, payload),
        };
        let [_, a, b, c] = key.unwrap_or(0).to_be_bytes();
        header[..VXLAN_BYTES].copy_from_slice(&[flags, 0, 0, next, a, b, c, 0]);
        Some(VXLAN_BYTES)
    }

    /// Returns the number of bits of a key.
    pub(super) const fn key_bits(self) -> u32 {
        if matches!(self, Encapsulation::Gre) { 32 } else { 24 }
    }

    /// Returns the maximum overhead per packet in bytes, including the outer IPv4 header: the link's MTU must have
    /// room for it.
    pub(super) const fn overhead(self) -> u32 {
        match self {
            Encapsulation::Vxlan | Encapsulation::VxlanGpe => 20 + 8 + 8,
            Encapsulation::Gre => 20 + 12,
        }
    }
}

fn vxlan([a, b, c]: [u8; 3], packet_type: PacketType) -> TunnelHeader {
    TunnelHeader { key: Some(u32::from_be_bytes([0, a, b, c])), packet_type, bytes: VXLAN_BYTES }
}

fn read_gre(packet: &[u8]) -> Option<TunnelHeader> {
    let [flags, version, high, low] = *packet.first_chunk()?;
    // The routing flag and the bits after it are RFC 1701's: a receiver that does not know them drops the packet (RFC
    // 2784, 2.3).
    if flags & !(CHECKSUM | KEY | SEQUENCE) != 0 || version != 0 {
        return None;
    }
    let mut bytes = 4;
    if flags & CHECKSUM != 0 {
        bytes += 4;
        (internet(&[packet]) == 0).then_some(())?;
    }
    let mut key = None;
    if flags & KEY != 0 {
        key = Some(u32::from_be_bytes(*packet.get(bytes..)?.first_chunk()?));
        bytes += 4;
    }
    if flags & SEQUENCE != 0 {
        bytes += 4;
    }
    let packet_type = match u16::from_be_bytes([high, low]) {
        TEB => PacketType::ETHERNET,
        kind => PacketType::of_eth_type(kind),
    };
    (bytes <= packet.len()).then_some(TunnelHeader { key, packet_type, bytes })
}

fn write_gre(
    header: &mut [u8; HEADER_MAX],
    key: Option<u32>,
    packet_type: PacketType,
    payload: Option<&[u8]>,
) -> Option<usize> {
    let kind = if packet_type.is_ethernet() { TEB } else { packet_type.eth_type()? };
    let flags = if key.is_some() { KEY } else { 0 } | if payload.is_some() { CHECKSUM } else { 0 };
    let [high, low] = kind.to_be_bytes();
    header[..4].copy_from_slice(&[flags, 0, high, low]);
    let mut bytes = 4;
    if payload.is_some() {
        header[4..8].fill(0);
        bytes += 4;
    }
    if let Some(key) = key {
        header[bytes..bytes + 4].copy_from_slice(&key.to_be_bytes());
        bytes += 4;
    }
    if let Some(payload) = payload {
        let checksum = internet(&[&header[..bytes], payload]);
        header[4..6].copy_from_slice(&checksum.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vxlan_is_as_rfc_7348_has_it() {
        let mut header = [0xff; HEADER_MAX];
        let bytes = Encapsulation::Vxlan.write(&mut header, Some(0x12_3456), PacketType::ETHERNET, None).unwrap();
        assert_eq!(header[..bytes], [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(Encapsulation::Vxlan.write(&mut header, None, PacketType::NSH, None), None);
        assert_eq!(Encapsulation::Vxlan.read(&[0, 0, 0, 0, 0, 0, 5, 0]), None, "no identifier");
        let expected = TunnelHeader { key: Some(5), packet_type: PacketType::ETHERNET, bytes: 8 };
        assert_eq!(
            Encapsulation::Vxlan.read(&[0xff, 0, 0, 9, 0, 0, 5, 7]),
            Some(expected),
            "reserved bits are ignored"
        );
    }

    #[test]
    fn vxlan_gpe_says_what_follows() {
        let mut header = [0; HEADER_MAX];
        Encapsulation::VxlanGpe.write(&mut header, Some(5), PacketType::NSH, None).unwrap();
        assert_eq!(header[..8], [0x0c, 0, 0, 4, 0, 0, 5, 0]);
        assert_eq!(Encapsulation::VxlanGpe.write(&mut header, None, PacketType::of_eth_type(0x0806), None), None);
        let read = |flags, next| Encapsulation::VxlanGpe.read(&[flags, 0, 0, next, 0, 0, 5, 0]).map(|h| h.packet_type);
        assert_eq!(read(0x08, 0), Some(PacketType::ETHERNET));
        assert_eq!(read(0x0c, 2), Some(PacketType::of_eth_type(0x86dd)));
        for (flags, next) in [(0x0c, 9), (0x04, 3), (0x1c, 3), (0x0d, 3)] {
            assert_eq!(read(flags, next), None, "{flags:#x} {next}");
        }
    }

    #[test]
    fn gre_is_as_rfc_2890_has_it() {
        let mut header = [0; HEADER_MAX];
        let gre = Encapsulation::Gre;
        assert_eq!(gre.write(&mut header, Some(0xdead_beef), PacketType::ETHERNET, None), Some(8));
        assert_eq!(header[..8], [0x20, 0, 0x65, 0x58, 0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(gre.write(&mut header, None, PacketType::of_eth_type(0x0800), None), Some(4));
        assert_eq!(header[..4], [0, 0, 8, 0]);
        let sequenced = [0x30, 0, 0x65, 0x58, 0, 0, 0, 7, 0, 0, 0, 1];
        assert_eq!(gre.read(&sequenced).map(|header| (header.key, header.bytes)), Some((Some(7), 12)));
        for (at, byte) in [(0, 0x70), (0, 0x34), (1, 1), (0, 0xb0)] {
            let mut wrong = sequenced;
            wrong[at] = byte;
            assert_eq!(gre.read(&wrong), None, "{at} {byte:#x}");
        }
        assert_eq!(gre.read(&sequenced[..11]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            key in proptest::option::of(any::<u32>()), kind in 0usize..5, which in 0usize..3, checked in any::<bool>(),
            payload in proptest::collection::vec(any::<u8>(), 0..60)
        ) {
            let tunnel = [Encapsulation::Vxlan, Encapsulation::VxlanGpe, Encapsulation::Gre][which];
            let packet_type = NEXT_PROTOCOLS[kind].1;
            let mut header = [0; HEADER_MAX];
            let checked = (checked && tunnel == Encapsulation::Gre).then_some(&payload[..]);
            let Some(bytes) = tunnel.write(&mut header, key, packet_type, checked) else {
                prop_assert!(tunnel == Encapsulation::Vxlan && !packet_type.is_ethernet());
                return Ok(());
            };
            let key = match tunnel {
                Encapsulation::Gre => key,
                _ => Some(key.unwrap_or(0) & 0xff_ffff),
            };
            let mut packet = [&header[..bytes], &payload].concat();
            prop_assert_eq!(tunnel.read(&packet), Some(TunnelHeader { key, packet_type, bytes }));
            if checked.is_some() {
                packet[bytes - 1] ^= 1;
                prop_assert_eq!(tunnel.read(&packet), None);
            }
        }

        #[test]
        fn anything_is_read(packet in proptest::collection::vec(any::<u8>(), 0..40), which in 0usize..3) {
            let tunnel = [Encapsulation::Vxlan, Encapsulation::VxlanGpe, Encapsulation::Gre][which];
            if let Some(header) = tunnel.read(&packet) {
                prop_assert!(header.bytes <= packet.len());
            }
        }
    }
}
