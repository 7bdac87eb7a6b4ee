//! Virtual routers: IP routing by the flow entries of an OpenFlow switch, and the application that keeps them.
//!
//! A virtual router uses some ports of a switch, or VLANs of them, and has a configuration of its own: addresses,
//! routes, filters, translated addresses. Its routing table becomes flow entries, so that packets are routed by the
//! switch and not by the controller (Anhalt, 2011, 5.4). The switch may be a virtual switch of weir or any other that
//! speaks OpenFlow 1.3, and may have several routers and other users at the same time. This crate has no I/O and no
//! clock.
//!
//! Start with:
//!
//! - [`config::VirtualRouterConfig`]: the configuration, and its check.
//! - [`entries::entries`]: all flow entries of a router, from configuration, neighbours and place on the switch.
//! - [`conflict::conflicts`]: entries of others that would take a router's packets, or lose packets to it.
//! - [`app::VirtualRouterApp`]: the application of a controller that installs and keeps them, and answers for the
//!   routers.
//! - [`forwarding::decide`]: the plain meaning of a configuration, to which all entries are held.
//!
//! Limits that come from OpenFlow:
//!
//! - *Length.* A match knows no length, so that the switch does not compare packets with the MTU: it sends larger ones,
//!   and the port or the link drops them. Only packets that come to the controller are compared, because their
//!   neighbour is not known yet; their senders are told "fragmentation needed" or "packet too big". Give all ports of a
//!   network the MTU of the smallest link, or lower the MTU of hosts.
//! - *Fragmentation.* Packets are never cut.
//! - *Connections.* Filters and translations look at each packet alone; nothing is remembered of earlier ones. Answers
//!   need a filter of their own, and translation is one to one.
//! - *Payload.* Errors of ICMP quote a packet; a translated address in the quotation stays as it is.
//!
//! Not in this crate: a router between the subnets of a whole network of switches (`weir-routing`), DHCP, routing
//! protocols, router advertisements, next hops that are unique on a link only.
//!
//! ```
//! use weir_vrouter::config::VirtualRouterConfig;
//! use weir_vrouter::entries::{Neighbours, RouterPlacement, entries};
//! let text = r#"{
//!     "name": "blue",
//!     "ports": [
//!         {"port": "1", "mac": "02:00:00:00:00:01", "addresses": ["10.0.1.1/24"]},
//!         {"port": "2.100", "mac": "02:00:00:00:00:02", "addresses": ["10.0.2.1/24"]}
//!     ],
//!     "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.254"}]
//! }"#;
//! let config: VirtualRouterConfig = serde_json::from_str(text)?;
//! config.check()?;
//! let known = Neighbours::from([("10.0.2.254".parse()?, "02:00:00:00:00:fe".parse()?)]);
//! let all = entries(&config, &known, &RouterPlacement::whole_switch())?;
//! assert!(all.iter().any(|entry| entry.to_string().contains("nw_dst=10.0.1.0/24")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod app;
pub mod change;
pub mod config;
pub mod conflict;
pub mod entries;
pub mod forwarding;
mod prefix;

pub use app::{VirtualRouterApp, VirtualRouterSettings};
pub use prefix::AddressPrefix;
