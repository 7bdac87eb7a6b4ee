//! Identifies who counts packets: the engine's thread or a worker, each with counters of its own.
use weir_units::Instant;

/// Number of the thread that counts: 0 for the engine's thread, its workers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerNo(pub(crate) usize);

impl WorkerNo {
    pub(crate) const ENGINE: WorkerNo = WorkerNo(0);
}

/// Counting of looked-up packets: in the counters of a worker, with the packets' arrival time, or not at all.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountingMode {
    For(WorkerNo, Instant),
    /// Packets are counted already.
    Done,
}
