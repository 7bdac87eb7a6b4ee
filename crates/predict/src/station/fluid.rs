//! Computes how many packets of bursts find no place in a buffer: work flows like a fluid, at a high and at a low rate.
use super::input::by_input;
use super::{AnalyticStation, ArrivalStream, PassedStation};
use crate::arrivals::RateModulation;
use weir_model::ModelError;
use weir_traffic::Mmpp;

/// Least excess of the high rate over what the server takes.
const LEAST_EXCESS: f64 = 1e-6;

impl AnalyticStation {
    /// Returns the share of packets of bursts that find a buffer full in which packets wait so long at most.
    ///
    /// Work flows at two rates, high for a time and low for a time, and the buffer is filled and emptied by the
    /// difference from what the server takes. If several sources send in bursts, their rates together count as two,
    /// with the same mean, variance, third moment and correlation time. Lines that packets have passed let no more
    /// through than their own rate.
    pub(super) fn burst_loss(&self, longest: f64) -> Result<f64, ModelError> {
        let flows: Vec<&ArrivalStream> = self.arrivals.iter().filter(|one| one.rate > 0.0).collect();
        let mut sum = WorkMoments::default();
        for group in by_input(&flows, 1) {
            let mut together = WorkMoments::default();
            for at in &group {
                let most = flows[*at].passed.iter().map(|passed| flows[*at].service.mean / passed.service.mean);
                together.add(WorkMoments::of(flows[*at])?.at_most(most.fold(f64::INFINITY, f64::min)));
            }
            let last = |at: &usize| Some((flows[*at], flows[*at].passed.last()?));
            let work = |time: fn(&ArrivalStream, &PassedStation) -> f64| -> f64 {
                group.iter().filter_map(last).map(|(one, passed)| one.rate * time(one, passed)).sum()
            };
            let before = work(|_, passed| passed.service.mean);
            let most = if before > 0.0 { work(|one, _| one.service.mean) / before } else { f64::INFINITY };
            sum.add(together.at_most(most));
        }
        Ok(sum.loss(longest))
    }
}

/// Work that arrives per second of service: mean, variance and third central moment of its rate, and the sum of the
/// variances, each times the time for which its rate is correlated, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct WorkMoments {
    mean: f64,
    variance: f64,
    third: f64,
    variance_time: f64,
}

/// Two rates at which work arrives per second of service, and how many times a second each is left.
struct TwoRates {
    high: f64,
    low: f64,
    leaves_high: f64,
    leaves_low: f64,
}

impl WorkMoments {
    fn of(source: &ArrivalStream) -> Result<WorkMoments, ModelError> {
        let load = source.rate * source.service.mean;
        let constant = WorkMoments { mean: load, ..WorkMoments::default() };
        let Some(modulation) = &source.modulation else { return Ok(constant) };
        let RateModulation { relative, changes, .. } = &**modulation;
        let chain = Mmpp { rates: relative.clone(), transitions: changes.clone() };
        let Ok(shares) = chain.shares() else { return Ok(constant) };
        let moment = |power: i32| -> f64 {
            shares.iter().zip(relative).map(|(share, rate)| share * (load * (rate - 1.0)).powi(power)).sum()
        };
        // The covariance of the rate falls with this slope at first: with two states, it is exponential.
        let mut falls = 0.0;
        for (from, (share, row)) in shares.iter().zip(changes).enumerate() {
            for (to, change) in row.iter().enumerate().filter(|(to, _)| *to != from) {
                falls += share * change * (load * (relative[from] - relative[to])).powi(2) / 2.0;
            }
        }
        let variance = moment(2);
        let variance_time = if falls > 0.0 { variance * variance / falls } else { 0.0 };
        Ok(WorkMoments { mean: load, variance, third: moment(3), variance_time })
    }

    /// Adds work that is independent.
    fn add(&mut self, other: WorkMoments) {
        self.mean += other.mean;
        self.variance += other.variance;
        self.third += other.third;
        self.variance_time += other.variance_time;
    }

    /// Returns two rates with these moments; none if the rate does not change.
    fn rates(&self) -> Option<TwoRates> {
        let WorkMoments { mean, variance, third, variance_time } = *self;
        if variance <= 0.0 || variance_time <= 0.0 {
            return None;
        }
        let skew = third / variance.powf(1.5);
        let share = 0.5 * (1.0 - skew / (4.0 + skew * skew).sqrt());
        Some(TwoRates {
            high: mean + (variance * (1.0 - share) / share).sqrt(),
            low: (mean - (variance * share / (1.0 - share)).sqrt()).max(0.0),
            leaves_high: (1.0 - share) * variance / variance_time,
            leaves_low: share * variance / variance_time,
        })
    }

    /// Returns the work behind a line that lets so much through at most. The rest of a burst comes later, so that the
    /// high rate lasts longer.
    fn at_most(self, most: f64) -> WorkMoments {
        let Some(TwoRates { low, leaves_low, .. }) = self.rates().filter(|rates| rates.high > most) else {
            return self;
        };
        let constant = WorkMoments { mean: self.mean, ..WorkMoments::default() };
        if most <= self.mean || low >= self.mean {
            return constant;
        }
        let share = (self.mean - low) / (most - low);
        let variance = (most - self.mean) * (self.mean - low);
        // Times between bursts are as before: a rate is left for the other one as often.
        let together = leaves_low / share;
        let third = variance * (most + low - 2.0 * self.mean);
        WorkMoments { variance, third, variance_time: variance / together, ..constant }
    }

    /// Returns the share of the work that is lost if at most `longest` seconds of it wait.
    ///
    /// Between empty and full, the density of work is proportional to exp(-z x), with z = a / (h - 1) - b / (1 - l): h
    /// and l are the rates, left a and b times a second. The rates to and from the ends give the time at them.
    fn loss(&self, longest: f64) -> f64 {
        let certain = (1.0 - 1.0 / self.mean).max(0.0);
        // A line that lets through just as much as this one takes is none that fills it.
        let fills = |rates: &TwoRates| rates.high > 1.0 + LEAST_EXCESS && rates.low < 1.0;
        let Some(TwoRates { high, low, leaves_high, leaves_low }) = self.rates().filter(fills) else { return certain };
        let (fills, empties) = (high - 1.0, 1.0 - low);
        let z = leaves_high / fills - leaves_low / empties;
        // The integral of exp(-z x) over the buffer.
        let between = if (z * longest).abs() < 1e-9 { longest } else { -(-z * longest).exp_m1() / z };
        let full = fills * (-z * longest).exp() / leaves_high;
        let all = fills / leaves_low + full + (1.0 + fills / empties) * between;
        let lost = fills * full / all / self.mean;
        if lost.is_finite() { lost.clamp(certain, 1.0) } else { certain }
    }
}
