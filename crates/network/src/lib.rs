//! Makes a scenario into hosts, links, datapaths and results, for the engines that run it.
//!
//! Labs in real time (`weir-emulator`) and networks in virtual time (`weir-sim`) are made of these parts. That is why
//! both treat one scenario alike: hosts send equal packets, links draw equal random numbers, and results have one form.
//! The parts have no thread, no clock and no network socket. An engine gives them `now`, and they return the time of
//! their next call.
//!
//! Not here: switches with threads and control channels (`weir-switch`), hosts in network namespaces, the order of
//! events, and waiting. Engines own these.
//!
//! Start with [`StackHost`], a host with its network stack. [`link`] makes the ports at the ends of links, [`datapath`]
//! the settings of switches, and [`controller`] the application of the embedded controller. [`traffic`] sums up what
//! the ends of an item of traffic have measured, and [`result`] has the results of a run. [`refuse_loops`] and
//! [`check_addresses`] are checks before the start.
pub mod certificate;
pub mod controller;
pub mod datapath;
mod error;
mod host;
pub mod link;
mod loops;
mod measured;
mod progress;
pub mod result;
pub mod traffic;

pub use error::NetworkError;
pub use host::{HostResult, MAX_ADDRESSES, StackHost, check_addresses, memory_hosts};
pub use loops::refuse_loops;
pub use measured::TrafficMeasurement;
pub use progress::LabProgress;
pub use result::LabResult;
