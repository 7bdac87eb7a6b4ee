//! Counters of a run of stations.
use crate::stats::DelayTally;
use weir_units::Instant;

/// Time window in which packets count.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountingWindow {
    pub(super) begin: Instant,
    pub(super) end: Instant,
}

/// Counters of a flow's packets that were sent in the window.
#[derive(Debug, Clone, Default)]
pub struct FlowTally {
    /// Packets sent in the window.
    pub sent: u64,
    /// Packets of these that were lost.
    pub lost: u64,
    /// Delays from sending to receiving: of packets that did not ask the controller, and of packets that asked.
    pub delays: [DelayTally; 2],
}

/// Counters of packets at a switch.
#[derive(Debug, Clone, Default)]
pub struct SwitchTally {
    /// Packets that left the switch.
    pub passed: u64,
    /// Packets that asked the controller at this switch.
    pub asked: u64,
    /// Packets that asked, or took longer than the scenario's `slow`.
    pub held_up: u64,
    /// Delays from arrival at the switch to departure.
    pub delays: DelayTally,
}

/// Counters of a station. Packet counts are of packets sent in the window; times are within the window.
#[derive(Debug, Clone, Copy, Default)]
pub struct StationTally {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets lost because the station had no room.
    pub lost: u64,
    /// Packets whose service has ended.
    pub served: u64,
    /// Sum of the times of served packets in the station, in ns.
    pub stay_ns: u128,
    /// Time in which the station was busy, in ns.
    pub busy_ns: u128,
    /// Number of packets in the station integrated over time, in ns.
    pub number_ns: u128,
}

/// Results of one run.
#[derive(Debug, Clone)]
pub struct QueueingRunResult {
    /// Counters by flow.
    pub flows: Vec<FlowTally>,
    /// Counters by switch that takes time.
    pub switches: Vec<SwitchTally>,
    /// Counters by station.
    pub stations: Vec<StationTally>,
    /// Packets made, inside the counting window or not.
    pub packets: u64,
    /// Number of events simulated.
    pub events: u64,
    /// Length of the counting window in seconds, whether or not the run was stopped.
    pub window_s: f64,
    /// True if the run was stopped before its end.
    pub partial: bool,
}
