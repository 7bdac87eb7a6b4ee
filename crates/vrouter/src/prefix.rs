//! Represents prefixes of IP addresses.
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use weir_packet::IpNet;

/// All addresses that begin with the same bits, such as `10.0.0.0/8`, `fd00::/64`, `0.0.0.0/0`. A single address has
/// the longest prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressPrefix {
    addr: IpAddr,
    length: u8,
}

/// Returns the bits of an address, right-aligned.
pub(crate) fn bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Returns the length in bits of addresses of a version of IP.
const fn width(is_ipv4: bool) -> u8 {
    if is_ipv4 { 32 } else { 128 }
}

impl AddressPrefix {
    /// Returns the prefix of the first `length` bits of an address; `None` if the address is shorter.
    pub fn new(addr: IpAddr, length: u8) -> Option<AddressPrefix> {
        let behind = width(addr.is_ipv4()).checked_sub(length)?;
        let mask = u128::MAX.checked_shl(behind.into()).unwrap_or(0);
        let addr = match addr {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & u32::try_from(mask & 0xffff_ffff).ok()?).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & mask).into(),
        };
        Some(AddressPrefix { addr, length })
    }

    /// Returns the prefix that holds only one address.
    pub const fn host(addr: IpAddr) -> AddressPrefix {
        AddressPrefix { addr, length: width(addr.is_ipv4()) }
    }

    /// Returns the prefix of an address's network.
    pub fn of(net: IpNet) -> AddressPrefix {
        AddressPrefix::new(net.addr, net.prefix).unwrap_or(AddressPrefix::host(net.addr))
    }

    /// Returns the lowest address.
    pub const fn addr(self) -> IpAddr {
        self.addr
    }

    /// Returns the number of bits that addresses share.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Returns true for prefixes of IPv4.
    pub const fn is_ipv4(self) -> bool {
        self.addr.is_ipv4()
    }

    /// Returns the mask of the shared bits, right-aligned in the address's width.
    pub(crate) fn mask(self) -> u128 {
        let width = width(self.is_ipv4());
        let all = u128::MAX >> (128 - u32::from(width));
        u128::MAX.checked_shl(u32::from(width - self.length)).unwrap_or(0) & all
    }

    /// Returns true if an address begins with the prefix.
    pub fn contains(self, addr: IpAddr) -> bool {
        self.is_ipv4() == addr.is_ipv4() && bits(addr) & self.mask() == bits(self.addr)
    }

    /// Returns the addresses that both prefixes hold; `None` if there are none. One of two prefixes with common
    /// addresses holds the other.
    pub fn intersection(self, other: AddressPrefix) -> Option<AddressPrefix> {
        let (wide, narrow) = if self.length <= other.length { (self, other) } else { (other, self) };
        wide.contains(narrow.addr).then_some(narrow)
    }
}

impl FromStr for AddressPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressPrefix, String> {
        let error =
            || format!("found `{text}`, expected a prefix such as 10.0.0.0/8, fd00::/64, 0.0.0.0/0 or 10.0.0.1");
        let (addr, length) = text.split_once('/').map_or((text, None), |(addr, length)| (addr, Some(length)));
        let addr: IpAddr = addr.parse().map_err(|_| error())?;
        let Some(length) = length else { return Ok(AddressPrefix::host(addr)) };
        let prefix = length.parse().ok().and_then(|length| AddressPrefix::new(addr, length)).ok_or_else(error)?;
        if prefix.addr == addr {
            return Ok(prefix);
        }
        Err(format!("found `{text}` with bits behind the prefix, expected {prefix}"))
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.length)
    }
}

impl Serialize for AddressPrefix {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressPrefix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> AddressPrefix {
        text.parse().unwrap()
    }

    #[test]
    fn text_both_ways_and_wrong_text() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/64", "10.0.0.1/32"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("fd00::1").to_string(), "fd00::1/128");
        assert!("10.0.0.1/24".parse::<AddressPrefix>().unwrap_err().contains("expected 10.0.0.0/24"));
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/x", "fd00::/129"] {
            assert!(wrong.parse::<AddressPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn prefixes_hold_addresses_and_each_other() {
        assert!(prefix("10.0.0.0/8").contains("10.255.0.1".parse().unwrap()));
        assert!(!prefix("10.0.0.0/8").contains("11.0.0.1".parse().unwrap()));
        assert!(!prefix("::/0").contains("10.0.0.1".parse().unwrap()));
        assert_eq!(prefix("0.0.0.0/0").mask(), 0);
        assert_eq!(prefix("10.0.0.0/8").mask(), 0xff00_0000);
        let both = prefix("10.1.0.0/16").intersection(prefix("10.0.0.0/8"));
        assert_eq!(both, Some(prefix("10.1.0.0/16")));
        assert_eq!(prefix("10.1.0.0/16").intersection(prefix("10.2.0.0/16")), None);
        assert_eq!(prefix("::/0").intersection(prefix("0.0.0.0/0")), None);
    }
}
