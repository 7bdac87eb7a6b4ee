//! A crosspoint-queued fabric that virtual switches share: admission, queues and schedulers (Anhalt, 2011, chapter 4).
//!
//! For switches and simulators that divide ports among tenants with guarantees. Between each input and each output lies
//! a *crosspoint* with a buffer. Every virtual switch has a share of that buffer: its queue at this crosspoint. When an
//! output's line is free, a discipline among the switches chooses a virtual switch, and that switch's own discipline
//! chooses one of its queues to the output. A guarantee is admitted only if its resources are free ([`Fabric::check`]).
//!
//! The fabric knows lengths, classes and time, but no packet contents and no clock. A queue holds any `T`, such as a
//! frame's handle or an index, and callers pass in `now`. One implementation therefore runs live and in virtual time.
//!
//! Start with:
//!
//! - [`Fabric`]: [`enqueue`](Fabric::enqueue) and [`dequeue`](Fabric::dequeue), and the counters of every queue.
//! - [`FabricConfig`] and [`VirtualSwitchConfig`]: ports, buffers, and what each tenant is guaranteed.
//! - [`InterDiscipline`] and [`IntraDiscipline`]: who is served next.
//!
//! Not in this crate: the choice of a packet's virtual switch and the way there (`weir-slicing`), traffic to try it
//! with (`weir-traffic`), networks of fabrics in virtual time (`weir-sim`), formulas (`weir-model`).
//!
//! ```
//! use weir_fabric::*;
//! use weir_units::{Bps, Instant};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let input = InputConfig { rate: Bps(1_000_000_000) };
//! let output = OutputConfig::new(Bps(1_000_000_000), 192_000);
//! let config = FabricConfig { inputs: vec![input; 2], outputs: vec![output; 2], ..FabricConfig::default() };
//! let mut fabric = Fabric::new(config)?;
//! let ports = (0..2).map(|port| VirtualPort::new(PortIndex(port), Bps(400_000_000))).collect();
//! let red = fabric.add(Instant::ZERO, VirtualSwitchConfig::new("red", ports, 96_000))?;
//!
//! let at = Crosspoint { switch: red, input: PortIndex(0), output: PortIndex(1) };
//! let mut dropped = Vec::new();
//! assert!(fabric.enqueue(Instant::ZERO, at, FabricPacket::new(1500, "hello"), &mut dropped));
//! let DequeueResult::Packet(sent) = fabric.dequeue(Instant::ZERO, PortIndex(1)) else { panic!("nothing is queued") };
//! assert_eq!((sent.item, sent.bytes), ("hello", 1500));
//! # Ok(())
//! # }
//! ```
mod admission;
mod bits;
mod bound;
mod buffer_admission;
mod config;
mod counters;
mod fabric;
mod intra;
mod outlet;
mod output;
mod packet;
mod queue;
mod rate_limit;
mod red;
mod resize;
mod slab;
mod split;
mod tournament;

pub use admission::{AdmissionError, FabricError};
pub use bound::{drr_bound, strict_priority_bound};
pub use config::{
    BufferSharing, CrosspointBuffers, DropPolicy, FabricConfig, ForwardingMatrix, InputConfig, InterDiscipline,
    IntraDiscipline, OutputConfig, RedConfig, VirtualPort, VirtualSwitchConfig,
};
pub use counters::{CrosspointCounters, MergeCounters, PacketByteCount};
pub use fabric::Fabric;
pub use packet::{
    Crosspoint, DequeueResult, DequeueStop, FabricDeparture, FabricDrop, FabricDropReason, FabricPacket, PortIndex,
    VirtualSwitchIndex,
};
pub use rate_limit::OutputLine;
pub use split::{MAX_PATHS, PathSplitter, SplitError, SplitPolicy};

/// Maximum number of inputs, and of outputs, of a fabric.
pub const MAX_PORTS: usize = 256;
/// Maximum number of virtual switches of a fabric.
pub const MAX_SWITCHES: usize = 256;
/// Maximum buffer of a physical crosspoint in bytes.
pub const MAX_CROSSPOINT_BYTES: u64 = 1_000_000_000;
/// Maximum number of queues of all virtual switches together.
pub const MAX_QUEUES: usize = 1 << 21;
/// Maximum number of packets in a fabric; further packets are dropped as if their buffer were full.
pub const MAX_PACKETS: u32 = 1 << 24;
/// Maximum quantum of deficit round robin, in bytes.
pub const MAX_QUANTUM: u32 = 1 << 24;
