//! Rules of access lists as they are written in a file.
use crate::map::{SwitchPort, parse_dpid};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;
use weir_openflow::model::PortNo;
use weir_packet::field::ip_proto;
use weir_packet::{IpNet, MacAddr, PortRange};

/// A rule of an access list. It applies to packets that have all that it names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AccessRule {
    /// Decision about the packets.
    pub action: AccessAction,
    /// Name of the rule, for counters and events; absent for its number.
    pub name: Option<String>,
    /// Switches and ports where packets enter the network; empty for everywhere.
    #[serde(default)]
    pub at: Vec<AccessPlace>,
    /// Ethernet source address.
    pub source_mac: Option<MacAddr>,
    /// Ethernet destination address.
    pub destination_mac: Option<MacAddr>,
    /// IP source address or prefix.
    pub source: Option<IpPrefix>,
    /// IP destination address or prefix.
    pub destination: Option<IpPrefix>,
    /// Protocol.
    pub protocol: Option<AccessProtocol>,
    /// Source port of TCP, UDP or SCTP.
    pub source_port: Option<PortRange>,
    /// Destination port of TCP, UDP or SCTP.
    pub destination_port: Option<PortRange>,
}

/// Decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessAction {
    /// Packets go on.
    Permit,
    /// Packets are dropped.
    Deny,
}

/// Place where packets enter: a switch, or one port of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessPlace {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Number of the port; `None` for all ports.
    pub port: Option<PortNo>,
}

/// Address, or prefix of addresses: `10.0.0.1`, `10.0.0.0/8`, `fd00::/64`. Bits behind the prefix do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPrefix(pub IpNet);

/// Version of IP, protocol above it, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessProtocol {
    /// True for IPv4 only, false for IPv6 only; `None` for both.
    pub is_ipv4: Option<bool>,
    /// Protocol number (IANA); `None` for all.
    pub number: Option<u8>,
}

/// Names of protocols.
const PROTOCOLS: [(&str, Option<bool>, Option<u8>); 7] = [
    ("ipv4", Some(true), None),
    ("ipv6", Some(false), None),
    ("icmp", Some(true), Some(ip_proto::ICMP)),
    ("icmpv6", Some(false), Some(ip_proto::ICMPV6)),
    ("tcp", None, Some(ip_proto::TCP)),
    ("udp", None, Some(ip_proto::UDP)),
    ("sctp", None, Some(ip_proto::SCTP)),
];

impl FromStr for AccessPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<AccessPlace, String> {
        if text.contains(':') {
            let SwitchPort { dpid, port } = text.parse()?;
            return Ok(AccessPlace { dpid, port: Some(port) });
        }
        let error = || format!("found `{text}`, expected a switch such as 1f or a port DPID:PORT such as 1f:3");
        Ok(AccessPlace { dpid: parse_dpid(text).ok_or_else(error)?, port: None })
    }
}

impl FromStr for IpPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<IpPrefix, String> {
        let error =
            || format!("found `{text}`, expected an address or prefix such as 10.0.0.1, 10.0.0.0/8 or fd00::/64");
        if text.contains('/') {
            return text.parse().map(IpPrefix).map_err(|_| error());
        }
        let addr: std::net::IpAddr = text.parse().map_err(|_| error())?;
        Ok(IpPrefix(IpNet { addr, prefix: if addr.is_ipv4() { 32 } else { 128 } }))
    }
}

impl FromStr for AccessProtocol {
    type Err = String;

    fn from_str(text: &str) -> Result<AccessProtocol, String> {
        if let Some((_, is_ipv4, number)) = PROTOCOLS.iter().find(|(name, ..)| *name == text) {
            return Ok(AccessProtocol { is_ipv4: *is_ipv4, number: *number });
        }
        let names: Vec<&str> = PROTOCOLS.iter().map(|(name, ..)| *name).collect();
        let error =
            |_| format!("found `{text}`, expected a protocol number from 0 to 255 or one of {}", names.join(", "));
        Ok(AccessProtocol { is_ipv4: None, number: Some(text.parse().map_err(error)?) })
    }
}

impl AccessRule {
    /// Checks what the types of the fields leave open.
    ///
    /// # Errors
    /// The key that is wrong, what was found and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let versions = [("source", self.source), ("destination", self.destination)];
        let addresses = versions.iter().filter_map(|(key, prefix)| Some((*key, prefix.as_ref()?.0.addr.is_ipv4())));
        let protocol = self.protocol.and_then(|protocol| protocol.is_ipv4).map(|is_ipv4| ("protocol", is_ipv4));
        let said: Vec<(&str, bool)> = addresses.chain(protocol).collect();
        if let Some([(one, _), (other, _)]) = said.array_windows().find(|[(_, one), (_, other)]| one != other) {
            return Err(format!("found different versions of IP in `{one}` and `{other}`, expected one version"));
        }
        let has_ports = self.protocol.and_then(|protocol| protocol.number).is_some_and(has_ports);
        let ports = [("source-port", self.source_port), ("destination-port", self.destination_port)];
        match ports.iter().find(|(_, range)| range.is_some()) {
            Some((key, _)) if !has_ports => {
                Err(format!("found `{key}` without a protocol that has ports, expected `protocol` tcp, udp or sctp"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the rule is about IPv4 (true) or IPv6 (false) only; `None` if it is about both.
    pub(super) fn is_ipv4(&self) -> Option<bool> {
        let prefix = self.source.or(self.destination).map(|prefix| prefix.0.addr.is_ipv4());
        prefix.or(self.protocol.and_then(|protocol| protocol.is_ipv4))
    }
}

/// Returns true if a protocol has port numbers.
fn has_ports(number: u8) -> bool {
    [ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP].contains(&number)
}

/// Reads a value from its text, or from a number.
struct TextOrNumber<T>(std::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = String>> serde::de::Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.1)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

macro_rules! read_as_text_or_number {
    ($($type:ty, $expected:literal;)*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(TextOrNumber(std::marker::PhantomData, $expected))
            }
        }
    )*};
}

read_as_text_or_number! {
    AccessPlace, "a switch such as \"1f\" or a port such as \"1f:3\"";
    IpPrefix, "an address or prefix such as \"10.0.0.0/8\"";
    AccessProtocol, "a protocol such as \"tcp\", or its number";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_named() {
        let expected = |problem: Result<(), String>, part: &str| {
            let problem = problem.unwrap_err();
            assert!(problem.contains("expected") && problem.contains(part), "{problem}");
        };
        expected("1:x".parse::<AccessPlace>().map(drop), "DPID:PORT");
        expected("10.0.0.0/33".parse::<IpPrefix>().map(drop), "10.0.0.0/33");
        expected("tpc".parse::<AccessProtocol>().map(drop), "icmpv6");
        expected("256".parse::<AccessProtocol>().map(drop), "0 to 255");
    }

    #[test]
    fn rules_that_cannot_apply_are_refused() {
        let rule = |text: &str| toml::from_str::<AccessRule>(text).unwrap();
        let mixed = rule("action = \"deny\"\nsource = \"10.0.0.0/8\"\ndestination = \"fd00::1\"");
        assert!(mixed.check().unwrap_err().contains("different versions of IP in `source` and `destination`"));
        let version = rule("action = \"deny\"\nsource = \"10.0.0.0/8\"\nprotocol = \"icmpv6\"");
        assert!(version.check().unwrap_err().contains("`protocol`"));
        let ports = rule("action = \"deny\"\nprotocol = \"icmp\"\ndestination-port = 80");
        assert!(ports.check().unwrap_err().contains("`destination-port` without a protocol that has ports"));
        assert_eq!(rule("action = \"permit\"\nprotocol = 47\nat = [\"1f\", \"2:3\"]").check(), Ok(()));
        assert!(toml::from_str::<AccessRule>("action = \"allow\"").is_err());
        assert!(toml::from_str::<AccessRule>("action = \"deny\"\nsrc = \"10.0.0.1\"").is_err());
    }
}
