//! Queues packets until several are released together.
use crate::MAX_HELD;
use std::collections::VecDeque;
use std::time::Duration;
use weir_profile::ReleaseGate;
use weir_units::Instant;

/// Queue whose packets are released together: at a tick, or when there are enough of them or the time-out since the
/// last release has passed.
///
/// Ticks and time-outs without packets have no effect: the latest one is computed when the next packet arrives.
#[derive(Debug)]
pub struct GateQueue<T> {
    kind: ReleaseGate,
    waiting: VecDeque<T>,
    /// Next tick or time-out, as far as computed.
    next: Instant,
    /// Number of packets that the current tick may still release.
    left: usize,
}

impl<T> GateQueue<T> {
    /// Creates an empty queue with its first tick at `first`.
    pub fn new(kind: ReleaseGate, first: Instant) -> GateQueue<T> {
        GateQueue { kind, waiting: VecDeque::new(), next: first, left: 0 }
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// The queue is full; the packet is returned.
    pub fn offer(&mut self, now: Instant, item: T) -> Result<(), T> {
        if self.waiting.len() >= MAX_HELD {
            return Err(item);
        }
        if self.waiting.is_empty() {
            self.left = 0;
            self.catch_up(now);
        }
        self.waiting.push_back(item);
        if let ReleaseGate::Batch { packets, .. } = self.kind
            && self.left == 0
            && self.waiting.len() as u64 >= u64::from(packets)
        {
            self.next = now;
        }
        Ok(())
    }

    fn catch_up(&mut self, now: Instant) {
        if self.next < now {
            let (behind, every) = (now.as_nanos() - self.next.as_nanos(), Self::every_ns(self.kind));
            self.next += Duration::from_nanos(behind.div_ceil(every).saturating_mul(every));
        }
    }

    /// Returns the release time of the waiting packets; [`Instant::FAR`] if there are none.
    pub fn due(&self) -> Instant {
        if self.waiting.is_empty() { Instant::FAR } else { self.next }
    }

    /// Returns the next packet that is released, with its release time; none if that is after `now`.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, T)> {
        if self.due() > now {
            return None;
        }
        if self.left == 0 {
            self.left = match self.kind {
                ReleaseGate::Tick { most: Some(most), .. } => usize::try_from(most).unwrap_or(usize::MAX).max(1),
                _ => usize::MAX,
            }
            .min(self.waiting.len());
        }
        let due = self.next;
        let item = self.waiting.pop_front()?;
        self.left -= 1;
        if self.left == 0 {
            self.next = due + Duration::from_nanos(Self::every_ns(self.kind));
        }
        Some((due, item))
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the time between two ticks or the time-out, in nanoseconds, at least 1.
    pub fn every_ns(kind: ReleaseGate) -> u64 {
        let every = match kind {
            ReleaseGate::Tick { every, .. } => every,
            ReleaseGate::Batch { timeout, .. } => timeout,
        };
        u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn taken(gate: &mut GateQueue<u32>, now: Instant) -> Vec<(Instant, u32)> {
        std::iter::from_fn(|| gate.take(now)).collect()
    }

    #[test]
    fn packets_leave_at_ticks_and_so_many_at_most() {
        let every = Duration::from_millis(4);
        let mut gate = GateQueue::new(ReleaseGate::Tick { every, most: Some(2) }, ms(1));
        for (at, packet) in [(10, 0), (11, 1), (12, 2)] {
            gate.offer(ms(at), packet).unwrap();
        }
        assert_eq!(gate.due(), ms(13));
        assert_eq!(taken(&mut gate, ms(13)), [(ms(13), 0), (ms(13), 1)]);
        assert_eq!(taken(&mut gate, ms(30)), [(ms(17), 2)], "who looks late finds when it was");
    }

    #[test]
    fn a_batch_goes_when_it_is_full_or_late() {
        let timeout = Duration::from_millis(2);
        let mut gate = GateQueue::new(ReleaseGate::Batch { packets: 2, timeout, stages: 1 }, ms(0));
        gate.offer(ms(5), 0).unwrap();
        assert_eq!(gate.due(), ms(6));
        gate.offer(ms(5), 1).unwrap();
        assert_eq!(taken(&mut gate, ms(5)), [(ms(5), 0), (ms(5), 1)]);
        gate.offer(ms(6), 2).unwrap();
        assert_eq!(taken(&mut gate, ms(9)), [(ms(7), 2)], "two after the last push");
    }
}
