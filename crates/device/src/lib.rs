//! Delays a datapath's messages and packets to match a profiled device: flow-mods wait for their batch and their
//! turn, packets for the data path and its ticks, messages for the agents.
//!
//! The code has no clock and no sockets. Callers pass arrivals and `now`, and get items to release and the time of
//! the next step ([`TimingStage`]).
//!
//! Items have any type `T`: frames and messages in live switches, their lengths in virtual time.
mod commands;
mod effect;
mod error;
mod gate;
mod lateness;
mod level_server;
mod record;
mod send_latency;
mod server;
mod stage;
mod tables;

pub use commands::{MAX_COMMANDS, TableEffect};
pub use error::TimingError;
pub use gate::GateQueue;
pub use lateness::{LATE, LatenessSummary, ReleaseLateness};
pub use record::{CSV_HEAD, CommandRecord, MAX_RECORDS, TableEffectKind};
pub use send_latency::SendDuration;
pub use server::{FifoServer, MAX_HELD};
pub use stage::{DataPathPacket, ReleaseKind, ReleasedItem, TimingBacklog, TimingCounts, TimingStage};
pub use tables::{CommandCost, LevelWrite, ProfiledTables};
