//! Represents time, rates and sizes with their units, so that the compiler finds bits used as bytes.
//!
//! # Which bytes are counted
//! A [`Bps`] counts the bits of the Ethernet frame from the destination address to the end of the payload, without
//! the frame check sequence, the preamble and the gap between frames. Linux counts the same bytes in interface
//! statistics, and `tc` shapes them. Everything in weir counts this way, because different ways of counting cause
//! differences of about 2 %.
mod clock;
mod host_name;
mod rate;
mod size;
mod span;
mod stall_log;
mod text;
mod throttle;
mod time;

pub use clock::{Clock, Epoch, ManualClock, SystemClock};
pub use host_name::is_host_name;
pub use rate::Bps;
pub use size::ByteSize;
pub use span::{Seconds, TimeSpan};
pub use stall_log::{MAX_STOPS, StallLog, StallTotals};
pub use text::{counted, known_names, nearest_name, read_text, reworded};
pub use throttle::{LogThrottle, RateLimit};
pub use time::Instant;

/// Kind of this build, for reports: `release`; `quick`, which is hardly optimised and is built for first steps (the
/// variable `WEIR_QUICK` is set while it is built); or `debug`.
pub const BUILD_KIND: &str = match (cfg!(debug_assertions), option_env!("WEIR_QUICK")) {
    (true, _) => "debug",
    (false, Some(_)) => "quick",
    (false, None) => "release",
};
/// True if this is a release build, whose speed is weir's.
pub const IS_RELEASE_BUILD: bool = !cfg!(debug_assertions) && option_env!("WEIR_QUICK").is_none();

/// Error of a quantity such as `10Mbit/s` that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseQuantityError {
    /// Text that was found.
    pub found: String,
    /// Description of valid texts, with an example.
    pub expected: &'static str,
}

impl std::fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "found `{}`, expected {}", self.found, self.expected)
    }
}

impl std::error::Error for ParseQuantityError {}

/// Splits `12.5 Mbit/s` into the number and the unit.
pub(crate) fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

/// Implements serde for a quantity type with its text form: read through `FromStr`, written by the function `$written`.
/// `$expected` describes valid texts, for errors about values that are no text, such as a number without its unit.
macro_rules! serde_as_text {
    ($type:ty, $expected:expr, $written:expr) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct TextVisitor;

                impl serde::de::Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                from.deserialize_str(TextVisitor)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
                into.collect_str(&$written(*self))
            }
        }
    };
}
pub(crate) use serde_as_text;
