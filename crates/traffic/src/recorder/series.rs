//! Time series of a run: counts and delays per interval.
use super::ReceptionKind;
use crate::{TimeHistogram, TimeStatistics};
use serde::Serialize;
use std::time::Duration;
use weir_units::Instant;

/// Divides a run into intervals. Rows are returned as soon as they are complete, so memory does not grow with time.
#[derive(Debug)]
pub struct IntervalSeries {
    every: Duration,
    begin: Instant,
    /// Number of completed intervals.
    over: u64,
    now: IntervalStatistics,
    delays: TimeHistogram,
}

/// Counts and delays of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct IntervalStatistics {
    /// Begin of the interval in seconds from the start.
    pub time_s: f64,
    /// Packets sent in the interval.
    pub sent: u64,
    /// Packets received in the interval, each counted once.
    pub received: u64,
    /// Bytes of the received packets.
    pub bytes: u64,
    /// Further copies of received packets.
    pub duplicates: u64,
    /// Delays of the received packets.
    pub delay: Option<TimeStatistics>,
}

impl IntervalSeries {
    /// Creates intervals of length `every` (at least a microsecond) from `begin` on.
    pub fn new(every: Duration, begin: Instant) -> IntervalSeries {
        let every = every.max(Duration::from_micros(1));
        IntervalSeries { every, begin, over: 0, now: IntervalStatistics::default(), delays: TimeHistogram::default() }
    }

    /// Returns the next interval that ended by `now`. Call it until it returns `None` before recording later events.
    pub fn next_over(&mut self, now: Instant) -> Option<IntervalStatistics> {
        (now >= self.begin + self.every).then(|| self.cut())
    }

    /// Returns the current, incomplete interval.
    pub fn rest(&mut self) -> IntervalStatistics {
        self.cut()
    }

    fn cut(&mut self) -> IntervalStatistics {
        let time_s = self.over as f64 * self.every.as_secs_f64();
        let row = IntervalStatistics { time_s, delay: self.delays.summary(), ..self.now };
        self.delays.clear();
        self.now = IntervalStatistics::default();
        self.over += 1;
        self.begin += self.every;
        row
    }

    /// Counts a packet sent.
    pub fn sent(&mut self) {
        self.now.sent += 1;
    }

    /// Counts a packet received.
    pub fn came(&mut self, recording: ReceptionKind, bytes: u32) {
        match recording {
            ReceptionKind::WarmUp => {}
            ReceptionKind::Duplicate => self.now.duplicates += 1,
            ReceptionKind::Fresh(delay) => {
                self.now.received += 1;
                self.now.bytes += u64::from(bytes);
                delay.into_iter().for_each(|delay| self.delays.record(delay));
            }
        }
    }
}
