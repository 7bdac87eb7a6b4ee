//! Spreads a switch over threads, in one of two modes:
//!
//! * *run to completion*: the engine's thread does everything, and nothing is shared or locked; or several threads do
//!   everything, each for its own ports (`run_to_completion`).
//! * *pipeline* (after Lagopus; Rahimi et al., HPSR 2016): the engine's thread receives frames (`rx`) and hands
//!   them to workers. The workers run them through the flow tables (`worker`) and hand them back for transmission
//!   (`tx`).
//!
//! ```text
//!  port --A--> rx --B--> ring --C--> worker --D--> ring --E--> tx --F--> port
//! ```
//! By default frames are handed over only while that pays (`balance`); otherwise the engine's thread does all work
//! in this mode, too. Each ring has one writer and one reader. The letters are the six bursts of [`BurstSizes`];
//! `batch` limits how long a burst that is not full waits. A full ring drops frames and counts them.
//!
//! The stages are functions of `now` and their rings, so tests drive them without threads. `pipeline` holds the
//! threads, their sleep and their end. [`sharded_lock`] lets workers and the engine share the tables.
mod balance;
mod batch;
mod buffers;
mod check;
mod machine;
pub(crate) mod pipeline;
mod pipeline_worker;
mod policy;
pub(crate) mod removed_ports;
mod ring_writer;
pub(crate) mod run_to_completion;
mod rx;
mod settings;
pub mod sharded_lock;
mod tx;
mod worker;
mod worker_context;

pub use buffers::MAX_BUFFERS;
pub use check::ThreadsError;
pub use machine::MachineResources;
pub use policy::{ReceivePolicy, TrafficClass};
pub use run_to_completion::PortAssignment;
pub use settings::{BurstSizes, CpuList, HandOver, ThreadingMode, ThreadsConfig};

use weir_openflow::model::PortNo;
use weir_packet::Frame;

/// A frame on its way between threads, with its input port or output port.
#[derive(Debug)]
pub(crate) struct RingFrame {
    pub(crate) port: PortNo,
    pub(crate) frame: Frame,
}

#[cfg(test)]
mod tests;
