//! Compares the planned times between packets (gaps) with the actual ones.
use crate::{GapLaw, GoodnessOfFit, TimeHistogram, TimeStatistics};
use serde::{Deserialize, Serialize};

/// Maximum number of gaps kept for comparisons of distributions; above it, every second one is discarded.
const MAX_KEPT: usize = 1 << 16;

/// Recorder of planned and actual times between packets (gaps).
#[derive(Debug, Clone)]
pub struct GapRecorder {
    /// Planned and actual time of the last packet, in ns; `None` if the next packet begins no gap.
    last: Option<[u64; 2]>,
    /// Number of gaps recorded.
    count: u64,
    /// Sums of the gaps in ns: planned, actual.
    sums: [f64; 2],
    /// Sums of the squared gaps: planned, actual.
    squares: [f64; 2],
    /// Absolute differences between planned and actual gaps.
    errors: TimeHistogram,
    /// Actual gaps.
    found: TimeHistogram,
    /// Sampled gaps in ns: planned, actual.
    kept: Vec<[u64; 2]>,
    /// Sampling interval: one of this many gaps is kept.
    every: u64,
}

impl Default for GapRecorder {
    fn default() -> Self {
        let (errors, found) = (TimeHistogram::default(), TimeHistogram::default());
        GapRecorder {
            last: None,
            count: 0,
            sums: [0.0; 2],
            squares: [0.0; 2],
            errors,
            found,
            kept: Vec::new(),
            every: 1,
        }
    }
}

/// Accuracy of the times between packets (gaps). Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapQuality {
    /// Number of gaps.
    pub gaps: u64,
    /// Mean of the planned gaps.
    pub planned_mean_us: f64,
    /// Mean of the actual gaps.
    pub mean_us: f64,
    /// Relative error of the mean gap: mean actual gap / mean planned gap - 1.
    pub mean_error: f64,
    /// Distribution of the absolute differences between planned and actual gaps.
    pub errors: Option<TimeStatistics>,
    /// Distribution of the actual gaps.
    pub spread: Option<TimeStatistics>,
    /// Squared coefficient of variation of the planned gaps: 0 for constant gaps, 1 for a Poisson process.
    pub planned_scv: f64,
    /// Squared coefficient of variation of the actual gaps.
    pub scv: f64,
    /// Maximum difference between the distribution functions of planned and actual gaps: 0 if they are identical, 1 if
    /// all gaps of one are shorter than those of the other.
    pub distance_from_plan: Option<f64>,
    /// Statistical test whether the actual gaps have the distribution that the traffic was to have; `None` if no such
    /// distribution was given or it cannot be tested.
    pub fit: Option<GoodnessOfFit>,
}

impl GapRecorder {
    /// Records a packet planned for `planned_ns` that was sent or received at `found_ns`. Packets are recorded in
    /// order.
    pub fn record(&mut self, planned_ns: u64, found_ns: u64) {
        let Some([planned_before, found_before]) = self.last.replace([planned_ns, found_ns]) else { return };
        let gaps = [planned_ns.saturating_sub(planned_before), found_ns.saturating_sub(found_before)];
        for (at, gap) in gaps.iter().enumerate() {
            self.sums[at] += *gap as f64;
            self.squares[at] += (*gap as f64).powi(2);
        }
        self.errors.record_ns(gaps[0].abs_diff(gaps[1]));
        self.found.record_ns(gaps[1]);
        self.keep(gaps);
        self.count += 1;
    }

    /// Marks that the next packet does not follow the last one, so that the time between them is not recorded.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// Keeps the gap if it is one of the sample, which has one of `every` gaps. Halves the sample when it is full.
    fn keep(&mut self, gaps: [u64; 2]) {
        if !self.count.is_multiple_of(self.every) {
            return;
        }
        if self.kept.len() == MAX_KEPT {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
            if !self.count.is_multiple_of(self.every) {
                return;
            }
        }
        self.kept.push(gaps);
    }

    /// Returns the accuracy of the gaps; `None` if none was recorded. The actual gaps are tested against the
    /// distribution `law` if it is given.
    pub fn quality(&self, law: Option<&GapLaw>) -> Option<GapQuality> {
        let n = self.count as f64;
        let [planned, mean] = self.sums.map(|sum| sum / n);
        let scv = |at: usize| {
            let mean = self.sums[at] / n;
            if mean > 0.0 { (self.squares[at] / n / (mean * mean) - 1.0).max(0.0) } else { 0.0 }
        };
        let seconds = |at: usize| self.kept.iter().map(|pair| pair[at] as f64 / 1e9).collect::<Vec<_>>();
        (self.count > 0).then(|| GapQuality {
            gaps: self.count,
            planned_mean_us: planned / 1e3,
            mean_us: mean / 1e3,
            mean_error: if planned > 0.0 { mean / planned - 1.0 } else { 0.0 },
            errors: self.errors.summary(),
            spread: self.found.summary(),
            planned_scv: scv(0),
            scv: scv(1),
            distance_from_plan: GoodnessOfFit::between(&mut seconds(0), &mut seconds(1)),
            fit: law.and_then(|law| GoodnessOfFit::test(&mut seconds(1), law)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, ArrivalSampler, RandomStream};

    fn quality(error_ns: impl Fn(u64) -> u64, count: u64) -> GapQuality {
        let mut random = RandomStream::new(1, 0, 0);
        let mut arrivals = ArrivalSampler::new(&ArrivalProcess::Poisson, 1e5, &mut random).unwrap();
        let (mut gaps, mut at) = (GapRecorder::default(), 0);
        for number in 0..count {
            at += arrivals.next(&mut random);
            gaps.record(at, at + error_ns(number));
        }
        gaps.quality(GapLaw::of(&ArrivalProcess::Poisson, 1e5).as_ref()).unwrap()
    }

    #[test]
    fn what_is_sent_as_planned_has_no_error() {
        let found = quality(|_| 300, 300_001);
        assert_eq!((found.gaps, found.mean_error, found.distance_from_plan), (300_000, 0.0, Some(0.0)));
        assert_eq!(found.errors.unwrap().max_us, 0.0);
        assert!((found.scv - 1.0).abs() < 0.02 && (found.mean_us - 10.0).abs() < 0.1, "{found:?}");
        let fit = found.fit.unwrap();
        assert!(fit.fits() && fit.samples > 30_000 && fit.samples <= MAX_KEPT as u64, "{fit:?}");
    }

    #[test]
    fn batches_are_seen_in_the_fit_not_in_the_mean() {
        // Packets are released every 50 us: about five at a time.
        let mut random = RandomStream::new(1, 0, 0);
        let mut arrivals = ArrivalSampler::new(&ArrivalProcess::Poisson, 1e5, &mut random).unwrap();
        let (mut gaps, mut at) = (GapRecorder::default(), 0_u64);
        for _ in 0..20_000 {
            at += arrivals.next(&mut random);
            gaps.record(at, at.next_multiple_of(50_000));
        }
        let found = gaps.quality(GapLaw::of(&ArrivalProcess::Poisson, 1e5).as_ref()).unwrap();
        assert!(found.mean_error.abs() < 0.001, "{found:?}");
        assert!(!found.fit.unwrap().fits() && found.distance_from_plan.unwrap() > 0.5, "{found:?}");
        assert!(found.scv > 2.0 && found.errors.unwrap().p99_us > 20.0, "{found:?}");
    }

    /// With a packet every ten seconds, most gaps are above 2^32 ns.
    #[test]
    fn long_gaps_are_compared_as_they_are() {
        let (law, mut random) = (ArrivalProcess::Poisson, RandomStream::new(1, 0, 0));
        let mut arrivals = ArrivalSampler::new(&law, 0.1, &mut random).unwrap();
        let (mut gaps, mut at) = (GapRecorder::default(), 0);
        for _ in 0..1000 {
            at += arrivals.next(&mut random);
            gaps.record(at, at + at / 10);
        }
        let found = gaps.quality(GapLaw::of(&law, 0.1 / 1.1).as_ref()).unwrap();
        assert!(found.fit.unwrap().fits() && found.distance_from_plan.unwrap() > 0.02, "{found:?}");
    }

    #[test]
    fn an_interruption_is_no_gap() {
        let mut gaps = GapRecorder::default();
        assert_eq!(gaps.quality(None), None);
        gaps.record(0, 0);
        gaps.record(10, 12);
        gaps.interrupt();
        gaps.record(1_000_000, 1_000_000);
        gaps.record(1_000_010, 1_000_014);
        let found = gaps.quality(None).unwrap();
        assert_eq!((found.gaps, found.planned_mean_us, found.mean_us), (2, 0.01, 0.013));
        assert!((found.mean_error - 0.3).abs() < 1e-9 && found.fit.is_none());
    }
}
