//! Places the routers of virtual networks on switches, and routes the links between them.
//!
//! [`NetworkPlacement::request`] is given routers, with the room that each needs of a switch and for some of them the
//! switch, and virtual links between routers. It finds switches with enough room, and ways for all links
//! ([`ways`](crate::ways)), with the least sum of reserved rate times links. Routers of one virtual network may be on
//! one switch; links between these need no way.
//!
//! # How good a placement is
//! Links of a placement are routed in the order in which they are given, each on the cheapest way that is admitted
//! (`cost_weight` is not used). Among all placements, the one with the least sum that this order has is found, exactly,
//! by branch and bound, if routers have at most [`MAX_EXACT`] placements: the product of the numbers of switches with
//! room for each router. Links that cost more than their number, or another order, may allow for less.
//!
//! For more placements, routers are placed one after the other where the rates to those that are placed have the
//! fewest links, once for each of up to 100 switches of the first router, and improved by moves and swaps. The best
//! [`MAX_TRIED`] of these are routed. Embedding virtual networks is NP-hard (E. Amaldi and others, "On the
//! computational complexity of the virtual network embedding problem", Electronic Notes in Discrete Mathematics 52,
//! 2016).
//!
//! ```
//! use weir_topology::generate::{RegularTopology, generate};
//! use weir_units::Bps;
//! use weir_vnet::admission::{ETHERNET_OVERHEAD, QueuedLink};
//! use weir_vnet::placement::{NetworkPlacement, SwitchRoom, VirtualNetworkRequest, VirtualRouter};
//! use weir_vnet::ways::{LinkRouting, Substrate, VirtualLinkRequest, WaySettings};
//! let row = generate(RegularTopology::Linear { switches: 4 })?;
//! let usual = QueuedLink::new("usual", Bps(1_000_000_000));
//! let substrate = Substrate::from_topology(ETHERNET_OVERHEAD, &row, &usual)?;
//! let routing = LinkRouting::new(substrate, WaySettings::default())?;
//! let room = |entries| SwitchRoom { entries, ..SwitchRoom::UNLIMITED };
//! let mut placement = NetworkPlacement::new(routing, |_| room(1000));
//! let needs = SwitchRoom { ports: 2, entries: 600, rate: Bps(100_000_000) };
//! let placed = placement.request(VirtualNetworkRequest {
//!     name: "blue".to_owned(),
//!     routers: vec![VirtualRouter::new("edge", needs).at("s1"), VirtualRouter::new("core", needs)],
//!     links: vec![VirtualLinkRequest::new("up", "edge", "core", Bps(100_000_000))],
//! })?;
//! assert_eq!(placed.places["core"], "s2", "as near as there is room");
//! assert_eq!(placed.reserved, 100_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod error;
mod network;
mod request;
mod search;

pub use error::PlacementError;
pub use network::{NetworkPlacement, PlacedNetwork};
pub use request::{SwitchRoom, VirtualNetworkRequest, VirtualRouter};

/// Most routers of a virtual network.
pub const MAX_ROUTERS: usize = 100;
/// Most placements among which the best one is found exactly.
pub const MAX_EXACT: usize = 20_000;
/// Most placements whose links are routed, if there are more than [`MAX_EXACT`].
pub const MAX_TRIED: usize = 32;
