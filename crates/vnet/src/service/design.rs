//! Design of a virtual network on a substrate: virtual switches with their ports, and links with their ways.
use super::{Bandwidth, NetworkServiceRequest, PortName, PromisedDelay};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Virtual network with places and ways, and all that its switches need to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkDesign {
    /// Request that was admitted.
    pub request: NetworkServiceRequest,
    /// Switch of each node.
    pub places: BTreeMap<String, String>,
    /// Links, in the order of the request.
    pub links: Vec<DesignedLink>,
    /// Virtual switches: those of nodes in the order of the request, then those that only pass packets on.
    pub slices: Vec<Slice>,
}

/// Virtual link with its way. Both directions take it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DesignedLink {
    /// Name of the link.
    pub name: String,
    /// Switches of the way, from that of the first end to that of the second.
    pub switches: Vec<String>,
    /// Numbers of the cables between the switches.
    pub cables: Vec<usize>,
    /// VLAN id of its packets on these cables; `None` if there are no cables.
    pub vlan: Option<u16>,
    /// Ports of its ends that are hosts.
    pub host_ports: [Option<PortName>; 2],
    /// VLAN id of its packets at its hosts.
    pub host_vlan: Option<u16>,
    /// Delay that is promised; `None` for no promise.
    pub promise: Option<PromisedDelay>,
    /// From the first end to the second one, and back.
    pub directions: [DesignedDirection; 2],
}

/// Direction of a virtual link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DesignedDirection {
    /// Guaranteed and allowed rate.
    pub bandwidth: Bandwidth,
    /// Bytes that may come at once and are in profile.
    pub burst: ByteSize,
    /// Ports that send on the way. Empty from a host to a node of its switch: packets then wait nowhere.
    pub hops: Vec<LinkHop>,
    /// Longest delay of packets in profile, whatever others send; `None` without a guaranteed rate.
    pub delay: Option<Duration>,
}

/// Port on the way of a virtual link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHop {
    /// Port that sends.
    pub port: PortName,
    /// Bytes of the port's round.
    pub quantum: ByteSize,
    /// Largest backlog, at least one packet.
    pub backlog: ByteSize,
}

/// Virtual switch of a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Name, unique among virtual switches.
    pub name: String,
    /// Physical switch.
    pub switch: String,
    /// Task of the virtual switch.
    pub role: SliceRole,
    /// Ports in the order of their numbers.
    pub ports: Vec<SlicePort>,
}

/// Task of a virtual switch in its network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SliceRole {
    /// Being the node of this name.
    Node(String),
    /// Passing packets of the link of this name on, between two ports.
    Transit(String),
}

/// Port of a virtual switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlicePort {
    /// Number on the virtual switch: 1 for the first link of a node, and so on.
    pub number: u32,
    /// Number of the physical port.
    pub port: u32,
    /// VLAN id of its packets outside; `None` if they are untagged there.
    pub vlan: Option<u16>,
    /// Name of the link.
    pub link: String,
    /// Index in [`DesignedLink::directions`] of the direction in which the port sends.
    pub sends: usize,
    /// Guaranteed rate of packets that enter.
    #[serde(with = "bits")]
    pub rate_in: Bps,
    /// Guaranteed rate of packets that leave.
    #[serde(with = "bits")]
    pub rate_out: Bps,
    /// Bytes of the physical port's round.
    pub quantum: ByteSize,
    /// Buffer of packets that leave here, from each other port.
    pub buffer: ByteSize,
    /// Bytes that may leave at once above the allowed rate: the largest backlog of packets in profile, so that a limit
    /// of the rate never holds them back.
    pub burst: ByteSize,
}

/// Rates as numbers of bit/s: unlike their texts, these may be 0.
mod bits {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use weir_units::Bps;

    pub(super) fn serialize<S: Serializer>(rate: &Bps, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_u64(rate.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bps, D::Error> {
        u64::deserialize(from).map(Bps)
    }
}

impl Slice {
    /// Returns each pair of ports between which packets pass: where they enter, the number of the physical port where
    /// they leave, and the buffer.
    pub(super) fn crosspoints(&self) -> impl Iterator<Item = (PortName, u32, ByteSize)> {
        let pairs = self.ports.iter().flat_map(|from| self.ports.iter().map(move |to| (from, to)));
        let others = pairs.filter(|(from, to)| from.number != to.number);
        others.map(|(from, to)| (PortName::new(&*self.switch, from.port), to.port, to.buffer))
    }
}
