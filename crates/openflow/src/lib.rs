//! Implements OpenFlow without I/O: a version-independent message model, one codec per wire version, the text syntax
//! of `ovs-ofctl`, and the state machine of a channel.
//!
//! The other crates of weir use only [`model`]. Differences between versions are confined to the codecs: `v10`, and
//! `v13` with `v14` and `v15` built on it.
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
mod wire;

pub use codec::{DecodeError, EncodeError, decode, encode, split_reply};
pub use model::{Body, Message, Version};
pub use session::Session;
