//! Safe functions for memory and instructions that the packet path needs: with `port`, the only crate of the product
//! with `unsafe`.

#[cfg(feature = "mimalloc")]
pub mod allocator;
mod array;
mod blocks;
mod buffer;
mod bytes;
mod cycles;
mod prefault;
mod prefetch;
mod region;
mod simd;
mod slab;

pub use array::{HugePageArray, OutOfMemory};
pub use blocks::BlockArena;
pub use buffer::AlignedBuffer;
pub use bytes::equal_bytes;
pub use cycles::cycles;
pub use prefetch::prefetch;
pub use simd::{PortableSimd, SimdInstructions, SimdOperation, best_simd_name, run_simd};
pub use slab::{BufferSlab, SlabError};
