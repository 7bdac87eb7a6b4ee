//! Values of a configuration that are written as text: ports, protocols, next hops.
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use weir_openflow::model::PortNo;
use weir_packet::field::ip_proto;

/// Port of a virtual router: a port of the switch, and the VLAN of packets outside. Written as `3`, or `3.100` for the
/// packets of port 3 that have the tag of VLAN 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterPortId {
    /// OpenFlow port of the switch.
    pub number: PortNo,
    /// VLAN of the packets, 1 to 4094; `None` for packets without a tag.
    pub vlan: Option<u16>,
}

/// Protocol over IP: `icmp`, `icmpv6`, `tcp`, `udp`, `sctp`, or its number (IANA). ICMP is only over IPv4, ICMPv6 only
/// over IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(pub u8);

/// Next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteTarget {
    /// Router on a network of a port.
    NextHop(IpAddr),
    /// Packets are dropped without a word to the sender.
    Blackhole,
}

/// Names of protocols.
const PROTOCOLS: [(&str, u8); 5] = [
    ("icmp", ip_proto::ICMP),
    ("icmpv6", ip_proto::ICMPV6),
    ("tcp", ip_proto::TCP),
    ("udp", ip_proto::UDP),
    ("sctp", ip_proto::SCTP),
];

impl RouterPortId {
    /// Returns the port of packets without a tag.
    pub const fn untagged(number: u32) -> RouterPortId {
        RouterPortId { number: PortNo(number), vlan: None }
    }

    /// Returns the port of packets with the tag of a VLAN.
    pub const fn tagged(number: u32, vlan: u16) -> RouterPortId {
        RouterPortId { number: PortNo(number), vlan: Some(vlan) }
    }
}

impl IpProtocol {
    /// Returns true for protocols with port numbers.
    pub const fn has_ports(self) -> bool {
        matches!(self.0, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP)
    }

    /// Returns true for ICMP over IPv4 and over IPv6.
    pub const fn is_icmp(self) -> bool {
        matches!(self.0, ip_proto::ICMP | ip_proto::ICMPV6)
    }

    /// Returns the version of IP that the protocol belongs to: true for IPv4, `None` for both.
    pub(crate) const fn is_ipv4(self) -> Option<bool> {
        match self.0 {
            ip_proto::ICMP => Some(true),
            ip_proto::ICMPV6 => Some(false),
            _ => None,
        }
    }
}

impl FromStr for RouterPortId {
    type Err = String;

    fn from_str(text: &str) -> Result<RouterPortId, String> {
        let error = |_| format!("found `{text}`, expected a port such as 3, or 3.100 for VLAN 100 of port 3");
        let (number, vlan) = text.split_once('.').map_or((text, None), |(number, vlan)| (number, Some(vlan)));
        let vlan = vlan.map(str::parse).transpose().map_err(error)?;
        Ok(RouterPortId { number: PortNo(number.parse().map_err(error)?), vlan })
    }
}

impl fmt::Display for RouterPortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan {
            Some(vlan) => write!(f, "{}.{vlan}", self.number.0),
            None => self.number.0.fmt(f),
        }
    }
}

impl FromStr for IpProtocol {
    type Err = String;

    fn from_str(text: &str) -> Result<IpProtocol, String> {
        if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == text) {
            return Ok(IpProtocol(*number));
        }
        let error = |_| format!("found `{text}`, expected icmp, icmpv6, tcp, udp, sctp, or a number from 0 to 255");
        text.parse().map(IpProtocol).map_err(error)
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for RouteTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<RouteTarget, String> {
        if text == "blackhole" {
            return Ok(RouteTarget::Blackhole);
        }
        let error = |_| format!("found `{text}`, expected the address of a next hop such as 10.0.0.1, or blackhole");
        text.parse().map(RouteTarget::NextHop).map_err(error)
    }
}

impl fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteTarget::NextHop(addr) => addr.fmt(f),
            RouteTarget::Blackhole => f.write_str("blackhole"),
        }
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
                into.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_text!(RouterPortId, IpProtocol, RouteTarget);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_both_ways_and_wrong_text() {
        for text in ["3", "3.100"] {
            assert_eq!(text.parse::<RouterPortId>().unwrap().to_string(), text);
        }
        for text in ["tcp", "icmpv6", "47"] {
            assert_eq!(text.parse::<IpProtocol>().unwrap().to_string(), text);
        }
        for text in ["10.0.0.1", "fd00::1", "blackhole"] {
            assert_eq!(text.parse::<RouteTarget>().unwrap().to_string(), text);
        }
        assert!("3.x".parse::<RouterPortId>().unwrap_err().contains("3.100"));
        assert!("tpc".parse::<IpProtocol>().unwrap_err().contains("icmpv6"));
        assert!("drop".parse::<RouteTarget>().unwrap_err().contains("blackhole"));
    }
}
