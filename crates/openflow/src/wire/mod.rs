//! What both versions' codecs are made of: bounds-checked reading, writing, and the parts whose layout they share.
pub(crate) mod action;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod flow;
pub(crate) mod hello;
pub(crate) mod multipart;
pub(crate) mod opaque;
pub(crate) mod port;
pub(crate) mod property;
pub(crate) mod queue;
mod reader;
mod split;
mod writer;

pub(crate) use reader::Reader;
pub use split::split_reply;
pub(crate) use writer::Writer;

use crate::codec::{DecodeError, EncodeError};

/// What decoding a part gives.
pub(crate) type Decoded<T> = Result<T, DecodeError>;
/// What encoding a part gives.
pub(crate) type Encoded = Result<(), EncodeError>;

/// A buffer id that stands for none (`OFP_NO_BUFFER`).
pub(crate) const NO_BUFFER_ID: u32 = 0xffff_ffff;
