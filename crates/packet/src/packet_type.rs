//! What is known of a packet beside its bytes: what they begin with, and the tunnel it came through.
use crate::field::eth_type;
use std::fmt;

/// What a packet's first bytes are (OpenFlow 1.5.1, 7.2.3.11): a namespace, and a type in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct PacketType(u32);

/// A tunnel's id and ends, beside a packet that came through it or is to go through it; zeros where nothing is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tunnel {
    /// VXLAN network identifier or GRE key: the low 32 bits of [`crate::Field::TunnelId`].
    pub id: u32,
    /// The outer IPv4 source address.
    pub src: u32,
    /// The outer IPv4 destination address.
    pub dst: u32,
}

impl Tunnel {
    /// No tunnel.
    pub const NONE: Tunnel = Tunnel { id: 0, src: 0, dst: 0 };
}

impl PacketType {
    /// An Ethernet frame: type 0 of namespace 0.
    pub const ETHERNET: PacketType = PacketType(0);
    /// Whatever the header just taken off says comes next: an argument of decap, never a packet's own type.
    pub const NEXT_PROTOCOL: PacketType = PacketType(0xfffe);
    /// A network service header (RFC 8300).
    pub const NSH: PacketType = PacketType::of_eth_type(eth_type::NSH);

    /// The header of an EtherType, without Ethernet in front: namespace 1 (`OFPHTN_ETHERTYPE`).
    pub const fn of_eth_type(eth_type: u16) -> PacketType {
        PacketType(1 << 16 | eth_type as u32)
    }

    /// From the number that matches and actions carry: namespace in the high half, type in the low.
    pub const fn from_bits(bits: u32) -> PacketType {
        PacketType(bits)
    }

    /// The number that matches and actions carry.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Whether the packet begins with an Ethernet header.
    pub const fn is_ethernet(self) -> bool {
        self.0 == 0
    }

    /// The namespace.
    pub const fn namespace(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The type in its namespace.
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub const fn number(self) -> u16 {
        self.0 as u16
    }

    /// The EtherType of a packet without Ethernet header.
    pub const fn eth_type(self) -> Option<u16> {
        if self.namespace() == 1 { Some(self.number()) } else { None }
    }
}

impl fmt::Display for PacketType {
    /// As Open vSwitch writes it: `(1,0x894f)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            0 => write!(f, "({},0)", self.namespace()),
            number => write!(f, "({},{number:#x})", self.namespace()),
        }
    }
}
