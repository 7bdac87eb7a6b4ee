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

pub use array::{HugePageArray, OutOfMemory};
pub use buffer::AlignedBuffer;
pub use bytes::equal_bytes;
pub use cycles::cycles;
pub use pieces::BlockArena;
pub use prefetch::prefetch;
pub use slab::{BufferSlab, SlabError};
pub use wide::{PortableSimd, SimdInstructions, SimdOperation, best_simd_name, run_simd};
