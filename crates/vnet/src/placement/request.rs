//! Describes virtual networks that are asked for: routers with what they need of a switch, and links between them.
use crate::ways::VirtualLinkRequest;
use std::fmt;
use weir_units::Bps;

/// Amounts of what a switch shares among virtual routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchRoom {
    /// Number of ports.
    pub ports: u64,
    /// Number of flow entries.
    pub entries: u64,
    /// Rate at which packets are forwarded.
    pub rate: Bps,
}

impl SwitchRoom {
    /// Room of a switch without limits.
    pub const UNLIMITED: SwitchRoom = SwitchRoom { ports: u64::MAX, entries: u64::MAX, rate: Bps(u64::MAX) };

    /// Room of a switch that has nothing left.
    pub const NONE: SwitchRoom = SwitchRoom { ports: 0, entries: 0, rate: Bps(0) };

    /// Returns the room without what is taken of it; `None` if there is not as much.
    #[must_use]
    pub fn without(self, taken: SwitchRoom) -> Option<SwitchRoom> {
        Some(SwitchRoom {
            ports: self.ports.checked_sub(taken.ports)?,
            entries: self.entries.checked_sub(taken.entries)?,
            rate: Bps(self.rate.0.checked_sub(taken.rate.0)?),
        })
    }

    /// Returns the larger amount of each of two.
    pub(super) fn most(self, other: SwitchRoom) -> SwitchRoom {
        SwitchRoom {
            ports: self.ports.max(other.ports),
            entries: self.entries.max(other.entries),
            rate: self.rate.max(other.rate),
        }
    }

    /// Returns the room with what is given back to it.
    pub(super) fn with(self, given: SwitchRoom) -> SwitchRoom {
        SwitchRoom {
            ports: self.ports.saturating_add(given.ports),
            entries: self.entries.saturating_add(given.entries),
            rate: Bps(self.rate.0.saturating_add(given.rate.0)),
        }
    }
}

impl fmt::Display for SwitchRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ports, {} entries, {}", self.ports, self.entries, self.rate.exact())
    }
}

/// A virtual router that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualRouter {
    /// Name of the router, unique within its virtual network.
    pub name: String,
    /// Room that it takes of a switch.
    pub needs: SwitchRoom,
    /// Switch, or host whose switch, it must be on; `None` for any.
    pub place: Option<String>,
}

impl VirtualRouter {
    /// Returns a router for any switch.
    pub fn new(name: impl Into<String>, needs: SwitchRoom) -> VirtualRouter {
        VirtualRouter { name: name.into(), needs, place: None }
    }

    /// Sets the switch that the router must be on.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> VirtualRouter {
        self.place = Some(place.into());
        self
    }
}

/// A virtual network that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualNetworkRequest {
    /// Name of the virtual network, unique among virtual networks.
    pub name: String,
    /// Routers, at most [`MAX_ROUTERS`](super::MAX_ROUTERS).
    pub routers: Vec<VirtualRouter>,
    /// Links between the routers, whose names are the ends. Names of links are unique within the virtual network.
    pub links: Vec<VirtualLinkRequest>,
}
