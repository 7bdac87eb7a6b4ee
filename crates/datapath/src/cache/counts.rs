//! Statistics of a verdict cache, for display.
use serde::{Deserialize, Serialize};

/// Use of a worker's verdict cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Never in use.
    #[default]
    Off,
    /// Not in use at present, because it would not pay or was not tried yet.
    Resting,
    /// Under trial: measures whether it pays.
    Trying,
    /// In use, because the last trial showed that it pays or because it is forced.
    Using,
}

impl CacheState {
    /// Returns the name for display.
    pub const fn name(self) -> &'static str {
        match self {
            CacheState::Off => "off",
            CacheState::Resting => "resting",
            CacheState::Trying => "being tried",
            CacheState::Using => "in use",
        }
    }
}

/// Statistics of a worker's verdict cache since the start, and its present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Present use of the cache.
    pub state: CacheState,
    /// Packets found in the cache.
    pub hits: u64,
    /// Packets looked up in the cache without success, and then in the tables.
    pub misses: u64,
    /// Number of times that changes of the tables made the whole content outdated.
    pub renewals: u64,
    /// Number of completed trials.
    pub trials: u64,
    /// Number of stored verdicts that are not outdated.
    pub kept: usize,
    /// Number of verdicts that fit in the cache; 0 before the first trial.
    pub slots: usize,
}

impl CacheCounts {
    /// Returns the statistics since `earlier`, with the present state.
    #[must_use]
    pub const fn since(self, earlier: CacheCounts) -> CacheCounts {
        CacheCounts {
            hits: self.hits.saturating_sub(earlier.hits),
            misses: self.misses.saturating_sub(earlier.misses),
            renewals: self.renewals.saturating_sub(earlier.renewals),
            trials: self.trials.saturating_sub(earlier.trials),
            ..self
        }
    }
}
