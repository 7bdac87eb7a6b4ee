//! A datapath with a device's delays: it holds messages and packets until the profiled device would be done with them.
//!
//! A [`TimingStage`] computes when: flow-mods wait for their batch and their turn, packets for the data path and its
//! ticks, messages for the agents. Its items have any type `T`, such as messages, frames or their lengths. A
//! [`DelayedDatapath`] holds the messages and packets of one [`weir_datapath::Datapath`] in such a stage.
//!
//! The code has no clock, thread or socket. Callers pass arrivals and `now`, and get what is due and the time of the
//! next call. The same code therefore delays live switches, simulated ones, and the hidden switches that the profiler
//! measures in virtual time.
//!
//! Left out: profile files and the meaning of their figures (`weir_profile`), the measurement of devices
//! (`weir_profiler`), and the threads and channels of a switch (`weir_switch`).
//!
//! Reading order: `stage` (all of a device's timing), `commands` and `tables` (changes of tables that take time),
//! `server` and `gate` (queues and the places where packets wait for each other), `delayed_datapath` (the stage around
//! a datapath).
mod commands;
mod delayed_datapath;
mod effect;
mod error;
mod gate;
mod lateness;
mod level_server;
mod profile_config;
mod record;
mod send_latency;
mod server;
mod stage;
mod tables;

pub use commands::{MAX_COMMANDS, TableEffect};
pub use delayed_datapath::{
    DelayedDatapath, LatenessSnapshot, LevelSnapshot, MAX_HELD_BYTES, MAX_MESSAGE_BYTES, TimingSnapshot,
};
pub use error::TimingError;
pub use gate::GateQueue;
pub use lateness::{LATE, LatenessSummary, ReleaseLateness};
pub use profile_config::ProfileConfig;
pub use record::{CSV_HEAD, CommandRecord, MAX_RECORDS, TableEffectKind};
pub use send_latency::SendDuration;
pub use server::{FifoServer, MAX_HELD};
pub use stage::{DataPathPacket, ReleaseKind, ReleasedItem, TimingBacklog, TimingCounts, TimingStage};
pub use tables::{CommandCost, LevelWrite, ProfiledTables};
