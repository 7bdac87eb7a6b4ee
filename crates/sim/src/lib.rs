//! Networks in virtual time: discrete events over the same fabric, datapath and controller as live.
//!
//! A [`Model`] has sources, lines and fabrics that know lengths and classes; [`engine::run`] simulates it once, [`replicate()`] several
//! times with a confidence interval, [`mod@report`] sums up; [`scenario`] makes models of scenario files. [`network`] simulates whole
//! networks packet by packet, with hosts, flow tables and a controller. [`queue`] is the simplest system of all, for comparing with formulas.
pub mod agenda;
pub mod engine;
pub mod model;
pub mod network;
mod parts;
pub mod queue;
pub mod replicate;
pub mod report;
pub mod scenario;
pub mod stations;
pub mod stats;
pub mod tally;

pub use agenda::Agenda;
pub use engine::{RunResult, Watch, run};
pub use model::{FabricModel, Group, Hop, LineModel, Model, ModelError, Path, Source, Split, Window};
pub use replicate::{Plan, Replications, replicate};
pub use tally::Tally;
