//! Times at which an emulated switch sends its requests: a window of unanswered ones, or a rate that heeds no answers.
use std::time::Duration;
use weir_traffic::{ArrivalProcess, ArrivalSampler, RandomStream, TrafficError};
use weir_units::Instant;

/// Law of the times at which requests are due at a given rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AskedArrivals {
    /// Constant gaps
    Constant,
    /// Exponential gaps
    Poisson,
    /// Bursts of --burst requests at once, with exponential gaps between bursts
    Bursts,
}

/// Rule of a switch for sending requests.
#[derive(Debug, Clone)]
pub(super) enum RequestPace {
    /// At most so many unanswered requests.
    Window(u32),
    /// Requests are due at times that heed no answers.
    Open(OpenLoop),
    /// A single unanswered request, counted as cbench counts: any reply takes one away.
    CbenchLatency,
    /// Output of 64 KiB at all times, whatever is unanswered.
    CbenchThroughput,
}

/// Times at which requests are due.
#[derive(Debug, Clone)]
pub(super) struct OpenLoop {
    gaps: ArrivalSampler,
    random: RandomStream,
    burst: u32,
    /// Requests of the burst that are still due at the time `due`.
    left: u32,
    due: Instant,
}

impl OpenLoop {
    /// Returns the times of a switch; they begin with [`OpenLoop::start`].
    ///
    /// # Errors
    /// The rate is not above zero.
    pub(super) fn new(
        per_second: f64,
        arrivals: AskedArrivals,
        burst: u32,
        mut random: RandomStream,
    ) -> Result<OpenLoop, TrafficError> {
        let burst = if arrivals == AskedArrivals::Bursts { burst.max(1) } else { 1 };
        let process = match arrivals {
            AskedArrivals::Constant => ArrivalProcess::Constant,
            AskedArrivals::Poisson | AskedArrivals::Bursts => ArrivalProcess::Poisson,
        };
        let gaps = ArrivalSampler::new(&process, per_second / f64::from(burst), &mut random)?;
        Ok(OpenLoop { gaps, random, burst, left: burst, due: Instant::FAR })
    }

    /// Starts: the first request is due a gap after `now`.
    pub(super) fn start(&mut self, now: Instant) {
        self.due = now;
        self.left = self.burst;
        self.step();
    }

    /// Returns the time of the next request.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Goes on to the next request.
    pub(super) fn advance(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.burst;
            self.step();
        }
    }

    fn step(&mut self) {
        self.due += Duration::from_nanos(self.gaps.next(&mut self.random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_hold_whatever_the_law() {
        for arrivals in [AskedArrivals::Constant, AskedArrivals::Poisson, AskedArrivals::Bursts] {
            let mut times = OpenLoop::new(1000.0, arrivals, 8, RandomStream::new(1, 0, 3)).unwrap();
            times.start(Instant::from_nanos(5));
            let (mut count, mut at_once, mut last) = (0, 0, Instant::ZERO);
            while times.due() < Instant::from_nanos(20_000_000_000) {
                at_once += u32::from(times.due() == last);
                last = times.due();
                count += 1;
                times.advance();
            }
            assert!((19_000..21_000).contains(&count), "{arrivals:?}: {count}");
            let expected = if arrivals == AskedArrivals::Bursts { count * 7 / 8 } else { 0 };
            assert!(at_once.abs_diff(expected) < 10, "{arrivals:?}: {at_once} at once");
        }
    }
}
