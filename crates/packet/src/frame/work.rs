//! What the sender of a frame left to be done.

/// What the sender of a frame left to the transmitting port, as in `virtio_net_hdr` (virtio 1.2, 5.1.6): the port either
/// hands it on or does it in software ([`crate::offload`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// The transport checksum holds only the pseudo header's sum: the rest is still to be added.
    pub checksum: Option<PartialChecksum>,
    /// The frame is longer than the link's MTU and is to be cut into segments.
    pub segmentation: Option<Segmentation>,
}

/// A transport checksum that is still to be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Bytes from the frame's start to where summing starts (the transport header).
    pub start: u16,
    /// Bytes from `start` to the checksum field.
    pub offset: u16,
}

/// A super-frame that is still to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// What is cut.
    pub kind: SegmentationKind,
    /// Payload bytes of each segment but the last (the TCP maximum segment size).
    pub segment_bytes: u16,
    /// Bytes of headers repeated in front of each segment, from the frame's start. A hint: parse, do not trust.
    pub header_bytes: u16,
}

/// What a super-frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4; `ecn` set when CWR may be set only in the first segment.
    Tcpv4 {
        /// CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// TCP over IPv6.
    Tcpv6 {
        /// CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// UDP datagrams of equal length behind one header (`UDP_SEGMENT`), over IPv4 or IPv6.
    Udp,
}

impl Segmentation {
    /// Bytes of the headers that cutting a frame of `bytes` repeats.
    pub(super) fn repeated_bytes(self, bytes: u64) -> u64 {
        let header = u64::from(self.header_bytes);
        let payload = bytes.saturating_sub(header);
        let segments = payload.div_ceil(u64::from(self.segment_bytes).max(1));
        header * segments.saturating_sub(1)
    }
}

impl Offload {
    /// Whether nothing is left to be done.
    pub fn is_none(&self) -> bool {
        *self == Offload::default()
    }

    /// Moves the offsets at or behind `at` by `count`. Only headers are inserted and removed, so `count` is small.
    pub(super) fn shift(&mut self, at: usize, count: usize, by: fn(u16, u16) -> u16) {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        if let Some(checksum) = &mut self.checksum
            && usize::from(checksum.start) >= at
        {
            checksum.start = by(checksum.start, count);
        }
        if let Some(segmentation) = &mut self.segmentation
            && usize::from(segmentation.header_bytes) >= at
        {
            segmentation.header_bytes = by(segmentation.header_bytes, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    #[test]
    fn a_super_frame_has_the_bytes_of_its_segments() {
        let mut frame = Frame::from_bytes(&[0; 54 + 3000]);
        assert_eq!(frame.wire_bytes(), 3054);
        let cut = |segment_bytes, header_bytes| Segmentation {
            kind: SegmentationKind::Tcpv4 { ecn: false },
            segment_bytes,
            header_bytes,
        };
        frame.offload.segmentation = Some(cut(1448, 54));
        assert_eq!(frame.wire_bytes(), 54 * 3 + 3000);
        // Hints that are nonsense do no harm.
        for (segment_bytes, header_bytes) in [(0, 0), (1448, u16::MAX), (u16::MAX, 54)] {
            frame.offload.segmentation = Some(cut(segment_bytes, header_bytes));
            assert_eq!(frame.wire_bytes(), 3054);
        }
    }
}
