//! Keeps which flows a switch's cache holds, so that packets of flows that are not in it take longer.
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use weir_profile::{FlowCacheTiming, MAX_CACHED_FLOWS};
use weir_units::Instant;

/// Returns the number of a frame's flow: a hash of its Ethernet and IP addresses, which all packets of a flow share.
pub fn flow_of(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.get(..14).unwrap_or(frame).hash(&mut hasher);
    let addresses = match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(26..34),
        Some([0x86, 0xdd]) => frame.get(22..54),
        _ => None,
    };
    addresses.hash(&mut hasher);
    hasher.finish()
}

/// Flows in the cache of a switch, by a number for each flow.
#[derive(Debug, Clone)]
pub struct FlowCache {
    first_ns: f64,
    idle: Duration,
    limit: u64,
    /// Time of the latest packet and its place in `order`, by flow.
    latest: HashMap<u64, (Instant, u64)>,
    /// Flows in the order of their latest packets.
    order: BTreeMap<u64, u64>,
    places: u64,
}

impl FlowCache {
    /// Returns an empty cache.
    pub fn new(timing: &FlowCacheTiming) -> FlowCache {
        let mut cache = FlowCache::endless();
        cache.limit(timing);
        cache
    }

    /// Returns an empty cache that forgets no flow as long as there is memory, and takes no time.
    pub fn endless() -> FlowCache {
        let (latest, order) = (HashMap::new(), BTreeMap::new());
        FlowCache { first_ns: 0.0, idle: Duration::MAX, limit: MAX_CACHED_FLOWS, latest, order, places: 0 }
    }

    /// Sets the times and the limit of the cache, which keeps the flows that it has.
    pub fn limit(&mut self, timing: &FlowCacheTiming) {
        self.first_ns = timing.first_s * 1e9;
        self.limit = timing.flows.unwrap_or(MAX_CACHED_FLOWS).min(MAX_CACHED_FLOWS);
        self.idle = timing.idle_s.map_or(Duration::MAX, |s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
        while self.latest.len() as u64 > self.limit {
            self.drop_oldest();
        }
    }

    /// Records a packet of a flow. Returns the additional time that it takes, in nanoseconds: 0 if the flow was in the
    /// cache.
    pub fn packet_ns(&mut self, now: Instant, flow: u64) -> f64 {
        self.forget(now);
        self.places += 1;
        let known = self.latest.insert(flow, (now, self.places));
        if let Some((_, place)) = known {
            self.order.remove(&place);
        }
        self.order.insert(self.places, flow);
        if self.latest.len() as u64 > self.limit {
            self.drop_oldest();
        }
        if known.is_some() { 0.0 } else { self.first_ns }
    }

    /// Returns the number of flows in the cache.
    pub fn flows(&mut self, now: Instant) -> usize {
        self.forget(now);
        self.latest.len()
    }

    fn drop_oldest(&mut self) {
        if let Some((_, oldest)) = self.order.pop_first() {
            self.latest.remove(&oldest);
        }
    }

    /// Forgets the flows that had no packet for too long.
    fn forget(&mut self, now: Instant) {
        while let Some(first) = self.order.first_entry() {
            let flow = *first.get();
            if self.latest.get(&flow).is_some_and(|(at, _)| now.since(*at) < self.idle) {
                return;
            }
            first.remove();
            self.latest.remove(&flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_forgotten_after_its_idle_time_and_beyond_the_limit() {
        let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let timing = FlowCacheTiming { first_s: 5e-5, idle_s: Some(0.1), flows: Some(2), revalidate_s: 0.0 };
        let mut cache = FlowCache::new(&timing);
        assert_eq!((cache.packet_ns(ms(0), 1), cache.packet_ns(ms(99), 1)), (5e4, 0.0));
        assert_eq!((cache.packet_ns(ms(199), 1), cache.flows(ms(298)), cache.flows(ms(299))), (5e4, 1, 0));
        (1..=3).for_each(|flow| assert_eq!(cache.packet_ns(ms(300 + flow), flow), 5e4));
        assert_eq!(cache.flows(ms(303)), 2, "the first had to leave");
        assert_eq!([2, 3, 2].map(|flow| cache.packet_ns(ms(304), flow)), [0.0; 3]);
        assert_eq!([1, 2, 3].map(|flow| cache.packet_ns(ms(305), flow)), [5e4, 0.0, 5e4], "3 was used longest ago");
    }
}
