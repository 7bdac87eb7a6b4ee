//! Arrival processes: draws the times between packets.
use crate::mmpp::MmppSampler;
use crate::{LawSampler, Mmpp, RandomStream, TrafficError, TwoStateMmpp, positive};
use weir_model::Law;

/// Description of an arrival process; the mean rate is given separately.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ArrivalProcess {
    /// Constant gaps; the first packet arrives after a random part of a gap.
    Constant,
    /// Poisson process: exponential gaps.
    #[default]
    Poisson,
    /// Bursts with two rates.
    TwoState(TwoStateMmpp),
    /// Bursts with any number of rates.
    Mmpp(Mmpp),
    /// Packet trains with heavy-tailed lengths, and pauses that are sometimes very long.
    ParetoOnOff(ParetoOnOff),
    /// Trains and pauses of constant length.
    OnOff(OnOff),
    /// Independent heavy-tailed gaps: Pareto of this shape, above 1; below 2 the variance is infinite.
    Pareto(f64),
    /// Independent gaps of any other law. Its mean is ignored, because the rate is given separately.
    Renewal(Law),
}

impl ArrivalProcess {
    /// Returns the process with all its times multiplied by `factor`.
    pub(crate) fn slowed(&self, factor: f64) -> ArrivalProcess {
        use ArrivalProcess::{Mmpp as General, OnOff as Trains, ParetoOnOff as HeavyTrains, TwoState};
        match self {
            TwoState(two) => TwoState(TwoStateMmpp { high_s: two.high_s * factor, ..*two }),
            General(process) => General(Mmpp {
                rates: process.rates.clone(),
                transitions: process
                    .transitions
                    .iter()
                    .map(|row| row.iter().map(|rate| rate / factor).collect())
                    .collect(),
            }),
            HeavyTrains(spec) => {
                HeavyTrains(ParetoOnOff { on_s: spec.on_s * factor, off_s: spec.off_s * factor, ..*spec })
            }
            Trains(spec) => Trains(OnOff { on_s: spec.on_s * factor, off_s: spec.off_s * factor }),
            // Their times follow from the mean rate.
            same => same.clone(),
        }
    }
}

/// Trains of packets at a constant rate, and pauses, both of constant length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnOff {
    /// Length of a train, in seconds.
    pub on_s: f64,
    /// Length of a pause, in seconds.
    pub off_s: f64,
}

/// Trains of packets at a constant rate, and pauses. Both lengths are heavy-tailed, so the sum of many such sources
/// is self-similar (Willinger, Taqqu, Sherman and Wilson 1997).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParetoOnOff {
    /// Mean length of a train, in seconds.
    pub on_s: f64,
    /// Mean length of a pause, in seconds.
    pub off_s: f64,
    /// Shape of both distributions, above 1; below 2 the variance is infinite.
    pub shape: f64,
}

/// Draws the times between packets.
#[derive(Debug, Clone)]
pub struct ArrivalSampler {
    draw: GapSampler,
    /// Fraction of a nanosecond carried over, so that times are exact on average.
    rest_ns: f64,
}

#[derive(Debug, Clone)]
enum GapSampler {
    Constant { between_ns: f64 },
    Poisson { between_ns: f64 },
    Modulated(MmppSampler),
    OnOff { lengths: TrainLengths, between_ns: f64, left_ns: f64 },
    Pareto { between_ns: f64, shape: f64 },
    Renewal { services: LawSampler, factor: f64 },
}

impl ArrivalSampler {
    /// Creates an arrival process with a mean rate of `per_second` packets per second.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn new(
        arrival: &ArrivalProcess,
        per_second: f64,
        random: &mut RandomStream,
    ) -> Result<ArrivalSampler, TrafficError> {
        let per_second = positive("packets per second", per_second)?;
        let between_ns = 1e9 / per_second;
        let mut rest_ns = 0.0;
        let draw = match arrival {
            ArrivalProcess::Constant => {
                // A random phase: sources that all began at one time would arrive in bursts for ever.
                rest_ns = between_ns * (random.unit() - 1.0);
                GapSampler::Constant { between_ns }
            }
            ArrivalProcess::Poisson => GapSampler::Poisson { between_ns },
            ArrivalProcess::TwoState(two) => {
                GapSampler::Modulated(MmppSampler::new(&two.general()?, per_second, random)?)
            }
            ArrivalProcess::Mmpp(process) => GapSampler::Modulated(MmppSampler::new(process, per_second, random)?),
            ArrivalProcess::ParetoOnOff(ParetoOnOff { on_s, off_s, shape }) => {
                trains(TrainLengths { on_s: *on_s, off_s: *off_s, shape: Some(*shape) }, between_ns, random)?
            }
            ArrivalProcess::OnOff(OnOff { on_s, off_s }) => {
                trains(TrainLengths { on_s: *on_s, off_s: *off_s, shape: None }, between_ns, random)?
            }
            ArrivalProcess::Pareto(shape) => GapSampler::Pareto { between_ns, shape: tail(*shape)? },
            ArrivalProcess::Renewal(law) => {
                let mean_ns = positive("mean of the times between packets", law.mean())? * 1e9;
                GapSampler::Renewal { services: LawSampler::new(Some(law))?, factor: between_ns / mean_ns }
            }
        };
        Ok(ArrivalSampler { draw, rest_ns })
    }

    /// Returns the time to the next packet in ns.
    #[inline]
    pub fn next(&mut self, random: &mut RandomStream) -> u64 {
        let after = match &mut self.draw {
            GapSampler::Constant { between_ns } => *between_ns,
            GapSampler::Poisson { between_ns } => *between_ns * random.exponential(),
            GapSampler::Modulated(process) => process.next(random),
            GapSampler::OnOff { lengths, between_ns, left_ns } => train(lengths, *between_ns, left_ns, random),
            GapSampler::Pareto { between_ns, shape } => *between_ns * random.pareto(*shape),
            GapSampler::Renewal { services, factor } => services.draw_ns(random) * *factor,
        };
        let exact = after + self.rest_ns;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = exact as u64;
        self.rest_ns = if whole == u64::MAX { 0.0 } else { exact - whole as f64 };
        whole
    }
}

/// Lengths of trains and pauses.
#[derive(Debug, Clone, Copy)]
struct TrainLengths {
    on_s: f64,
    off_s: f64,
    /// Shape of the Pareto distribution; `None`: constant lengths.
    shape: Option<f64>,
}

impl TrainLengths {
    /// Draws a length with this mean, in ns.
    fn draw_ns(&self, mean_s: f64, random: &mut RandomStream) -> f64 {
        mean_s * 1e9 * self.shape.map_or(1.0, |shape| random.pareto(shape))
    }
}

/// Returns the shape if its distribution has a mean; an error otherwise.
fn tail(shape: f64) -> Result<f64, TrafficError> {
    if shape.is_finite() && shape > 1.0 {
        return Ok(shape);
    }
    Err(TrafficError::parameter("shape", shape, "a number above 1: below there is no mean"))
}

fn trains(lengths: TrainLengths, between_ns: f64, random: &mut RandomStream) -> Result<GapSampler, TrafficError> {
    let on = positive("mean length of a train", lengths.on_s)?;
    let off = positive("mean length of a pause", lengths.off_s)?;
    lengths.shape.map(tail).transpose()?;
    // The rate within trains is higher, to compensate for the pauses.
    let between_ns = between_ns * on / (on + off);
    if between_ns > on * 1e9 {
        let expected = "that a mean train has at least one packet";
        return Err(TrafficError::parameter("mean length of a train", format!("{on} s"), expected));
    }
    let left_ns = lengths.draw_ns(on, random) * random.unit();
    Ok(GapSampler::OnOff { lengths, between_ns, left_ns })
}

fn train(lengths: &TrainLengths, between_ns: f64, left_ns: &mut f64, random: &mut RandomStream) -> f64 {
    let mut after = between_ns;
    // The time between packets runs in trains only, so the unfilled rest of a train is carried over to the next one.
    while after > *left_ns {
        let pause = lengths.draw_ns(lengths.off_s, random);
        after += pause;
        *left_ns += pause + lengths.draw_ns(lengths.on_s, random);
    }
    *left_ns -= after;
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrival: &ArrivalProcess, per_second: f64, count: usize) -> Vec<u64> {
        let mut random = RandomStream::new(11, 2, 3);
        let mut arrivals = ArrivalSampler::new(arrival, per_second, &mut random).unwrap();
        (0..count).map(|_| arrivals.next(&mut random)).collect()
    }

    #[test]
    fn every_law_keeps_its_mean_rate() {
        let pareto = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 2.5 };
        for (arrival, within) in [
            (ArrivalProcess::Constant, 1e-5),
            (ArrivalProcess::Poisson, 0.01),
            (ArrivalProcess::TwoState(TwoStateMmpp { high: 4.0, low: 0.5, high_s: 0.0002 }), 0.01),
            (ArrivalProcess::ParetoOnOff(pareto), 0.04),
            (ArrivalProcess::OnOff(OnOff { on_s: 0.01, off_s: 0.03 }), 0.001),
            (ArrivalProcess::Pareto(3.0), 0.01),
            (ArrivalProcess::Renewal(Law::balanced(2.0, 4.0).unwrap()), 0.02),
        ] {
            let n = 300_000;
            let total: u64 = times(&arrival, 7000.0, n).iter().sum();
            let rate = n as f64 / (total as f64 / 1e9);
            assert!((rate / 7000.0 - 1.0).abs() < within, "{arrival:?}: {rate}");
        }
    }

    #[test]
    fn fractions_of_nanoseconds_are_not_lost() {
        // Three packets in ten nanoseconds.
        let total: u64 = times(&ArrivalProcess::Constant, 3e8, 3_000_000).iter().sum();
        assert!((9_999_990..=10_000_000).contains(&total), "{total}");
    }

    #[test]
    fn trains_have_pauses() {
        let pareto = ParetoOnOff { on_s: 0.01, off_s: 0.03, shape: 1.5 };
        let between = times(&ArrivalProcess::ParetoOnOff(pareto), 1000.0, 10_000);
        let in_train = between.iter().filter(|ns| (249_999..=250_001).contains(*ns)).count();
        assert!((9_000..9_990).contains(&in_train), "{in_train} of 10000 in trains");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut random = RandomStream::new(0, 0, 0);
        for rate in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(ArrivalSampler::new(&ArrivalProcess::Poisson, rate, &mut random).is_err(), "{rate}");
        }
        for (on_s, off_s, shape) in [(0.0, 1.0, 1.5), (1.0, -1.0, 1.5), (1.0, 1.0, 1.0), (1e-4, 1e-4, 1.5)] {
            let arrival = ArrivalProcess::ParetoOnOff(ParetoOnOff { on_s, off_s, shape });
            assert!(ArrivalSampler::new(&arrival, 100.0, &mut random).is_err(), "{arrival:?}");
        }
        for arrival in [ArrivalProcess::Pareto(1.0), ArrivalProcess::OnOff(OnOff { on_s: 1e-3, off_s: 0.0 })] {
            assert!(ArrivalSampler::new(&arrival, 100.0, &mut random).is_err(), "{arrival:?}");
        }
    }
}
