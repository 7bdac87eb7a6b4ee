//! State of routers for their manager, and the errors of changes.
use crate::config::{ConfigError, VirtualRouterConfig};
use crate::conflict::EntryConflict;
use crate::entries::{RouterPipeline, RouterPlacement, RouterPlacementError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use weir_packet::MacAddr;

/// Identifier of a virtual router: its switch, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VirtualRouterId {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Number of the router, [`RouterPlacement::number`].
    pub number: u16,
}

impl fmt::Display for VirtualRouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "router {} of switch {:x}", self.number, self.dpid)
    }
}

/// How far the switch has what a router wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum InstallState {
    /// The switch is not connected.
    Away,
    /// The switch cannot have the router. Nothing was sent to it.
    Unsupported {
        /// Property that is missing.
        reason: String,
    },
    /// The switch is asked for its entries.
    Reading,
    /// Entries of others overlap with the router's ([`VirtualRouterStatus::conflicts`]). Nothing was sent to the
    /// switch; it is looked at again at the next check.
    Conflicting,
    /// Entries were sent, and the switch was asked for what it has.
    Installing,
    /// The switch has said that it has all entries, and no others of the router.
    Installed,
    /// The switch does not have what is wanted although it was told twice. It is told again at the next check.
    Differing {
        /// Number of entries that are missing or different.
        missing: usize,
        /// Number of the router's entries that should not be there.
        unexpected: usize,
    },
}

/// State of a virtual router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VirtualRouterStatus {
    /// Identifier of the router.
    pub id: VirtualRouterId,
    /// Configuration.
    pub config: VirtualRouterConfig,
    /// Place on the switch.
    pub placement: RouterPlacement,
    /// Form of the entries.
    pub pipeline: RouterPipeline,
    /// How far the switch has them.
    pub install: InstallState,
    /// Number of entries that the switch should have.
    pub entries: usize,
    /// Neighbours that were learned.
    pub neighbours: BTreeMap<IpAddr, MacAddr>,
    /// Entries of others that overlap with the router's, at most [`MAX_NAMED_CONFLICTS`] of them, as of the last check.
    pub conflicts: Vec<String>,
    /// Reason of the last flow-mod that the switch refused, or for which a neighbour has no entries.
    pub refusal: Option<String>,
    /// Counters by name, since the router was added.
    pub counters: BTreeMap<String, u64>,
}

/// Most conflicts that a state names.
pub const MAX_NAMED_CONFLICTS: usize = 16;

/// Error in a change of the routers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VirtualRouterError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The place on the switch is wrong.
    #[error(transparent)]
    Placement(#[from] RouterPlacementError),
    /// Another router has the number.
    #[error("found {0} there already, expected another number; replace it, or remove it first")]
    Taken(VirtualRouterId),
    /// Another router has the cookie.
    #[error("found cookie {cookie:#x} at {other}, expected another one for each router of a switch")]
    CookieTaken {
        /// Cookie of both.
        cookie: u64,
        /// The other router.
        other: VirtualRouterId,
    },
    /// The router is not there.
    #[error("{0} is not there, expected one that was added")]
    Unknown(VirtualRouterId),
    /// Entries of others overlap. Nothing was changed.
    #[error("{}", list(.0))]
    Conflicts(Vec<EntryConflict>),
}

fn list(conflicts: &[EntryConflict]) -> String {
    let first = conflicts.first().map(EntryConflict::to_string).unwrap_or_default();
    match conflicts.len() {
        0 | 1 => first,
        n => format!("{first}; {} more conflicts", n - 1),
    }
}
