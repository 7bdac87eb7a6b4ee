//! Differential test: gives drawn OpenFlow messages and frames to weir's datapath and to Open vSwitch, and compares
//! what both answer, count and send.
//!
//! A [`DifferentialCase`] is a short program of messages, frames and pauses, drawn from a seed ([`draw`]). [`weir`]
//! runs it in this process and in virtual time; [`ovs`] runs it on an instance of Open vSwitch without kernel
//! interfaces. Both return an [`CaseOutcome`], which [`compare`] converts to a normal form and compares. [`kinds`]
//! lists the differences that a clause of the specification explains; [`shrink`] reduces a case that shows another
//! difference. [`run`] does all this for many cases.
pub mod attributes;
pub mod case;
pub mod compare;
pub mod description;
pub mod draw;
pub mod kinds;
pub mod normal;
pub mod outcome;
pub mod ovs;
pub mod print;
pub mod record;
pub mod run;
pub mod shrink;
pub mod weir;

pub use case::{CaseStep, DifferentialCase};
pub use outcome::{CaseOutcome, StepAnswer};
