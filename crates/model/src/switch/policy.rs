//! Defines policies that select which entries leave a full table for the next one, after Cheng (2015), section 4.2.1.
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Attribute of an entry that a policy may consider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
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
pub const ATTRIBUTES: [Attribute; 4] = [Attribute::Modified, Attribute::Used, Attribute::Traffic, Attribute::Priority];

/// End of an attribute's order that is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evicts {
    /// Oldest, least or lowest.
    Lowest,
    /// Newest, most or highest.
    Highest,
}

/// Step of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// Attribute to compare.
    pub attribute: Attribute,
    /// End that is evicted.
    pub evicts: Evicts,
}

/// Attributes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Time at which the entry was inserted or last modified, in any unit.
    pub modified: u64,
    /// Time at which a packet last matched the entry, in any unit.
    pub used: u64,
    /// Number of bytes that matched the entry.
    pub traffic: u64,
    /// Priority of the entry.
    pub priority: u16,
}

impl Standing {
    /// Returns the value of an attribute.
    pub fn of(&self, attribute: Attribute) -> u64 {
        match attribute {
            Attribute::Modified => self.modified,
            Attribute::Used => self.used,
            Attribute::Traffic => self.traffic,
            Attribute::Priority => self.priority.into(),
        }
    }
}

/// Policy of a switch: compares by the first rank, among equals by the second, and so on; finally the newest entry is
/// evicted. Without ranks, this is the entry that found no room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policy(pub Vec<Rank>);

impl Policy {
    /// Compares two entries by the order of eviction: `Less` if the left one is evicted first.
    pub fn first_to_go(&self, left: &Standing, right: &Standing) -> Ordering {
        let by = |rank: &Rank| {
            let order = left.of(rank.attribute).cmp(&right.of(rank.attribute));
            if rank.evicts == Evicts::Lowest { order } else { order.reverse() }
        };
        self.0.iter().map(by).fold(Ordering::Equal, Ordering::then).then(right.modified.cmp(&left.modified))
    }
}
