//! Generates a bulk flow: determines which frames are due, and which of them the ring has no room for.
use super::template::TesterFrameKind;
use super::{RING_FRAMES, TesterFrameTemplate, TesterResults, TesterWindow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Maximum number of outstanding frames with [`BulkFlowRate::Most`]: enough to keep every ring busy, few enough not to
/// overrun one.
const WINDOW_FRAMES: u64 = 512;
/// Time without any arrival after which outstanding frames count as lost.
const LOST_AFTER: Duration = Duration::from_millis(20);

/// A bulk flow.
#[derive(Debug, Clone)]
pub(crate) struct BulkFlow {
    pub(crate) rate: BulkFlowRate,
    pub(crate) template: TesterFrameTemplate,
}

/// Rate of a bulk flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BulkFlowRate {
    /// Frames per second, evenly spaced.
    PerSecond(f64),
    /// Highest rate that the switch forwards without loss.
    Most,
}

/// Generator of a bulk flow.
#[derive(Debug)]
pub(super) struct BulkFlowSource {
    bulk: BulkFlow,
    window: TesterWindow,
    /// Number of frames that were due so far, including missed ones.
    made: u64,
    /// State of the xorshift64 generator that selects the next flow.
    random: u64,
    /// Frames that arrived at the other end.
    arrived: Arc<AtomicU64>,
    /// Frames counted as lost, with [`BulkFlowRate::Most`].
    lost: u64,
    /// Time of the last change of `arrived`, and its value then.
    heard: (Instant, u64),
}

impl BulkFlowSource {
    pub(super) fn new(bulk: &BulkFlow, window: TesterWindow, arrived: Arc<AtomicU64>, seed: u64) -> BulkFlowSource {
        // A state of zero would remain zero.
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        BulkFlowSource { bulk: bulk.clone(), window, made: 0, random, arrived, lost: 0, heard: (Instant::ZERO, 0) }
    }

    /// Appends due frames, at most `max`.
    pub(super) fn give(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
        seen: &mut TesterResults,
    ) {
        match self.bulk.rate {
            BulkFlowRate::PerSecond(rate) => self.give_due(rate, now, pool, batch, max, seen),
            BulkFlowRate::Most => self.give_most(now, pool, batch, max, seen),
        }
    }

    /// Returns the due time of the next frame, or `None` after the end.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let next = match self.bulk.rate {
            BulkFlowRate::PerSecond(rate) => self.due(self.made, rate),
            BulkFlowRate::Most => self.window.begin.max(now),
        };
        Some(next).filter(|next| *next < self.window.until)
    }

    fn give_due(
        &mut self,
        rate: f64,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
        seen: &mut TesterResults,
    ) {
        let waiting = self.due_until(now, rate).saturating_sub(self.made);
        for _ in RING_FRAMES..waiting {
            let counts = self.window.counts(self.due(self.made, rate));
            seen.due += u64::from(counts);
            seen.missed += u64::from(counts);
            self.made += 1;
        }
        for _ in 0..waiting.min(RING_FRAMES).min(max as u64) {
            let due = self.due(self.made, rate);
            seen.due += u64::from(self.window.counts(due));
            batch.push(self.frame(due, pool));
            self.made += 1;
        }
    }

    fn give_most(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
        seen: &mut TesterResults,
    ) {
        if now < self.window.begin || now >= self.window.until {
            return;
        }
        let arrived = self.arrived.load(Ordering::Relaxed);
        if arrived != self.heard.1 {
            self.heard = (now, arrived);
        }
        let mut under_way = self.made.saturating_sub(arrived + self.lost);
        if under_way > 0 && now.since(self.heard.0) > LOST_AFTER {
            self.lost += std::mem::take(&mut under_way);
            self.heard.0 = now;
        }
        for _ in 0..WINDOW_FRAMES.saturating_sub(under_way).min(max as u64) {
            seen.due += u64::from(self.window.counts(now));
            batch.push(self.frame(now, pool));
            self.made += 1;
        }
    }

    fn frame(&mut self, due: Instant, pool: &mut FramePool) -> Frame {
        let flow = self.flow();
        let mut frame = pool.take(self.bulk.template.bytes());
        self.bulk.template.write(&mut frame, flow, TesterFrameKind::Bulk, due);
        frame
    }

    /// Selects the flow of the next frame at random, the worst case for caches.
    fn flow(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let flows = u64::from(self.bulk.template.flows());
        // The high half of the product is a number below `flows`.
        u32::try_from(((self.random >> 32) * flows) >> 32).unwrap_or(0)
    }

    /// Returns the number of frames that are due by `now`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero, far below the limit")]
    fn due_until(&self, now: Instant, rate: f64) -> u64 {
        let until = now.min(self.window.until);
        if until < self.window.begin {
            return 0;
        }
        let span = (until - self.window.begin).as_nanos() as f64;
        (span * rate / 1e9).ceil() as u64
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero, far below the limit")]
    fn due(&self, number: u64, rate: f64) -> Instant {
        self.window.begin + Duration::from_nanos((number as f64 * 1e9 / rate) as u64)
    }
}
