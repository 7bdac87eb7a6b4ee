//! Represents frames and their content: the flow key that tables match on, parsing, editing, checksums and offloads.
//!
//! Reading order: [`key`] (the fields a table sees), [`field`] (names of the fields, and their places in the key),
//! [`frame`] (bytes on a port), [`mod@parse`] (from frame to key), [`edit`] (effects of actions on a frame),
//! [`checksum`], [`offload`] (work that a sender leaves to the transmitting port). [`craft`] builds frames for tests.
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
mod shared_buffers;
#[cfg(test)]
mod test_support;

pub use field::Field;
pub use frame::{Frame, FrameBody, FramePool};
pub use ip_net::IpNet;
pub use key::{FlowKey, FlowMask};
pub use mac::MacAddr;
pub use packet_type::{PacketType, Tunnel};
pub use parse::{Layers, ParsedHeaders, parse, parse_as, parse_common, parse_frame, parse_frequent, parse_into};
pub use port_no::PortNo;
pub use shared_buffers::SharedBuffers;
