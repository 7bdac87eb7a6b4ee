//! Represents durations with a text form for files.
use crate::{ParseQuantityError, number_and_unit};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration with a text form: `250us`, `1.5ms`, `10s`, `2min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeSpan(pub Duration);

const UNITS: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const EXPECTED: &str = "a time such as `250us`, `1.5ms`, `10s` or `2min`";
/// Maximum in nanoseconds, about 146 years. Keeps sums of instants far from saturation.
const MAX_NS: f64 = (u64::MAX / 4) as f64;

impl FromStr for TimeSpan {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseQuantityError { found: text.to_owned(), expected: EXPECTED };
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let ns = (number * factor).round();
        if ns > MAX_NS {
            return Err(error());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked against MAX_NS")]
        Ok(TimeSpan(Duration::from_nanos(ns as u64)))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

crate::serde_as_text!(TimeSpan, EXPECTED, std::convert::identity);

/// A duration in seconds with fractions of a nanosecond, such as a time per byte: `7.96ns`. The text form is that of
/// a [`TimeSpan`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Seconds(pub f64);

impl FromStr for Seconds {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseQuantityError { found: text.to_owned(), expected: EXPECTED };
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let ns = number * factor;
        if ns > MAX_NS { Err(error()) } else { Ok(Seconds(ns / 1e9)) }
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 * 1e9;
        let shown = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (unit, factor) = shown.iter().rev().find(|(_, factor)| ns >= *factor).unwrap_or(&shown[0]);
        // Rounded, because conversions leave wrong last digits.
        write!(f, "{}{unit}", (ns / factor * 1e6).round() / 1e6)
    }
}

crate::serde_as_text!(Seconds, EXPECTED, std::convert::identity);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        assert_eq!("250us".parse(), Ok(TimeSpan(Duration::from_micros(250))));
        assert_eq!("1.5 ms".parse::<TimeSpan>().unwrap().to_string(), "1.5ms");
        assert_eq!("7.96ns".parse(), Ok(Seconds(7.96 / 1e9)));
        assert_eq!(Seconds(0.01906).to_string(), "19.06ms");
        for wrong in ["10", "1 year", "", "ms", "99999999999h"] {
            assert!(wrong.parse::<TimeSpan>().is_err() && wrong.parse::<Seconds>().is_err(), "{wrong}");
        }
    }
}
