//! One queue, one server: the stations that models are made of. All take packets in the order in which they come.
mod mg1;
mod mg1k;
mod mm1;
mod mm1k;

pub use mg1::{mg1, mg1_waiting};
pub use mg1k::{MAX_PLACES_GENERAL, mg1k};
pub use mm1::mm1;
pub use mm1k::{MAX_PLACES, mm1k};

pub(crate) use mg1k::FiniteSojourn;
pub(crate) use mm1k::Stages;

use crate::Distribution;

/// A station in its steady state.
#[derive(Debug, Clone)]
pub struct SteadyState {
    /// Mean time from arrival to departure of the packets that it serves, in seconds.
    pub sojourn_s: f64,
    /// Mean time of these packets before their service, in seconds.
    pub waiting_s: f64,
    /// Mean number of packets there, the one in service included.
    pub number: f64,
    /// Share of the time in which it serves.
    pub utilisation: f64,
    /// Share of the arriving packets that find no place.
    pub loss: f64,
    /// The sojourn times' distribution.
    pub sojourn: Distribution,
}
