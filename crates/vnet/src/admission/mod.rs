//! Admits virtual links with a promise of rate and of worst-case delay, and refuses those that would break a promise.
//!
//! # What is promised
//! A virtual link that keeps to its rate and burst loses no packet and has no packet delayed for longer than promised,
//! whatever all others do within their own rates and bursts. [`LinkAdmission::request`] admits a virtual link only if
//! this is certain, for it and for all that were admitted before:
//!
//! 1. No substrate link has less capacity than the rates through it.
//! 2. No buffer is smaller than the largest backlog.
//! 3. No bound of a delay exceeds what is promised.
//!
//! A refusal names what is missing ([`BindingResource`]) and what would be admitted ([`NearestOffer`]): the largest
//! rate, exact to 1 bit/s, and the least delay, exact to 1 ns, of what these bounds can prove. Virtual links whose
//! paths together lead around a cycle are refused, because the bounds below are not known to hold then.
//!
//! # How a link is modelled
//! A packet arrives with its last bit. The switch needs at most [`QueuedLink::switch_latency`] until the packet is
//! queued, and keeps packets in order (of all virtual links if the link is FIFO, else of each). The queue is sent at
//! the link's capacity. Before the first packet a packet of other traffic may still have to be sent
//! ([`QueuedLink::other_packet`]): without interruption, the latency of the highest priority is its time (Le Boudec and
//! Thiran, 2001, section 6.2). This is a rate-latency server. Propagation is constant and added.
//!
//! Each frame takes its bytes and an overhead on the line. `r` bit/s of frames of at least `m` bytes are at most
//! `r (m + overhead) / m` bit/s on the line, and a burst grows by this factor too. All bounds are calculated of bits
//! on the line; buffers hold frames without overhead.
//!
//! # Which bounds are used
//! Deterministic network calculus (Cruz, "A calculus for network delay", 1991; Le Boudec and Thiran, "Network
//! Calculus", 2001), link by link in the order in which they feed each other. [`bound`] has the theorems.
//!
//! - Delay at a FIFO link: `T + sum of b / C` (theorem 1.4.2 for the aggregate). Bursts are of whole packets, so that
//!   no packet is to be added. At a link of arbitrary multiplexing: `T' + b / R'`, of what the others leave.
//! - Burst at the next link: `b + r J`, where `J` is the bound of the delay less the time that the shortest packet
//!   takes to be sent, the least delay (Cruz). Delays are those of last bits, so that no packet is to be added either.
//! - Delay of a path: the smaller of the sum over hops ([`BoundMethod::SumOfHops`]) and the delay of the concatenated
//!   servers that the others leave (theorem 1.4.6, [`BoundMethod::PayBurstsOnce`]). A server that hands on whole
//!   packets adds `l / R'` at each hop but the last, for the longest packet `l` of the virtual link (theorem 1.7.1).
//! - Backlog: `sum of b + r T` (theorem 1.4.1), and the longest packet, because a switch holds a packet until all of it
//!   is sent.
//!
//! Bounds of a network are not always reached: between several links, better ones are known, at a higher price. On a
//! single FIFO link they are exact.
//!
//! # How exact the numbers are
//! Bounds are calculated in whole bits and picoseconds, each step rounded up. They never fall if a rate, a burst or a
//! set of virtual links grows. Bisection is therefore exact, and what is released gives everything back.
//!
//! A request or a release calculates only the links that something reaches from the changed path. The bounds are those
//! of a calculation of all links, to the last bit.
//!
//! ```
//! use std::time::Duration;
//! use weir_units::{Bps, ByteSize};
//! use weir_vnet::admission::{ETHERNET_OVERHEAD, LinkAdmission, LinkDemand, QueuedLink};
//! let trunk = QueuedLink::new("trunk", Bps(1_000_000_000));
//! let mut admission = LinkAdmission::new(ETHERNET_OVERHEAD, [trunk])?;
//! let demand = |name: &str| LinkDemand::new(name, ["trunk"], Bps(100_000_000)).within(Duration::from_micros(40));
//! let bound = admission.request(demand("voice"))?;
//! assert_eq!(bound.delay, Duration::from_nanos(16_957), "1514 bytes, at worst in frames of 60, each with 24 more");
//! admission.request(demand("video"))?;
//! let refused = admission.request(demand("backup")).unwrap_err();
//! assert!(refused.to_string().contains("the delay promised to virtual link video would be exceeded"), "{refused}");
//! # Ok::<(), weir_vnet::admission::PromiseError>(())
//! ```
pub mod bound;
mod error;
mod feed_order;
mod link_admission;
mod network;
mod request;
mod trial;

pub use bound::Multiplexing;
pub use error::{BindingResource, NearestOffer, PromiseError};
pub use link_admission::{BoundMethod, LinkAdmission, PathBound};
pub use request::{LinkDemand, QueuedLink};

/// Bytes that an Ethernet frame takes on a line in addition to those that weir counts: 4 of the check sequence, 8 of
/// the preamble, 12 of the gap.
pub const ETHERNET_OVERHEAD: weir_units::ByteSize = weir_units::ByteSize(24);
/// Longest packet, and longest overhead: 16 MB.
pub const MAX_PACKET: weir_units::ByteSize = weir_units::ByteSize(16_000_000);
/// Longest delay of a link, and longest promise.
pub const MAX_DELAY: std::time::Duration = std::time::Duration::from_secs(1000);
