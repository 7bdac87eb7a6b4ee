//! Makes a scenario into hosts, links, datapaths and results, for the engines that run it.
//!
//! For programs that run a scenario in their own way. Labs in real time (`weir-emulator`) and networks in virtual time
//! (`weir-sim`) are made of these parts. That is why both treat one scenario alike: hosts send equal packets, links
//! draw equal random numbers, and results have one form. The parts have no thread, no clock and no network socket. An
//! engine gives them `now`, and they return the time of their next call.
//!
//! Start with:
//!
//! - [`memory_hosts`] and [`StackHost`]: hosts with their network stacks, at the ends of their links.
//! - [`link`], [`datapath`] and [`controller`]: the ports at the ends of links, the settings of switches, and the
//!   application of the embedded controller.
//! - [`VirtualSwitchApps`]: the applications that control virtual switches.
//! - [`traffic`] and [`result`]: what the ends of an item of traffic have measured, and the results of a run.
//! - [`streams`]: packets by rule that enter and leave by spare ports of switches.
//! - [`refuse_loops`] and [`check_addresses`]: checks before the start.
//!
//! Not in this crate: scenario files (`weir-scenario`), flow tables (`weir-datapath`), emulated links and other ports
//! (`weir-port`), hosts in network namespaces, the order of events, and waiting. Engines own the last three.
//!
//! ```
//! use std::time::Duration;
//! use weir_network::memory_hosts;
//! use weir_packet::FramePool;
//! use weir_scenario::Scenario;
//! use weir_units::Instant;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     switch = [{ name = "s" }]
//!     host = [
//!         { name = "a", switch = "s", ip = "10.0.0.1/24", delay = "1ms" },
//!         { name = "b", switch = "s", ip = "10.0.0.2/24" },
//!     ]
//!     traffic = [{ kind = "ping", from = "a", to = "b", count = 1 }]
//! "#;
//! let scenario = Scenario::parse(text, "two-hosts.toml")?;
//! let (mut hosts, mut ports) = memory_hosts(&scenario, None)?;
//! hosts.iter_mut().enumerate().for_each(|(number, host)| host.start(&scenario, number, Instant::ZERO));
//! let (mut pool, mut done, mut now) = (FramePool::default(), Vec::new(), Instant::ZERO);
//! while done.is_empty() {
//!     for host in &mut hosts {
//!         host.receive(now);
//!         host.poll(now, &mut done);
//!     }
//!     // In the switch's place: what comes in by one port leaves by the other.
//!     for (from, to) in [(0, 1), (1, 0)] {
//!         let mut frames = Vec::new();
//!         ports[from].receive(now, &mut pool, &mut frames, 64)?;
//!         ports[to].transmit(now, &mut pool, &mut frames)?;
//!     }
//!     now = now + Duration::from_micros(100);
//! }
//! let (_, measured) = hosts.remove(0).finish().measured.remove(0);
//! assert_eq!((measured.sent, measured.received), (1, 1));
//! # Ok(())
//! # }
//! ```
pub mod certificate;
pub mod controller;
pub mod datagrams;
pub mod datapath;
mod error;
mod host;
pub mod intents;
pub mod link;
mod loops;
mod measured;
mod progress;
pub mod promises;
pub mod result;
pub mod streams;
pub mod traffic;
mod virtual_switch_apps;

pub use error::NetworkError;
pub use host::{HostResult, MAX_ADDRESSES, StackHost, check_addresses, memory_hosts};
pub use loops::refuse_loops;
pub use measured::{MAX_SET_ASIDE, TimedDelay, TrafficMeasurement, UndisturbedDelays};
pub use progress::LabProgress;
pub use result::LabResult;
pub use virtual_switch_apps::{VirtualSwitchApps, named_app};
