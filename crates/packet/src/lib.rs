//! Frames and what is in them: the flow key that tables match on, parsing, editing, checksums, offloads.
//!
//! Reading order: [`key`] (what a table sees), [`field`] (names and places of the bits), [`frame`] (bytes on a port),
//! [`mod@parse`] (from one to the other), [`edit`] (what actions do to a frame), [`checksum`], [`offload`] (what ports leave to
//! each other). [`craft`] makes frames by hand.
mod bytes;
pub mod checksum;
pub mod craft;
mod datagram;
mod depot;
pub mod edit;
pub mod field;
pub mod frame;
pub mod key;
mod mac;
pub mod nsh;
pub mod offload;
mod packet_type;
pub mod parse;
mod port_no;
#[cfg(test)]
mod test_support;

pub use depot::Depot;
pub use field::Field;
pub use frame::{Frame, FrameBody, FramePool};
pub use key::{FlowKey, FlowMask};
pub use mac::MacAddr;
pub use packet_type::{PacketType, Tunnel};
pub use parse::{Layers, Parsed, parse, parse_as, parse_common, parse_frame, parse_frequent, parse_into};
pub use port_no::PortNo;
