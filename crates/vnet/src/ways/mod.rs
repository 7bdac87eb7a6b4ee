//! Finds ways for virtual links over a network of switches, and reserves rate, buffer and delay on them.
//!
//! [`LinkRouting::request`] is given the ends of a virtual link and its promises. It answers with one way, with several
//! ways and their rates if the virtual link may be split, or with the reason why each way is refused and what would be
//! admitted instead. [`admission`](crate::admission) says what is promised and how it is proven.
//!
//! # Which ways are examined
//! The `k` cheapest ways that keep to `avoid` and pass the waypoints of `through` ([`WaySettings::ways`]): the paths of
//! least cost that pass no switch twice (Yen, 1971, by
//! [`k_shortest_paths`](weir_topology::paths::WeightedGraph::k_shortest_paths)). A way past waypoints is one of the `k`
//! cheapest from each stop to the next, and passes no link twice.
//!
//! # Which way is taken
//! The first one that is admitted, in the order of a price. A link's price is its cost, times the share that the
//! virtual link takes of the rate that is left of the link. A way's price is the sum over its links. A long way and a
//! full link are both dear, so that short ways are taken while there is room, and longer ones around full links. With
//! equal costs this is the *shortest-distance path* of Q. Ma and P. Steenkiste ("On path selection for traffic with
//! bandwidth guarantees", IEEE ICNP 1997), whose length is the sum of `1 / rate left`. Among equal prices, the cheapest
//! way is taken. [`VirtualLinkRequest::cost_weight`] gives costs more say.
//!
//! # Cycles
//! Promises need that virtual links do not feed each other around a cycle of links. A way that would close a cycle is
//! passed over, and does not count among the `k`: another one is examined in its place, out of the [`MAX_PATHS`]
//! cheapest. A refusal says which ways would close one. With [`TurnRule::UpDown`] there is never a cycle.
//!
//! # Splitting
//! A virtual link with [`VirtualLinkRequest::max_ways`] above 1 is split if no way carries all of it: over as few ways
//! as possible, with rates that add up to the rate that was asked for, to the bit. Each way has the whole burst and the
//! whole promise of delay, and is admitted by itself beside the others. The delay of the virtual link is the largest
//! one of its ways ([`LinkRouting::delay`]). Splitting packets so that each way gets no more than its rate, and
//! bringing them into order again, is left to those that send them.
//!
//! # Offers
//! A refusal has offers ([`WayOffer`]): less rate, more delay, a way that the request excludes, more ways. Each is a
//! request that differs in one point, and was tried: it is admitted if it is asked for.
//!
//! ```
//! use weir_topology::generate::{RegularTopology, generate};
//! use weir_units::Bps;
//! use weir_vnet::admission::{ETHERNET_OVERHEAD, QueuedLink};
//! use weir_vnet::ways::{LinkRouting, Substrate, VirtualLinkRequest, WaySettings};
//! let ring = generate(RegularTopology::Ring { switches: 4 })?;
//! let usual = QueuedLink::new("usual", Bps(1_000_000_000));
//! let substrate = Substrate::from_topology(ETHERNET_OVERHEAD, &ring, &usual)?.with_host("h1", "s1")?;
//! let mut routing = LinkRouting::new(substrate, WaySettings::default())?;
//! let request = |name: &str, mbps: u64| VirtualLinkRequest::new(name, "h1", "s2", Bps(mbps * 1_000_000));
//! assert_eq!(routing.request(request("voice", 100))?.ways[0].path, ["s1-s2"]);
//! assert_eq!(routing.request(request("video", 650))?.ways[0].path, ["s1-s4", "s4-s3", "s3-s2"]);
//! let refused = routing.request(request("backup", 650)).unwrap_err();
//! assert!(refused.to_string().ends_with("614285714bit/s is possible, or it is possible over 2 ways"), "{refused}");
//! assert_eq!(routing.request(request("backup", 650).over_ways(2))?.ways.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod candidates;
mod choice;
mod error;
mod offers;
mod request;
mod routing;
mod split;
mod substrate;
mod turns;

pub(crate) use error::obstacles;
pub use error::{RefusedWay, WayError, WayObstacle, WayOffer};
pub use request::VirtualLinkRequest;
pub use routing::{LinkRouting, RoutedLink, WaySettings, WayShare};
pub use substrate::{Substrate, SwitchLink};
pub use turns::TurnRule;
pub use weir_topology::paths::MAX_PATHS;

/// Most ways of one virtual link.
pub const MAX_SPLIT: usize = 4;
/// Most switches of a substrate.
pub const MAX_SWITCHES: usize = 3_000;
