//! Records when a thread that polls the clock continuously was stopped: by the machine's host, which gave the
//! processor to another machine; by the operating system, which gave it to another thread; or by an interrupt.
use crate::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum number of stops kept. The oldest are discarded, but still counted in the sum.
pub const MAX_STOPS: usize = 1 << 16;

/// Stops of a watched thread.
#[derive(Debug, Clone, Default)]
pub struct StallLog {
    /// Time of the last look at the clock; `None` if the thread had work to do or slept since.
    looked: Option<Instant>,
    /// Start and end of each stop, in order.
    kept: VecDeque<(Instant, Instant)>,
    sum: StallTotals,
}

/// Sum of stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StallTotals {
    /// Number of stops.
    pub count: u64,
    /// Total duration of the stops.
    pub time: Duration,
    /// Duration of the longest stop.
    pub longest: Duration,
}

impl StallLog {
    /// Records a look at the clock. If the thread had no work since the last look, a time of `least` or more between
    /// both is a stop.
    #[inline]
    pub fn look(&mut self, now: Instant, least: Duration) {
        if let Some(looked) = self.looked.replace(now)
            && now.since(looked) >= least
        {
            self.note(looked, now);
        }
    }

    /// Tells that the thread works or sleeps now, so that the time until the next look is not a stop.
    #[inline]
    pub fn look_away(&mut self) {
        self.looked = None;
    }

    /// Records a stop of the thread.
    #[cold]
    pub fn note(&mut self, from: Instant, until: Instant) {
        let time = until.since(from);
        self.sum.count += 1;
        self.sum.time += time;
        self.sum.longest = self.sum.longest.max(time);
        // A stop that starts before the end of the last one is part of it, or continues it.
        let from = self.kept.back().map_or(from, |last| from.max(last.1));
        if from >= until {
            return;
        }
        if self.kept.len() >= MAX_STOPS {
            self.kept.pop_front();
        }
        self.kept.push_back((from, until));
    }

    /// Returns true if a recorded stop overlaps the time from `from` to `until`.
    pub fn touch(&self, from: Instant, until: Instant) -> bool {
        let first = self.kept.partition_point(|stop| stop.1 <= from);
        self.kept.get(first).is_some_and(|stop| stop.0 < until)
    }

    /// Returns the kept stops, each twice as long: what waits during a stop takes time afterwards, too.
    #[must_use]
    pub fn with_aftermath(&self) -> StallLog {
        let mut longer = StallLog::default();
        self.kept.iter().for_each(|(from, until)| longer.note(*from, *until + until.since(*from)));
        longer
    }

    /// Returns the sum of all stops, including discarded ones.
    pub fn sum(&self) -> StallTotals {
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
        let mut stops = StallLog::default();
        [0, 5, 10, 110, 115].into_iter().for_each(|at| stops.look(us(at), LEAST));
        stops.look_away();
        [900, 919, 939].into_iter().for_each(|at| stops.look(us(at), LEAST));
        let expected = StallTotals { count: 2, time: Duration::from_micros(120), longest: Duration::from_micros(100) };
        assert_eq!(stops.sum(), expected);
        let touched = [(0, 10), (0, 11), (109, 200), (110, 919), (111, 920), (50, 60)];
        assert_eq!(
            touched.map(|(from, until)| stops.touch(us(from), us(until))),
            [false, true, true, false, true, true]
        );
    }

    #[test]
    fn stops_that_overlap_are_kept_in_order() {
        let mut stops = StallLog::default();
        [(10, 50), (20, 40), (30, 70), (90, 95)].into_iter().for_each(|(from, until)| stops.note(us(from), us(until)));
        assert_eq!(stops.kept, [(us(10), us(50)), (us(50), us(70)), (us(90), us(95))]);
        assert_eq!(stops.sum().count, 4);
    }

    #[test]
    fn a_stop_lasts_on_as_long_as_it_was() {
        let mut stops = StallLog::default();
        [(10, 50), (60, 65), (200, 210)].into_iter().for_each(|(from, until)| stops.note(us(from), us(until)));
        let longer = stops.with_aftermath();
        let touched = [(0, 10), (89, 95), (90, 95), (215, 230), (220, 230)];
        assert_eq!(
            touched.map(|(from, until)| longer.touch(us(from), us(until))),
            [false, true, false, true, false],
            "a stop within the time after another one adds nothing"
        );
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut stops = StallLog::default();
        (0..=MAX_STOPS as u64).for_each(|at| stops.note(us(10 * at), us(10 * at + 5)));
        assert!(!stops.touch(us(0), us(5)) && stops.touch(us(10), us(15)));
        assert_eq!(stops.sum().count, MAX_STOPS as u64 + 1);
    }
}
