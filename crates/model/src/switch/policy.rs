//! Which entries leave a table that is full for the next one: cache policies, after Cheng (2015), section 4.2.1.
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// What a switch may look at when it chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
    /// When the entry was inserted or last modified.
    Modified,
    /// When a packet last matched it.
    Used,
    /// Bytes that matched it.
    Traffic,
    /// Its priority.
    Priority,
}

/// All attributes.
pub const ATTRIBUTES: [Attribute; 4] = [Attribute::Modified, Attribute::Used, Attribute::Traffic, Attribute::Priority];

/// Which end of an attribute goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evicts {
    /// The oldest, least, lowest.
    Lowest,
    /// The newest, most, highest.
    Highest,
}

/// One step of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// What is looked at.
    pub attribute: Attribute,
    /// Which end goes.
    pub evicts: Evicts,
}

/// What is known about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// When it was inserted or last modified; any unit.
    pub modified: u64,
    /// When a packet last matched it; any unit.
    pub used: u64,
    /// Bytes that matched it.
    pub traffic: u64,
    /// Its priority.
    pub priority: u16,
}

impl Standing {
    /// An attribute's value.
    pub fn of(&self, attribute: Attribute) -> u64 {
        match attribute {
            Attribute::Modified => self.modified,
            Attribute::Used => self.used,
            Attribute::Traffic => self.traffic,
            Attribute::Priority => self.priority.into(),
        }
    }
}

/// How a switch chooses: by the first rank, among equals by the second, and so on; then the newest goes. Without ranks, that is the one that did not
/// find room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policy(pub Vec<Rank>);

impl Policy {
    /// Which of two goes first: `Less` if it is the one on the left.
    pub fn first_to_go(&self, left: &Standing, right: &Standing) -> Ordering {
        let by = |rank: &Rank| {
            let order = left.of(rank.attribute).cmp(&right.of(rank.attribute));
            if rank.evicts == Evicts::Lowest { order } else { order.reverse() }
        };
        self.0.iter().map(by).fold(Ordering::Equal, Ordering::then).then(right.modified.cmp(&left.modified))
    }
}
