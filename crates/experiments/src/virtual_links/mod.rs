//! Experiments on the bandwidth of virtual links (Anhalt 2011, chapter 5).
pub(crate) mod allocation;
mod drawn;
pub(crate) mod isolation;
pub(crate) mod promises;
