//! Writes bytes that checksums cover.
use crate::bytes::{read, read_u16, read_u32, write};
use crate::checksum::{OnesComplementSum, sctp_checksum, updated};
use crate::datagram::IpDatagram;
use crate::parse::TransportProtocol;
use crate::{Frame, Layers};

/// Part of a packet that a change affects, for the transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChecksumScope {
    /// Addresses or protocol in the network header.
    PseudoHeader,
    /// Transport header or payload.
    Segment,
}

/// Range of bits in the 32-bit number at an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderBitRange {
    pub(super) at: usize,
    pub(super) shift: u32,
    pub(super) width: u32,
}

impl HeaderBitRange {
    /// Returns the value of the bits.
    pub(super) fn get(self, frame: &Frame) -> Option<u32> {
        Some(read_u32(frame.bytes(), self.at)? >> self.shift & ((1 << self.width) - 1))
    }

    /// Returns the number's four bytes with the bits replaced by the low `width` bits of `value`.
    #[expect(clippy::cast_possible_truncation, reason = "only the low `width` bits count, at most 24")]
    pub(super) fn replaced(self, frame: &Frame, value: u128) -> Option<[u8; 4]> {
        let old = read_u32(frame.bytes(), self.at)?;
        let mask = (1 << self.width) - 1;
        Some((old & !(mask << self.shift) | (value as u32 & mask) << self.shift).to_be_bytes())
    }

    /// Writes the bits, without updating any checksum.
    pub(super) fn write(self, frame: &mut Frame, value: u128) -> Option<()> {
        let new = self.replaced(frame, value)?;
        write(frame.bytes_mut(), self.at, &new).then_some(())
    }
}

/// Writes `new` at the even offset `offset` of the IPv4 header at `at`, and updates the header checksum. Returns the
/// old bytes.
#[inline]
pub(super) fn write_ipv4<const N: usize>(frame: &mut Frame, at: usize, offset: usize, new: [u8; N]) -> Option<[u8; N]> {
    let bytes = frame.bytes_mut();
    let old = read(bytes, at + offset)?;
    let checksum = updated(read_u16(bytes, at + 10)?, &old, &new);
    let done = write(bytes, at + 10, &checksum.to_be_bytes()) && write(bytes, at + offset, &new);
    done.then_some(old)
}

/// Writes `new` at the even offset `offset` of the transport header, and updates its checksum.
pub(super) fn write_segment(frame: &mut Frame, layers: &Layers, offset: usize, new: &[u8]) -> Option<()> {
    let (kind, at) = layers.transport?;
    let place = usize::from(at) + offset;
    if kind == TransportProtocol::Sctp {
        return write_sctp(frame, layers, place, new);
    }
    let mut old = [0; 16];
    let old = old.get_mut(..new.len())?;
    old.copy_from_slice(frame.bytes().get(place..place + new.len())?);
    write(frame.bytes_mut(), place, new).then_some(())?;
    update_checksum(frame, layers, ChecksumScope::Segment, old, new)
}

/// Updates the transport checksum after `old` became `new`, if there is one and it covers `part`.
#[inline]
pub(super) fn update_checksum(
    frame: &mut Frame,
    layers: &Layers,
    part: ChecksumScope,
    old: &[u8],
    new: &[u8],
) -> Option<()> {
    let Some((kind, at)) = layers.transport else { return Some(()) };
    let field = usize::from(at)
        + match (kind, part) {
            (TransportProtocol::Tcp, _) => 16,
            (TransportProtocol::Udp, _) => 6,
            (TransportProtocol::Icmpv6, _) | (TransportProtocol::Icmpv4, ChecksumScope::Segment) => 2,
            (TransportProtocol::Icmpv4, ChecksumScope::PseudoHeader) | (TransportProtocol::Sctp, _) => return Some(()),
        };
    let before = read_u16(frame.bytes(), field)?;
    let after = match (is_partial(frame, at), part) {
        (true, ChecksumScope::PseudoHeader) => OnesComplementSum::from_folded(before).replace(old, new).fold(),
        (true, ChecksumScope::Segment) => before,
        (false, _) => updated_in(kind, before, old, new),
    };
    write(frame.bytes_mut(), field, &after.to_be_bytes()).then_some(())
}

/// Updates a checksum. In UDP, zero means "no checksum" and stays; a computed zero is written in its other
/// representation (RFC 768).
#[inline]
fn updated_in(kind: TransportProtocol, before: u16, old: &[u8], new: &[u8]) -> u16 {
    match (kind, before) {
        (TransportProtocol::Udp, 0) => 0,
        (TransportProtocol::Udp, _) => match updated(before, old, new) {
            0 => 0xffff,
            after => after,
        },
        _ => updated(before, old, new),
    }
}

/// Returns true if the checksum of the transport header at `at` is left to the port.
fn is_partial(frame: &Frame, at: u16) -> bool {
    frame.offload.checksum.is_some_and(|partial| partial.start == at)
}

/// Writes to an SCTP packet like [`write_segment`]. A checksum that was wrong stays wrong by the same difference.
fn write_sctp(frame: &mut Frame, layers: &Layers, place: usize, new: &[u8]) -> Option<()> {
    let (_, at) = layers.transport?;
    let segment = IpDatagram::outermost(frame.bytes(), layers).filter(|datagram| datagram.whole);
    let range = segment.map(|datagram| usize::from(at)..datagram.end).filter(|_| !is_partial(frame, at));
    let checksum = |frame: &Frame| range.clone().and_then(|range| sctp_checksum(frame.bytes().get(range)?));
    let before = checksum(frame);
    write(frame.bytes_mut(), place, new).then_some(())?;
    if let (Some(before), Some(after)) = (before, checksum(frame)) {
        let field = frame.bytes_mut().get_mut(usize::from(at) + 8..usize::from(at) + 12)?;
        field.iter_mut().zip(before.iter().zip(after)).for_each(|(byte, (before, after))| *byte ^= before ^ after);
    }
    Some(())
}
