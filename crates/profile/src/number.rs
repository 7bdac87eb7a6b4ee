//! Reads times that may be negative, and numbers with or without a unit.
use serde::Deserialize;
use weir_units::Seconds;

/// Time in seconds that may be negative, as slopes are: `-0.4ns`, `2us`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SignedSeconds(pub(crate) f64);

/// Reads a time such as `-0.4ns`, in seconds.
pub(crate) fn signed(text: &str) -> Result<f64, String> {
    let (sign, rest) = text.trim().strip_prefix('-').map_or((1.0, text.trim()), |rest| (-1.0, rest));
    let seconds = rest.parse::<Seconds>().map_err(|error| error.to_string())?;
    Ok(sign * seconds.0)
}

/// Formats seconds with a suitable unit, also negative ones.
pub(crate) fn show_seconds(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    format!("{sign}{}", Seconds(seconds.abs()))
}

impl<'de> Deserialize<'de> for SignedSeconds {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        signed(&text).map(SignedSeconds).map_err(serde::de::Error::custom)
    }
}

/// Number, or time with its unit (in seconds).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NumberOrTime(pub(crate) f64);

impl<'de> Deserialize<'de> for NumberOrTime {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "found another kind of value, expected a number, or a time such as `7.5ms`")]
        enum NumberOrText {
            Number(f64),
            Text(String),
        }
        match NumberOrText::deserialize(from)? {
            NumberOrText::Number(number) => Ok(NumberOrTime(number)),
            NumberOrText::Text(text) => signed(&text).map(NumberOrTime).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_may_be_negative() {
        assert_eq!(signed("-2us").map(f64::to_bits), Ok((-2e-6_f64).to_bits()));
        assert_eq!(signed(" 2us").map(f64::to_bits), Ok(2e-6_f64.to_bits()));
        assert!(signed("--2us").is_err() && signed("2").is_err());
        assert_eq!((show_seconds(-0.0021), show_seconds(0.0)), ("-2.1ms".to_owned(), "0ns".to_owned()));
    }
}
