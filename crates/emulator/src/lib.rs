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
pub mod controller;
pub mod datapath;
mod dilate;
mod error;
mod fidelity;
mod files;
mod folder;
mod host;
mod host_threads;
mod lab;
pub mod link;
mod load_monitor;
mod loops;
mod measured;
mod netns;
mod network;
mod network_error;
mod progress;
pub mod prompt;
pub mod result;
mod streams;
mod threads;
mod traffic;

pub use cancel::CancelHandle;
pub use dilate::Dilation;
pub use error::LabError;
pub use host::MAX_ADDRESSES;
pub use lab::{Lab, LabOptions, LabStartup, run};
pub use load_monitor::StealTimeSampler;
pub use netns::neighbours::NeighbourResolution;
pub use netns::pairs::VethPairSet;
pub use network_error::NetworkError;
pub use progress::LabProgress;
pub use result::LabResult;

/// Functions and types of this crate that need neither threads nor the system's clock, for other crates that run
/// scenarios, such as the simulator.
pub mod parts {
    pub use crate::host::{HostResult, StackHost, memory_hosts};
    pub use crate::loops::refuse_loops;
    pub use crate::measured::{TimeHistogram, TrafficMeasurement, shares};
    pub use crate::result::port_drops;
    pub use crate::traffic::{length, traffic_result};
    pub use crate::{controller, datapath, link};
}
