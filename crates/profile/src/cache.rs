//! Describes the cache in which a switch keeps its decisions about flows: the tiers of its packets.
use serde::Serialize;

/// Most flows that a cache may be limited to, and that an emulated one without a limit remembers.
pub const MAX_CACHED_FLOWS: u64 = 1 << 18;

/// Packets whose flow is not in the cache: their share of all, and what they take more, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstPackets {
    /// Share of the packets, 0 to 1.
    pub share: f64,
    /// Additional time of each.
    pub more_s: f64,
}

/// Cache of decisions about flows. It makes two tiers of packets: those of flows in the cache, and *first* packets,
/// whose flow is not (yet, or any more) in it. A flow is all packets between the same Ethernet and IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FlowCacheTiming {
    /// Additional time of a first packet, in seconds.
    pub first_s: f64,
    /// Time without packets after which a flow is forgotten, in seconds; `None` for never.
    pub idle_s: Option<f64>,
    /// Most flows in the cache; beyond, the one that was used longest ago is forgotten. `None` for no limit.
    pub flows: Option<u64>,
    /// Additional time until packets meet a change of the tables, for each flow in the cache, in seconds.
    pub revalidate_s: f64,
}
