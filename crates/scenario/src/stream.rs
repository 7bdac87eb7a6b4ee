//! Packets by rule from input ports of a switch to one of its output ports, and settings of their simulation.
use std::time::Duration;
use weir_traffic::OfferedPackets;

/// Stream: packets by rule through one switch.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketStream {
    /// Name in reports.
    pub name: String,
    /// Index of the switch.
    pub switch: usize,
    /// Index of the virtual switch for which the packets are; `None` if the file does not say.
    pub virtual_switch: Option<usize>,
    /// Numbers of the physical input ports, in increasing order. Each has a source of its own.
    pub inputs: Vec<u32>,
    /// Number of the physical output port.
    pub output: u32,
    /// Packets that each source sends.
    pub source: OfferedPackets,
    /// Traffic class in reports.
    pub class: u8,
    /// Start, as time from the start of the run.
    pub start: Duration,
    /// Length; `None` for as long as the run.
    pub duration: Option<Duration>,
    /// Line of the file on which the stream begins, from 1, for errors; `None` if the text is not the user's own.
    pub line: Option<usize>,
}

/// Settings of a scenario's simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulationSettings {
    /// Time before packets count.
    pub warm_up: Duration,
    /// Length of the window after the warm-up in which arriving packets count.
    pub duration: Duration,
    /// Number of replications, each with its own random numbers.
    pub replications: u32,
    /// Relative precision: replications are added until the 95 % interval of every mean extends at most this share of
    /// the mean to either side.
    pub until: Option<f64>,
}
