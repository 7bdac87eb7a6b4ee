//! Decides on virtual networks: which are admitted, where they are placed, and how much of the substrate each gets.
//!
//! A substrate is a network of switches and links that virtual networks share. This crate has no I/O and no clock:
//! it is given requests, and returns rates or reasons.
//!
//! Start with:
//!
//! - [`allocation::LinkSharing`]: the rates of virtual links, while virtual links are inserted and removed.
//! - [`allocation::SharingRule`]: which of all possible rates are chosen.
//! - [`allocation::allocate`]: the rates of one set of virtual links.
//! - [`admission::LinkAdmission`]: which virtual links are admitted with a promise of rate and worst-case delay.
//! - [`ways::LinkRouting`]: ways of virtual links over a network of switches, one or several for each.
//! - [`placement::NetworkPlacement`]: switches for the routers of virtual networks, and ways for the links between
//!   them.
//! - [`service::NetworkBook`]: whole virtual networks as users ask for them, and what each becomes on the switches.
//!
//! Not in this crate: queues and schedulers that enforce rates (`weir-fabric`, `weir-slicing`), and shortest paths
//! through a graph (`weir-topology`).
//!
//! ```
//! use weir_units::Bps;
//! use weir_vnet::allocation::{LinkSharing, SharingRule, SubstrateLink, VirtualLink};
//! let mbps = |rate: u64| Bps(rate * 1_000_000);
//! let mut sharing = LinkSharing::new(SharingRule::MaximumSum, [SubstrateLink::new("trunk", mbps(2000))])?;
//! sharing.insert(VirtualLink::new("web", ["trunk"]).between(mbps(100), mbps(500)))?;
//! sharing.insert(VirtualLink::new("backup", ["trunk"]).between(mbps(800), mbps(1500)))?;
//! sharing.insert(VirtualLink::new("voice", ["trunk"]).fixed_at(mbps(300)))?;
//! assert_eq!(sharing.rate("backup"), Some(mbps(1200)));
//!
//! let refused = sharing.insert(VirtualLink::new("video", ["trunk"]).between(mbps(900), mbps(1000))).unwrap_err();
//! assert!(refused.to_string().contains("trunk"), "{refused}");
//!
//! sharing.remove("voice")?;
//! assert_eq!(sharing.rate("backup"), Some(mbps(1500)));
//! # Ok::<(), weir_vnet::allocation::AllocationError>(())
//! ```
pub mod admission;
pub mod allocation;
mod hops;
pub mod placement;
pub mod service;
pub mod ways;
