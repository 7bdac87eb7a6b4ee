//! Frames that were on their way to a port, or waited to be looked up, when the port went: dropped and counted here.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_packet::{Frame, FramePool};

/// Counts frames of ports that went; copies share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct GonePorts(Arc<AtomicU64>);

impl GonePorts {
    /// Drops frames of a port that went; none is left in the list.
    #[cold]
    pub(crate) fn drop_frames(&self, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        self.0.fetch_add(frames.len() as u64, Ordering::Relaxed);
        pool.give_burst(frames);
    }

    /// Frames dropped so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
