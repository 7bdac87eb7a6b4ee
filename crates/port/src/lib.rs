//! Ports: where frames come in and go out.
//!
//! A [`Port`] is driven by one engine thread: it receives into and transmits from batches of frames, never blocks, and says
//! how to wait for it. Each kind has a module; [`spec`] reads `KIND:NAME` and opens the right one; wrappers around any port
//! shape, trace or break it.
pub mod traits;

pub use traits::{Counters, LinkState, Port, PortError, PortInfo, Ready};
