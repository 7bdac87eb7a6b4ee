//! When a thread that looks at the clock all the time was stopped: by the machine's host, which gave the processor to another machine, by the system, which gave
//! it to another thread, or by an interrupt.
use crate::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Stops that are kept at most; the oldest are forgotten, and counted still.
pub const MAX_STOPS: usize = 1 << 16;

/// What a watched thread found.
#[derive(Debug, Clone, Default)]
pub struct Stops {
    /// When it last looked, and had nothing to do since.
    looked: Option<Instant>,
    /// From when until when, in order.
    kept: VecDeque<(Instant, Instant)>,
    sum: StopSum,
}

/// Stops in sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopSum {
    /// How many.
    pub count: u64,
    /// All together.
    pub time: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Stops {
    /// The thread looks at the clock. If it had nothing to do since it last looked, `least` or more between the two is a stop.
    #[inline]
    pub fn look(&mut self, now: Instant, least: Duration) {
        if let Some(looked) = self.looked.replace(now)
            && now.since(looked) >= least
        {
            self.note(looked, now);
        }
    }

    /// The thread has something to do, or sleeps: how long that takes says nothing.
    #[inline]
    pub fn look_away(&mut self) {
        self.looked = None;
    }

    /// The thread was stopped.
    #[cold]
    pub fn note(&mut self, from: Instant, until: Instant) {
        let time = until.since(from);
        self.sum.count += 1;
        self.sum.time += time;
        self.sum.longest = self.sum.longest.max(time);
        // One that began before the end of the last is part of it, or goes on from there.
        let from = self.kept.back().map_or(from, |last| from.max(last.1));
        if from >= until {
            return;
        }
        if self.kept.len() >= MAX_STOPS {
            self.kept.pop_front();
        }
        self.kept.push_back((from, until));
    }

    /// Whether it was stopped at any time of those kept between `from` and `until`.
    pub fn touch(&self, from: Instant, until: Instant) -> bool {
        let first = self.kept.partition_point(|stop| stop.1 <= from);
        self.kept.get(first).is_some_and(|stop| stop.0 < until)
    }

    /// All in sum.
    pub fn sum(&self) -> StopSum {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_micros(20);

    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn long_times_between_looks_are_stops() {
        let mut stops = Stops::default();
        [0, 5, 10, 110, 115].into_iter().for_each(|at| stops.look(us(at), LEAST));
        stops.look_away();
        [900, 919, 939].into_iter().for_each(|at| stops.look(us(at), LEAST));
        let expected = StopSum { count: 2, time: Duration::from_micros(120), longest: Duration::from_micros(100) };
        assert_eq!(stops.sum(), expected);
        let touched = [(0, 10), (0, 11), (109, 200), (110, 919), (111, 920), (50, 60)];
        assert_eq!(
            touched.map(|(from, until)| stops.touch(us(from), us(until))),
            [false, true, true, false, true, true]
        );
    }

    #[test]
    fn stops_that_overlap_are_kept_in_order() {
        let mut stops = Stops::default();
        [(10, 50), (20, 40), (30, 70), (90, 95)].into_iter().for_each(|(from, until)| stops.note(us(from), us(until)));
        assert_eq!(stops.kept, [(us(10), us(50)), (us(50), us(70)), (us(90), us(95))]);
        assert_eq!(stops.sum().count, 4);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut stops = Stops::default();
        (0..=MAX_STOPS as u64).for_each(|at| stops.note(us(10 * at), us(10 * at + 5)));
        assert!(!stops.touch(us(0), us(5)) && stops.touch(us(10), us(15)));
        assert_eq!(stops.sum().count, MAX_STOPS as u64 + 1);
    }
}
