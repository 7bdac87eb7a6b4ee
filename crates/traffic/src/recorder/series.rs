//! Time series of a run: counts and delays per interval.
use super::Recording;
use crate::{Delay, Delays};
use serde::Serialize;
use std::time::Duration;
use weir_units::Instant;

/// Divides a run into intervals. Rows are returned as soon as they are complete, so memory does not grow with time.
#[derive(Debug)]
pub struct Series {
    every: Duration,
    begin: Instant,
    /// Number of completed intervals.
    over: u64,
    now: Interval,
    delays: Delays,
}

/// Counts and delays of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Interval {
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
    pub delay: Option<Delay>,
}

impl Series {
    /// Creates intervals of length `every` (at least a microsecond) from `begin` on.
    pub fn new(every: Duration, begin: Instant) -> Series {
        let every = every.max(Duration::from_micros(1));
        Series { every, begin, over: 0, now: Interval::default(), delays: Delays::default() }
    }

    /// Returns the next interval that ended by `now`. Call it until it returns `None` before recording later events.
    pub fn next_over(&mut self, now: Instant) -> Option<Interval> {
        (now >= self.begin + self.every).then(|| self.cut())
    }

    /// Returns the current, incomplete interval.
    pub fn rest(&mut self) -> Interval {
        self.cut()
    }

    fn cut(&mut self) -> Interval {
        let time_s = self.over as f64 * self.every.as_secs_f64();
        let row = Interval { time_s, delay: self.delays.summary(), ..self.now };
        self.delays.clear();
        self.now = Interval::default();
        self.over += 1;
        self.begin += self.every;
        row
    }

    /// Counts a packet sent.
    pub fn sent(&mut self) {
        self.now.sent += 1;
    }

    /// Counts a packet received.
    pub fn came(&mut self, recording: Recording, bytes: u32) {
        match recording {
            Recording::WarmUp => {}
            Recording::Duplicate => self.now.duplicates += 1,
            Recording::Fresh(delay) => {
                self.now.received += 1;
                self.now.bytes += u64::from(bytes);
                delay.into_iter().for_each(|delay| self.delays.record(delay));
            }
        }
    }
}
