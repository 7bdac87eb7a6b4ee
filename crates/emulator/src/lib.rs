//! Runs labs: builds a scenario's switches, links and hosts, runs its traffic, measures, and takes everything down
//! again.
//!
//! [`run`] runs a scenario once. [`Lab`] is for labs that stay, with a [`prompt`]. Hosts are network stacks in this
//! process on memory ports, which needs no privilege, or network namespaces with real programs. Reading order:
//! [`result`] (results), `lab` (the run from start to end), `network` (switches, links, controller), `host` and
//! `netns` (the two kinds of hosts), [`prompt`], `certificate` (how far times can be trusted), [`cleanup`] (removal
//! of what killed labs leave).
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

/// Parts of labs without thread or clock, for other engines that run scenarios.
pub mod parts {
    pub use crate::check::refuse_loops;
    pub use crate::host::{Finished, Host};
    pub use crate::lab::{length, traffic_result};
    pub use crate::measured::{Delays, Measured, shares};
    pub use crate::network::{At, Dice, MEMORY_FRAMES, datapath, dice, embedded, port_drops, profile, queued, shaped};
}
