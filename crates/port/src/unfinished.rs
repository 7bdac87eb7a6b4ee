//! Finishes frames in software: computes checksums and segments super-frames, which their sender left to the port.
use weir_packet::{Frame, FramePool, PortNo, offload, parse};

/// Finishes `frames` in place: a super-frame becomes several frames. Returns the number of frames dropped because
/// their offload does not fit their bytes. `spare` is an empty list that the caller keeps to avoid an allocation per
/// batch.
pub(crate) fn finish(frames: &mut Vec<Frame>, spare: &mut Vec<Frame>, pool: &mut FramePool) -> u64 {
    if frames.iter().all(|frame| frame.offload.is_none()) {
        return 0;
    }
    let damaged = frames.drain(..).map(|frame| u64::from(!offload::finish(frame, pool, spare))).sum();
    frames.append(spare);
    damaged
}

/// Like [`finish`], but only for super-frames whose transport header is behind MPLS labels, an NSH header or a PBB
/// header. Devices and Linux cannot segment these, because they only find a transport header in an IP packet that
/// directly follows the Ethernet header.
pub(crate) fn finish_hidden(frames: &mut Vec<Frame>, spare: &mut Vec<Frame>, pool: &mut FramePool) -> u64 {
    if !frames.iter().any(is_hidden) {
        return 0;
    }
    let mut damaged = 0;
    for frame in frames.drain(..) {
        if is_hidden(&frame) {
            damaged += u64::from(!offload::finish(frame, pool, spare));
        } else {
            spare.push(frame);
        }
    }
    frames.append(spare);
    damaged
}

/// Returns true if a frame needs segmentation but its transport header is not found by parsing. A super-frame is
/// long, so parsing it once more is cheap by comparison.
fn is_hidden(frame: &Frame) -> bool {
    frame.offload.segmentation.is_some()
        && parse(frame.bytes(), PortNo::ANY).is_ok_and(|parsed| parsed.layers.transport.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::craft::FrameBuilder;
    use weir_packet::frame::{PartialChecksum, Segmentation, SegmentationKind};
    use weir_packet::{MacAddr, edit};

    #[test]
    fn only_what_is_hidden_is_cut() {
        let ethernet = FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6])).ipv4([1; 4].into(), [2; 4].into());
        let mut plain = ethernet.udp(5, 6).payload(&[7; 2500]).frame();
        plain.offload.checksum = Some(PartialChecksum { start: 34, offset: 6 });
        let segmentation = Segmentation { kind: SegmentationKind::Udp, segment_bytes: 1000, header_bytes: 42 };
        plain.offload.segmentation = Some(segmentation);
        let mut hidden = plain.clone();
        edit::encap_nsh(&mut hidden, 1, [].into_iter()).unwrap();
        edit::encap_ethernet(&mut hidden).unwrap();
        let (mut pool, mut spare) = (FramePool::default(), Vec::new());
        let mut frames = vec![plain.clone(), hidden, plain.clone()];
        assert_eq!(finish_hidden(&mut frames, &mut spare, &mut pool), 0);
        let cut: Vec<bool> = frames.iter().map(|frame| frame.offload.segmentation.is_none()).collect();
        assert_eq!(cut, [false, true, true, true, false]);
        assert!(frames[1..4].iter().all(|frame| weir_packet::checksum::verify(frame.bytes()).is_ok()));
        let mut damaged = frames.pop().unwrap();
        damaged.bytes_mut()[12..14].copy_from_slice(&[0x88, 0xb5]);
        assert_eq!(finish_hidden(&mut vec![damaged], &mut spare, &mut pool), 1);
    }
}
