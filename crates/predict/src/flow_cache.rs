//! Computes the share of packets whose flow is not in a switch's cache: it had no packet for too long, or had to leave
//! for others.
use crate::data_path::PassKey;
use crate::gaps::PassingStream;
use std::collections::BTreeMap;
use weir_scenario::FlowCacheTiming;

/// Halvings of the interval in which the characteristic time is searched.
const HALVINGS: u32 = 60;
/// Longest characteristic time that is searched, in seconds.
const LONGEST_S: f64 = 1e6;

/// Packets at a switch by flow, which is all packets from one host to another.
#[derive(Debug, Default)]
pub(crate) struct CachedFlows {
    flows: BTreeMap<[usize; 2], Vec<(PassKey, PassingStream)>>,
}

impl CachedFlows {
    /// Adds packets of a direction of an item, between these hosts.
    pub(crate) fn add(&mut self, hosts: [usize; 2], key: PassKey, stream: PassingStream) {
        self.flows.entry(hosts).or_default().push((key, stream));
    }

    /// Returns the share of an item's packets that are first packets.
    ///
    /// A cache without room for all flows forgets those that had no packet for a characteristic time, in which packets
    /// of as many flows come as it has room for (Che, Tung and Wang 2002, 10.1109/JSAC.2002.801752).
    pub(crate) fn first_share(&self, hosts: [usize; 2], key: PassKey, cache: &FlowCacheTiming) -> f64 {
        let idle_s = cache.idle_s.unwrap_or(f64::INFINITY).min(self.characteristic_s(cache.flows));
        let Some(streams) = self.flows.get(&hosts).filter(|_| idle_s.is_finite()) else { return 0.0 };
        let share = |(of, stream): &(PassKey, PassingStream)| {
            if *of == key { stream.at_least(idle_s) } else { stream.none_within(idle_s) }
        };
        streams.iter().map(share).product()
    }

    /// Returns the time without packets after which flows are forgotten because of the cache's limit, in seconds.
    fn characteristic_s(&self, limit: Option<u64>) -> f64 {
        let Some(limit) = limit.filter(|limit| (self.flows.len() as u64) > *limit) else { return f64::INFINITY };
        let seen = |time_s: f64| -> f64 {
            let none = |streams: &Vec<(PassKey, PassingStream)>| -> f64 {
                streams.iter().map(|(_, stream)| stream.none_within(time_s)).product()
            };
            self.flows.values().map(|streams| 1.0 - none(streams)).sum()
        };
        let (mut low, mut high) = (0.0, LONGEST_S);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if seen(middle) < limit as f64 { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }
}
