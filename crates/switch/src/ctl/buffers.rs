//! State of a switch's frame buffers, as reported by `weir ctl perf`.
use super::ThreadPlacement;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_memory::BufferSlab;
use weir_packet::SharedBuffers;
use weir_packet::frame::SMALL_BUFFER;

/// State of the frame buffers at the end of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuffersPerf {
    /// Size of a buffer in bytes.
    pub bytes_each: usize,
    /// Number of unused buffers. Those kept ready by threads count as of their last bursts.
    pub free: usize,
    /// Number of buffers allocated on the heap since the start, because none was left.
    pub beyond: u64,
    /// Buffers prepared at the start, by thread.
    pub prepared: Vec<PreparedBuffers>,
}

/// Buffers prepared at the start for one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedBuffers {
    /// Number of buffers.
    pub count: u32,
    /// Size of their memory in bytes.
    pub bytes: usize,
    /// Bytes of the memory that are on huge pages; none if the system does not report it.
    pub huge_bytes: Option<usize>,
    /// Placement of the thread that wrote to the memory first.
    pub place: ThreadPlacement,
}

impl BuffersPerf {
    /// Collects the state of a switch's buffers. Reads files, so the engine's thread must not call it.
    pub(super) fn new(depot: &SharedBuffers, places: &[ThreadPlacement]) -> BuffersPerf {
        let prepared = |(slab, place): (&Arc<BufferSlab>, &ThreadPlacement)| PreparedBuffers {
            count: slab.count(),
            bytes: slab.bytes(),
            huge_bytes: slab.huge_bytes(),
            place: *place,
        };
        BuffersPerf {
            bytes_each: SMALL_BUFFER,
            free: depot.free_count(),
            beyond: depot.heap_count(),
            prepared: depot.slabs().iter().zip(places).map(prepared).collect(),
        }
    }
}
