//! Describes the work that the sender of a frame left undone.

/// Work that the sender of a frame left to the transmitting port, as in `virtio_net_hdr` (virtio 1.2, 5.1.6). The
/// port passes it on or does it in software ([`crate::offload`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// Set if the transport checksum field holds only the sum of the pseudo header, and the rest must be added.
    pub checksum: Option<PartialChecksum>,
    /// Set if the frame exceeds the link's MTU and must be cut into segments.
    pub segmentation: Option<Segmentation>,
}

/// Position of a transport checksum that must be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Offset in the frame at which the summed bytes start (the transport header).
    pub start: u16,
    /// Offset of the checksum field from `start`.
    pub offset: u16,
}

/// Parameters for cutting a super-frame into segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// Protocols of the super-frame.
    pub kind: SegmentationKind,
    /// Payload bytes of each segment except the last (the TCP maximum segment size).
    pub segment_bytes: u16,
    /// Length in bytes of the headers to repeat in each segment, from the frame's start. Only a hint; the headers
    /// must be parsed.
    pub header_bytes: u16,
}

/// Protocols of a super-frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentationKind {
    /// TCP over IPv4.
    Tcpv4 {
        /// True if CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// TCP over IPv6.
    Tcpv6 {
        /// True if CWR is set in the first segment only (RFC 3168).
        ecn: bool,
    },
    /// UDP datagrams of equal length after one header (`UDP_SEGMENT`), over IPv4 or IPv6.
    Udp,
}

impl Segmentation {
    /// Returns the total length in bytes of the headers that cutting a frame of `bytes` bytes adds.
    pub(super) fn repeated_bytes(self, bytes: u64) -> u64 {
        let header = u64::from(self.header_bytes);
        let payload = bytes.saturating_sub(header);
        let segments = payload.div_ceil(u64::from(self.segment_bytes).max(1));
        header * segments.saturating_sub(1)
    }
}

impl Offload {
    /// Returns true if no work is left.
    pub fn is_none(&self) -> bool {
        *self == Offload::default()
    }

    /// Moves the offsets at or behind `at` by `count`. `count` is small, because only headers are inserted and
    /// removed.
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
        // Nonsensical hints do no harm.
        for (segment_bytes, header_bytes) in [(0, 0), (1448, u16::MAX), (u16::MAX, 54)] {
            frame.offload.segmentation = Some(cut(segment_bytes, header_bytes));
            assert_eq!(frame.wire_bytes(), 3054);
        }
    }
}
