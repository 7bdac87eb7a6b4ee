//! Runs labs: creates a scenario's switches, links and hosts, runs its traffic, measures it, and removes everything
//! again.
//!
//! [`run`] runs a scenario once. [`Lab`] runs a lab until it is ended by command, with a [`prompt`]. Hosts are network
//! stacks in this process on memory ports, which needs no privilege, or network namespaces with real programs. Both
//! give a [`weir_network::LabResult`]. Reading order: `lab` (the run from start to end), `network` (switches, links,
//! controller), `host_threads` and `netns` (the two kinds of hosts), [`prompt`], `fidelity` (how far times can be
//! trusted), [`cleanup`] (removal of the interfaces, namespaces and files that killed labs leave).
mod cancel;
mod check;
pub mod cleanup;
mod dilate;
mod error;
mod fidelity;
mod files;
mod folder;
mod host_threads;
mod lab;
mod load_monitor;
mod netns;
mod network;
pub mod prompt;
mod streams;
mod threads;
mod virtual_controllers;

pub use cancel::CancelHandle;
pub use dilate::Dilation;
pub use error::LabError;
pub use lab::{Lab, LabOptions, LabStartup, run};
pub use load_monitor::StealTimeSampler;
pub use netns::neighbours::NeighbourResolution;
pub use netns::pairs::VethPairSet;
