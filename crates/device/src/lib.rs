//! A datapath with a device's delays: it holds messages and packets until the profiled device would be done with them.
//!
//! For switches, simulators and tests that imitate a measured device. Flow-mods wait for their batch and their turn,
//! packets for the data path and its ticks, messages for the agents. The code has no clock, thread or socket: callers
//! pass arrivals and `now`, and get what is due and the time of the next call. The same code therefore delays live
//! switches, simulated ones, and the hidden switches that the profiler measures in virtual time.
//!
//! Start with:
//!
//! - [`TimingStage`]: all of a device's timing. Its items have any type `T`, such as messages, frames or their lengths.
//! - [`DelayedDatapath`]: such a stage around the messages and packets of a datapath.
//! - [`FifoServer`]: one queue with its server, the smallest part.
//!
//! Reading order: `stage`, `commands` and `tables` (changes of tables that take time), `server` and `gate` (queues and
//! the places where packets wait for each other), `delayed_datapath`.
//!
//! Not in this crate: profile files and the meaning of their figures (`weir-profile`), flow tables and pipeline
//! (`weir-datapath`), formulas for the same devices (`weir-model`), threads, channels and ports of a switch.
//!
//! ```
//! use weir_device::{TableEffect, TimingStage};
//! use weir_profile::Profile;
//! use weir_units::Instant;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     name = "slow"
//!     device = "A switch that writes an entry in two milliseconds"
//!     origin = "assumed"
//!     source = "An example"
//!     [[level]]
//!     name = "only"
//!     write = "2ms"
//! "#;
//! let mut stage = TimingStage::new(&Profile::parse(text, "slow.toml")?, 1)?.expect("a profile that takes time");
//! // Two flow-mods arrive at once. The items are their names here; a switch has the messages.
//! stage.command(Instant::ZERO, "first");
//! stage.command(Instant::ZERO, "second");
//! let mut released = Vec::new();
//! while stage.due() != Instant::FAR {
//!     let now = stage.due();
//!     while let Some(one) = stage.release(now, &mut |_| TableEffect::Add { priority: 10 }) {
//!         released.push((one.item, one.due.as_nanos() / 1_000_000));
//!     }
//! }
//! assert_eq!(released, [("first", 2), ("second", 4)]);
//! # Ok(())
//! # }
//! ```
mod commands;
mod delayed_datapath;
mod effect;
mod error;
mod flow_cache;
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
pub use flow_cache::{FlowCache, flow_of};
pub use gate::GateQueue;
pub use lateness::{LATE, LatenessSummary, ReleaseLateness};
pub use profile_config::ProfileConfig;
pub use record::{CSV_HEAD, CommandRecord, MAX_RECORDS, TableEffectKind};
pub use send_latency::SendDuration;
pub use server::{FifoServer, MAX_HELD};
pub use stage::{DataPathPacket, ReleaseKind, ReleasedItem, TimingBacklog, TimingCounts, TimingStage};
pub use tables::{CommandCost, LevelWrite, ProfiledTables};
