//! The live switch: one engine thread that moves frames between ports, one control thread that speaks to controllers.
//!
//! [`Switch::start`] is the way in, for the daemon and for labs that embed switches; the [`SwitchHandle`] it gives is the
//! way to everything else. Reading order: [`config`] (what a switch is made of), [`handle`] (what can be asked of it),
//! `engine` (the packet path), `control` (the channels), [`ctl`] (the control socket).
mod clock;
pub mod config;
mod control;
pub mod ctl;
mod engine;
pub mod handle;
pub mod privileges;
#[cfg(any(test, feature = "schedules"))]
pub mod schedules;
pub mod snapshot;
mod socket;
pub mod spin;
pub mod system_calls;
pub mod targets;
pub mod threads;
pub mod timed;
mod turns;
pub mod virtuals;

pub use config::{PortArgument, PortConfig, ProfileConfig, SwitchConfig};
pub use handle::{Switch, SwitchError, SwitchHandle};
pub use snapshot::{
    ChannelSnapshot, ChannelState, CrosspointSnapshot, PortSnapshot, QueueSnapshot, Snapshot, TableSnapshot,
    TimeSnapshot, VirtualPortSnapshot, VirtualSnapshot, WorkerSnapshot,
};
pub use socket::SocketFile;
pub use spin::Spin;
pub use targets::{ControllerSpec, ControllerTarget, ListenTarget};
pub use timed::{LatenessSnapshot, TimingSnapshot};
pub use virtuals::convert::fail_mode;
pub use weir_tls::Files as TlsFiles;
