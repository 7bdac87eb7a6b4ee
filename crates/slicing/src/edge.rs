//! Adds and removes the VLAN tags of virtual switches at the physical ports. Outside, the packets carry a tag;
//! inside, they do not.
use weir_packet::field::eth_type;
use weir_packet::{Frame, FramePool};

/// Removes the outermost tag from frames that were selected by it.
pub fn strip(frames: &mut [Frame]) {
    for frame in frames.iter_mut().filter(|frame| is_tagged(frame)) {
        frame.remove(12, 4);
    }
}

/// Inserts a tag with priority 0 before all other tags. Frames that cannot carry one, because they are too long or
/// not Ethernet, are dropped: without the tag they would belong to another virtual switch. Returns the number of
/// dropped frames.
pub fn tag(frames: &mut Vec<Frame>, vlan: u16, pool: &mut FramePool) -> u64 {
    let before = frames.len();
    let mut kept = 0;
    for at in 0..before {
        if push(&mut frames[at], vlan) {
            frames.swap(kept, at);
            kept += 1;
        }
    }
    frames.drain(kept..).for_each(|frame| pool.give(frame));
    (before - kept) as u64
}

fn push(frame: &mut Frame, vlan: u16) -> bool {
    let is_ethernet = frame.packet_type().is_ethernet() && frame.len() >= 14;
    if !is_ethernet || frame.insert(12, 4).is_err() {
        return false;
    }
    if let Some(tag) = frame.bytes_mut().get_mut(12..16) {
        let ([type_high, type_low], [high, low]) = (eth_type::VLAN.to_be_bytes(), vlan.to_be_bytes());
        tag.copy_from_slice(&[type_high, type_low, high, low]);
    }
    true
}

/// Returns true if a frame has a tag; the first lookup reads the same bytes.
fn is_tagged(frame: &Frame) -> bool {
    let outermost = frame.bytes().get(12..18).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    frame.packet_type().is_ethernet() && matches!(outermost, Some(eth_type::VLAN | eth_type::QINQ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::MacAddr;
    use weir_packet::PacketType;
    use weir_packet::craft::FrameBuilder;

    fn frame(tags: &[(u16, u16, u8)]) -> Frame {
        let craft = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
        let craft = tags.iter().fold(craft, |craft, (tpid, vlan, pcp)| craft.vlan(*tpid, *vlan, *pcp));
        Frame::from_bytes(&craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).payload(b"x").build())
    }

    #[test]
    fn takes_the_outermost_tag_and_gives_one() {
        let mut frames = vec![frame(&[(0x8100, 10, 5)]), frame(&[(0x88a8, 10, 0), (0x8100, 7, 0)]), frame(&[])];
        strip(&mut frames);
        assert_eq!(frames[0].bytes(), frame(&[]).bytes());
        assert_eq!(frames[1].bytes(), frame(&[(0x8100, 7, 0)]).bytes(), "the inner one is the tenant's");
        assert_eq!(frames[2].bytes(), frame(&[]).bytes());
        assert_eq!(tag(&mut frames, 20, &mut FramePool::default()), 0);
        assert_eq!(frames[0].bytes(), frame(&[(0x8100, 20, 0)]).bytes());
        assert_eq!(frames[1].bytes(), frame(&[(0x8100, 20, 0), (0x8100, 7, 0)]).bytes());
    }

    #[test]
    fn what_cannot_have_a_tag_does_not_leave() {
        let mut bare = frame(&[]);
        bare.set_packet_type(PacketType::of_eth_type(0x0800));
        let mut frames = vec![frame(&[]), Frame::from_bytes(&[0; 13]), bare, frame(&[(0x8100, 7, 0)])];
        assert_eq!(tag(&mut frames, 20, &mut FramePool::default()), 2);
        let left: Vec<&[u8]> = frames.iter().map(|frame| frame.bytes()).collect();
        assert_eq!(left, [frame(&[(0x8100, 20, 0)]).bytes(), frame(&[(0x8100, 20, 0), (0x8100, 7, 0)]).bytes()]);
    }

    #[test]
    fn frames_that_end_within_the_tag_stay() {
        for length in 0..18 {
            let mut frames = [Frame::from_bytes(&frame(&[(0x8100, 10, 0)]).bytes()[..length])];
            strip(&mut frames);
            assert_eq!(frames[0].len(), length);
        }
    }
}
