//! Represents IP addresses with the length of their network's prefix.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// IPv4 or IPv6 address with the length of its network's prefix: `10.0.0.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpNet {
    /// Address of the host.
    pub addr: IpAddr,
    /// Bits of the network's prefix.
    pub prefix: u8,
}

impl IpNet {
    /// Returns true if `other` is in the same network, so that it is reachable without a router.
    pub fn contains(&self, other: IpAddr) -> bool {
        let bits = |addr: IpAddr| match addr {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let same_family = self.addr.is_ipv4() == other.is_ipv4();
        same_family && (bits(self.addr) ^ bits(other)).leading_zeros() >= u32::from(self.prefix)
    }
}

impl FromStr for IpNet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || format!("found `{text}`, expected an address with its prefix such as 10.0.0.1/24 or fd00::1/64");
        let (addr, prefix) = text.split_once('/').ok_or_else(error)?;
        let addr: IpAddr = addr.parse().map_err(|_| error())?;
        let prefix: u8 = prefix.parse().map_err(|_| error())?;
        let longest = if addr.is_ipv4() { 32 } else { 128 };
        if prefix == 0 || prefix > longest || addr.is_unspecified() || addr.is_multicast() {
            return Err(error());
        }
        Ok(IpNet { addr, prefix })
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.prefix)
    }
}

impl Serialize for IpNet {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IpNet {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prints_and_compares() {
        let net: IpNet = "10.0.0.1/24".parse().unwrap();
        assert_eq!(net.to_string(), "10.0.0.1/24");
        assert!(net.contains("10.0.0.200".parse().unwrap()));
        assert!(!net.contains("10.0.1.1".parse().unwrap()));
        assert!(!net.contains("fd00::1".parse().unwrap()));
        let v6: IpNet = "fd00::1/64".parse().unwrap();
        assert!(v6.contains("fd00::ffff".parse().unwrap()));
        for wrong in ["10.0.0.1", "10.0.0.1/33", "10.0.0.1/0", "0.0.0.0/8", "224.0.0.1/8", "x/8"] {
            assert!(wrong.parse::<IpNet>().is_err(), "{wrong}");
        }
    }
}
