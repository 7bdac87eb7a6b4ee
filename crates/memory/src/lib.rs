//! What the packet path needs of the machine's memory and instructions, behind safe functions: with `port`, the only crate of
//! the product with `unsafe`.

mod prefetch;

pub use prefetch::prefetch;
