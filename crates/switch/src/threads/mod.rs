//! How a switch spreads over threads.
//!
//! * *run to completion*: the engine's thread does everything; nothing is shared, nothing locked. Or several threads do, each for its ports
//!   ([`several`]).
//! * *pipeline* (after Lagopus; Rahimi et al., HPSR 2016): the engine's thread receives frames ([`rx`]) and hands them to
//!   workers, which run them through the tables ([`worker`]) and hand them back to be transmitted ([`tx`]).
//!
//! ```text
//!  port --A--> rx --B--> ring --C--> worker --D--> ring --E--> tx --F--> port
//! ```
//! Frames are handed over only while that pays, if nothing else is asked for ([`balance`]); otherwise the engine's thread does all of it
//! here, too. Each ring has one writer and one reader. The letters are the six bursts of [`Bursts`]; how long a burst that is not full
//! waits is in [`batch`]. A full ring drops and counts.
//!
//! What the stages do is a function of `now` and their rings: tests drive them without threads. Threads, their sleep and their
//! end are in [`pipeline`]; how workers and the engine share the tables is in [`seats`].
mod balance;
mod batch;
mod buffers;
mod check;
pub(crate) mod gone;
mod hand;
mod machine;
mod outlet;
pub(crate) mod pipeline;
mod policy;
mod rx;
pub mod seats;
mod settings;
pub(crate) mod several;
mod share;
mod tx;
mod worker;

pub use buffers::MAX_BUFFERS;
pub use check::ThreadsError;
pub use machine::Machine;
pub use policy::{Class, Policy};
pub use settings::{Bursts, Cpus, HandOver, Mode, ThreadsConfig};
pub use several::Deal;

use weir_openflow::model::PortNo;
use weir_packet::Frame;

/// A frame on its way between threads, and the port it came from or goes to.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) port: PortNo,
    pub(crate) frame: Frame,
}

#[cfg(test)]
mod tests;
