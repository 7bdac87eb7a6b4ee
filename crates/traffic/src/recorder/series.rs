//! What came in one interval after the other.
use super::Recording;
use crate::{Delay, Delays};
use serde::Serialize;
use std::time::Duration;
use weir_units::Instant;

/// Cuts a run into intervals. Rows are given when they are over, so that nothing grows with time.
#[derive(Debug)]
pub struct Series {
    every: Duration,
    begin: Instant,
    /// Intervals that are over.
    over: u64,
    now: Interval,
    delays: Delays,
}

/// What happened in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Interval {
    /// When it begins, from the start.
    pub time_s: f64,
    /// Packets sent in it.
    pub sent: u64,
    /// Packets that came in it, each once.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Delays of those that came.
    pub delay: Option<Delay>,
}

impl Series {
    /// Intervals of this length (at least a microsecond) from `begin` on.
    pub fn new(every: Duration, begin: Instant) -> Series {
        let every = every.max(Duration::from_micros(1));
        Series { every, begin, over: 0, now: Interval::default(), delays: Delays::default() }
    }

    /// The next interval that is over by `now`. To be asked for until there is none, before anything later is put in.
    pub fn next_over(&mut self, now: Instant) -> Option<Interval> {
        (now >= self.begin + self.every).then(|| self.cut())
    }

    /// The interval that is not over, as far as it went.
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

    /// A packet was sent.
    pub fn sent(&mut self) {
        self.now.sent += 1;
    }

    /// A packet came.
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
