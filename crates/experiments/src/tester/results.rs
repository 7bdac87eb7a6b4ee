//! Observations of one end of a tester.
use super::TesterWindow;
use super::template::TesterFrameKind;
use crate::SampledValue;
use hdrhistogram::Histogram;
use std::time::Duration;
use weir_units::Instant;

/// Length of a slot for measuring rates.
const SLOT: Duration = Duration::from_millis(100);
/// Maximum number of slots; later frames count into the last one.
const MAX_SLOTS: usize = 100_000;

/// Counters and delays of one end. Counts include only frames due in the counting window.
#[derive(Debug)]
pub(crate) struct TesterResults {
    window: TesterWindow,
    /// Due frames of the end's bulk flow.
    pub(crate) due: u64,
    /// Frames of `due` for which the ring had no room.
    pub(crate) missed: u64,
    /// Frames of the other end's bulk flow that arrived.
    pub(crate) arrived: u64,
    /// Frames that arrived, by the slot of the time of arrival.
    slots: Vec<u64>,
    /// Echo requests sent.
    pub(crate) pings: u64,
    /// Round trips in nanoseconds, from the due time of the request.
    pub(crate) round_trips: Histogram<u64>,
    /// Delays in nanoseconds of the other end's bulk flow, from the due time; one sample for each burst.
    pub(crate) delays: Histogram<u64>,
    /// Longest time between two receives.
    pub(crate) longest_gap: Duration,
    last_receive: Option<Instant>,
}

impl TesterResults {
    pub(super) fn new(window: TesterWindow) -> TesterResults {
        let histogram = || Histogram::new(3).expect("three digits are within the library's limits");
        TesterResults {
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

    /// Returns the times of the measurement.
    pub(super) fn window(&self) -> TesterWindow {
        self.window
    }

    /// Records a receive by the switch.
    pub(super) fn receives(&mut self, now: Instant) {
        if let Some(last) = self.last_receive.replace(now).filter(|last| self.window.counts(*last)) {
            self.longest_gap = self.longest_gap.max(now - last);
        }
    }

    /// Records the arrival of a frame.
    pub(super) fn arrives(&mut self, kind: TesterFrameKind, due: Instant, now: Instant, first: bool) {
        match kind {
            TesterFrameKind::Bulk => self.bulk(due, now, first),
            TesterFrameKind::Reply if self.window.counts(due) => record(&mut self.round_trips, now - due),
            TesterFrameKind::Reply | TesterFrameKind::Request => {}
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

    /// Returns the frames per second that arrived in each slot. An incomplete last slot is omitted if there are
    /// others.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let slots = (self.window.until - self.window.from).as_nanos() / SLOT.as_nanos();
        let whole = usize::try_from(slots).unwrap_or(MAX_SLOTS).clamp(1, MAX_SLOTS);
        let counts = (0..whole).map(|at| self.slots.get(at).copied().unwrap_or(0));
        counts.map(|count| count as f64 / SLOT.as_secs_f64()).collect()
    }
}

/// Empty observations, with a window in which nothing counts.
impl Default for TesterResults {
    fn default() -> TesterResults {
        TesterResults::new(TesterWindow { begin: Instant::ZERO, from: Instant::ZERO, until: Instant::ZERO })
    }
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    // Times of more than half the largest number, 146 years, are rejected.
    let _ = histogram.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Converts a histogram of nanoseconds to its mean in microseconds.
pub(crate) fn mean_us(histogram: &Histogram<u64>) -> SampledValue {
    SampledValue { value: histogram.mean() / 1e3, sd: Some(histogram.stdev() / 1e3), samples: histogram.len() }
}

/// Converts a histogram of nanoseconds to a quantile in microseconds.
pub(crate) fn quantile_us(histogram: &Histogram<u64>, quantile: f64) -> SampledValue {
    SampledValue::of(histogram.value_at_quantile(quantile) as f64 / 1e3, histogram.len())
}
