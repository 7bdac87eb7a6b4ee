//! Defines answers of models besides numbers: how close a system is to its limits, and warnings about the answer.
use crate::Distribution;
use serde::Serialize;
use std::fmt;

/// Utilisation above which an error in the load is multiplied by more than ten in the delay.
pub const NEAR_SATURATION: f64 = 0.9;

/// Reason to trust an answer less. Part of the answer; it is not printed here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Kind of the warning, for programs: `NEAR_SATURATION`, `METASTABLE`, `EXTRAPOLATED`, ...
    pub kind: &'static str,
    /// Description of the problem.
    pub text: String,
}

impl Warning {
    /// Creates a warning of the given kind.
    pub fn new(kind: &'static str, text: impl Into<String>) -> Warning {
        Warning { kind, text: text.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// Utilisation of a station in a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StationUtilisation {
    /// Name of the station: `switch`, `controller`, ...
    pub place: String,
    /// Share of the time in which the station serves.
    pub utilisation: f64,
}

impl StationUtilisation {
    /// Creates the load of a station.
    pub fn new(place: impl Into<String>, utilisation: f64) -> StationUtilisation {
        StationUtilisation { place: place.into(), utilisation }
    }

    /// Returns a warning if the utilisation is above [`NEAR_SATURATION`].
    pub fn warning(&self) -> Option<Warning> {
        let StationUtilisation { place, utilisation } = self;
        (*utilisation > NEAR_SATURATION).then(|| {
            let text = if *utilisation < 1.0 {
                let times = 1.0 / (1.0 - utilisation);
                format!("utilisation {utilisation:.3} at {place}: an error in its load is one {times:.0} times as large in its delay")
            } else {
                format!("{place} is never idle: its delay is what its buffer holds")
            };
            Warning::new("NEAR_SATURATION", text)
        })
    }
}

/// Steady state of a switch with a controller: some packets are forwarded by the switch alone, others go through the
/// controller. Means are over delivered packets.
#[derive(Debug, Clone)]
pub struct SwitchSteadyState {
    /// Mean time from arrival to departure over all packets, in seconds.
    pub sojourn_s: f64,
    /// Mean time of packets that the switch forwards alone, in seconds.
    pub data_s: f64,
    /// Mean time of packets that go through the controller, in seconds; none if no packet does.
    pub control_s: Option<f64>,
    /// Share of all arriving packets that are lost.
    pub loss: f64,
    /// Share of the delivered packets that went through the controller.
    pub control_share: f64,
    /// Utilisations of the stations.
    pub loads: Vec<StationUtilisation>,
    /// Distribution of the delays of all packets.
    pub sojourn: Distribution,
    /// Distribution of the delays of packets that the switch forwards alone.
    pub data: Distribution,
    /// Distribution of the delays of packets that go through the controller.
    pub control: Option<Distribution>,
}

impl SwitchSteadyState {
    /// Returns a warning for each station near saturation.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        self.loads.iter().filter_map(StationUtilisation::warning)
    }
}
