//! Formulas of RFC 8456, section 5: averages and variances over trials, rates, loss ratios, and the search for the two
//! rates of section 5.1.3.
use serde::Serialize;

/// Returns the average of the trials, by the formulas of all tests with an average (for example section 5.1.1);
/// `None` without trials.
pub(super) fn average(trials: &[f64]) -> Option<f64> {
    (!trials.is_empty()).then(|| trials.iter().sum::<f64>() / trials.len() as f64)
}

/// Returns the variance over the trials: the sum of the squared distances from the average, divided by the number of
/// trials minus one (for example section 5.1.1). `None` with fewer than two trials.
pub(super) fn variance(trials: &[f64]) -> Option<f64> {
    let mean = average(trials).filter(|_| trials.len() > 1)?;
    Some(trials.iter().map(|trial| (trial - mean).powi(2)).sum::<f64>() / (trials.len() - 1) as f64)
}

/// Returns the percentage of unsuccessful exchanges, (1 - Nrx/Ntx) * 100 (section 5.1.2); `None` if nothing was sent.
pub(super) fn unsuccessful_percent(received: u64, sent: u64) -> Option<f64> {
    loss_ratio(received, sent).map(|ratio| ratio * 100.0)
}

/// Returns the loss ratio, 1 - Nrx/Ntx (section 5.1.3); `None` if nothing was sent.
pub(super) fn loss_ratio(received: u64, sent: u64) -> Option<f64> {
    (sent > 0).then(|| 1.0 - received as f64 / sent as f64)
}

/// Returns the time of re-provisioning, (FDRT + RDRT) / 2 (section 5.4.2). All values are in seconds.
pub(super) fn reprovisioning(forward: f64, reverse: f64) -> f64 {
    f64::midpoint(forward, reverse)
}

/// A trial of section 5.1.3.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct MessageRateTrial {
    /// Messages a second that were sent (Ntx/Td).
    pub(super) offered: f64,
    /// Responses a second (APR = Nrx/Td).
    pub(super) processed: f64,
    /// Loss ratio.
    pub(super) loss: f64,
}

/// Next step of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RateStep {
    /// Send as fast as the controller reads.
    Flood,
    /// Send at this rate, in messages a second.
    Rate(f64),
    /// Both rates are known, or cannot be found.
    Done,
}

/// Search for the maximum and for the loss-free processing rate (section 5.1.3, steps 1 to 7): trials from the maximum
/// sending rate downwards, then repetitions of the two trials that gave the results.
#[derive(Debug)]
pub(super) struct RateSearch {
    /// Reduction of the sending rate from trial to trial, as a share of the first.
    step: f64,
    /// Two trials are equal if they differ by no more than this share (P).
    tolerance: f64,
    pub(super) trials: Vec<MessageRateTrial>,
    /// Trials that sent as fast as the controller read.
    floods: Vec<bool>,
    /// Trial with the highest rate, and the trial without loss with the highest rate.
    best: Option<usize>,
    loss_free: Option<usize>,
    phase: RatePhase,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RatePhase {
    Descent,
    /// Repeats the trial that gave the maximum rate, so many times yet at most.
    RepeatBest(u32),
    RepeatLossFree(u32),
    Done,
}

/// Most repetitions of a trial until two in a row are equal.
const REPETITIONS: u32 = 4;

impl RateSearch {
    /// Returns a search whose rates fall by `step` times the first rate, and which takes rates as equal that differ by
    /// no more than `tolerance` times the greater.
    pub(super) fn new(step: f64, tolerance: f64) -> RateSearch {
        let phase = RatePhase::Descent;
        RateSearch { step, tolerance, trials: Vec::new(), floods: Vec::new(), best: None, loss_free: None, phase }
    }

    /// Returns the next step.
    pub(super) fn next(&self) -> RateStep {
        let repeated = |at: Option<usize>| match at {
            Some(at) if self.floods[at] => RateStep::Flood,
            Some(at) => RateStep::Rate(self.trials[at].offered),
            None => RateStep::Done,
        };
        match self.phase {
            RatePhase::Descent => match (self.trials.first(), self.trials.last()) {
                (Some(first), Some(last)) => RateStep::Rate(last.offered - first.offered * self.step),
                _ => RateStep::Flood,
            },
            RatePhase::RepeatBest(_) => repeated(self.best),
            RatePhase::RepeatLossFree(_) => repeated(self.loss_free),
            RatePhase::Done => RateStep::Done,
        }
    }

    /// Notes the result of the step.
    pub(super) fn record(&mut self, trial: MessageRateTrial) {
        let at = self.trials.len();
        self.floods.push(self.next() == RateStep::Flood);
        self.trials.push(trial);
        match self.phase {
            RatePhase::Descent => {
                self.judge(at);
                let first = self.trials[0].offered;
                // Below the first rate's step there is no further rate.
                let is_last = trial.offered <= first * self.step * 1.5 || first <= 0.0;
                if self.loss_free.is_some() || is_last {
                    self.phase = RatePhase::RepeatBest(REPETITIONS);
                }
            }
            RatePhase::RepeatBest(left) => self.repeat(at, left, true),
            RatePhase::RepeatLossFree(left) => self.repeat(at, left, false),
            RatePhase::Done => {}
        }
        if self.phase == RatePhase::RepeatLossFree(REPETITIONS)
            && (self.loss_free.is_none() || self.loss_free == self.best)
        {
            self.phase = RatePhase::Done;
        }
    }

    /// Returns the trial that is the benchmark "Maximum", and the one that is "Loss-Free".
    pub(super) fn benchmarks(&self) -> [Option<usize>; 2] {
        [self.best, self.loss_free]
    }

    fn judge(&mut self, at: usize) {
        let trial = self.trials[at];
        let is_better = |than: Option<usize>| than.is_none_or(|than| trial.processed > self.trials[than].processed);
        let (best, loss_free) = (is_better(self.best), trial.loss <= 0.0 && is_better(self.loss_free));
        if best {
            self.best = Some(at);
        }
        if loss_free && trial.processed > 0.0 {
            self.loss_free = Some(at);
        }
    }

    /// Notes a repetition. It replaces the trial that it repeats (step 7: the last trial counts).
    fn repeat(&mut self, at: usize, left: u32, is_best: bool) {
        let is_loss_free = self.trials[at].loss <= 0.0;
        if is_best && self.best == self.loss_free && is_loss_free {
            self.loss_free = Some(at);
        }
        let repeated = if is_best { &mut self.best } else { &mut self.loss_free };
        let before = repeated.map_or(0.0, |before| self.trials[before].processed);
        let now = self.trials[at].processed;
        let is_equal = (now - before).abs() <= self.tolerance * now.max(before);
        // A repetition with loss is no loss-free trial; the next one decides.
        if is_best || is_loss_free {
            *repeated = Some(at);
        }
        let is_over = is_equal || left <= 1;
        self.phase = match (is_best, is_over) {
            (true, false) => RatePhase::RepeatBest(left - 1),
            (true, true) => RatePhase::RepeatLossFree(REPETITIONS),
            (false, false) => RatePhase::RepeatLossFree(left - 1),
            (false, true) => RatePhase::Done,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_and_variances_by_hand() {
        // Deviations from 5: -3, -1, -1, -1, 0, 0, 2, 4; their squares sum to 32; 32 / 7.
        let trials = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(average(&trials), Some(5.0));
        assert_eq!(variance(&trials), Some(32.0 / 7.0));
        assert_eq!((average(&[]), variance(&[3.0])), (None, None));
        assert_eq!(variance(&[1.0, 3.0]), Some(2.0));
    }

    #[test]
    fn ratios_by_hand() {
        assert_eq!(loss_ratio(75, 100), Some(0.25));
        assert_eq!(unsuccessful_percent(75, 100), Some(25.0));
        assert_eq!((loss_ratio(0, 0), loss_ratio(8, 8)), (None, Some(0.0)));
        assert_eq!(reprovisioning(0.2, 0.4), f64::midpoint(0.2, 0.4));
    }

    /// Runs a search against a controller that processes at most `most` messages a second and drops the others.
    fn search(most: f64, flood: f64) -> RateSearch {
        let mut search = RateSearch::new(0.1, 0.05);
        for _ in 0..50 {
            let offered = match search.next() {
                RateStep::Flood => flood,
                RateStep::Rate(rate) => rate,
                RateStep::Done => return search,
            };
            let processed = offered.min(most);
            search.record(MessageRateTrial { offered, processed, loss: 1.0 - processed / offered });
        }
        panic!("the search does not end: {search:?}");
    }

    #[test]
    fn the_search_finds_both_rates() {
        let found = search(450.0, 1000.0);
        let [best, loss_free] = found.benchmarks().map(|at| found.trials[at.unwrap()]);
        assert_eq!(best.processed, 450.0);
        assert!((loss_free.offered - 400.0).abs() < 1e-6 && loss_free.loss <= 0.0, "{loss_free:?}");
        // Seven trials from 1000 down to 400, one repetition of each benchmark.
        assert_eq!(found.trials.len(), 9);
    }

    #[test]
    fn a_controller_that_keeps_up_has_one_rate_and_one_that_never_does_has_no_loss_free_rate() {
        let fast = search(5000.0, 1000.0);
        assert_eq!((fast.benchmarks(), fast.trials.len()), ([Some(1), Some(1)], 2));
        let slow = search(10.0, 1000.0);
        assert_eq!(slow.benchmarks()[1], None);
        assert!(slow.benchmarks()[0].is_some() && slow.trials.len() < 15, "{slow:?}");
    }
}
