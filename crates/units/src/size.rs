//! Represents sizes in bytes.
use crate::{ParseQuantityError, number_and_unit};
use std::fmt;
use std::str::FromStr;

/// A size in bytes, for example of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const EXPECTED: &str = "a size such as `64kB`, `1500B` or `2MiB`";

impl FromStr for ByteSize {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseQuantityError { found: text.to_owned(), expected: EXPECTED };
        let (number, unit) = number_and_unit(text).ok_or_else(error)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; the limit is refused")]
        let bytes = (number * *factor as f64).round() as u64;
        if bytes == u64::MAX { Err(error()) } else { Ok(ByteSize(bytes)) }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact =
            UNITS.iter().filter(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor)).max_by_key(|u| u.1);
        let (unit, factor) = exact.unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

crate::serde_as_text!(ByteSize, EXPECTED, std::convert::identity);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in ["64kB", "1500B", "2MiB", "0B"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        assert_eq!("1.5kB".parse(), Ok(ByteSize(1500)));
        for wrong in ["64", "64kb", "kB", "-1B"] {
            assert!(wrong.parse::<ByteSize>().is_err(), "{wrong}");
        }
    }
}
