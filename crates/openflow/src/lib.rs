//! OpenFlow: one version-free model, a codec for each wire version, the text form people write, and sessions without I/O.
//!
//! The rest of weir knows only [`model`]; versions stop at the codec (`v10`; `v13` and, over it, `v14` and `v15`).
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
