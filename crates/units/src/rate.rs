//! Represents rates in bits per second.
use crate::{ParseQuantityError, number_and_unit};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A rate in bits per second of the Ethernet frame. The crate's documentation defines which bytes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bps(pub u64);

/// Decimal prefixes, as usual for rates.
const UNITS: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
const EXPECTED: &str = "a rate above zero such as `100Mbit/s`, `2.5Gbit/s` or `64kbit/s`";

impl Bps {
    /// Returns the duration of `bytes` bytes at this rate, rounded up to a nanosecond. `Duration::MAX` at rate zero.
    pub fn time_of(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let ns = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Returns the text of this rate that is parsed back to it exactly: as it is printed, or else in bit/s.
    pub fn exact(self) -> String {
        let printed = self.to_string();
        if printed.parse() == Ok(self) { printed } else { format!("{}bit/s", self.0) }
    }

    /// Returns the rate of `bytes` bytes in `span`; zero for an empty span.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating float conversion")]
    pub fn measured(bytes: u64, span: Duration) -> Bps {
        let seconds = span.as_secs_f64();
        Bps(if seconds > 0.0 { (bytes as f64 * 8.0 / seconds).round() as u64 } else { 0 })
    }
}

impl FromStr for Bps {
    type Err = ParseQuantityError;

    /// Parses a number with `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`, or the short forms `bps`, `kbps`,
    /// `Mbps`, `Gbps`, `Tbps`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseQuantityError { found: text.to_owned(), expected: EXPECTED };
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let prefix = unit.strip_suffix("bit/s").or_else(|| unit.strip_suffix("bps")).ok_or_else(error)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == prefix).ok_or_else(error)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked below")]
        let bps = (number * factor).round() as u64;
        if bps == 0 || bps == u64::MAX { Err(error()) } else { Ok(Bps(bps)) }
    }
}

impl fmt::Display for Bps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0 as f64;
        let (prefix, factor) = UNITS.iter().rev().find(|(_, factor)| rate >= *factor).unwrap_or(&UNITS[0]);
        let digits = f.precision().unwrap_or_else(|| usize::from(rate % factor != 0.0) * 2);
        write!(f, "{:.digits$}{prefix}bit/s", rate / factor)
    }
}

crate::serde_as_text!(Bps, EXPECTED, Bps::exact);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_texts_are_read_back() {
        for (rate, text) in [(50_000_000, "50Mbit/s"), (2_500_000, "2.50Mbit/s"), (1_234_567, "1234567bit/s")] {
            assert_eq!(Bps(rate).exact(), text);
            assert_eq!(text.parse(), Ok(Bps(rate)));
        }
    }

    #[test]
    fn reads_what_people_write() {
        assert_eq!("100Mbit/s".parse(), Ok(Bps(100_000_000)));
        assert_eq!("2.5 Gbps".parse(), Ok(Bps(2_500_000_000)));
        for wrong in ["", "10", "10 MB/s", "0Mbit/s", "-1Mbit/s", "1e9bit/s", "nanMbit/s"] {
            assert!(wrong.parse::<Bps>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["100Mbit/s", "2.50Gbit/s", "64kbit/s", "1bit/s"] {
            assert_eq!(text.parse::<Bps>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn time_of_rounds_up() {
        assert_eq!(Bps(1_000_000_000).time_of(1500), Duration::from_nanos(12_000));
        assert_eq!(Bps(3).time_of(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Bps(0).time_of(1), Duration::MAX);
    }
}
