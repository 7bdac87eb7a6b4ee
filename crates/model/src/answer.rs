//! What models answer beside numbers: where a system is near its limits, and how far the answer can be trusted.
use crate::Distribution;
use serde::Serialize;
use std::fmt;

/// Above this utilisation an error in the load is multiplied by more than ten in the delay.
pub const NEAR_SATURATION: f64 = 0.9;

/// A reason for trusting an answer less. Part of the answer; nothing is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Its kind, for programs: `NEAR_SATURATION`, `METASTABLE`, `EXTRAPOLATED`, ...
    pub kind: &'static str,
    /// What is the matter, in words.
    pub text: String,
}

impl Warning {
    /// A warning of a kind.
    pub fn new(kind: &'static str, text: impl Into<String>) -> Warning {
        Warning { kind, text: text.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// How busy a station of a model is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Which: `switch`, `controller`, ...
    pub place: String,
    /// Share of the time in which it serves.
    pub utilisation: f64,
}

impl Load {
    /// The load of a place.
    pub fn new(place: impl Into<String>, utilisation: f64) -> Load {
        Load { place: place.into(), utilisation }
    }

    /// A warning if it is above [`NEAR_SATURATION`].
    pub fn warning(&self) -> Option<Warning> {
        let Load { place, utilisation } = self;
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

/// A switch with a controller behind it in its steady state: packets that it forwards itself, and packets that ask the controller.
/// Means are of delivered packets.
#[derive(Debug, Clone)]
pub struct SwitchState {
    /// Mean time from arrival to departure over all packets, in seconds.
    pub sojourn_s: f64,
    /// The same of those that the switch forwards itself.
    pub data_s: f64,
    /// The same of those that go by the controller; none if no packet does.
    pub control_s: Option<f64>,
    /// Share of all arriving packets that are lost.
    pub loss: f64,
    /// Share of the delivered packets that went by the controller.
    pub control_share: f64,
    /// How busy its stations are.
    pub loads: Vec<Load>,
    /// The delays of all packets.
    pub sojourn: Distribution,
    /// The delays of those that the switch forwards itself.
    pub data: Distribution,
    /// The delays of those that go by the controller.
    pub control: Option<Distribution>,
}

impl SwitchState {
    /// Warnings of its stations near saturation.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        self.loads.iter().filter_map(Load::warning)
    }
}
