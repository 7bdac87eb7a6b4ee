//! Traffic by statistical rules, reproducible from a seed, and measurements of what becomes of it.
//!
//! For simulators and generators. Arrival times, packet lengths and service times are drawn from one random stream per
//! source, so a seed gives the same packets again, whatever else is simulated or generated.
//!
//! Start with:
//!
//! - [`PacketSchedule`]: packets one after the other, with time, length and flow, by the rule in an [`OfferedTraffic`].
//! - [`ArrivalSampler`], [`PacketSizeSampler`], [`LawSampler`]: the single draws, each from a [`RandomStream`].
//! - [`ProbeHeader`] and [`ProbeRecorder`]: recognise sent packets and compute delay, loss and order. [`GapRecorder`]
//!   measures how accurately they were sent.
//! - [`impair`]: losses and jitter of links.
//!
//! Not in this crate: sending on ports by the clock (`weir-generator`), frames around the packets (`weir-packet`),
//! formulas for the same rules (`weir-model`).
//!
//! ```
//! use weir_traffic::{ArrivalProcess, ArrivalSampler, BimodalSizes, PacketSizeLaw, PacketSizeSampler, RandomStream};
//! # fn main() -> Result<(), weir_traffic::TrafficError> {
//! let mut random = RandomStream::new(1, 0, 0);
//! let mut arrivals = ArrivalSampler::new(&ArrivalProcess::Poisson, 1000.0, &mut random)?;
//! let sizes = PacketSizeSampler::new(&PacketSizeLaw::Bimodal(BimodalSizes::default()))?;
//! let mean_ns = (0..10_000).map(|_| arrivals.next(&mut random) as f64).sum::<f64>() / 10_000.0;
//! assert!((mean_ns / 1e6 - 1.0).abs() < 0.05, "1000 packets a second: 1 ms between two");
//! assert!((64..=1500).contains(&sizes.draw(&mut random)));
//! # Ok(())
//! # }
//! ```
mod arrival;
mod capture;
mod concurrent_flows;
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

pub use arrival::{ArrivalProcess, ArrivalSampler, OnOff, ParetoOnOff};
pub use capture::{CaptureReader, CaptureRecord, DamagedCaptureError};
pub use concurrent_flows::{ConcurrentFlows, FlowOfPacket, MAX_FLOWS};
pub use delays::{TimeHistogram, TimeStatistics, has_percentile, shares};
pub use flows::{FlowArrivals, FlowMix, MAX_ACTIVE};
pub use gaps::{GapQuality, GapRecorder};
pub use goodness::{GapLaw, GoodnessOfFit};
pub use mmpp::{MAX_STATES, Mmpp, TwoStateMmpp};
pub use probe::ProbeHeader;
pub use recorder::ProbeRecorder;
pub use schedule::{OfferedTraffic, PacketSchedule, ScheduledPacket};
pub use service::LawSampler;
pub use size::{BimodalSizes, EmpiricalSizes, MAX_BYTES, MAX_EMPIRICAL, PacketSizeLaw, PacketSizeSampler};
pub use source::{OfferedPackets, PacketSampler};
pub use stream::RandomStream;
pub use trace::{MAX_TRACE, TracePacket, TrafficTrace};

/// Error of a traffic description.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrafficError {
    /// A parameter is out of its limits.
    #[error("{what}: found {found}, expected {expected}")]
    Parameter {
        /// Name of the parameter.
        what: &'static str,
        /// Value that was found.
        found: String,
        /// Description of a valid value.
        expected: String,
    },
    /// A line of a list cannot be parsed.
    #[error("line {line}: found `{found}`, expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Text that was found.
        found: String,
        /// Description of a valid line.
        expected: &'static str,
    },
}

impl TrafficError {
    pub(crate) fn parameter(what: &'static str, found: impl ToString, expected: impl ToString) -> TrafficError {
        TrafficError::Parameter { what, found: found.to_string(), expected: expected.to_string() }
    }
}

/// Returns `value` if it is finite and above zero; an error about `what` otherwise.
pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, TrafficError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(TrafficError::parameter(what, value, "a number above 0"))
    }
}
