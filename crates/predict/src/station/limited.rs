//! Limits waiting times to what a full buffer holds.
use super::direct::{QueueWait, SourceLoad, WaitShape};
use super::periodic::WaitMoments;
use super::{AnalyticStation, waiting};
use weir_model::{Distribution, Law, ModelError};

/// Load from which a queue without limit tells little about a limited one: the limited queue is then that of this load,
/// and what comes beyond is lost.
const MOST_LOAD: f64 = 0.98;
/// Loss below which waits that are longer than the buffer allows change no percentile.
const LEAST_LOSS: f64 = 1e-7;
/// Intervals in which a tail is integrated (an even number).
const INTERVALS: u32 = 64;
/// Shares between whose quantiles a limited law is taken as uniform.
const EDGES: [f64; 15] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999];
/// Halvings in the search for a factor.
const HALVINGS: u32 = 60;

impl AnalyticStation {
    /// Returns true if some sources send in bursts, and the formula for them covers the station.
    pub(super) fn has_bursts(&self) -> bool {
        let is_seized = self.seized.is_some_and(|(length, per_second)| length * per_second > 0.0);
        !(self.memoryless || self.classes || is_seized) && self.arrivals.iter().any(|one| one.modulation.is_some())
    }

    /// Returns the waiting if some sources send in bursts.
    pub(super) fn burst_waiting(&self) -> Result<Distribution, ModelError> {
        self.limited(self.unlimited_wait(self.state.offered)?)?.law()
    }

    /// Returns a waiting, known without a limit, as it is with the station's buffer.
    pub(super) fn limited(&self, waits: QueueWait) -> Result<QueueWait, ModelError> {
        match self.longest_wait() {
            Some(longest) => waits.limited(longest, self.state.loss),
            None => Ok(waits),
        }
    }

    /// Returns the longest time that a packet waits for those before it, in seconds, if the buffer is ever full.
    pub(super) fn longest_wait(&self) -> Option<f64> {
        let places = self.places.filter(|_| self.state.loss > LEAST_LOSS && self.tcp_waiting.is_none())?;
        Some(self.longest(places, self.state.rate))
    }

    /// Returns the time that packets in all places but the last take, in seconds, of `rate` packets a second.
    pub(super) fn longest(&self, places: usize, rate: f64) -> f64 {
        let mean = self.arrivals.iter().map(|one| one.rate * one.service.mean).sum::<f64>() / rate;
        places.saturating_sub(1) as f64 * mean
    }

    /// Returns the waiting if the buffer had no limit, for the sources' load or for [`MOST_LOAD`].
    fn unlimited_wait(&self, offered: f64) -> Result<QueueWait, ModelError> {
        let load = if self.places.is_some() { offered.min(MOST_LOAD) } else { offered };
        // The quotient first: the product of two tiny numbers would be 0.
        let part = load / offered;
        let source = |one| {
            let all = SourceLoad::of(one, one.service.clone());
            SourceLoad { rate: all.rate * part, ..all }
        };
        let sources: Vec<SourceLoad> = self.arrivals.iter().filter(|one| one.rate > 0.0).map(source).collect();
        QueueWait::of(&sources, load)
    }
}

impl QueueWait {
    /// Returns the waiting of the packets that find a place, if the longest wait is `longest` seconds and the share
    /// `loss` of the packets finds none. While more would wait without the limit, the buffer is full.
    fn limited(mut self, longest: f64, loss: f64) -> Result<QueueWait, ModelError> {
        self.longest = longest;
        let WaitShape::Moments(moments) = &self.shape else { return Ok(self) };
        if longest <= 0.0 || moments.mean <= 0.0 {
            return Ok(self);
        }
        let law = waiting::spread(moments.share, moments.mean, moments.square)?;
        let lost = loss.min(law.tail(longest));
        let kept = |moment: f64, most: f64| ((moment - lost * most) / (1.0 - lost)).max(0.0);
        // Moments of the shorter of the wait and the longest one: integrals of the tail. Points are denser near 0,
        // where the tail may be steep.
        let moment = |power: i32| {
            integral(|root| {
                let time = longest * root * root;
                2.0 * longest * root * f64::from(power) * time.powi(power - 1) * law.tail(time)
            })
        };
        let (mean, square) = (kept(moment(1), longest), kept(moment(2), longest * longest));
        let part = mean / moments.mean;
        let share = kept(moments.share, 1.0);
        self.shape = WaitShape::Moments(WaitMoments { mean, square, share });
        self.mean *= part;
        self.by_load *= part;
        self.each.iter_mut().for_each(|each| *each *= part);
        Ok(self)
    }

    /// Returns the law of the waiting.
    fn law(&self) -> Result<Distribution, ModelError> {
        Ok(Distribution::sum(&QueueWait::independent(std::iter::once((self, self.mean)))?))
    }
}

/// Returns the integral from 0 to 1 (Simpson's rule).
fn integral(value: impl Fn(f64) -> f64) -> f64 {
    let step = 1.0 / f64::from(INTERVALS);
    let weight = |at: u32| match at {
        0 | INTERVALS => 1.0,
        at if at % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=INTERVALS).map(|at| weight(at) * value(f64::from(at) * step)).sum::<f64>() * step / 3.0
}

/// Returns a law of waits as one with the same mean, of which none is longer than `longest` seconds. It is taken as
/// uniform between quantiles, which are moved up so far that the mean is kept.
pub(super) fn at_most(law: Distribution, longest: f64) -> Result<Distribution, ModelError> {
    let mean = law.mean();
    // By Chebyshev's inequality, the limit hardly matters.
    if !longest.is_finite() || law.variance() < LEAST_LOSS * (longest - mean).max(0.0).powi(2) {
        return Ok(law);
    }
    if mean >= longest {
        return Distribution::constant(longest);
    }
    let edges = law.quantiles(EDGES)?;
    let pieces = |factor: f64| -> Vec<(f64, f64, f64)> {
        let mut pieces = Vec::new();
        let (mut share, mut low) = (0.0, 0.0);
        for (next, high) in EDGES.into_iter().zip(edges).chain([(1.0, edges[EDGES.len() - 1])]) {
            limited_piece(next - share, factor * low, factor * high, longest, &mut pieces);
            (share, low) = (next, high);
        }
        pieces
    };
    let reaches = |factor: f64| pieces(factor).iter().map(|(weight, low, high)| weight * (low + high) / 2.0).sum();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let reached: f64 = reaches(high);
        if reached >= mean {
            break;
        }
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if reaches(middle) < mean { low = middle } else { high = middle }
    }
    let piece = |(weight, low, high): (f64, f64, f64)| {
        Ok((
            weight,
            if low < high { Distribution::law(&Law::uniform(low, high)?) } else { Distribution::constant(low)? },
        ))
    };
    Distribution::mixture(&pieces(high).into_iter().map(piece).collect::<Result<Vec<_>, ModelError>>()?)
}

/// Adds a part of a law, uniform from `low` to `high`, as far as it is below `longest`. What is above becomes
/// `longest`.
fn limited_piece(weight: f64, low: f64, high: f64, longest: f64, into: &mut Vec<(f64, f64, f64)>) {
    if high <= longest {
        into.push((weight, low, high));
    } else if low >= longest {
        into.push((weight, longest, longest));
    } else {
        let below = (longest - low) / (high - low);
        into.push((weight * below, low, longest));
        into.push((weight * (1.0 - below), longest, longest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_law_keeps_its_mean_and_has_no_longer_waits() {
        let law = waiting::spread(0.4, 0.01, 0.000_6).unwrap();
        assert!(law.tail(0.05) > 0.01);
        let limited = at_most(law.clone(), 0.05).unwrap();
        assert!((limited.mean() / law.mean() - 1.0).abs() < 1e-9, "{}", limited.mean());
        assert_eq!(limited.tail(0.05), 0.0);
        let [before, after] = [&law, &limited].map(|law| law.quantile(0.8).unwrap());
        // What is cut off at the end is made up for by longer waits before it.
        assert!(after > before && after < 1.5 * before, "{before} {after}");
        // Far below the limit, a law stays as it is.
        assert!(at_most(law.clone(), 1000.0).unwrap().tail(0.1) == law.tail(0.1));
    }
}
