//! Defines policies that select which entries leave a full table for the next one, after Cheng (2015), section 4.2.1.
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Attribute of an entry that a policy may consider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvictionAttribute {
    /// Time at which the entry was inserted or last modified.
    Modified,
    /// Time at which a packet last matched the entry.
    Used,
    /// Number of bytes that matched the entry.
    Traffic,
    /// Priority of the entry.
    Priority,
}

/// All attributes, in the order of their declaration.
pub const ATTRIBUTES: [EvictionAttribute; 4] =
    [EvictionAttribute::Modified, EvictionAttribute::Used, EvictionAttribute::Traffic, EvictionAttribute::Priority];

/// End of an attribute's order that is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvictedEnd {
    /// Oldest, least or lowest.
    Lowest,
    /// Newest, most or highest.
    Highest,
}

/// Step of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EvictionCriterion {
    /// Attribute to compare.
    pub attribute: EvictionAttribute,
    /// End that is evicted.
    pub evicts: EvictedEnd,
}

/// Attributes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EntryAttributes {
    /// Time at which the entry was inserted or last modified, in any unit.
    pub modified: u64,
    /// Time at which a packet last matched the entry, in any unit.
    pub used: u64,
    /// Number of bytes that matched the entry.
    pub traffic: u64,
    /// Priority of the entry.
    pub priority: u16,
}

impl EntryAttributes {
    /// Returns the value of an attribute.
    pub fn of(&self, attribute: EvictionAttribute) -> u64 {
        match attribute {
            EvictionAttribute::Modified => self.modified,
            EvictionAttribute::Used => self.used,
            EvictionAttribute::Traffic => self.traffic,
            EvictionAttribute::Priority => self.priority.into(),
        }
    }
}

/// Policy of a switch: compares by the first rank, among equals by the second, and so on; finally the newest entry is
/// evicted. Without ranks, this is the entry that found no room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvictionPolicy(pub Vec<EvictionCriterion>);

impl EvictionPolicy {
    /// Compares two entries by the order of eviction: `Less` if the left one is evicted first.
    pub fn first_to_go(&self, left: &EntryAttributes, right: &EntryAttributes) -> Ordering {
        let by = |rank: &EvictionCriterion| {
            let order = left.of(rank.attribute).cmp(&right.of(rank.attribute));
            if rank.evicts == EvictedEnd::Lowest { order } else { order.reverse() }
        };
        self.0.iter().map(by).fold(Ordering::Equal, Ordering::then).then(right.modified.cmp(&left.modified))
    }
}
