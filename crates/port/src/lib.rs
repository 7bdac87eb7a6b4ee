//! Ports: where frames come in and go out.
//!
//! A [`Port`] is driven by one engine thread: it receives into and transmits from batches of frames, never blocks, and says
//! how to wait for it. Each kind has a module; [`spec`] reads `KIND:NAME` and opens the right one; wrappers around any port
//! shape, trace or break it.
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
pub mod notes;
pub mod null;
pub mod pcap;
mod peer;
pub mod queues;
pub mod shaper;
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
pub use traits::{Counters, LinkState, Port, PortError, PortInfo, Ready};
