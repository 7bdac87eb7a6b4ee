//! Represents properties of a packet that are not in its bytes: the type of its first header, and its tunnel.
use crate::field::eth_type;
use std::fmt;

/// Type of a packet's first header (OpenFlow 1.5.1, 7.2.3.11): a namespace, and a type within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct PacketType(u32);

/// Tunnel that a packet was received through or is to be sent through: id and end points; zeros if unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tunnel {
    /// VXLAN network identifier or GRE key: the low 32 bits of [`crate::Field::TunnelId`].
    pub id: u32,
    /// Outer IPv4 source address.
    pub src: u32,
    /// Outer IPv4 destination address.
    pub dst: u32,
}

impl Tunnel {
    /// Value without a tunnel.
    pub const NONE: Tunnel = Tunnel { id: 0, src: 0, dst: 0 };
}

impl PacketType {
    /// Ethernet frame: type 0 of namespace 0.
    pub const ETHERNET: PacketType = PacketType(0);
    /// Type named by the header that decap removes. Only an argument of decap, never the type of a packet.
    pub const NEXT_PROTOCOL: PacketType = PacketType(0xfffe);
    /// Network service header (RFC 8300).
    pub const NSH: PacketType = PacketType::of_eth_type(eth_type::NSH);

    /// Returns the type of a packet that starts with the header of an EtherType, without Ethernet header: namespace 1
    /// (`OFPHTN_ETHERTYPE`).
    pub const fn of_eth_type(eth_type: u16) -> PacketType {
        PacketType(1 << 16 | eth_type as u32)
    }

    /// Returns the type for the number in matches and actions: namespace in the high half, type in the low half.
    pub const fn from_bits(bits: u32) -> PacketType {
        PacketType(bits)
    }

    /// Returns the number for matches and actions.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns true if the packet starts with an Ethernet header.
    pub const fn is_ethernet(self) -> bool {
        self.0 == 0
    }

    /// Returns the namespace.
    pub const fn namespace(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the type within its namespace.
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub const fn number(self) -> u16 {
        self.0 as u16
    }

    /// Returns the EtherType of a packet without Ethernet header; `None` for other packets.
    pub const fn eth_type(self) -> Option<u16> {
        if self.namespace() == 1 { Some(self.number()) } else { None }
    }
}

impl fmt::Display for PacketType {
    /// Prints the type like Open vSwitch: `(1,0x894f)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            0 => write!(f, "({},0)", self.namespace()),
            number => write!(f, "({},{number:#x})", self.namespace()),
        }
    }
}
