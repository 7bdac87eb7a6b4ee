//! Packets by rule, from input ports of a switch to one of its output ports; and how long they are simulated.
use std::time::Duration;
use weir_traffic::Offered;

/// Packets by rule, through one switch.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketStream {
    /// Its name in reports.
    pub name: String,
    /// Index of the switch.
    pub switch: usize,
    /// Index of the virtual switch there that its packets are for.
    pub virtual_switch: Option<usize>,
    /// Numbers of the physical ports that they come in by, rising; each has a source of its own.
    pub inputs: Vec<u32>,
    /// Number of the physical port that they leave by.
    pub output: u32,
    /// What each source sends.
    pub source: Offered,
    /// Their traffic class in reports.
    pub class: u8,
    /// When it starts, from the start of the run.
    pub start: Duration,
    /// How long it lasts; none: as long as the run.
    pub duration: Option<Duration>,
}

/// How a scenario is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulate {
    /// Time before packets count.
    pub warm_up: Duration,
    /// Time in which arriving packets count, after the warm-up.
    pub duration: Duration,
    /// Replications, each with random numbers of its own.
    pub replications: u32,
    /// Go on with more replications until the 95 % interval of every mean is at most this share of the mean on either side.
    pub until: Option<f64>,
}
