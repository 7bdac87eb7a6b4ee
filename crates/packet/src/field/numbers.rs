//! Defines numbers that fields hold: types, protocols, bits.
/// EtherType numbers that prerequisites and parsers use (IEEE 802 numbers registry).
#[allow(missing_docs, reason = "named by the registry")]
pub mod eth_type {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const VLAN: u16 = 0x8100;
    pub const RARP: u16 = 0x8035;
    pub const IPV6: u16 = 0x86dd;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_MULTICAST: u16 = 0x8848;
    pub const QINQ: u16 = 0x88a8;
    pub const PBB: u16 = 0x88e7;
    /// Link layer discovery (IEEE 802.1AB-2016, 8.3).
    pub const LLDP: u16 = 0x88cc;
    /// The first one for local experiments (IEEE 802-2014, 9.2.4).
    pub const LOCAL_EXPERIMENT: u16 = 0x88b5;
    /// Link discovery in broadcast frames, which other switches forward: used by controllers, not registered.
    pub const BROADCAST_DISCOVERY: u16 = 0x8942;
    /// Network service header (RFC 8300).
    pub const NSH: u16 = 0x894f;
    /// EtherType that OpenFlow 1.0 gives to 802.3 frames without SNAP (OpenFlow 1.0.0, 3.4:
    /// `OFP_DL_TYPE_NOT_ETH_TYPE`).
    pub const NOT_ETH_TYPE: u16 = 0x05ff;
}

/// IP protocol numbers that prerequisites and parsers use (IANA).
#[allow(missing_docs, reason = "named by the registry")]
pub mod ip_proto {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const ESP: u8 = 50;
    pub const AH: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const NO_NEXT: u8 = 59;
    pub const DESTINATION: u8 = 60;
    pub const SCTP: u8 = 132;
}

/// Types of ICMPv6 messages of neighbour discovery (RFC 4861, 4).
#[allow(missing_docs, reason = "named by the RFC")]
pub mod icmpv6_type {
    pub const ROUTER_SOLICITATION: u8 = 133;
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    pub const REDIRECT: u8 = 137;
}

/// Bits of [`super::Field::IpFrag`], as in Open vSwitch (`FLOW_NW_FRAG_*`).
pub mod ip_frag {
    /// The packet is a fragment.
    pub const ANY: u64 = 1;
    /// The packet is a fragment other than the first, so it has no transport header.
    pub const LATER: u64 = 2;
}

/// Bits of [`super::Field::Ipv6Exthdr`] (OpenFlow 1.3.5, 7.2.3.8: `OFPIEH_*`).
pub mod ipv6_exthdr {
    /// "No next header" is present.
    pub const NONEXT: u64 = 1 << 0;
    /// An encapsulating security payload is present.
    pub const ESP: u64 = 1 << 1;
    /// An authentication header is present.
    pub const AUTH: u64 = 1 << 2;
    /// Destination options are present, in one or two headers.
    pub const DEST: u64 = 1 << 3;
    /// A fragment header is present.
    pub const FRAG: u64 = 1 << 4;
    /// A routing header is present.
    pub const ROUTER: u64 = 1 << 5;
    /// A hop-by-hop header is present.
    pub const HOP: u64 = 1 << 6;
    /// A header occurs more often than expected.
    pub const UNREP: u64 = 1 << 7;
    /// Headers are not in the preferred order.
    pub const UNSEQ: u64 = 1 << 8;
}

/// Bit 12 of `vlan_vid`: a tag is present (`OFPVID_PRESENT`).
pub const VLAN_PRESENT: u16 = 0x1000;
