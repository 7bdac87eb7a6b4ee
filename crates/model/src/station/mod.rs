//! Solves single queues with one server, the stations of which models are made. All serve packets in order of
//! arrival.
mod mg1;
mod mg1k;
mod mm1;
mod mm1k;
mod modulated;

pub use mg1::{mg1, mg1_waiting};
pub use mg1k::{MAX_PLACES_GENERAL, mg1k};
pub use mm1::mm1;
pub use mm1k::{MAX_PLACES, mm1k};
pub use modulated::{ModulatedSource, ModulatedWaits, modulated_waits};

pub(crate) use mg1k::FiniteQueueSojourn;
pub(crate) use mm1k::ErlangMixture;

use crate::Distribution;

/// Steady state of a station.
#[derive(Debug, Clone)]
pub struct SteadyState {
    /// Mean time from arrival to departure of served packets, in seconds.
    pub sojourn_s: f64,
    /// Mean waiting time of these packets before service, in seconds.
    pub waiting_s: f64,
    /// Mean number of packets at the station, including the one in service.
    pub number: f64,
    /// Share of the time in which the station serves.
    pub utilisation: f64,
    /// Share of the arriving packets that find no place.
    pub loss: f64,
    /// Distribution of the sojourn times.
    pub sojourn: Distribution,
}
