//! Refusals of virtual networks, with the reason that binds, and other errors.
use super::SwitchRoom;
use crate::ways::{RefusedWay, WayError, obstacles};
use std::collections::BTreeMap;

/// Error of a placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A router fits on no switch that it may be on.
    #[error("virtual network {network}: router {router} needs {needs}, found at most {left} left at {}",
        if .place.is_some() { "its switch" } else { "any switch, and no switch with all of it" })]
    NoRoom {
        /// Name of the virtual network.
        network: String,
        /// Name of the router.
        router: String,
        /// Switch that the router must be on.
        place: Option<String>,
        /// Room that it needs.
        needs: SwitchRoom,
        /// Most of each amount that is left at a switch that it may be on.
        left: SwitchRoom,
    },
    /// Each router fits on a switch, but no placement was found that has room for all and where links
    /// lead from each to the others.
    #[error("virtual network {network}: no placement has room for all routers together, and links between them")]
    NoPlaces {
        /// Name of the virtual network.
        network: String,
    },
    /// A virtual link is refused in each placement that was examined.
    #[error("virtual network {network}: no placement out of {examined} has ways for all links; in the best one, link \
             {link}: {}", obstacles(.ways))]
    NoWay {
        /// Name of the virtual network.
        network: String,
        /// Number of placements whose links were routed.
        examined: usize,
        /// Switches of the routers in the placement with the least sum of rates times links.
        places: BTreeMap<String, String>,
        /// Name of the virtual link that is refused there.
        link: String,
        /// Ways that were examined for it.
        ways: Vec<RefusedWay>,
    },
    /// A request is malformed.
    #[error("virtual network {network}: found {what}")]
    Malformed {
        /// Name of the virtual network.
        network: String,
        /// Value that was found.
        what: String,
    },
    /// A virtual network to release does not exist.
    #[error("found no virtual network {name}")]
    NoNetwork {
        /// Name that was given.
        name: String,
    },
    /// A virtual link is malformed, or names a place that does not exist.
    #[error(transparent)]
    Way(#[from] WayError),
}
