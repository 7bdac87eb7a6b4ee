//! From bytes to a flow key.
use crate::{FlowKey, PortNo};

/// A packet's flow key, and where its headers lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parsed {
    /// What tables match on. `metadata` and `tunnel_id` are zero, `in_port` and `in_phy_port` the port given.
    pub key: FlowKey,
    /// Where its headers lie.
    pub layers: Layers,
}

/// Where the headers of a packet lie, in bytes from the frame's start; what is absent or cut short has no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Number of VLAN tags (0x8100, 0x88a8) behind the addresses.
    pub vlan_tags: u8,
    /// Where the first MPLS label stack entry lies.
    pub mpls: Option<u16>,
    /// Where the IPv4, IPv6 or ARP header lies, and which it is. Absent behind MPLS.
    pub network: Option<(Network, u16)>,
    /// Where the transport header lies, and which it is. Absent in later fragments.
    pub transport: Option<(Transport, u16)>,
}

/// A network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum Network {
    Ipv4,
    Ipv6,
    Arp,
}

/// A transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by their RFCs")]
pub enum Transport {
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
}

/// A frame too short to hold an Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame of {0} bytes is shorter than an Ethernet header (14 bytes)")]
pub struct TooShort(pub usize);

/// Parses a frame once. A header that is cut short or malformed ends parsing: fields from there on are absent (zero), as in
/// any switch that must forward what it does not understand.
///
/// # Errors
/// [`TooShort`] if there is no whole Ethernet header.
pub fn parse(_frame: &[u8], _in_port: PortNo) -> Result<Parsed, TooShort> {
    todo!()
}
