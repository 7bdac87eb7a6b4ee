//! Time, rates and sizes with their units, so that the compiler finds bits taken for bytes.
//!
//! # Which bytes are counted
//! A [`Bps`] counts the bits of the Ethernet frame from the destination address to the end of the payload:
//! without the frame check sequence, the preamble and the gap between frames. That is what Linux counts in
//! interface statistics and what `tc` shapes. Off-by-2 % reports come from counting differently; nothing in
//! weir does.
mod clock;
mod rate;
mod size;
mod span;
mod stops;
mod text;
mod throttle;
mod time;

pub use clock::{Clock, Epoch, ManualClock, SystemClock};
pub use rate::Bps;
pub use size::ByteSize;
pub use span::{Seconds, Span};
pub use stops::{MAX_STOPS, StopSum, Stops};
pub use text::read_text;
pub use throttle::Throttle;
pub use time::Instant;

/// Why a quantity such as `10Mbit/s` could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseQuantityError {
    /// What was found.
    pub found: String,
    /// What would have been right, with an example.
    pub expected: &'static str,
}

impl std::fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "found `{}`, expected {}", self.found, self.expected)
    }
}

impl std::error::Error for ParseQuantityError {}

/// Splits `12.5 Mbit/s` into the number and the unit word.
pub(crate) fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

/// Gives a quantity type `FromStr`-driven serde: text in files, text out.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
                into.collect_str(self)
            }
        }
    };
}
pub(crate) use serde_as_text;
