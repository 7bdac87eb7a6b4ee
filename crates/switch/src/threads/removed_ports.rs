//! Drops and counts frames whose port was removed while they were on their way to it or waited for their lookup.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_packet::{Frame, FramePool};

/// Counter of frames dropped because their port was removed. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemovedPortDrops(Arc<AtomicU64>);

impl RemovedPortDrops {
    /// Drops and counts the frames of a removed port; leaves `frames` empty.
    #[cold]
    pub(crate) fn drop_frames(&self, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        self.0.fetch_add(frames.len() as u64, Ordering::Relaxed);
        pool.give_burst(frames);
    }

    /// Number of frames dropped so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
