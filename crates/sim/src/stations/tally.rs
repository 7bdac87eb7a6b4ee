//! What is counted in a run.
use crate::stats::Delays;
use weir_units::Instant;

/// When packets count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) begin: Instant,
    pub(super) end: Instant,
}

/// Packets of a flow that were sent while they counted.
#[derive(Debug, Clone, Default)]
pub struct FlowTally {
    /// Those sent.
    pub sent: u64,
    /// Of them those that came nowhere.
    pub lost: u64,
    /// From sending to receiving: of those that asked nobody, and of those that asked the controller.
    pub delays: [Delays; 2],
}

/// Packets at a switch.
#[derive(Debug, Clone, Default)]
pub struct SwitchTally {
    /// Those that left it.
    pub passed: u64,
    /// Of them those that had asked the controller.
    pub asked: u64,
    /// Those that had asked, or had taken longer than the scenario says is slow.
    pub held_up: u64,
    /// From coming to leaving.
    pub delays: Delays,
}

/// Packets at a station. What came and left counts packets of the window; the others are over the window's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct StationTally {
    /// Those that came.
    pub came: u64,
    /// Of them those that found no room.
    pub lost: u64,
    /// Those that were served.
    pub served: u64,
    /// How long these were there together.
    pub stay_ns: u128,
    /// How long it was busy.
    pub busy_ns: u128,
    /// Its packets, each with its time there.
    pub number_ns: u128,
}

/// What a run measured.
#[derive(Debug, Clone)]
pub struct StationsRun {
    /// By flow.
    pub flows: Vec<FlowTally>,
    /// By switch that takes time.
    pub switches: Vec<SwitchTally>,
    /// By station.
    pub stations: Vec<StationTally>,
    /// Packets made, counted or not.
    pub packets: u64,
    /// Events simulated.
    pub events: u64,
    /// Length of the time in which packets counted, in seconds.
    pub window_s: f64,
    /// Whether it was stopped before its end.
    pub partial: bool,
}
