//! Inserts and removes four bytes after the addresses, for pushing and popping tags in constant time and without
//! calls.
use super::{FrameBody, FrameTooLong, MAX_FRAME};

/// Length in bytes of both Ethernet addresses, which move when a tag is inserted after them.
const ADDRESSES: usize = 12;
/// Length of a tag in bytes: its type and content.
const TAG: usize = 4;

impl FrameBody {
    /// Inserts four bytes after the addresses, like [`FrameBody::insert`]. The frame must have at least an Ethernet
    /// header.
    ///
    /// # Errors
    /// The frame would exceed [`MAX_FRAME`]; it is then unchanged.
    #[inline]
    pub fn push_tag(&mut self, tag: [u8; TAG]) -> Result<(), FrameTooLong> {
        if self.start() < TAG || self.len() > MAX_FRAME - TAG {
            return self.push_tag_anywhere(tag);
        }
        let start = self.start() - TAG;
        let Some(room) = self.buffer.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<{ ADDRESSES + TAG }>())
        else {
            return Ok(());
        };
        room.copy_within(TAG.., 0);
        room[ADDRESSES..].copy_from_slice(&tag);
        self.set_start(start);
        if !self.offload.is_none() {
            self.offload.shift(ADDRESSES, TAG, |offset, count| offset.saturating_add(count));
        }
        Ok(())
    }

    /// Removes the four bytes after the addresses, like [`FrameBody::remove`]. Has no effect if the frame is too
    /// short.
    #[inline]
    pub fn pop_tag(&mut self) {
        let start = self.start();
        if self.len() < ADDRESSES + TAG {
            return;
        }
        let Some(head) = self.buffer.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<{ ADDRESSES + TAG }>())
        else {
            return;
        };
        head.copy_within(..ADDRESSES, TAG);
        self.set_start(start + TAG);
        if !self.offload.is_none() {
            self.offload.shift(ADDRESSES, TAG, |offset, count| offset.saturating_sub(count));
        }
    }

    #[cold]
    fn push_tag_anywhere(&mut self, tag: [u8; TAG]) -> Result<(), FrameTooLong> {
        self.insert(ADDRESSES, TAG)?;
        if let Some(place) = self.bytes_mut().get_mut(ADDRESSES..ADDRESSES + TAG) {
            place.copy_from_slice(&tag);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Frame;
    use crate::frame::{FrameTooLong, MAX_FRAME, Offload, PartialChecksum, Segmentation, SegmentationKind};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tags_do_what_insert_and_remove_do(
            bytes in proptest::collection::vec(any::<u8>(), 14..100), pushes in 0..40_usize, pops in 0..60_usize, has_offload: bool
        ) {
            let (mut tagged, mut reference) = (Frame::from_bytes(&bytes), Frame::from_bytes(&bytes));
            if has_offload {
                let kind = SegmentationKind::Tcpv4 { ecn: false };
                let segmentation = Some(Segmentation { kind, segment_bytes: 10, header_bytes: 54 });
                let offload = Offload { checksum: Some(PartialChecksum { start: 34, offset: 16 }), segmentation };
                (tagged.offload, reference.offload) = (offload, offload);
            }
            for number in 0..pushes {
                let tag = [0x81, 0, 0, u8::try_from(number).unwrap()];
                tagged.push_tag(tag).unwrap();
                reference.insert(12, 4).unwrap();
                reference.bytes_mut()[12..16].copy_from_slice(&tag);
            }
            prop_assert_eq!((tagged.bytes(), tagged.offload), (reference.bytes(), reference.offload));
            for _ in 0..pops {
                tagged.pop_tag();
                if reference.len() >= 16 {
                    reference.remove(12, 4);
                }
            }
            prop_assert_eq!((tagged.bytes(), tagged.offload), (reference.bytes(), reference.offload));
        }
    }

    #[test]
    fn a_frame_that_is_as_long_as_can_be_gets_no_tag() {
        let mut frame = Frame::from_bytes(&vec![7; MAX_FRAME - 3]);
        assert_eq!(frame.push_tag([1, 2, 3, 4]), Err(FrameTooLong));
        assert_eq!(frame.bytes(), vec![7; MAX_FRAME - 3]);
        let mut frame = Frame::from_bytes(&vec![7; MAX_FRAME - 4]);
        frame.push_tag([1, 2, 3, 4]).unwrap();
        assert_eq!((frame.len(), &frame.bytes()[10..18]), (MAX_FRAME, &[7, 7, 1, 2, 3, 4, 7, 7][..]));
    }
}
