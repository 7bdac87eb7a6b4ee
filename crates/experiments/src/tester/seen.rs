//! What one end of a tester has seen.
use super::Window;
use super::template::Kind;
use crate::Value;
use hdrhistogram::Histogram;
use std::time::Duration;
use weir_units::Instant;

/// How long a slot is over which a rate is measured.
const SLOT: Duration = Duration::from_millis(100);
/// Slots at most: more time counts into the last.
const MAX_SLOTS: usize = 100_000;

/// What one end has seen; counts are of frames that were due while it counts.
#[derive(Debug)]
pub(crate) struct Seen {
    window: Window,
    /// Frames of its bulk flow that were due.
    pub(crate) due: u64,
    /// Those of them that its ring had no room for.
    pub(crate) missed: u64,
    /// Frames of the other end's bulk flow that arrived.
    pub(crate) arrived: u64,
    /// The same by the time of arrival.
    slots: Vec<u64>,
    /// Echo requests sent.
    pub(crate) pings: u64,
    /// Round trips, in nanoseconds from when the request was due.
    pub(crate) round_trips: Histogram<u64>,
    /// Delays of the other end's bulk flow, from when a frame was due: one for each burst.
    pub(crate) delays: Histogram<u64>,
    /// Longest time between two receives.
    pub(crate) longest_gap: Duration,
    last_receive: Option<Instant>,
}

impl Seen {
    pub(super) fn new(window: Window) -> Seen {
        let histogram = || Histogram::new(3).expect("three digits are within the library's limits");
        Seen {
            window,
            due: 0,
            missed: 0,
            arrived: 0,
            slots: Vec::new(),
            pings: 0,
            round_trips: histogram(),
            delays: histogram(),
            longest_gap: Duration::ZERO,
            last_receive: None,
        }
    }

    /// When load is offered.
    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// The switch asks for frames.
    pub(super) fn receives(&mut self, now: Instant) {
        if let Some(last) = self.last_receive.replace(now).filter(|last| self.window.counts(*last)) {
            self.longest_gap = self.longest_gap.max(now - last);
        }
    }

    /// A frame arrived.
    pub(super) fn arrives(&mut self, kind: Kind, due: Instant, now: Instant, first: bool) {
        match kind {
            Kind::Bulk => self.bulk(due, now, first),
            Kind::Reply if self.window.counts(due) => record(&mut self.round_trips, now - due),
            Kind::Reply | Kind::Request => {}
        }
    }

    fn bulk(&mut self, due: Instant, now: Instant, first: bool) {
        if self.window.counts(due) {
            self.arrived += 1;
            if first {
                record(&mut self.delays, now - due);
            }
        }
        if self.window.counts(now) {
            let slot = (now - self.window.from).as_nanos() / SLOT.as_nanos();
            let slot = usize::try_from(slot).unwrap_or(MAX_SLOTS).min(MAX_SLOTS - 1);
            if self.slots.len() <= slot {
                self.slots.resize(slot + 1, 0);
            }
            self.slots[slot] += 1;
        }
    }

    /// Frames that arrived per second, slot by slot; the last, which may be cut, is left out if there are others.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let slots = (self.window.until - self.window.from).as_nanos() / SLOT.as_nanos();
        let whole = usize::try_from(slots).unwrap_or(MAX_SLOTS).clamp(1, MAX_SLOTS);
        let counts = (0..whole).map(|at| self.slots.get(at).copied().unwrap_or(0));
        counts.map(|count| count as f64 / SLOT.as_secs_f64()).collect()
    }
}

/// Nothing seen, nothing that counts.
impl Default for Seen {
    fn default() -> Seen {
        Seen::new(Window { begin: Instant::ZERO, from: Instant::ZERO, until: Instant::ZERO })
    }
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    // Half of the largest number is refused: 146 years.
    let _ = histogram.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// The mean of a histogram of nanoseconds, in microseconds.
pub(crate) fn mean_us(histogram: &Histogram<u64>) -> Value {
    Value { value: histogram.mean() / 1e3, sd: Some(histogram.stdev() / 1e3), samples: histogram.len() }
}

/// A quantile of a histogram of nanoseconds, in microseconds.
pub(crate) fn quantile_us(histogram: &Histogram<u64>, quantile: f64) -> Value {
    Value::of(histogram.value_at_quantile(quantile) as f64 / 1e3, histogram.len())
}
