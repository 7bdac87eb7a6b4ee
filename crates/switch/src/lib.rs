//! The live switch: an engine thread moves frames between ports, a control thread serves controllers.
//!
//! [`SoftwareSwitch::start`] is the entry point, for the daemon and for labs that embed switches. The [`SwitchHandle`]
//! that it returns controls the switch. Reading order: [`config`] (configuration), [`handle`] (control of a running
//! switch), `engine` (the packet path), `control` (the channels), [`ctl`] (the control socket).
mod clock;
pub mod config;
mod control;
pub mod ctl;
mod drop_reasons;
mod engine;
pub mod handle;
mod in_band;
pub mod privileges;
#[cfg(any(test, feature = "schedules"))]
pub mod schedules;
pub mod snapshot;
mod socket;
pub mod spin;
pub mod system_calls;
pub mod targets;
pub mod threads;
mod turns;

pub use config::{PortArgument, PortConfig, SoftwareSwitchConfig};
pub use handle::{SoftwareSwitch, SwitchError, SwitchHandle};
pub use in_band::InBandSettings;
pub use snapshot::{
    ChannelSnapshot, ChannelState, CpuShareSnapshot, CrosspointSnapshot, HiddenEntrySnapshot, InBandSnapshot,
    InBandStationSnapshot, PortSnapshot, QueueSnapshot, SwitchSnapshot, TableSnapshot, VirtualPortSnapshot,
    VirtualSwitchSnapshot, WorkerSnapshot,
};
pub use socket::SocketFile;
pub use spin::Spin;
pub use targets::{ControllerHost, ControllerSpec, ControllerTarget, ListenTarget};
pub use weir_tls::TlsFiles;
