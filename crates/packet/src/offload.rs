//! Doing in software what a frame's sender left to the port.
use crate::{Frame, FramePool};

/// Completes a partial transport checksum and cuts a super-frame into segments, appending the finished frame(s) to `out`;
/// buffers come from and go to `pool`. A frame with nothing left to do is appended as it is. A frame whose offload
/// does not fit its headers (a hostile or damaged sender) is dropped: `false`.
pub fn finish(_frame: Frame, _pool: &mut FramePool, _out: &mut Vec<Frame>) -> bool {
    todo!()
}
