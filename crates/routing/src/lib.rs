//! A network under control, without I/O: its map of switches, links and hosts, paths, intents, and the entries that
//! carry them out.
//!
//! For controllers of whole networks. The code receives events, packets and the time, and returns messages, so the same
//! lines run live and in virtual time.
//!
//! Start with:
//!
//! - [`NetworkController`]: the application of the controller engine that joins all parts.
//! - [`NetworkMap`]: switches, links and hosts as the controller knows them. [`topology_of`] makes a topology of it,
//!   for files.
//! - [`NetworkApp`]: the trait of applications, and [`Network`], through which they see and change the network.
//! - [`intents`]: what the network is asked to do.
//! - [`NetworkRequest`](request::NetworkRequest): requests and replies of the interface.
//!
//! Not in this crate: the server and the sessions of switches (`weir-controller`), graphs of networks
//! (`weir-topology`), HTTP (`weir-api`).
pub mod app;
pub mod apps;
pub mod forwarding;
pub mod hosts;
pub mod intents;
pub mod islands;
pub mod map;
pub mod paths;
pub mod platform;
pub mod request;
pub mod settings;
pub mod state;
pub mod tables;
mod topology;

pub use app::{HostPacket, Network, NetworkApp, NetworkEvent, PacketDecision};
pub use map::{NetworkMap, SwitchPort};
pub use platform::{EventSignal, HAND_OUT_INTERVAL, KeptState, NetworkConfig, NetworkController, StateSink};
pub use topology::topology_of;
