//! Provides what the codecs of all versions share: a bounds-checked reader, a writer, and the parts with a common
//! layout.
pub(crate) mod action;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod flow;
pub(crate) mod hello;
pub(crate) mod monitor;
pub(crate) mod multipart;
pub(crate) mod opaque;
pub(crate) mod port;
pub(crate) mod property;
pub(crate) mod queue;
mod reader;
mod split;
mod writer;

pub(crate) use reader::WireReader;
pub use split::split_reply;
pub(crate) use writer::WireWriter;

use crate::codec::{DecodeError, EncodeError};

/// Result of decoding a part.
pub(crate) type Decoded<T> = Result<T, DecodeError>;
/// Result of encoding a part.
pub(crate) type Encoded = Result<(), EncodeError>;

/// Buffer id that stands for "not buffered" (`OFP_NO_BUFFER`).
pub(crate) const NO_BUFFER_ID: u32 = 0xffff_ffff;
