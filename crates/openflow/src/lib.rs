//! OpenFlow without I/O: one message model for all versions, a codec for each of 1.0, 1.3, 1.4 and 1.5, the text syntax
//! of `ovs-ofctl`, and the state machine of a channel.
//!
//! For controllers, switches, test tools and programs that read captures. Callers move the bytes and supply the time;
//! the library has no socket, thread or clock. Other crates of weir use only [`model`]. Differences between versions
//! are confined to the codecs: `v10`, and `v13` with `v14` and `v15` built on it.
//!
//! Start with:
//!
//! - [`decode`] and [`encode`]: from bytes to a [`Message`] and back.
//! - [`Session`]: one side of a channel, with hello, version, echo requests, and errors for what cannot be decoded.
//! - [`PacketInView`] and [`EchoRequestView`]: these messages read in place, for programs that receive many.
//! - [`text`]: flow entries, groups and meters as `ovs-ofctl` writes them, and messages as readable text.
//!
//! Not in this crate: flow tables and what a switch answers (`weir-datapath`), applications and the server of a
//! controller (`weir-controller`), fields, flow keys and frames (`weir-packet`).
//!
//! ```
//! use weir_openflow::model::FlowCommand;
//! use weir_openflow::session::{SessionConfig, SessionEvent};
//! use weir_openflow::text::{PrintDetail, parse_flow, print_message};
//! use weir_openflow::{Body, Message, Session, Version, decode, encode};
//! use weir_units::Instant;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Text becomes a message, the message becomes bytes, and the bytes become an equal message.
//! let flow = parse_flow("priority=10,ip,nw_dst=10.0.0.0/8,actions=output:2", FlowCommand::Add)?;
//! let message = Message { xid: 7, body: Body::FlowMod(flow) };
//! let mut bytes = Vec::new();
//! encode(&message, Version::V13, &mut bytes)?;
//! assert_eq!(decode(&bytes)?, message);
//! assert!(print_message(&message, 4, PrintDetail::Fields).contains("nw_dst=10.0.0.0/8"));
//!
//! // A session takes the bytes that the other side wrote. Here, its hello message ends the handshake.
//! let controller = &mut Session::controller(SessionConfig::default(), Instant::ZERO);
//! let mut switch = Session::switch(SessionConfig::default(), Instant::ZERO);
//! switch.receive(Instant::ZERO, controller.output());
//! assert_eq!(switch.take_event(), Some(SessionEvent::Up { version: Version::V15, features: None }));
//! # Ok(())
//! # }
//! ```
pub mod codec;
pub mod model;
mod nicira;
pub mod selection;
pub mod session;
pub mod text;
mod v10;
mod v13;
mod v14;
mod v15;
mod view;
mod wire;

pub use codec::{DecodeError, EncodeError, decode, encode, split_reply};
pub use model::{Body, Message, Version};
pub use session::Session;
pub use view::{EchoRequestView, PacketInView, peek_packet};
