//! Measures how a switch treats packets of flows that are not in its cache: how much longer they take, after which time
//! without packets a flow is forgotten, and how many flows there is room for.
//!
//! Each decision is one between two kinds of packets, first ones and later ones, and the machine's noise may be larger
//! than their difference. So both kinds are sent in turn with the packets that are decided about, and decisions are
//! repeated until they are sure, or count as not known.
mod probes;
mod search;
#[cfg(test)]
mod tests;

use crate::bench::TestBench;
use crate::levels::MeasuredLevels;
use crate::store::RawDataStore;
use crate::{MeasurementGrid, ProfilerError};
use probes::FlowSource;
use search::FlowCacheSearch;
use std::time::Duration;
use weir_profile::FlowCacheTiming;

/// Times of first packets, as measured.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq, Default)]
pub struct MeasuredFlowCache {
    /// Additional time of a first packet in seconds, with its interval and the number of flows; `None` if first packets
    /// take as long as others.
    pub first_s: Option<(f64, [f64; 2], usize)>,
    /// Longest idle time after which flows were still known, and shortest after which they were not, in seconds.
    pub idle_s: Option<[f64; 2]>,
    /// Number of flows that the cache holds; `None` if it has room for all that were tried.
    pub flows: Option<u64>,
    /// Questions that noise left undecided.
    pub unknown: Vec<UndecidedTier>,
}

/// Part of a cache about which the measurement could not decide.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndecidedTier {
    /// Question if first packets take longer than others.
    First,
    /// Question if flows are forgotten, and after which time without packets.
    Idle,
    /// Question if the cache has room for all flows that were tried.
    Flows,
}

impl UndecidedTier {
    /// Returns a remark for the user.
    pub fn note(self) -> &'static str {
        match self {
            UndecidedTier::First => "not known whether first packets of flows take longer: too much noise",
            UndecidedTier::Idle => "not known whether, and after which time, idle flows are forgotten: too much noise",
            UndecidedTier::Flows => "not known how many flows the cache has room for: too much noise",
        }
    }
}

impl MeasuredFlowCache {
    /// Returns the cache as profiles have it, without the time of revalidation; `None` if there is none.
    pub fn timing(&self) -> Option<FlowCacheTiming> {
        let (first_s, ..) = self.first_s?;
        let idle_s = self.idle_s.map(|[low, high]| f64::midpoint(low, high));
        Some(FlowCacheTiming { first_s, idle_s, flows: self.flows, revalidate_s: 0.0 })
    }
}

/// Measures the cache with entries in the first level, which are deleted afterwards.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    sizes: &MeasuredLevels,
    store: &RawDataStore,
) -> Result<MeasuredFlowCache, ProfilerError> {
    if let Some(found) = store.kept("flow-cache")? {
        return Ok(found);
    }
    bench.during = "measuring first packets of flows".to_owned();
    bench.clear()?;
    let room = sizes.sizes.first().copied().flatten().unwrap_or(u64::MAX).min(grid.entries_max.into());
    let source = FlowSource::new(usize::try_from(room).unwrap_or(usize::MAX));
    let longest_idle = Duration::from_millis(grid.idle_ms.into());
    let found = FlowCacheSearch::new(bench, source, longest_idle).all()?;
    bench.clear()?;
    store.keep("flow-cache", &found)?;
    Ok(found)
}
