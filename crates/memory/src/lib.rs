//! Safe functions for memory and instructions that the packet path needs: with `port`, the only crate of the product
//! with `unsafe`.

mod ahead;
mod array;
mod buffer;
mod bytes;
mod cycles;
mod pieces;
mod prefetch;
mod region;
mod slab;
mod wide;

pub use array::{Array, OutOfMemory};
pub use buffer::Buffer;
pub use bytes::equal_bytes;
pub use cycles::cycles;
pub use pieces::Pieces;
pub use prefetch::prefetch;
pub use slab::{NoSlab, Slab};
pub use wide::{Portable, Wide, Work, run_widest, widest};
