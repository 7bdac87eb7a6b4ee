//! Represents Ethernet addresses.
use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Broadcast address, `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// Group address of the nearest bridge, which no bridge forwards (IEEE 802.1AB-2016, 7.1).
    pub const NEAREST_BRIDGE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);

    /// Returns the address as the low 48 bits of a number, first byte highest.
    pub const fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Returns the address in the low 48 bits of `bits`.
    pub const fn from_bits(bits: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }

    /// Returns true if the group bit is set: multicast or broadcast (IEEE 802-2014, 8.2).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl FromStr for MacAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || format!("found `{text}`, expected an Ethernet address such as 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|p| (1..=2).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(part.ok_or_else(error)?, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(MacAddr(bytes)) }
    }
}

impl serde::Serialize for MacAddr {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for MacAddr {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bits_both_ways() {
        let mac: MacAddr = "02:00:00:00:00:0a".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:00:00:00:0a");
        assert_eq!(MacAddr::from_bits(mac.to_bits()), mac);
        assert!("33:33:00:00:00:01".parse::<MacAddr>().unwrap().is_multicast());
        for wrong in ["", "02:00", "02:00:00:00:00:00:01", "0g:00:00:00:00:01", "+2:00:00:00:00:01"] {
            assert!(wrong.parse::<MacAddr>().is_err(), "{wrong}");
        }
    }
}
