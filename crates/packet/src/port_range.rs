//! Represents ranges of port numbers of TCP, UDP and SCTP.
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Range of port numbers, both ends included: `80` or `8000-8099`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// First number.
    pub first: u16,
    /// Last number, not below the first.
    pub last: u16,
}

impl PortRange {
    /// Returns true if a number is in the range.
    pub const fn contains(self, number: u16) -> bool {
        self.first <= number && number <= self.last
    }

    /// Returns the fewest values with masks that together are the range: blocks of a power of two, each at a multiple
    /// of its size. At most 30.
    pub fn blocks(self) -> Vec<(u16, u16)> {
        let (mut first, end) = (u32::from(self.first), u32::from(self.last) + 1);
        let mut blocks = Vec::new();
        while first < end {
            let aligned = if first == 0 { 1 << 16 } else { 1 << first.trailing_zeros() };
            let fits = 1 << (end - first).ilog2();
            let size: u32 = aligned.min(fits);
            let low = |bits: u32| u16::try_from(bits & 0xffff).unwrap_or(0);
            blocks.push((low(first), low(!(size - 1))));
            first += size;
        }
        blocks
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<PortRange, String> {
        let error = || format!("found `{text}`, expected a port such as 80 or a range such as 8000-8099, up to 65535");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().map_err(|_| error());
        let range = PortRange { first: number(first)?, last: number(last)? };
        if range.first <= range.last { Ok(range) } else { Err(error()) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PortRangeVisitor)
    }
}

/// Reads a range from its text, or a single port from a number.
struct PortRangeVisitor;

impl serde::de::Visitor<'_> for PortRangeVisitor {
    type Value = PortRange;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a port such as 80 or a range such as \"8000-8099\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PortRange, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PortRange, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<PortRange, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn covers_exactly(first: u16, last: u16) {
        let range = PortRange { first, last };
        let blocks = range.blocks();
        assert!(blocks.len() <= 30, "{range}: {}", blocks.len());
        for port in 0..=u16::MAX {
            let hits = blocks.iter().filter(|(value, mask)| port & mask == *value).count();
            assert_eq!(hits, usize::from(range.contains(port)), "{port} in {range}");
        }
    }

    #[test]
    fn blocks_of_the_ends_are_exactly_the_range() {
        let ranges = [(0, 65_535), (1, 65_534), (80, 80), (0, 0), (65_535, 65_535), (1000, 1999)];
        ranges.into_iter().for_each(|(first, last)| covers_exactly(first, last));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn blocks_are_exactly_the_range(one: u16, other: u16) {
            covers_exactly(one.min(other), one.max(other));
        }
    }

    #[test]
    fn text_both_ways() {
        for text in ["80", "8000-8099"] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), text);
        }
        for wrong in ["9-8", "65536", "-1", "80-", ""] {
            assert!(wrong.parse::<PortRange>().unwrap_err().contains("8000-8099"), "{wrong}");
        }
    }
}
