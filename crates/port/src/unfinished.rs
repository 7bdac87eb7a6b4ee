//! Doing in software what frames' senders left to the port.
use weir_packet::{Frame, FramePool, offload};

/// Finishes `frames` in place: super-frames become several. How many were dropped since their offload does not fit them.
/// `spare` is an empty list, kept by the caller so that none is allocated per batch.
pub(crate) fn finish(frames: &mut Vec<Frame>, spare: &mut Vec<Frame>, pool: &mut FramePool) -> u64 {
    if frames.iter().all(|frame| frame.offload.is_none()) {
        return 0;
    }
    let damaged = frames.drain(..).map(|frame| u64::from(!offload::finish(frame, pool, spare))).sum();
    frames.append(spare);
    damaged
}
