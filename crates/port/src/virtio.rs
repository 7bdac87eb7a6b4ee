//! Encodes and decodes the header in which packet sockets and TAP devices describe a frame's offload:
//! `virtio_net_hdr` (virtio 1.2, 5.1.6), in its 10-byte form, in the machine's byte order.
use weir_packet::frame::{Frame, Offload, PartialChecksum, Segmentation, SegmentationKind};

/// Bytes of the header: flags, segmentation type, then 16-bit header length, segment size, checksum start, checksum
/// offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct VirtioNetHeader(pub(crate) [u8; VirtioNetHeader::LENGTH]);

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl VirtioNetHeader {
    /// Length in bytes of the header in front of each frame.
    pub(crate) const LENGTH: usize = 10;

    /// Returns the header that describes the offload of `frame`.
    pub(crate) fn of(frame: &Frame) -> Self {
        let mut header = VirtioNetHeader::default();
        if let Some(checksum) = frame.offload.checksum {
            header.0[0] = NEEDS_CHECKSUM;
            header.set(6, checksum.start);
            header.set(8, checksum.offset);
        }
        if let Some(segmentation) = frame.offload.segmentation {
            header.0[1] = match segmentation.kind {
                SegmentationKind::Tcpv4 { ecn } => GSO_TCPV4 | if ecn { GSO_ECN } else { 0 },
                SegmentationKind::Tcpv6 { ecn } => GSO_TCPV6 | if ecn { GSO_ECN } else { 0 },
                SegmentationKind::Udp => GSO_UDP_L4,
            };
            header.set(2, segmentation.header_bytes);
            header.set(4, segmentation.segment_bytes);
        }
        header
    }

    /// Returns the offload that the header describes; `None` for a kind of segmentation that weir does not know.
    pub(crate) fn offload(&self) -> Option<Offload> {
        let checksum =
            (self.0[0] & NEEDS_CHECKSUM != 0).then(|| PartialChecksum { start: self.get(6), offset: self.get(8) });
        let ecn = self.0[1] & GSO_ECN != 0;
        let kind = match self.0[1] & !GSO_ECN {
            GSO_NONE => return Some(Offload { checksum, segmentation: None }),
            GSO_TCPV4 => SegmentationKind::Tcpv4 { ecn },
            GSO_TCPV6 => SegmentationKind::Tcpv6 { ecn },
            GSO_UDP_L4 => SegmentationKind::Udp,
            _ => return None,
        };
        let segmentation = Segmentation { kind, segment_bytes: self.get(4), header_bytes: self.get(2) };
        Some(Offload { checksum, segmentation: Some(segmentation) })
    }

    fn get(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    fn set(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(offload: Offload) -> Option<Offload> {
        let mut frame = Frame::from_bytes(&[0; 60]);
        frame.offload = offload;
        VirtioNetHeader::of(&frame).offload()
    }

    #[test]
    fn every_offload_comes_back() {
        let checksum = Some(PartialChecksum { start: 34, offset: 16 });
        let kinds = [
            SegmentationKind::Tcpv4 { ecn: false },
            SegmentationKind::Tcpv4 { ecn: true },
            SegmentationKind::Tcpv6 { ecn: false },
            SegmentationKind::Tcpv6 { ecn: true },
            SegmentationKind::Udp,
        ];
        for kind in kinds {
            let segmentation = Some(Segmentation { kind, segment_bytes: 1448, header_bytes: 66 });
            let offload = Offload { checksum, segmentation };
            assert_eq!(carried(offload), Some(offload));
        }
        assert_eq!(carried(Offload { checksum, segmentation: None }), Some(Offload { checksum, segmentation: None }));
        assert_eq!(carried(Offload::default()), Some(Offload::default()));
    }

    #[test]
    fn layout_is_the_kernels() {
        let mut frame = Frame::from_bytes(&[0; 60]);
        frame.offload.checksum = Some(PartialChecksum { start: 0x0102, offset: 0x0304 });
        let bytes = VirtioNetHeader::of(&frame).0;
        assert_eq!(bytes[..6], [1, 0, 0, 0, 0, 0]);
        assert_eq!(u16::from_ne_bytes([bytes[6], bytes[7]]), 0x0102);
        assert_eq!(u16::from_ne_bytes([bytes[8], bytes[9]]), 0x0304);
    }

    #[test]
    fn unknown_segmentation_is_refused() {
        let mut header = VirtioNetHeader::default();
        header.0[1] = 3; // UDP fragmentation offload, which no sender asks for since Linux 4.14
        assert_eq!(header.offload(), None);
    }
}
