//! Serves items one after the other: each waits for those before it and for its own service.
use std::collections::VecDeque;
use std::time::Duration;
use weir_profile::ServiceTime;
use weir_traffic::{LawSampler, RandomStream, TrafficError};
use weir_units::Instant;

/// Most items at one server if the profile has no limit; more are refused.
pub const MAX_HELD: usize = 1 << 16;

/// Server with a first-come, first-served queue. The end of each service is known on arrival, unless something seizes
/// the server later.
#[derive(Debug)]
pub struct FifoServer<T> {
    /// Items, each with the end of its service less `shift_ns` (modulo 2^64).
    queue: VecDeque<(u64, T)>,
    /// Sum of the delays by seizures, in nanoseconds.
    shift_ns: u64,
    /// End of the busy period, in nanoseconds.
    busy_ns: u64,
    limit: usize,
    /// Fraction of a nanosecond left over, so that times are exact on average.
    rest_ns: f64,
}

impl<T> FifoServer<T> {
    /// Creates an idle server that holds at most `limit` items, including the one in service; without a limit,
    /// [`MAX_HELD`].
    pub fn new(limit: Option<u32>) -> FifoServer<T> {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_HELD).min(MAX_HELD);
        FifoServer { queue: VecDeque::new(), shift_ns: 0, busy_ns: 0, limit, rest_ns: 0.0 }
    }

    /// Adds an item with a service time of `service_ns` nanoseconds.
    ///
    /// # Errors
    /// There is no room; the item is returned.
    pub fn offer(&mut self, now: Instant, service_ns: f64, item: T) -> Result<(), T> {
        let now = now.as_nanos();
        // Items that were served but not taken yet occupy no place.
        let served = self.queue.partition_point(|(ends, _)| ends.wrapping_add(self.shift_ns) <= now);
        if self.queue.len() - served >= self.limit || self.queue.len() >= MAX_HELD {
            return Err(item);
        }
        let exact = service_ns.max(0.0) + self.rest_ns;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
        let whole = exact as u64;
        self.rest_ns = if exact.is_finite() { exact - whole as f64 } else { 0.0 };
        self.busy_ns = self.busy_ns.max(now).saturating_add(whole);
        self.queue.push_back((self.busy_ns.wrapping_sub(self.shift_ns), item));
        Ok(())
    }

    /// Seizes the server for `time` from `now` on; waiting items continue afterwards.
    pub fn seize(&mut self, now: Instant, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let served = self.queue.partition_point(|(ends, _)| ends.wrapping_add(self.shift_ns) <= now.as_nanos());
        // Services that have ended stay ended.
        self.queue.iter_mut().take(served).for_each(|(ends, _)| *ends = ends.wrapping_sub(time));
        self.shift_ns = self.shift_ns.wrapping_add(time);
        self.busy_ns = self.busy_ns.max(now.as_nanos()).saturating_add(time);
    }

    /// Returns true if a service is in progress at `now`.
    pub fn is_busy(&self, now: Instant) -> bool {
        self.busy_ns > now.as_nanos()
    }

    /// Returns the end of the first item's service; [`Instant::FAR`] if there is none.
    pub fn due(&self) -> Instant {
        self.queue.front().map_or(Instant::FAR, |(ends, _)| Instant::from_nanos(ends.wrapping_add(self.shift_ns)))
    }

    /// Returns the first item and the end of its service, if that is not after `now`.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, T)> {
        let due = self.due();
        if due > now {
            return None;
        }
        self.queue.pop_front().map(|(_, item)| (due, item))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Random service times.
#[derive(Debug)]
pub(crate) struct ServiceTimeSampler {
    services: LawSampler,
    /// Mean of the law.
    mean_ns: f64,
    per_byte_ns: f64,
    random: RandomStream,
}

impl ServiceTimeSampler {
    pub(crate) fn new(time: Option<&ServiceTime>, random: RandomStream) -> Result<ServiceTimeSampler, TrafficError> {
        let services = LawSampler::new(time.and_then(|time| time.law.as_ref()))?;
        let mean_ns = time.map_or(0.0, |time| time.mean_s(0.0) * 1e9);
        let per_byte_ns = time.map_or(0.0, |time| time.per_byte_s * 1e9);
        Ok(ServiceTimeSampler { services, mean_ns, per_byte_ns, random })
    }

    pub(crate) fn draw_ns(&mut self, bytes: u32) -> f64 {
        self.services.draw_ns(&mut self.random) + self.per_byte_ns * f64::from(bytes)
    }

    /// Returns the mean service time of packets of this length, without drawing one.
    pub(crate) fn mean_ns(&self, bytes: u32) -> f64 {
        self.mean_ns + self.per_byte_ns * f64::from(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn each_waits_for_those_before_it() {
        let mut server = FifoServer::new(Some(2));
        assert_eq!(server.offer(at(0), 10_000.0, 'a'), Ok(()));
        assert_eq!(server.offer(at(4), 10_000.0, 'b'), Ok(()));
        assert_eq!(server.offer(at(9), 10_000.0, 'c'), Err('c'), "two have a place");
        assert_eq!(server.offer(at(10), 10_000.0, 'd'), Ok(()), "the first is served, though not taken");
        assert_eq!((server.take(at(9)), server.due()), (None, at(10)));
        let taken: Vec<_> = std::iter::from_fn(|| server.take(at(100))).collect();
        assert_eq!(taken, [(at(10), 'a'), (at(20), 'b'), (at(30), 'd')]);
        assert!(server.is_empty());
    }

    #[test]
    fn who_is_interrupted_goes_on_afterwards() {
        let mut server = FifoServer::new(None);
        for (name, come) in [('a', 0), ('b', 1), ('c', 2)] {
            server.offer(at(come), 10_000.0, name).unwrap();
        }
        server.seize(at(15), Duration::from_micros(100));
        server.offer(at(16), 1_000.0, 'd').unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| server.take(at(1000))).collect();
        assert_eq!(taken, [(at(10), 'a'), (at(120), 'b'), (at(130), 'c'), (at(131), 'd')]);
        server.seize(at(1000), Duration::from_micros(5));
        server.offer(at(1001), 1_000.0, 'e').unwrap();
        assert_eq!(server.due(), at(1006), "an idle server is seized as well");
    }

    #[test]
    fn parts_of_nanoseconds_add_up() {
        let mut server = FifoServer::new(None);
        (0..1000).for_each(|_| server.offer(at(0), 1.5, ()).unwrap());
        assert_eq!(std::iter::from_fn(|| server.take(at(10))).last().unwrap().0, Instant::from_nanos(1500));
    }
}
