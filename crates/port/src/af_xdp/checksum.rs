//! Recognises unfinished checksums and super-frames of received frames from their bytes alone.
//!
//! XDP sees a veth peer's frames without the kernel's metadata. A transport checksum that the sender left to the
//! device holds only the folded sum of the pseudo header, and with TCP segmentation offload (generic mode) the frame
//! is a super-frame. The sender's settings are not accessible from here (it may be in another namespace) and are not
//! needed, because the sum is recognised. A finished frame whose checksum happens to equal that sum (one in 65,536)
//! is taken for unfinished; completing it gives the correct checksum again. Only damage would be hidden: in one of
//! 65,536 frames damaged on a link that has no frame check sequence.
use weir_memory::PortableSimd;
use weir_packet::frame::{Offload, PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::parse::{Layers, NetworkProtocol, TransportProtocol};
use weir_packet::{Field, Frame, ParsedHeaders, PortNo, parse_common, parse_frame, parse_frequent};

/// Returns the offload of a frame; `None` for a super-frame that cannot be cut. An unfinished frame of more than
/// `frame_max` bytes is a super-frame, to be cut to packets of `mtu` bytes. `scratch` is reused memory for parsing.
pub(super) fn left_undone(frame: &Frame, scratch: &mut ParsedHeaders, frame_max: usize, mtu: usize) -> Option<Offload> {
    let bytes = frame.bytes();
    let unfinished = layers(frame, scratch).and_then(|layers| Some((partial_checksum(bytes, &layers)?, layers)));
    let Some((checksum, layers)) = unfinished else {
        return Some(Offload::default());
    };
    let segmentation = match bytes.len() > frame_max {
        true => Some(segmentation(bytes, &layers, mtu)?),
        false => None,
    };
    Some(Offload { checksum: Some(checksum), segmentation })
}

/// Returns the positions of the headers of a frame that is no fragment.
fn layers(frame: &Frame, scratch: &mut ParsedHeaders) -> Option<Layers> {
    // Both fast parsers reject fragments.
    let is_short = parse_common(PortableSimd, frame, PortNo::LOCAL, scratch)
        || parse_frequent(frame, PortNo::LOCAL, scratch).is_some();
    if is_short {
        return Some(scratch.layers);
    }
    parse_frame(frame, PortNo::LOCAL, scratch).ok()?;
    (scratch.key.get(Field::IpFrag) == 0).then_some(scratch.layers)
}

/// Returns the position of the transport checksum if the field holds only the pseudo header's sum.
fn partial_checksum(bytes: &[u8], layers: &Layers) -> Option<PartialChecksum> {
    let (kind, start) = layers.transport?;
    let (offset, protocol) = match kind {
        TransportProtocol::Tcp => (16, 6),
        TransportProtocol::Udp => (6, 17),
        _ => return None,
    };
    let field = number(bytes, usize::from(start) + usize::from(offset))?;
    let sum = pseudo_header_sum(bytes, layers.network?, usize::from(start), protocol)?;
    (field == sum).then_some(PartialChecksum { start, offset })
}

/// Returns the folded one's complement sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1).
fn pseudo_header_sum(bytes: &[u8], network: (NetworkProtocol, u16), transport: usize, protocol: u32) -> Option<u16> {
    let at = usize::from(network.1);
    let (addresses, end) = match network.0 {
        NetworkProtocol::Ipv4 => (at + 12..at + 20, at + usize::from(number(bytes, at + 2)?)),
        NetworkProtocol::Ipv6 => (at + 8..at + 40, at + 40 + usize::from(number(bytes, at + 4)?)),
        NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
    };
    let length = u32::try_from(end.checked_sub(transport)?).ok()?;
    // Sums of 32-bit numbers fold to the same result as sums of their 16-bit halves.
    let (words, _) = bytes.get(addresses)?.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut sum = sum + u64::from(protocol) + u64::from(length);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).ok()
}

/// Returns how to cut a super-frame: TCP only, into segments that fill packets of `mtu` bytes. The sender's segment
/// size is not known here; it is at most this size unless the receiver requested a smaller one.
fn segmentation(bytes: &[u8], layers: &Layers, mtu: usize) -> Option<Segmentation> {
    let ((TransportProtocol::Tcp, transport), (network, start)) = (layers.transport?, layers.network?) else {
        return None;
    };
    let header_end = transport.checked_add(u16::from(bytes.get(usize::from(transport) + 12)? >> 4) * 4)?;
    let ecn = bytes.get(usize::from(transport) + 13)? & 0x80 != 0;
    let kind = match network {
        NetworkProtocol::Ipv4 => SegmentationKind::Tcpv4 { ecn },
        NetworkProtocol::Ipv6 => SegmentationKind::Tcpv6 { ecn },
        NetworkProtocol::Arp | NetworkProtocol::Nsh => return None,
    };
    let segment_bytes = mtu.checked_sub(usize::from(header_end.checked_sub(start)?)).filter(|&bytes| bytes > 0)?;
    Some(Segmentation { kind, segment_bytes: u16::try_from(segment_bytes).ok()?, header_bytes: header_end })
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_packet::{FramePool, offload};

    const TCP: u8 = 6;
    const UDP: u8 = 17;

    /// Returns a frame with a transport header and a payload whose checksum the sender left undone.
    fn unfinished(ipv6: bool, protocol: u8, tags: usize, payload: &[u8]) -> Vec<u8> {
        let transport = if protocol == TCP { 20 } else { 8 };
        let length = u16::try_from(transport + payload.len()).unwrap();
        let mut bytes = vec![2; 12];
        (0..tags).for_each(|_| bytes.extend([0x81, 0, 0, 7]));
        if ipv6 {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([protocol, 64]);
            bytes.extend([0xfd; 32]);
        } else {
            bytes.extend([8, 0, 0x45, 0]);
            bytes.extend((length + 20).to_be_bytes());
            bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let start = bytes.len();
        bytes.resize(start + transport, 0);
        if protocol == TCP {
            bytes[start + 12] = 0x50;
        } else {
            bytes[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
        }
        bytes.extend(payload);
        let network = if ipv6 { (NetworkProtocol::Ipv6, start - 40) } else { (NetworkProtocol::Ipv4, start - 20) };
        let network = (network.0, u16::try_from(network.1).unwrap());
        let sum = pseudo_header_sum(&bytes, network, start, u32::from(protocol)).unwrap();
        let field = start + if protocol == TCP { 16 } else { 6 };
        bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Calls `left_undone` as the port does: with a buffer and a scratch area that held other frames.
    fn left_undone(bytes: &[u8], frame_max: usize, mtu: usize) -> Option<Offload> {
        let (mut frame, mut scratch) = (Frame::from_bytes(&[0x45; 9000]), ParsedHeaders::EMPTY);
        scratch.key.words.fill(u64::MAX);
        frame.assign(bytes);
        super::left_undone(&frame, &mut scratch, frame_max, mtu)
    }

    fn finished(bytes: &[u8], offload: Offload) -> Vec<Frame> {
        let (mut pool, mut out) = (FramePool::default(), Vec::new());
        let mut frame = Frame::from_bytes(bytes);
        frame.offload = offload;
        assert!(offload::finish(frame, &mut pool, &mut out));
        out
    }

    #[test]
    fn the_pseudo_header_sum_is_the_rfcs() {
        // fd..fd twice is 32 words of 0xfdfd / 2, plus protocol and length, folded by hand.
        let bytes = unfinished(true, UDP, 0, &[1, 2]);
        let expected = (0..16).fold(17 + 10, |sum: u32, _| sum + 0xfdfd);
        assert_eq!(u32::from(number(&bytes, 14 + 40 + 6).unwrap()), (expected & 0xffff) + (expected >> 16));
    }

    #[test]
    fn unfinished_frames_are_recognised_and_finished_ones_left_alone() {
        for (ipv6, protocol, tags) in [(false, TCP, 0), (false, UDP, 1), (true, TCP, 2), (true, UDP, 0)] {
            let bytes = unfinished(ipv6, protocol, tags, b"payload");
            let offload = left_undone(&bytes, 1518, 1500).unwrap();
            let start = u16::try_from(14 + 4 * tags + if ipv6 { 40 } else { 20 }).unwrap();
            let offset = if protocol == TCP { 16 } else { 6 };
            assert_eq!(offload.checksum, Some(PartialChecksum { start, offset }));
            assert_eq!(offload.segmentation, None);
            let whole = finished(&bytes, offload);
            assert_eq!(left_undone(whole[0].bytes(), 1518, 1500), Some(Offload::default()));
        }
    }

    #[test]
    fn super_frames_are_cut_to_the_mtu() {
        let bytes = unfinished(false, TCP, 0, &[5; 4000]);
        let offload = left_undone(&bytes, 1518, 1500).unwrap();
        let lengths: Vec<usize> = finished(&bytes, offload).iter().map(|frame| frame.len()).collect();
        assert_eq!(lengths, [1514, 1514, 54 + 4000 - 2 * 1460]);
        // The length of the datagrams in a long UDP frame is not known.
        assert_eq!(left_undone(&unfinished(false, UDP, 0, &[5; 4000]), 1518, 1500), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), mtu in 0usize..2000) {
            let _ = left_undone(&bytes, mtu, mtu);
        }

        #[test]
        fn damaged_frames_are_read(at in 0usize..100, byte: u8, cut in 0usize..2000, mtu in 0usize..2000) {
            let mut bytes = unfinished(at % 2 == 0, if at % 4 < 2 { TCP } else { UDP }, 0, &[7; 1900]);
            bytes[at] = byte;
            bytes.truncate(cut);
            let _ = left_undone(&bytes, mtu, mtu);
        }
    }
}
