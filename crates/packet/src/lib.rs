//! Frames and their content: the flow key that tables match on, parsing, editing, checksums and offloads.
//!
//! For programs that look at frames or change them at a high rate: switches, generators, tools for captures. A frame is
//! parsed once, to a [`FlowKey`] of fixed size; edits keep every checksum right, complete or left to the device.
//!
//! Start with:
//!
//! - [`Frame`] and [`FramePool`]: bytes on a port, and where their buffers come from.
//! - [`parse()`], [`ParsedHeaders`] and [`Field`]: from bytes to the fields that a table sees.
//! - [`edit`]: effects of actions on a frame.
//! - [`craft`]: frames for tests, with right lengths and checksums.
//! - [`answer`]: what an IP router answers to ARP, neighbour discovery, echo requests and packets that it cannot
//!   deliver.
//!
//! Then [`offload`], the work that a sender leaves to the transmitting port, and [`checksum`].
//!
//! Not in this crate: matches and actions as OpenFlow has them (`weir-openflow`), tables (`weir-datapath`), devices
//! that send and receive frames (`weir-port`).
//!
//! ```
//! use weir_packet::craft::FrameBuilder;
//! use weir_packet::{Field, MacAddr, ParsedHeaders, PortNo, checksum, edit};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
//! let builder = FrameBuilder::ethernet(b, a).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1234, 53);
//! let mut frame = builder.payload(b"hello").frame();
//!
//! let parsed = ParsedHeaders::of(&frame, PortNo(1))?;
//! assert_eq!(parsed.key.get(Field::UdpDst), 53);
//!
//! edit::set_field(&mut frame, &parsed.layers, Field::Ipv4Dst, 0x0a00_0009);
//! assert_eq!(checksum::verify(frame.bytes()), Ok(()));
//! # Ok(())
//! # }
//! ```
pub mod answer;
mod bytes;
pub mod checksum;
pub mod craft;
mod datagram;
pub mod edit;
pub mod field;
pub mod frame;
mod ip_net;
pub mod key;
mod mac;
pub mod nsh;
pub mod offload;
mod packet_type;
pub mod parse;
mod port_no;
mod port_range;
mod shared_buffers;
#[cfg(test)]
mod test_support;

pub use field::Field;
pub use frame::{Frame, FrameBody, FramePool};
pub use ip_net::IpNet;
pub use key::{FlowKey, FlowMask};
pub use mac::MacAddr;
pub use packet_type::{PacketType, Tunnel};
pub use parse::{
    Layers, ParsedHeaders, parse, parse_as, parse_common, parse_ethernet, parse_frame, parse_frequent, parse_into,
};
pub use port_no::PortNo;
pub use port_range::PortRange;
pub use shared_buffers::SharedBuffers;
