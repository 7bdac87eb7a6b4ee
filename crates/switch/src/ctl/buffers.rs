//! What `weir ctl perf` says of a switch's frame buffers.
use super::ThreadPlace;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_memory::Slab;
use weir_packet::Depot;
use weir_packet::frame::SMALL_BUFFER;

/// Frame buffers, as they are at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuffersPerf {
    /// Bytes of one.
    pub bytes_each: usize,
    /// Those that wait for frames, of all that there are; what threads keep ready for themselves is as of their last bursts.
    pub free: usize,
    /// Those made on the heap since none was left, from the start on.
    pub beyond: u64,
    /// Those there were at the start, by thread.
    pub prepared: Vec<PreparedPerf>,
}

/// Buffers that there were at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPerf {
    /// How many.
    pub count: u32,
    /// Bytes of their memory.
    pub bytes: usize,
    /// Bytes of it that are on huge pages; none if the system does not tell.
    pub huge_bytes: Option<usize>,
    /// Where the thread runs that wrote to them first.
    pub place: ThreadPlace,
}

impl BuffersPerf {
    /// What a switch has. Reads files: not for the engine's thread.
    pub(super) fn new(depot: &Depot, places: &[ThreadPlace]) -> BuffersPerf {
        let prepared = |(slab, place): (&Arc<Slab>, &ThreadPlace)| PreparedPerf {
            count: slab.count(),
            bytes: slab.bytes(),
            huge_bytes: slab.huge_bytes(),
            place: *place,
        };
        BuffersPerf {
            bytes_each: SMALL_BUFFER,
            free: depot.free_count(),
            beyond: depot.beyond_count(),
            prepared: depot.slabs().iter().zip(places).map(prepared).collect(),
        }
    }
}
