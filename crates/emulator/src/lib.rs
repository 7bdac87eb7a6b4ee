//! Runs labs: creates a scenario's switches, links and hosts, runs its traffic, measures it, and removes everything
//! again.
//!
//! [`run`] runs a scenario once. [`Lab`] runs a lab until it is ended by command, with a [`prompt`]. Hosts are network
//! stacks in this process on memory ports, which needs no privilege, or network namespaces with real programs. Reading
//! order: [`result`] (results), `lab` (the run from start to end), `network` (switches, links, controller), `host` and
//! `netns` (the two kinds of hosts), [`prompt`], `certificate` (how far times can be trusted), [`cleanup`] (removal of
//! the interfaces, namespaces and files that killed labs leave).
mod cancel;
mod certificate;
mod check;
pub mod cleanup;
mod dilate;
mod error;
mod files;
mod folder;
mod host;
mod lab;
mod measured;
mod netns;
mod network;
pub mod prompt;
pub mod result;
mod streams;
mod threads;
mod watch;

pub use cancel::Cancel;
pub use dilate::Dilation;
pub use error::LabError;
pub use host::MAX_ADDRESSES;
pub use lab::{Lab, Options, Progress, Started, run};
pub use netns::neighbours::Neighbours;
pub use netns::pairs::Pairs;
pub use result::LabResult;
pub use watch::Stolen;

/// Functions and types of this crate that need neither threads nor the system's clock, for other crates that run
/// scenarios, such as the simulator.
pub mod parts {
    pub use crate::check::refuse_loops;
    pub use crate::host::{Finished, Host};
    pub use crate::lab::{length, traffic_result};
    pub use crate::measured::{Delays, Measured, shares};
    pub use crate::network::{At, Dice, MEMORY_FRAMES, datapath, dice, embedded, port_drops, profile, queued, shaped};
}
