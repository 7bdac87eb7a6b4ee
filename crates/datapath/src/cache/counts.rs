//! What a cache did, for people.
use serde::{Deserialize, Serialize};

/// Whether a worker looks packets up in its verdict cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Never.
    #[default]
    Off,
    /// Not now: it would not pay, or was not tried yet.
    Resting,
    /// It is being tried whether that pays.
    Trying,
    /// Yes.
    Using,
}

impl CacheState {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            CacheState::Off => "off",
            CacheState::Resting => "resting",
            CacheState::Trying => "being tried",
            CacheState::Using => "in use",
        }
    }
}

/// What a worker's verdict cache did since the start, and how it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Whether packets are looked up in it now.
    pub state: CacheState,
    /// Packets that it knew.
    pub hits: u64,
    /// Packets that were looked up in it, and then in the tables.
    pub misses: u64,
    /// How often changes of the tables put everything in it out of date.
    pub renewals: u64,
    /// Times that it was found out whether it pays.
    pub trials: u64,
    /// Verdicts in it that are not out of date.
    pub kept: usize,
    /// Verdicts that it has room for; none before it is first tried.
    pub slots: usize,
}

impl CacheCounts {
    /// What was done since `earlier`; how it stands is as now.
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
