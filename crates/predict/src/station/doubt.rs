//! Says where formulas know the waiting at a station only roughly.
use super::{AnalyticStation, ArrivalStream, POISSON};

/// Squared coefficients of variation below which gaps count as constant, and above which they count as random.
const CONSTANT: f64 = 0.1;
const RANDOM: f64 = 0.9;
/// Share of a station's load from which a kind of gaps counts.
const LEAST_SHARE: f64 = 0.02;
/// Ratio of the longest to the shortest mean service time of a station's sources from which their sizes differ.
const DIFFERENT_SIZES: f64 = 1.5;
/// Squared coefficient of variation of service times from which the sizes of a source's packets vary.
const VARYING: f64 = 0.1;
/// Share of lost packets from which a queue counts as lossy.
const LOSSY: f64 = 1e-4;

/// Reason for which the waiting at a station is known only roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitingDoubt {
    /// Sources with constant and with random gaps meet.
    MixedGaps,
    /// Sources have packets of different sizes, one size each.
    DifferentSizes,
    /// Sources with constant gaps have packets of varying sizes.
    VaryingSizes,
    /// Some sources send in bursts.
    Bursts,
    /// The buffer is full at times.
    Losses,
}

impl WaitingDoubt {
    /// Returns the reason in words, to which the names of the stations are added.
    pub(crate) fn text(self) -> &'static str {
        match self {
            WaitingDoubt::MixedGaps => "flows with constant and with random gaps meet",
            WaitingDoubt::DifferentSizes => "flows with packets of different sizes meet",
            WaitingDoubt::VaryingSizes => "flows with constant gaps have packets of varying sizes",
            WaitingDoubt::Bursts => "packets come in bursts",
            WaitingDoubt::Losses => "the buffer is full at times, and what comes is not random",
        }
    }
}

impl AnalyticStation {
    /// Returns the reason for which the waiting is known only roughly, if there is one. The experiment
    /// `network-accuracy` shows how far answers with and without such a reason are from simulation.
    pub(crate) fn doubt(&self) -> Option<WaitingDoubt> {
        let arrivals: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        if arrivals.iter().any(|one| one.modulation.is_some()) {
            return Some(WaitingDoubt::Bursts);
        }
        let random = |one: &&ArrivalStream| one.passed.is_empty() && (one.scv - 1.0).abs() < POISSON;
        if self.state.loss > LOSSY && !arrivals.iter().all(random) {
            return Some(WaitingDoubt::Losses);
        }
        let load = |is: fn(f64) -> bool| -> f64 {
            arrivals.iter().filter(|one| is(one.source_scv)).map(|one| one.rate * one.service.mean).sum()
        };
        let least = LEAST_SHARE * load(|_| true);
        if load(|scv| scv < CONSTANT) > least && load(|scv| scv > RANDOM) > least {
            return Some(WaitingDoubt::MixedGaps);
        }
        let varies = |one: &&ArrivalStream| one.service.square > (1.0 + VARYING) * one.service.mean * one.service.mean;
        if arrivals.iter().filter(|one| one.source_scv < CONSTANT).any(varies) {
            return Some(WaitingDoubt::VaryingSizes);
        }
        let times = || arrivals.iter().map(|one| one.service.mean);
        let differ = times().fold(0.0, f64::max) > DIFFERENT_SIZES * times().fold(f64::INFINITY, f64::min);
        (differ && arrivals.iter().any(|one| !one.passed.is_empty())).then_some(WaitingDoubt::DifferentSizes)
    }
}
