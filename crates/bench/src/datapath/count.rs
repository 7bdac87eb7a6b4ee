//! Parses numbers with a unit: `1000`, `100k`, `1M`.
use std::str::FromStr;

/// A count above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountArg(pub(super) u32);

impl FromStr for CountArg {
    type Err = String;

    fn from_str(text: &str) -> Result<CountArg, String> {
        let (digits, unit) = match text.strip_suffix(['k', 'M']) {
            Some(digits) if text.ends_with('k') => (digits, 1000),
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        };
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        let count = number.and_then(|number: u32| number.checked_mul(unit)).filter(|count| *count > 0);
        count
            .map(CountArg)
            .ok_or_else(|| format!("found `{text}`, expected a number from 1 to {} such as 1000, 100k or 1M", u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_thousands() {
        let counts: [CountArg; 3] = ["1", "100k", "1M"].map(|text| text.parse().unwrap());
        assert_eq!(counts, [CountArg(1), CountArg(100_000), CountArg(1_000_000)]);
        for wrong in ["", "k", "0", "+1", "1.5M", "5000M", "1G", "-1"] {
            assert!(wrong.parse::<CountArg>().unwrap_err().contains("such as 1000, 100k or 1M"), "{wrong}");
        }
    }
}
