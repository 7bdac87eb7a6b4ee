//! Ports: the interfaces through which the switch receives and transmits frames.
//!
//! A [`Port`] is driven by one engine thread. It receives frames into batches and transmits frames from batches,
//! never blocks, and tells the engine how to wait for frames. Each kind of port has a module. [`spec`] parses
//! `KIND:NAME` and opens the port. Wrappers around any port limit its rate, delay, record or damage its frames.
pub mod af_packet;
pub mod af_xdp;
mod claim;
mod ethtool;
pub mod event;
pub mod fault;
pub mod interface;
pub mod kernel;
pub mod link;
pub mod memory;
pub mod netlink;
pub mod notes;
pub mod null;
pub mod pcap;
mod peer;
pub mod queues;
pub mod spec;
mod sys;
pub mod tap;
pub mod tracer;
pub mod traits;
pub mod tunnel;
mod unfinished;
pub mod veth;
mod virtio;
pub mod wrap;

pub use spec::{PortSpec, open, open_alone};
pub use sys::slice::ask_for_slices_of;
pub use traits::{FrameCounters, LinkState, Port, PortError, PortInfo, ReceiveReadiness};
