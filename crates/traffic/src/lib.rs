//! Traffic by rule: when packets come ([`Arrivals`]), how long they are ([`Sizes`]) and how long something takes with them ([`Services`]), drawn
//! from one stream of random numbers per source, so that a seed gives the same packets again whatever else is simulated or generated beside it.
//! [`Schedule`] puts them together with the flows that packets belong to. What packets carry so that they are known again is a [`Probe`]; what
//! became of them, a [`Recorder`] works out; how well they were sent, [`Gaps`].
//!
//! ```
//! use weir_traffic::{Arrival, Arrivals, Bimodal, Size, Sizes, Stream};
//! # fn main() -> Result<(), weir_traffic::TrafficError> {
//! let mut random = Stream::new(1, 0, 0);
//! let sizes = Sizes::new(&Size::Bimodal(Bimodal::default()))?;
//! let mut arrivals = Arrivals::new(&Arrival::Poisson, 1000.0, &mut random)?;
//! let after_ns = arrivals.next(&mut random);
//! assert!((64..=1500).contains(&sizes.draw(&mut random)));
//! # let _ = after_ns; Ok(())
//! # }
//! ```
mod arrival;
mod delays;
mod flows;
mod gaps;
mod goodness;
pub mod impair;
mod mmpp;
pub mod probe;
pub mod recorder;
mod schedule;
mod service;
mod size;
mod source;
mod stream;
mod trace;
mod turns;

pub use arrival::{Arrival, Arrivals, OnOff, ParetoOnOff};
pub use delays::{Delay, Delays, shares};
pub use flows::{FlowArrivals, FlowMix, MAX_ACTIVE};
pub use gaps::{GapQuality, Gaps};
pub use goodness::{GapLaw, Goodness};
pub use mmpp::{MAX_STATES, Mmpp, TwoState};
pub use probe::Probe;
pub use recorder::Recorder;
pub use schedule::{Offer, Planned, Schedule};
pub use service::Services;
pub use size::{Bimodal, Empirical, MAX_BYTES, MAX_EMPIRICAL, Size, Sizes};
pub use source::{Generator, Offered};
pub use stream::Stream;
pub use trace::{MAX_TRACE, Trace, TracePacket};
pub use turns::{FlowOfPacket, Flows, MAX_FLOWS};

/// Why traffic cannot be as described.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrafficError {
    /// A parameter is out of its limits.
    #[error("{what}: found {found}, expected {expected}")]
    Parameter {
        /// Which.
        what: &'static str,
        /// What was found.
        found: String,
        /// What would do.
        expected: String,
    },
    /// A line of a list cannot be read.
    #[error("line {line}: found `{found}`, expected {expected}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What was found.
        found: String,
        /// What would do.
        expected: &'static str,
    },
}

impl TrafficError {
    pub(crate) fn parameter(what: &'static str, found: impl ToString, expected: impl ToString) -> TrafficError {
        TrafficError::Parameter { what, found: found.to_string(), expected: expected.to_string() }
    }
}

/// `value`, if it is a number above zero.
pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, TrafficError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(TrafficError::parameter(what, value, "a number above 0"))
    }
}
