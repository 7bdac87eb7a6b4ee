//! Computes checksums: the Internet checksum (RFC 1071), its incremental update (RFC 1624), and SCTP's CRC32c (RFC
//! 9260, appendix A). [`verify`] checks a whole frame.
use crate::PacketType;
use crate::bytes::{read, read_u16};
use crate::datagram::IpDatagram;
use crate::parse::ip::ipv4_header;
use crate::parse::{NetworkProtocol, TransportProtocol};

/// Running one's complement sum of 16-bit numbers in network byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnesComplementSum(u64);

impl OnesComplementSum {
    /// Returns a sum that continues from a folded one.
    #[must_use]
    #[inline]
    pub(crate) fn from_folded(sum: u16) -> OnesComplementSum {
        OnesComplementSum(sum.into())
    }

    /// Adds bytes that start at an even offset of the summed data. An odd last byte counts as if a zero followed it,
    /// so only the last part of the data may have an odd length.
    #[must_use]
    #[inline]
    pub(crate) fn plus(mut self, bytes: &[u8]) -> OnesComplementSum {
        // A 32-bit number folds to the same value as the sum of its halves (2^16 is 1 modulo 2^16 - 1), and 2^32 such
        // numbers fit into 64 bits.
        let (words, rest) = bytes.as_chunks::<4>();
        self.0 += words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum::<u64>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_be_bytes(last));
        self
    }

    /// Adds one number.
    #[must_use]
    pub(crate) fn plus_u32(self, number: u32) -> OnesComplementSum {
        OnesComplementSum(self.0 + u64::from(number))
    }

    /// Replaces `old` by `new`, of the same length, at an even offset of the summed data (RFC 1624, equation 3).
    #[must_use]
    #[inline]
    pub(crate) fn replace(self, old: &[u8], new: &[u8]) -> OnesComplementSum {
        OnesComplementSum(self.0 + u64::from(!OnesComplementSum::default().plus(old).fold())).plus(new)
    }

    /// Returns the sum as a 16-bit number, the value of a partial checksum field.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the last step ends below 2^16")]
    #[inline]
    pub(crate) fn fold(self) -> u16 {
        // Upper bounds after each step: 2^33, 2^18, 2^16 + 3 and 2^16 - 1. A fixed number of steps avoids a loop with
        // an unpredictable end.
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// Returns the value of a checksum field: the complement of the sum.
    #[must_use]
    #[inline]
    pub(crate) fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// Returns the checksum after `old` became `new`, of the same length and at an even offset of the summed data (RFC
/// 1624). A checksum that was wrong stays wrong by the same difference.
#[must_use]
#[inline]
pub fn updated(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    OnesComplementSum::from_folded(!checksum).replace(old, new).checksum()
}

/// Returns the Internet checksum of consecutive parts. All parts but the last must have an even length.
#[must_use]
pub fn internet(parts: &[&[u8]]) -> u16 {
    parts.iter().fold(OnesComplementSum::default(), |sum, part| sum.plus(part)).checksum()
}

/// Returns the CRC32c (Castagnoli) register after `bytes`. The register starts as all ones and is complemented at the
/// end.
fn crc32c_continue(register: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc32c_table();
    bytes.iter().fold(register, |crc, byte| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ crc >> 8)
}

const fn crc32c_table() -> [u32; 256] {
    /// Castagnoli polynomial, lowest power first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut index: u32 = 0;
    while index < 256 {
        let mut crc = index;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[index as usize] = crc;
        index += 1;
    }
    table
}

/// Returns the value for the checksum field of an SCTP packet: the CRC32c of the packet with zeros in the field,
/// lowest byte first. `None` if the header is incomplete.
pub(crate) fn sctp_checksum(packet: &[u8]) -> Option<[u8; 4]> {
    let (header, rest) = packet.split_at_checked(12)?;
    let register = crc32c_continue(crc32c_continue(!0, &header[..8]), &[0; 4]);
    Some((!crc32c_continue(register, rest)).to_le_bytes())
}

/// A wrong checksum in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadChecksum {
    /// The IPv4 header checksum is wrong.
    #[error("the IPv4 header checksum is wrong")]
    Ipv4Header,
    /// The checksum of the transport header is wrong.
    #[error("the {0:?} checksum is wrong")]
    Transport(TransportProtocol),
}

/// Checks the checksums of a frame, also behind MPLS, PBB and network service headers. Frames whose checksums cannot
/// be checked pass: other protocols than IP, fragments, truncated packets, UDP without checksum, and routing headers
/// whose last destination is unknown.
///
/// # Errors
/// The first wrong checksum.
pub fn verify(frame: &[u8]) -> Result<(), BadChecksum> {
    verify_as(frame, PacketType::ETHERNET)
}

/// Checks checksums like [`verify`], for a packet that starts with a header of type `kind`.
///
/// # Errors
/// The first wrong checksum.
pub fn verify_as(frame: &[u8], kind: PacketType) -> Result<(), BadChecksum> {
    let Some(datagram) = IpDatagram::innermost(frame, kind) else { return Ok(()) };
    if datagram.network == NetworkProtocol::Ipv4 && !ipv4_header_is_right(frame, datagram.network_at) {
        return Err(BadChecksum::Ipv4Header);
    }
    match datagram.transport {
        Some((transport, at))
            if datagram.whole && transport_is_right(frame, &datagram, transport, at) == Some(false) =>
        {
            Err(BadChecksum::Transport(transport))
        }
        _ => Ok(()),
    }
}

fn ipv4_header_is_right(frame: &[u8], at: usize) -> bool {
    ipv4_header(frame, at).is_none_or(|(header, _)| {
        let bytes = usize::from(header[0] & 15) * 4;
        OnesComplementSum::default().plus(&frame[at..at + bytes]).checksum() == 0
    })
}

/// Returns true if the transport checksum is right; `None` if it cannot be checked.
fn transport_is_right(frame: &[u8], datagram: &IpDatagram, transport: TransportProtocol, at: usize) -> Option<bool> {
    let packet = frame.get(at..datagram.end)?;
    let pseudo_header = match transport {
        TransportProtocol::Sctp => return Some(read(packet, 8)? == sctp_checksum(packet)?),
        TransportProtocol::Udp if read_u16(packet, 6)? == 0 => return None,
        TransportProtocol::Icmpv4 => OnesComplementSum::default(),
        _ => datagram.pseudo_header(frame, packet.len())?,
    };
    Some(pseudo_header.plus(packet).checksum() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_values() {
        // Source: RFC 1071, section 3, and RFC 3720, B.4.
        assert_eq!(OnesComplementSum::default().plus(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).fold(), 0xddf2);
        assert_eq!(!crc32c_continue(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32c_continue(!0, &[0; 32]), 0x8a91_36aa);
        // Source: RFC 1624, section 4, the case in which the older formula gives 0xffff.
        assert_eq!(updated(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }

    #[test]
    fn sums_of_every_size_fold() {
        for sum in [0, 1, 0xffff, 0x1_0000, 0x1_ffff, 0xffff_0001, 0xffff_ffff, 0x1_0000_0000, u64::MAX - 1, u64::MAX] {
            let folded = OnesComplementSum(sum).fold();
            assert_eq!((u64::from(folded) % 0xffff, folded == 0), (sum % 0xffff, sum == 0), "{sum:x}");
        }
    }

    proptest! {
        #[test]
        fn an_update_equals_a_new_sum(
            mut bytes in proptest::collection::vec(any::<u8>(), 8..64), at in 0usize..3, new in any::<[u8; 4]>()
        ) {
            // A sum of zero has two representations; sums over headers are never zero.
            bytes[0] |= 1;
            let before = OnesComplementSum::default().plus(&bytes).checksum();
            let place = at * 2 + 2..at * 2 + 6;
            prop_assume!(place.end <= bytes.len());
            let after = updated(before, &bytes[place.clone()], &new);
            bytes[place].copy_from_slice(&new);
            prop_assert_eq!(after, OnesComplementSum::default().plus(&bytes).checksum());
        }
    }
}
