//! When packets come.
use crate::mmpp::Modulated;
use crate::{Mmpp, Stream, TrafficError, TwoState, positive};

/// When packets come, as described; the mean rate is given beside it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Arrival {
    /// One like the other; the first after a random part of the time between two.
    Constant,
    /// Without memory.
    #[default]
    Poisson,
    /// In bursts, of two rates.
    TwoState(TwoState),
    /// In bursts, of any number of rates.
    Mmpp(Mmpp),
    /// In trains with pauses between that are sometimes very long.
    ParetoOnOff(ParetoOnOff),
}

/// Trains of packets with a constant rate, and pauses; the lengths of both have heavy tails, so that the sum of many such sources is
/// self-similar (Willinger, Taqqu, Sherman and Wilson 1997).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParetoOnOff {
    /// Mean length of a train, in seconds.
    pub on_s: f64,
    /// Mean length of a pause, in seconds.
    pub off_s: f64,
    /// Shape of both, above 1; below 2 the variance is infinite.
    pub shape: f64,
}

/// Draws the times between packets.
#[derive(Debug, Clone)]
pub struct Arrivals {
    law: Law,
    /// What is left over of a nanosecond: times are exact in the mean.
    rest_ns: f64,
}

#[derive(Debug, Clone)]
enum Law {
    Constant { between_ns: f64 },
    Poisson { between_ns: f64 },
    Modulated(Modulated),
    OnOff { spec: ParetoOnOff, between_ns: f64, left_ns: f64 },
}

impl Arrivals {
    /// Packets with a mean rate of `per_second`.
    ///
    /// # Errors
    /// A parameter out of its limits.
    pub fn new(arrival: &Arrival, per_second: f64, random: &mut Stream) -> Result<Arrivals, TrafficError> {
        let per_second = positive("packets per second", per_second)?;
        let between_ns = 1e9 / per_second;
        let mut rest_ns = 0.0;
        let law = match arrival {
            Arrival::Constant => {
                // Sources that all began at once would come in bursts for ever.
                rest_ns = between_ns * (random.unit() - 1.0);
                Law::Constant { between_ns }
            }
            Arrival::Poisson => Law::Poisson { between_ns },
            Arrival::TwoState(two) => Law::Modulated(Modulated::new(&two.general()?, per_second, random)?),
            Arrival::Mmpp(process) => Law::Modulated(Modulated::new(process, per_second, random)?),
            Arrival::ParetoOnOff(spec) => on_off(*spec, between_ns, random)?,
        };
        Ok(Arrivals { law, rest_ns })
    }

    /// Nanoseconds to the next packet.
    #[inline]
    pub fn next(&mut self, random: &mut Stream) -> u64 {
        let after = match &mut self.law {
            Law::Constant { between_ns } => *between_ns,
            Law::Poisson { between_ns } => *between_ns * random.exponential(),
            Law::Modulated(process) => process.next(random),
            Law::OnOff { spec, between_ns, left_ns } => train(spec, *between_ns, left_ns, random),
        };
        let exact = after + self.rest_ns;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = exact as u64;
        self.rest_ns = if whole == u64::MAX { 0.0 } else { exact - whole as f64 };
        whole
    }
}

fn on_off(spec: ParetoOnOff, between_ns: f64, random: &mut Stream) -> Result<Law, TrafficError> {
    let on = positive("mean length of a train", spec.on_s)?;
    let off = positive("mean length of a pause", spec.off_s)?;
    if !(spec.shape.is_finite() && spec.shape > 1.0) {
        return Err(TrafficError::parameter("shape", spec.shape, "a number above 1: below there is no mean"));
    }
    // Trains are as much faster as pauses take time.
    let between_ns = between_ns * on / (on + off);
    if between_ns > on * 1e9 {
        let expected = "that a mean train has at least one packet";
        return Err(TrafficError::parameter("mean length of a train", format!("{on} s"), expected));
    }
    let left_ns = on * 1e9 * random.pareto(spec.shape) * random.unit();
    Ok(Law::OnOff { spec, between_ns, left_ns })
}

fn train(spec: &ParetoOnOff, between_ns: f64, left_ns: &mut f64, random: &mut Stream) -> f64 {
    let mut after = between_ns;
    // The time between packets runs in trains only, so no train loses what its last packet does not fill.
    while after > *left_ns {
        let pause = spec.off_s * 1e9 * random.pareto(spec.shape);
        after += pause;
        *left_ns += pause + spec.on_s * 1e9 * random.pareto(spec.shape);
    }
    *left_ns -= after;
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrival: &Arrival, per_second: f64, count: usize) -> Vec<u64> {
        let mut random = Stream::new(11, 2, 3);
        let mut arrivals = Arrivals::new(arrival, per_second, &mut random).unwrap();
        (0..count).map(|_| arrivals.next(&mut random)).collect()
    }

    #[test]
    fn every_law_keeps_its_mean_rate() {
        let pareto = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 2.5 };
        for (arrival, within) in [
            (Arrival::Constant, 1e-5),
            (Arrival::Poisson, 0.01),
            (Arrival::TwoState(TwoState { high: 4.0, low: 0.5, high_s: 0.0002 }), 0.01),
            (Arrival::ParetoOnOff(pareto), 0.04),
        ] {
            let n = 300_000;
            let total: u64 = times(&arrival, 7000.0, n).iter().sum();
            let rate = n as f64 / (total as f64 / 1e9);
            assert!((rate / 7000.0 - 1.0).abs() < within, "{arrival:?}: {rate}");
        }
    }

    #[test]
    fn fractions_of_nanoseconds_are_not_lost() {
        // Three in ten nanoseconds.
        let total: u64 = times(&Arrival::Constant, 3e8, 3_000_000).iter().sum();
        assert!((9_999_990..=10_000_000).contains(&total), "{total}");
    }

    #[test]
    fn trains_have_pauses() {
        let pareto = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 1.5 };
        let between = times(&Arrival::ParetoOnOff(pareto), 1000.0, 10_000);
        let in_train = between.iter().filter(|ns| (249_999..=250_001).contains(*ns)).count();
        assert!((9_000..9_990).contains(&in_train), "{in_train} of 10000 in trains");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut random = Stream::new(0, 0, 0);
        for rate in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(Arrivals::new(&Arrival::Poisson, rate, &mut random).is_err(), "{rate}");
        }
        for (on_s, off_s, shape) in [(0.0, 1.0, 1.5), (1.0, -1.0, 1.5), (1.0, 1.0, 1.0), (1e-4, 1e-4, 1.5)] {
            let arrival = Arrival::ParetoOnOff(ParetoOnOff { on_s, off_s, shape });
            assert!(Arrivals::new(&arrival, 100.0, &mut random).is_err(), "{arrival:?}");
        }
    }
}
