//! Flow entries of a router.
//!
//! With seven tables or more a packet passes these stages, each in a table of its own:
//!
//! 1. *Input*: ARP and neighbour discovery for the router go to the controller, packets to its Ethernet address go on,
//!    and all others of its ports are dropped.
//! 2. *Route*: the longest prefix says by which port the packet leaves, and to which next hop.
//! 3. *Filter*: the first filter that applies says whether it may.
//! 4. *Neighbour*: the TTL is decremented, and the next hop's Ethernet address written. Packets for the router itself,
//!    without route, or to unknown neighbours go to the controller, unchanged.
//! 5. *Translate the destination* of packets from outside.
//! 6. *Translate the source* of packets to the outside.
//! 7. *Egress*: the router's Ethernet address, the VLAN tag, meter, queue and port.
//!
//! With fewer tables all is in one: an entry for each port, route, filter and translated source. Packets get the same
//! answers, but the number of entries is the product instead of the sum, up to [`MAX_ENTRIES_SINGLE`], and a change of
//! one filter is a change of all entries.
mod build;
pub(crate) mod metadata;
mod placement;
mod several;
mod single;

pub use build::{RouterEntry, RouterEntryKey};
pub use metadata::MAX_ROUTER_NUMBER;
pub use placement::{COOKIE_BITS, RouterPipeline, RouterPlacement, RouterPlacementError, TABLES};
pub use single::MAX_ENTRIES_SINGLE;

use crate::config::VirtualRouterConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use weir_packet::MacAddr;

/// Ethernet addresses of neighbours, by their IP addresses.
pub type Neighbours = BTreeMap<IpAddr, MacAddr>;

/// Returns all flow entries of a router that knows some neighbours, in no particular order. Static neighbours of the
/// configuration need not be among them. Neighbours that are on no network of a port have no entries.
///
/// # Errors
/// Fails if the placement has no room for the router. The configuration must be one that
/// [`VirtualRouterConfig::check`] accepts; of others, entries are missing.
pub fn entries(
    config: &VirtualRouterConfig,
    neighbours: &Neighbours,
    placement: &RouterPlacement,
) -> Result<Vec<RouterEntry>, RouterPlacementError> {
    placement.check(config)?;
    let mut known = neighbours.clone();
    let fixed = config.ports.iter().flat_map(|port| &port.neighbours);
    known.extend(fixed.map(|neighbour| (neighbour.address, neighbour.mac)));
    known.retain(|addr, _| config.connected(*addr).is_some_and(|port| !config.is_own(*addr, port.port)));
    let entries = match placement.pipeline() {
        RouterPipeline::Several => several::entries(config, &known, placement),
        RouterPipeline::Single => single::entries(config, &known, placement)?,
    };
    Ok(build::without_doubles(entries))
}

/// Returns the entries of a router that are about one neighbour; `None` if those of others depend on it, too. `hops`
/// are the next hops of the configuration.
pub(crate) fn neighbour_entries(
    config: &VirtualRouterConfig,
    placement: &RouterPlacement,
    hops: &BTreeSet<IpAddr>,
    addr: IpAddr,
    mac: MacAddr,
) -> Option<Vec<RouterEntry>> {
    match placement.pipeline() {
        RouterPipeline::Several => Some(several::neighbour_entries(config, placement, hops, addr, mac)),
        RouterPipeline::Single => None,
    }
}
