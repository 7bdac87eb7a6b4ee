//! Delays a datapath's messages and packets to match a profiled device: flow-mods wait for their batch and their
//! turn, packets for the data path and its ticks, messages for the agents.
//!
//! The code has no clock and no sockets. Callers pass arrivals and `now`, and get items to release and the time of
//! the next step ([`Stage`]).
//!
//! Items have any type `T`: frames and messages in live switches, their lengths in virtual time.
mod commands;
mod effect;
mod error;
mod gate;
mod lane;
mod lateness;
mod lead;
mod record;
mod server;
mod stage;
mod tables;

pub use commands::{MAX_COMMANDS, Work};
pub use error::TimingError;
pub use gate::GateQueue;
pub use lateness::{LATE, LateBy, Lateness};
pub use lead::Took;
pub use record::{CSV_HEAD, MAX_RECORDS, Record, WorkKind};
pub use server::{MAX_HELD, Server};
pub use stage::{Counts, Part, Passing, Released, Stage, Waiting};
pub use tables::{Charge, Tables, Visit};
