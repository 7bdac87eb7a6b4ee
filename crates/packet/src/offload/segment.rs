//! Cuts super-frames: TCP segmentation, and UDP datagrams of equal length (Linux's `UDP_SEGMENT`).
use super::nonzero;
use crate::bytes::{read_u16, read_u32, write};
use crate::checksum::OnesComplementSum;
use crate::datagram::IpDatagram;
use crate::frame::{Offload, Segmentation, SegmentationKind};
use crate::parse::{NetworkProtocol, TransportProtocol};
use crate::{Frame, FramePool};

/// Maximum number of segments of a super-frame. 64 KiB at Linux's smallest TCP segment size, 48 bytes, make 1366.
pub const MAX_SEGMENTS: usize = 1400;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Layout of a super-frame.
struct SuperFrame<'a> {
    frame: &'a [u8],
    datagram: IpDatagram,
    transport: TransportProtocol,
    transport_at: usize,
    /// Length in bytes of all headers, which each segment repeats.
    headers: usize,
    /// True if segments get a transport checksum.
    checksummed: bool,
}

/// Cuts `frame` and appends the segments to `out`. Returns `None` and appends nothing if the frame does not fit
/// `stated`.
pub(super) fn cut(frame: &Frame, stated: Segmentation, pool: &mut FramePool, out: &mut Vec<Frame>) -> Option<()> {
    let whole = SuperFrame::of(frame, stated.kind)?;
    let payload = frame.bytes().get(whole.headers..whole.datagram.end)?;
    let segment_bytes = usize::from(stated.segment_bytes);
    if segment_bytes == 0 || payload.len().div_ceil(segment_bytes) > MAX_SEGMENTS {
        return None;
    }
    let first = out.len();
    let mut offset = 0;
    // A frame without payload makes one segment without payload.
    loop {
        let bytes = segment_bytes.min(payload.len() - offset);
        let last = offset + bytes == payload.len();
        let mut segment = pool.take(whole.headers + bytes);
        segment.assign(&frame.bytes()[..whole.headers]);
        segment.inherit(frame);
        segment.offload = Offload::default();
        let is_made = segment.append(&payload[offset..offset + bytes]).is_ok();
        let place = SegmentPosition { index: out.len() - first, offset, last };
        let done = whole.fix_headers(segment.bytes_mut(), place).filter(|()| is_made);
        out.push(segment);
        if done.is_none() {
            out.drain(first..).for_each(|segment| pool.give(segment));
            return None;
        }
        if last {
            return Some(());
        }
        offset += bytes;
    }
}

/// Number and total length of the frames that [`super::finish`] makes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSize {
    /// Number of frames.
    pub packets: u32,
    /// Total length of the frames in bytes, without frame check sequences.
    pub bytes: u64,
}

impl WireSize {
    /// Computes the size for a frame. A frame that cannot be cut as stated counts as one frame.
    #[inline]
    pub fn of(frame: &Frame) -> WireSize {
        match frame.offload.segmentation {
            None => WireSize { packets: 1, bytes: frame.len() as u64 },
            Some(stated) => WireSize::of_super(frame, stated),
        }
    }

    #[cold]
    fn of_super(frame: &Frame, stated: Segmentation) -> WireSize {
        let whole = WireSize { packets: 1, bytes: frame.len() as u64 };
        let Some(layout) = SuperFrame::of(frame, stated.kind).filter(|_| stated.segment_bytes > 0) else {
            return whole;
        };
        let payload = layout.datagram.end.saturating_sub(layout.headers);
        let segments = payload.div_ceil(stated.segment_bytes.into()).max(1);
        let packets = u32::try_from(segments).unwrap_or(u32::MAX);
        WireSize { packets, bytes: (segments * layout.headers + payload) as u64 }
    }
}

/// Position of a segment in its super-frame.
#[derive(Clone, Copy)]
struct SegmentPosition {
    index: usize,
    /// Number of payload bytes before the segment.
    offset: usize,
    last: bool,
}

impl<'a> SuperFrame<'a> {
    fn of(frame: &'a Frame, kind: SegmentationKind) -> Option<SuperFrame<'a>> {
        let checksummed = frame.offload.checksum.is_some();
        let datagram = IpDatagram::innermost(frame.bytes(), frame.packet_type()).filter(|datagram| datagram.whole)?;
        let frame = frame.bytes();
        let (transport, transport_at) = datagram.transport?;
        let header_bytes = match (kind, datagram.network, transport) {
            (SegmentationKind::Tcpv4 { .. }, NetworkProtocol::Ipv4, TransportProtocol::Tcp)
            | (SegmentationKind::Tcpv6 { .. }, NetworkProtocol::Ipv6, TransportProtocol::Tcp) => {
                usize::from(frame.get(transport_at + 12)? >> 4) * 4
            }
            (SegmentationKind::Udp, _, TransportProtocol::Udp) => 8,
            _ => return None,
        };
        let headers = transport_at + header_bytes;
        let fits = headers <= datagram.end && (transport == TransportProtocol::Udp || header_bytes >= 20);
        let has_checksum =
            transport == TransportProtocol::Tcp || checksummed || read_u16(frame, transport_at + 6)? != 0;
        fits.then_some(SuperFrame { frame, datagram, transport, transport_at, headers, checksummed: has_checksum })
    }

    /// Writes the header fields that differ between segments, then the checksums.
    fn fix_headers(&self, segment: &mut [u8], place: SegmentPosition) -> Option<()> {
        self.fix_network(segment, place)?;
        match self.transport {
            TransportProtocol::Tcp => self.fix_tcp(segment, place)?,
            _ => self.write_length(segment, self.transport_at + 4, self.transport_at)?,
        }
        self.fix_checksum(segment)
    }

    /// Writes the length of the segment after offset `from` into the 16 bits at `at`.
    fn write_length(&self, segment: &mut [u8], at: usize, from: usize) -> Option<()> {
        let length = u16::try_from(segment.len() - from).ok()?;
        write(segment, at, &length.to_be_bytes()).then_some(())
    }

    /// Writes the IP length; in IPv4 also the identification, incremented for each segment, and the header checksum.
    fn fix_network(&self, segment: &mut [u8], place: SegmentPosition) -> Option<()> {
        let at = self.datagram.network_at;
        if self.datagram.network == NetworkProtocol::Ipv6 {
            return self.write_length(segment, at + 4, at + 40);
        }
        let identification = read_u16(self.frame, at + 4)?.wrapping_add(u16::try_from(place.index).ok()?);
        write(segment, at + 4, &identification.to_be_bytes());
        self.write_length(segment, at + 2, at)?;
        write(segment, at + 10, &[0, 0]);
        let header = segment.get(at..at + usize::from(*segment.get(at)? & 15) * 4)?;
        let checksum = OnesComplementSum::default().plus(header).checksum();
        write(segment, at + 10, &checksum.to_be_bytes()).then_some(())
    }

    /// Writes the sequence number. As in Linux, FIN and PSH are only set in the last segment, CWR only in the first
    /// (RFC 3168, 6.1.2).
    fn fix_tcp(&self, segment: &mut [u8], place: SegmentPosition) -> Option<()> {
        let at = self.transport_at;
        let sequence = read_u32(self.frame, at + 4)?.wrapping_add(u32::try_from(place.offset).ok()?);
        write(segment, at + 4, &sequence.to_be_bytes());
        let flags = segment.get_mut(at + 13)?;
        if !place.last {
            *flags &= !(FIN | PSH);
        }
        if place.index > 0 {
            *flags &= !CWR;
        }
        Some(())
    }

    fn fix_checksum(&self, segment: &mut [u8]) -> Option<()> {
        let field = self.transport_at + if self.transport == TransportProtocol::Tcp { 16 } else { 6 };
        write(segment, field, &[0, 0]);
        if !self.checksummed {
            return Some(());
        }
        let length = segment.len() - self.transport_at;
        let sum = self.datagram.pseudo_header(segment, length)?.plus(segment.get(self.transport_at..)?);
        write(segment, field, &nonzero(sum.checksum()).to_be_bytes()).then_some(())
    }
}
