//! Decides on whole virtual networks, and says what each becomes on the switches of a substrate.
//!
//! A user asks for a network of nodes and links ([`NetworkServiceRequest`]). [`NetworkBook`] finds switches for the
//! nodes and ways for the links, and admits the network only if each promise is kept whatever other networks do. What
//! it returns ([`NetworkDesign`]) has the virtual switches with their ports, rates, buffers and VLAN ids. It can be
//! carried out on weir's virtual switches, whose ports serve them by deficit round robin; [`guarantee`](ShareSettings)
//! has the bounds.
//!
//! # What is promised
//! Packets of a virtual link that keep to its guaranteed rate and its burst
//!
//! - are not lost: buffers hold the largest backlog;
//! - are delayed by at most the promised bound, from the arrival of the last bit at the first switch to that of the
//!   last bit at the second end;
//! - get the guaranteed rate, whatever others send, on the same switch, port or line.
//!
//! Percentiles of delays are promised by the bound of all packets: it holds for each percentile, and is longer than
//! necessary.
//!
//! # What is refused
//! A refusal ([`Refusal`]) names the link that binds, what each way is short of, and offers ([`NetworkOffer`]): less
//! rate, more delay, other ways, a later time. Each offer was tried.
//!
//! ```
//! use weir_units::{Bps, Instant};
//! use weir_vnet::allocation::SharingRule;
//! use weir_vnet::service::{
//!     AttachedHost, Bandwidth, SubstrateCable, Line, LinkRequest, NetworkBook, NetworkServiceRequest, NetworkSubstrate, PortName,
//!     ShareSettings, SwitchLimits,
//! };
//! use std::time::Duration;
//! let line = Line { capacity: Bps(100_000_000), propagation: Duration::from_micros(50) };
//! let cable = SubstrateCable { ends: [PortName::new("s1", 2), PortName::new("s2", 2)], line };
//! let host = |name: &str, switch: &str| AttachedHost { name: name.to_owned(), port: PortName::new(switch, 1), line };
//! let switches = vec!["s1".to_owned(), "s2".to_owned()];
//! let substrate = NetworkSubstrate::new(switches, vec![cable], vec![host("a", "s1"), host("b", "s2")])?;
//! let mut book =
//!     NetworkBook::new(substrate, ShareSettings::default(), SwitchLimits::default(), SharingRule::MaximumSum)?;
//! let mut request = NetworkServiceRequest::new("gold", vec![LinkRequest::new("a", "b",
//! Bandwidth::Static(Bps(60_000_000)))]); book.request(&request, Instant::ZERO)?; assert_eq!(book.rate("gold", "a-b",
//! 0), Some(Bps(60_000_000)));
//!
//! request.name = "tin".to_owned();
//! let refused = book.request(&request, Instant::ZERO).unwrap_err();
//! assert!(refused.to_string().contains("host a"), "{refused}");
//! # Ok::<(), weir_vnet::service::ServiceError>(())
//! ```
mod book;
mod check;
mod design;
mod error;
mod guarantee;
mod ledger;
mod offers;
mod places;
mod request;
mod restore;
mod search;
mod slices;
mod substrate;

pub use book::{BookChange, HeldNetwork, NetworkBook};
pub use check::{MAX_LINKS, MAX_NAME, MAX_NODES, MAX_STAGES};
pub use design::{DesignedDirection, DesignedLink, LinkHop, NetworkDesign, Slice, SlicePort, SliceRole};
pub use error::{NetworkOffer, NetworkShortage, OfferedChange, Refusal, RefusedNetworkWay, ServiceError};
pub use guarantee::{GuaranteedBound, ShareSettings, TAG};
pub use ledger::SwitchLimits;
pub use request::{
    Bandwidth, BandwidthRange, DEFAULT_OWNER, LinkRequest, NetworkServiceRequest, NodeKind, NodeRequest, PromisedDelay,
    RouteRequest, StageLink, StageRequest,
};
pub use substrate::{AttachedHost, Line, NetworkSubstrate, PortName, SubstrateCable};
