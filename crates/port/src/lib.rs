//! Ports: interfaces through which a program receives and transmits frames. AF_XDP, AF_PACKET, TAP, tunnels (VXLAN,
//! GRE), capture files, memory.
//!
//! For switches, generators and tests on Linux. A [`Port`] is driven by one thread. It receives frames into batches and
//! transmits frames from batches, never blocks, and tells its thread how to wait for frames. Wrappers around any port
//! limit its rate, delay, record or damage its frames.
//!
//! Start with:
//!
//! - [`Port`]: the trait of all ports.
//! - [`open()`] and [`PortSpec`]: a port from a text such as `af_packet:eth0` or `tap:t0,rate=10Mbit/s`.
//! - [`memory::pair`]: two joined ports without the kernel, for tests and for links inside a process.
//! - [`link`], [`queues`], [`fault`]: wrappers. [`mod@pcap`] reads and writes capture files.
//!
//! Not in this crate: what is in the frames (`weir-packet`), what is done with them (`weir-datapath`), traffic by the
//! clock (`weir-generator`).
//!
//! ```
//! use weir_packet::{Frame, FramePool};
//! use weir_port::{Port, memory};
//! use weir_units::Instant;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut left, mut right) = memory::pair(256)?;
//! let (now, mut pool) = (Instant::ZERO, FramePool::default());
//! left.transmit(now, &mut pool, &mut vec![Frame::from_bytes(b"any sixty bytes or more"); 3])?;
//! let mut received = Vec::new();
//! right.receive(now, &mut pool, &mut received, 64)?;
//! assert_eq!((received.len(), right.counters().rx_packets), (3, 3));
//! # Ok(())
//! # }
//! ```
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

pub use spec::{PortSpec, open, open_alone, synthetic_mac};
pub use sys::slice::ask_for_slices_of;
pub use traits::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness};
