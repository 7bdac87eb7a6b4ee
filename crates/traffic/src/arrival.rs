//! Arrival processes: draws the times between packets.
use crate::mmpp::Modulated;
use crate::{Mmpp, Services, Stream, TrafficError, TwoState, positive};
use weir_model::Law;

/// Description of an arrival process; the mean rate is given separately.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Arrival {
    /// Constant gaps; the first packet arrives after a random part of a gap.
    Constant,
    /// Poisson process: exponential gaps.
    #[default]
    Poisson,
    /// Bursts with two rates.
    TwoState(TwoState),
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
pub struct Arrivals {
    draw: Draw,
    /// Fraction of a nanosecond carried over, so that times are exact on average.
    rest_ns: f64,
}

#[derive(Debug, Clone)]
enum Draw {
    Constant { between_ns: f64 },
    Poisson { between_ns: f64 },
    Modulated(Modulated),
    OnOff { lengths: Lengths, between_ns: f64, left_ns: f64 },
    Pareto { between_ns: f64, shape: f64 },
    Renewal { services: Services, factor: f64 },
}

impl Arrivals {
    /// Creates an arrival process with a mean rate of `per_second` packets per second.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn new(arrival: &Arrival, per_second: f64, random: &mut Stream) -> Result<Arrivals, TrafficError> {
        let per_second = positive("packets per second", per_second)?;
        let between_ns = 1e9 / per_second;
        let mut rest_ns = 0.0;
        let draw = match arrival {
            Arrival::Constant => {
                // A random phase: sources that all began at one time would arrive in bursts for ever.
                rest_ns = between_ns * (random.unit() - 1.0);
                Draw::Constant { between_ns }
            }
            Arrival::Poisson => Draw::Poisson { between_ns },
            Arrival::TwoState(two) => Draw::Modulated(Modulated::new(&two.general()?, per_second, random)?),
            Arrival::Mmpp(process) => Draw::Modulated(Modulated::new(process, per_second, random)?),
            Arrival::ParetoOnOff(ParetoOnOff { on_s, off_s, shape }) => {
                trains(Lengths { on_s: *on_s, off_s: *off_s, shape: Some(*shape) }, between_ns, random)?
            }
            Arrival::OnOff(OnOff { on_s, off_s }) => {
                trains(Lengths { on_s: *on_s, off_s: *off_s, shape: None }, between_ns, random)?
            }
            Arrival::Pareto(shape) => Draw::Pareto { between_ns, shape: tail(*shape)? },
            Arrival::Renewal(law) => {
                let mean_ns = positive("mean of the times between packets", law.mean())? * 1e9;
                Draw::Renewal { services: Services::new(Some(law))?, factor: between_ns / mean_ns }
            }
        };
        Ok(Arrivals { draw, rest_ns })
    }

    /// Returns the time to the next packet in ns.
    #[inline]
    pub fn next(&mut self, random: &mut Stream) -> u64 {
        let after = match &mut self.draw {
            Draw::Constant { between_ns } => *between_ns,
            Draw::Poisson { between_ns } => *between_ns * random.exponential(),
            Draw::Modulated(process) => process.next(random),
            Draw::OnOff { lengths, between_ns, left_ns } => train(lengths, *between_ns, left_ns, random),
            Draw::Pareto { between_ns, shape } => *between_ns * random.pareto(*shape),
            Draw::Renewal { services, factor } => services.draw_ns(random) * *factor,
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
struct Lengths {
    on_s: f64,
    off_s: f64,
    /// Shape of the Pareto distribution; `None`: constant lengths.
    shape: Option<f64>,
}

impl Lengths {
    /// Draws a length with this mean, in ns.
    fn draw_ns(&self, mean_s: f64, random: &mut Stream) -> f64 {
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

fn trains(lengths: Lengths, between_ns: f64, random: &mut Stream) -> Result<Draw, TrafficError> {
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
    Ok(Draw::OnOff { lengths, between_ns, left_ns })
}

fn train(lengths: &Lengths, between_ns: f64, left_ns: &mut f64, random: &mut Stream) -> f64 {
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
            (Arrival::OnOff(OnOff { on_s: 0.01, off_s: 0.03 }), 0.001),
            (Arrival::Pareto(3.0), 0.01),
            (Arrival::Renewal(Law::balanced(2.0, 4.0).unwrap()), 0.02),
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
        for arrival in [Arrival::Pareto(1.0), Arrival::OnOff(OnOff { on_s: 1e-3, off_s: 0.0 })] {
            assert!(Arrivals::new(&arrival, 100.0, &mut random).is_err(), "{arrival:?}");
        }
    }
}
