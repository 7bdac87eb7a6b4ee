//! Computes the irregularity of arrivals: the squared coefficient of variation (SCV) of the times between packets, and
//! the rates between which a source changes.
use crate::trace_rates::trace_rates;
use std::sync::Arc;
use weir_traffic::{ArrivalProcess, Mmpp, OfferedPackets, OnOff, ParetoOnOff};

/// SCV of a source's packets, with a possible doubt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrivalVariability {
    pub(crate) scv: f64,
    /// Rates of a source that sends in bursts.
    pub(crate) modulation: Option<Arc<RateModulation>>,
    /// Reason not to trust formulas that know only the SCV.
    pub(crate) doubt: Option<&'static str>,
}

/// Rates of a source that change with a random state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RateModulation {
    /// Rate in each state, relative to the mean rate.
    pub(crate) relative: Vec<f64>,
    /// Changes per second, by state and next state.
    pub(crate) changes: Vec<Vec<f64>>,
    /// SCV of the times between packets within a state.
    pub(crate) scv: f64,
}

/// Largest SCV; larger ones count as this, because formulas are useless beyond it.
const MAX_SCV: f64 = 1e4;
const BURSTS: &str = "its bursts are longer than the times between packets tell: formulas know these times only, delays in bursts come out too small";
const TRACE: &str = "it replays a trace: formulas know how its times and lengths are spread, and two rates for its bursts, not their order";
const HEAVY: &str =
    "its trains and pauses have tails so heavy that no formula here covers it: delays come out far too small";

/// Returns the SCV of a source's packets.
pub(crate) fn arrival_variability(offered: &OfferedPackets) -> ArrivalVariability {
    let plain = |scv: f64| ArrivalVariability { scv: capped(scv), modulation: None, doubt: None };
    let doubted = |scv: f64, doubt| ArrivalVariability { scv: capped(scv), modulation: None, doubt: Some(doubt) };
    let bursts = |scv: f64, rates: RateModulation, doubt| ArrivalVariability {
        scv: capped(scv),
        modulation: Some(Arc::new(rates)),
        doubt,
    };
    match offered {
        OfferedPackets::Trace(trace) => {
            let times: Vec<f64> = trace.gaps_ns().map(|ns| ns as f64).collect();
            let modulation = trace_rates(trace).map(Arc::new);
            ArrivalVariability { scv: capped(sample_scv(&times)), modulation, doubt: Some(TRACE) }
        }
        OfferedPackets::Rule { arrival: ArrivalProcess::Constant, .. } => plain(0.0),
        OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, .. } => plain(1.0),
        OfferedPackets::Rule { arrival: ArrivalProcess::TwoState(two), per_second, .. } => match two.general() {
            Ok(process) => bursts(mmpp_scv(&process, *per_second), RateModulation::of(&process), None),
            Err(_) => plain(1.0),
        },
        OfferedPackets::Rule { arrival: ArrivalProcess::Mmpp(process), per_second, .. } => {
            bursts(mmpp_scv(process, *per_second), RateModulation::of(process), None)
        }
        OfferedPackets::Rule { arrival: ArrivalProcess::ParetoOnOff(spec), per_second, .. } => {
            bursts(pareto_trains_scv(spec, *per_second), RateModulation::of_trains(spec), Some(HEAVY))
        }
        OfferedPackets::Rule { arrival: ArrivalProcess::OnOff(spec), per_second, .. } => {
            doubted(regular_trains_scv(spec, *per_second), BURSTS)
        }
        // Variance over the square of the mean: infinite for shapes up to 2.
        OfferedPackets::Rule { arrival: ArrivalProcess::Pareto(shape), .. } => {
            doubted(if *shape > 2.0 { 1.0 / (shape * (shape - 2.0)) } else { MAX_SCV }, HEAVY)
        }
        OfferedPackets::Rule { arrival: ArrivalProcess::Renewal(law), .. } => plain(law.scv()),
    }
}

impl RateModulation {
    fn of(process: &Mmpp) -> RateModulation {
        let shares = process.shares().unwrap_or_else(|_| vec![1.0]);
        let mean: f64 = shares.iter().zip(&process.rates).map(|(share, rate)| share * rate).sum();
        let relative = process.rates.iter().map(|rate| rate / mean.max(f64::MIN_POSITIVE)).collect();
        RateModulation { relative, changes: process.transitions.clone(), scv: 1.0 }
    }

    /// Returns trains and pauses with the same mean lengths, but light tails.
    fn of_trains(spec: &ParetoOnOff) -> RateModulation {
        let relative = vec![(spec.on_s + spec.off_s) / spec.on_s, 0.0];
        let changes = vec![vec![0.0, 1.0 / spec.on_s], vec![1.0 / spec.off_s, 0.0]];
        RateModulation { relative, changes, scv: 0.0 }
    }
}

fn capped(scv: f64) -> f64 {
    if scv.is_finite() { scv.clamp(0.0, MAX_SCV) } else { MAX_SCV }
}

fn sample_scv(times: &[f64]) -> f64 {
    let count = times.len().max(1) as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 { variance / (mean * mean) } else { 1.0 }
}

/// Returns the SCV of a Markov modulated Poisson process. The times between packets are of phase type, E[X^n] = n! a
/// (L - Q)^-n 1, with a the shares in which packets leave the states (Fischer and Meier-Hellstern, 1993).
fn mmpp_scv(process: &Mmpp, per_second: f64) -> f64 {
    let n = process.rates.len();
    let Ok(shares) = process.shares() else { return 1.0 };
    let mean: f64 = shares.iter().zip(&process.rates).map(|(share, rate)| share * rate).sum();
    if !(mean > 0.0 && per_second > 0.0) {
        return 1.0;
    }
    let factor = per_second / mean;
    let matrix: Vec<Vec<f64>> = (0..n)
        .map(|row| {
            let leave: f64 = (0..n).filter(|to| *to != row).map(|to| process.transitions[row][to]).sum();
            (0..n)
                .map(|to| if to == row { leave + process.rates[row] * factor } else { -process.transitions[row][to] })
                .collect()
        })
        .collect();
    let first = solve(matrix.clone(), vec![1.0; n]);
    let second = first.clone().and_then(|first| solve(matrix, first));
    let (Some(first), Some(second)) = (first, second) else { return 1.0 };
    let start = |state: usize| shares[state] * process.rates[state] / mean;
    let moment = |of: &[f64]| (0..n).map(|state| start(state) * of[state]).sum::<f64>();
    2.0 * moment(&second) / moment(&first).powi(2) - 1.0
}

/// Solves `matrix x = right` without pivoting, because the matrix is an M-matrix.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for pivot in 0..n {
        let (above, below) = matrix.split_at_mut(pivot + 1);
        let row = &above[pivot];
        if row[pivot].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for (at, other) in below.iter_mut().enumerate() {
            let factor = other[pivot] / row[pivot];
            for column in pivot..n {
                other[column] -= factor * row[column];
            }
            right[pivot + 1 + at] -= factor * right[pivot];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right.iter().all(|x| x.is_finite()).then_some(right)
}

/// Returns the SCV of trains with Pareto-distributed pauses: regular packets within a train, and a pause after each
/// train.
fn pareto_trains_scv(spec: &ParetoOnOff, per_second: f64) -> f64 {
    if spec.shape <= 2.0 {
        return MAX_SCV;
    }
    // Pareto of mean m and shape k: E[X^2] = m^2 (k - 1)^2 / (k (k - 2)).
    let square = spec.off_s.powi(2) * (spec.shape - 1.0).powi(2) / (spec.shape * (spec.shape - 2.0));
    trains_scv(OnOff { on_s: spec.on_s, off_s: spec.off_s }, square, per_second)
}

/// Returns the SCV of trains with constant pauses.
fn regular_trains_scv(spec: &OnOff, per_second: f64) -> f64 {
    trains_scv(*spec, spec.off_s.powi(2), per_second)
}

/// Returns the SCV of trains with pauses of the mean square `square`.
fn trains_scv(OnOff { on_s, off_s }: OnOff, square: f64, per_second: f64) -> f64 {
    let between = on_s / (on_s + off_s) / per_second;
    let packets = (on_s / between).max(1.0);
    let second = between * between + (2.0 * between * off_s + square) / packets;
    second * per_second * per_second - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::{ArrivalSampler, PacketSizeLaw, RandomStream, TwoStateMmpp};

    #[test]
    fn it_is_what_sources_have() {
        let two = TwoStateMmpp { high: 4.0, low: 0.5, high_s: 0.002 };
        let pareto = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 4.5 };
        for (arrival, within) in [
            (ArrivalProcess::Constant, 1e-6),
            (ArrivalProcess::Poisson, 0.02),
            (ArrivalProcess::TwoState(two), 0.03),
            (
                ArrivalProcess::Mmpp(Mmpp {
                    rates: vec![1.0, 5.0, 20.0],
                    transitions: vec![vec![0.0, 50.0, 0.0], vec![30.0, 0.0, 80.0], vec![400.0, 0.0, 0.0]],
                }),
                0.05,
            ),
            (ArrivalProcess::ParetoOnOff(pareto), 0.15),
            (ArrivalProcess::OnOff(OnOff { on_s: 0.01, off_s: 0.03 }), 0.01),
            (ArrivalProcess::Pareto(5.0), 0.1),
            (ArrivalProcess::Renewal(weir_model::Law::gamma(3.0, 0.3).unwrap()), 0.02),
        ] {
            let mut random = RandomStream::new(3, 0, 1);
            let mut arrivals = ArrivalSampler::new(&arrival, 2000.0, &mut random).unwrap();
            let times: Vec<f64> = (0..400_000).map(|_| arrivals.next(&mut random) as f64).collect();
            let rule =
                OfferedPackets::Rule { arrival: arrival.clone(), per_second: 2000.0, size: PacketSizeLaw::Fixed(100) };
            let (found, drawn) = (arrival_variability(&rule).scv, sample_scv(&times));
            assert!((found - drawn).abs() <= within * drawn.max(1.0), "{arrival:?}: {found}, drawn {drawn}");
        }
    }

    #[test]
    fn tails_without_a_variance_are_doubted() {
        let spec = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 1.5 };
        let rule = OfferedPackets::Rule {
            arrival: ArrivalProcess::ParetoOnOff(spec),
            per_second: 1000.0,
            size: PacketSizeLaw::Fixed(100),
        };
        let found = arrival_variability(&rule);
        assert_eq!((found.scv, found.doubt), (MAX_SCV, Some(HEAVY)));
    }
}
