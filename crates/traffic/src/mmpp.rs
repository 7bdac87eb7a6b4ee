//! Markov modulated Poisson processes: arrivals whose rate changes with a random state.
use crate::{RandomStream, TrafficError, positive};

/// Maximum number of states of a process.
pub const MAX_STATES: usize = 64;

/// A process of two states: bursts of a higher rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoStateMmpp {
    /// Rate in the high state relative to the mean rate: at least 1. A value of 1 makes a Poisson process.
    pub high: f64,
    /// Rate in the low state relative to the mean rate: from 0 to below 1.
    pub low: f64,
    /// Mean length of a stay in the high state, in seconds.
    pub high_s: f64,
}

/// A process of any number of states. In each state it is a Poisson process; stays are exponentially distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct Mmpp {
    /// Arrival rate by state. Only ratios matter: the mean rate is given when the process is created.
    pub rates: Vec<f64>,
    /// Transition rates per second, by state and next state. The diagonal is ignored.
    pub transitions: Vec<Vec<f64>>,
}

impl TwoStateMmpp {
    /// Returns the equivalent [`Mmpp`]. The mean stay in the low state follows from the mean rate.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn general(&self) -> Result<Mmpp, TrafficError> {
        if !(self.high >= 1.0 && self.high.is_finite()) {
            return Err(TrafficError::parameter("rate in the high state", self.high, "at least 1, of the mean rate"));
        }
        if self.high == 1.0 {
            return Ok(Mmpp { rates: vec![1.0], transitions: vec![vec![0.0]] });
        }
        if !(0.0..1.0).contains(&self.low) {
            return Err(TrafficError::parameter("rate in the low state", self.low, "0 to below 1, of the mean rate"));
        }
        let high_s = positive("stay in the high state", self.high_s)?;
        let low_s = high_s * (self.high - 1.0) / (1.0 - self.low);
        let transitions = vec![vec![0.0, 1.0 / high_s], vec![1.0 / low_s, 0.0]];
        Ok(Mmpp { rates: vec![self.high, self.low], transitions })
    }
}

impl Mmpp {
    fn check(&self) -> Result<(), TrafficError> {
        let n = self.rates.len();
        let is_rate = |rate: &f64| rate.is_finite() && *rate >= 0.0;
        let wrong = |found: String, expected| Err(TrafficError::parameter("states", found, expected));
        if !(1..=MAX_STATES).contains(&n) {
            return wrong(n.to_string(), format!("1 to {MAX_STATES}"));
        }
        if self.transitions.len() != n || self.transitions.iter().any(|row| row.len() != n) {
            return wrong("transitions of another size".into(), format!("{n} rows of {n} rates"));
        }
        if !self.rates.iter().chain(self.transitions.iter().flatten()).all(is_rate) {
            return wrong("a rate that is none".into(), "0 or more".into());
        }
        Ok(())
    }

    /// Returns the stationary share of time in each state.
    ///
    /// # Errors
    /// Some states do not lead to all others.
    pub fn shares(&self) -> Result<Vec<f64>, TrafficError> {
        let n = self.rates.len();
        if !self.is_connected() {
            let expected = "that each state leads to every other";
            return Err(TrafficError::parameter("transitions", "states that are never left or come to", expected));
        }
        // Grassmann, Taksar and Heyman (1985): states are eliminated one by one without subtraction, so no digits
        // cancel.
        let mut q = self.transitions.clone();
        for last in (1..n).rev() {
            let leave: f64 = q[last][..last].iter().sum();
            for from in 0..last {
                q[from][last] /= leave;
                for to in 0..last {
                    let by_way = q[from][last] * q[last][to];
                    if from != to {
                        q[from][to] += by_way;
                    }
                }
            }
        }
        let mut shares: Vec<f64> = vec![1.0];
        for state in 1..n {
            let share = shares.iter().zip(&q).map(|(share, row)| share * row[state]).sum();
            shares.push(share);
        }
        let total: f64 = shares.iter().sum();
        Ok(shares.into_iter().map(|share| share / total).collect())
    }

    fn is_connected(&self) -> bool {
        let reached = |forth: bool| {
            let mut seen = vec![false; self.rates.len()];
            let mut open = vec![0];
            while let Some(at) = open.pop() {
                if std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                let leads = |to: usize| if forth { self.transitions[at][to] } else { self.transitions[to][at] };
                open.extend((0..seen.len()).filter(|to| *to != at && leads(*to) > 0.0));
            }
            seen.into_iter().all(|seen| seen)
        };
        reached(true) && reached(false)
    }
}

/// Draws arrivals of a process.
#[derive(Debug, Clone)]
pub(crate) struct MmppSampler {
    states: Box<[MmppState]>,
    state: usize,
    /// Remaining time of the current stay, in ns.
    stay_ns: f64,
}

#[derive(Debug, Clone)]
struct MmppState {
    /// Mean time between arrivals in ns; infinite for a rate of zero.
    between_ns: f64,
    /// Mean stay in ns; infinite if the state is never left.
    stay_ns: f64,
    /// Next states with their cumulative probabilities.
    next: Box<[(f64, usize)]>,
}

impl MmppSampler {
    /// Creates the process with a mean rate of `per_second`, in a state drawn from the stationary distribution.
    pub(crate) fn new(process: &Mmpp, per_second: f64, random: &mut RandomStream) -> Result<MmppSampler, TrafficError> {
        process.check()?;
        let shares = process.shares()?;
        let mean: f64 = shares.iter().zip(&process.rates).map(|(share, rate)| share * rate).sum();
        let scale = per_second / positive("mean rate of the states", mean)?;
        let states: Box<[MmppState]> = (0..shares.len()).map(|at| state(process, at, scale)).collect();
        let point = random.unit();
        let mut below = 0.0;
        let drawn = shares.iter().position(|share| {
            below += share;
            point < below
        });
        let state = drawn.unwrap_or(shares.len() - 1);
        let stay_ns = states[state].stay_ns * random.exponential();
        Ok(MmppSampler { states, state, stay_ns })
    }

    /// Returns the time to the next arrival in ns.
    #[inline]
    pub(crate) fn next(&mut self, random: &mut RandomStream) -> f64 {
        let mut waited = 0.0;
        loop {
            let after = self.states[self.state].between_ns * random.exponential();
            if after <= self.stay_ns {
                self.stay_ns -= after;
                return waited + after;
            }
            // The remaining time to the arrival is drawn again, because the exponential distribution has no memory.
            waited += self.stay_ns;
            self.turn(random);
        }
    }

    fn turn(&mut self, random: &mut RandomStream) {
        self.state = match &*self.states[self.state].next {
            [(_, only)] => *only,
            next => {
                let point = random.unit();
                next.iter().find(|(below, _)| point < *below).or(next.last()).map_or(self.state, |(_, state)| *state)
            }
        };
        self.stay_ns = self.states[self.state].stay_ns * random.exponential();
    }
}

fn state(process: &Mmpp, at: usize, scale: f64) -> MmppState {
    let leads = || process.transitions[at].iter().enumerate().filter(|(to, rate)| *to != at && **rate > 0.0);
    let leave: f64 = leads().map(|(_, rate)| rate).sum();
    let mut below = 0.0;
    let next = leads().map(|(to, rate)| {
        below += rate / leave;
        (below, to)
    });
    // The sum of no rates is -0, whose inverse would be negative infinity.
    let stay_ns = if leave > 0.0 { 1e9 / leave } else { f64::INFINITY };
    MmppState { between_ns: 1e9 / (process.rates[at] * scale), stay_ns, next: next.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(process: &Mmpp, per_second: f64, seconds: f64) -> Vec<f64> {
        let mut random = RandomStream::new(5, 0, 0);
        let mut made = MmppSampler::new(process, per_second, &mut random).unwrap();
        let (mut now, mut times) = (0.0, Vec::new());
        while now < seconds * 1e9 {
            now += made.next(&mut random);
            times.push(now / 1e9);
        }
        times
    }

    /// Returns variance over mean of the number of arrivals in windows: 1 for a Poisson process.
    fn dispersion(times: &[f64], window: f64) -> f64 {
        let windows = (times.last().unwrap() / window).floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
        let mut counts = vec![0.0; windows as usize];
        for time in times {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
            if let Some(count) = counts.get_mut((time / window) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / windows;
        counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / windows / mean
    }

    #[test]
    fn two_states_keep_the_mean_and_come_in_bursts() {
        let process = TwoStateMmpp { high: 3.0, low: 0.5, high_s: 0.0005 }.general().unwrap();
        assert!((process.transitions[1][0] - 500.0).abs() < 1e-9, "the published example's rate");
        let times = arrivals(&process, 5184.0, 200.0);
        let rate = times.len() as f64 / 200.0;
        assert!((rate / 5184.0 - 1.0).abs() < 0.01, "{rate}");
        // Limit of the index of dispersion of counts of a two-state process for long windows (Fischer and
        // Meier-Hellstern 1993).
        let (w1, w2, l1, l2) = (2000.0, 500.0, 3.0 * 5184.0, 0.5 * 5184.0_f64);
        let share = w2 / (w1 + w2);
        let limit = 1.0 + 2.0 * (l1 - l2).powi(2) * share * (1.0 - share) / ((w1 + w2) * 5184.0);
        let found = dispersion(&times, 0.05);
        assert!((found / limit - 1.0).abs() < 0.1, "{found} for {limit}");
    }

    #[test]
    fn high_of_one_is_a_poisson_process() {
        let process = TwoStateMmpp { high: 1.0, low: 1.0, high_s: 0.0 }.general().unwrap();
        let found = dispersion(&arrivals(&process, 1000.0, 200.0), 0.05);
        assert!((found - 1.0).abs() < 0.1, "{found}");
    }

    #[test]
    fn shares_balance() {
        let process = Mmpp {
            rates: vec![1.0, 5.0, 0.0],
            transitions: vec![vec![9.0, 2.0, 1.0], vec![1.0, 0.0, 3.0], vec![4.0, 0.0, 0.0]],
        };
        let shares = process.shares().unwrap();
        for state in 0..3 {
            let others = (0..3).filter(|other| *other != state);
            let into: f64 = others.clone().map(|from| shares[from] * process.transitions[from][state]).sum();
            let out: f64 = others.map(|to| shares[state] * process.transitions[state][to]).sum();
            assert!((into - out).abs() < 1e-12, "{shares:?}");
        }
        let rate = arrivals(&process, 100.0, 3000.0).len() as f64 / 3000.0;
        assert!((rate / 100.0 - 1.0).abs() < 0.03, "{rate}");
    }

    #[test]
    fn what_is_no_process_is_refused() {
        let trap = Mmpp { rates: vec![1.0, 1.0], transitions: vec![vec![0.0, 1.0], vec![0.0, 0.0]] };
        let silent = Mmpp { rates: vec![0.0], transitions: vec![vec![0.0]] };
        let ragged = Mmpp { rates: vec![1.0, 2.0], transitions: vec![vec![0.0, 1.0]] };
        let none = Mmpp { rates: vec![], transitions: vec![] };
        for process in [trap, silent, ragged, none] {
            assert!(MmppSampler::new(&process, 1.0, &mut RandomStream::new(0, 0, 0)).is_err(), "{process:?}");
        }
        for (high, low, high_s) in [(0.5, 0.1, 1.0), (2.0, 1.0, 1.0), (2.0, 0.5, 0.0), (f64::NAN, 0.5, 1.0)] {
            assert!(TwoStateMmpp { high, low, high_s }.general().is_err());
        }
    }
}
