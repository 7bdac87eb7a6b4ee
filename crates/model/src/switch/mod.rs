//! Models how long a switch takes for table changes, and for packets when it is idle, by a few parameters measured
//! for each device.
//!
//! After Y.-J. Cheng: Turning Mininet/Open vSwitch into a detailed OpenFlow emulator, MSc thesis, National Tsing Hua
//! University, 2015, chapters 4 and 5. Where its equations contradict its text, the functions say so and follow the
//! text. [`crate::fit`] finds the parameters.
pub mod batch;
pub mod costs;
pub mod device;
pub mod forward;
pub mod policy;
pub mod priorities;
pub mod speedup;
