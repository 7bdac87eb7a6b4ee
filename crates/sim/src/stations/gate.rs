//! Places where packets wait until several go on together.
use super::station::{Item, MAX_WAITING};
use std::collections::VecDeque;
use std::time::Duration;
use weir_scenario::Gate;
use weir_traffic::Stream;
use weir_units::Instant;

/// Waiting packets. It has one event, when there are any: that they go on.
///
/// Ticks and time-outs without packets do nothing, so they are no events: with the next packet the last of them is worked out.
pub(super) struct GateState {
    kind: Gate,
    waiting: VecDeque<Item>,
    /// The next tick or time-out, as far as it was worked out: not before the first packet that waits.
    next: Instant,
}

impl GateState {
    /// With a first tick that is drawn, so that ticks and replications have nothing to do with each other.
    pub(super) fn new(kind: Gate, random: &mut Stream) -> GateState {
        let first = random.below(every_ns(kind));
        GateState { kind, waiting: VecDeque::new(), next: Instant::from_nanos(first) }
    }

    /// A packet comes: when those waiting go on; none: it found no room.
    pub(super) fn come(&mut self, item: Item, now: Instant) -> Option<Instant> {
        if self.waiting.len() >= MAX_WAITING {
            return None;
        }
        if self.waiting.is_empty() && self.next < now {
            let behind = now.as_nanos() - self.next.as_nanos();
            self.next += Duration::from_nanos(behind.div_ceil(every_ns(self.kind)).saturating_mul(every_ns(self.kind)));
        }
        self.waiting.push_back(item);
        let enough = match self.kind {
            Gate::Batch { packets, .. } => self.waiting.len() as u64 >= u64::from(packets),
            Gate::Tick { .. } => false,
        };
        Some(if enough { now } else { self.next })
    }

    /// Packets go on, in their order, to the end of `into`; when the next ones do.
    pub(super) fn release(&mut self, now: Instant, into: &mut Vec<Item>) -> Instant {
        let most = match self.kind {
            Gate::Tick { most: Some(most), .. } => usize::try_from(most).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        into.extend(self.waiting.drain(..most.min(self.waiting.len())));
        self.next = now + Duration::from_nanos(every_ns(self.kind));
        if self.waiting.is_empty() { Instant::FAR } else { self.next }
    }
}

/// Nanoseconds from one tick to the next, at least 1.
fn every_ns(kind: Gate) -> u64 {
    let every = match kind {
        Gate::Tick { every, .. } => every,
        Gate::Batch { timeout, .. } => timeout,
    };
    u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1)
}
