//! Streams and the settings of their simulation, as written.
use serde::Deserialize;
use toml::Spanned;
use weir_units::{Bps, ByteSize, TimeSpan};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamToml {
    pub(crate) name: Option<String>,
    pub(crate) switch: Spanned<String>,
    pub(crate) r#virtual: Option<Spanned<String>>,
    pub(crate) inputs: Spanned<String>,
    pub(crate) output: Spanned<u32>,
    pub(crate) arrival: Option<Spanned<ArrivalToml>>,
    pub(crate) sizes: Option<Spanned<SizeToml>>,
    pub(crate) rate: Option<Spanned<Bps>>,
    pub(crate) load: Option<Spanned<f64>>,
    pub(crate) class: Option<u8>,
    pub(crate) start: Option<Spanned<TimeSpan>>,
    pub(crate) duration: Option<Spanned<TimeSpan>>,
}

/// Law of arrivals, by name or with parameters.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "found another kind of value, expected `constant`, `poisson`, or a table with `kind`, for example { kind = \"mmpp\", high = 3.0, low = 0.5, time = \"500us\" }"
)]
pub(crate) enum ArrivalToml {
    Named(String),
    /// Read by hand as an [`ArrivalLawToml`], because an untagged form would hide which parameter is wrong.
    Law(toml::Table),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ArrivalLawToml {
    Mmpp { high: f64, low: f64, time: TimeSpan },
    MmppGeneral { rates: Vec<f64>, transitions: Vec<Vec<f64>> },
    ParetoOnOff { on: TimeSpan, off: TimeSpan, shape: f64 },
    Trace { file: String },
    Capture(CaptureToml),
}

/// Frames of a capture that are replayed by their times and lengths.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaptureToml {
    pub(crate) file: String,
    pub(crate) speed: Option<f64>,
    pub(crate) repeat: Option<i64>,
    #[serde(default)]
    pub(crate) clamp: bool,
    pub(crate) ip_src: Option<String>,
    pub(crate) ip_dst: Option<String>,
}

/// Law of sizes, by name, as a size, or with parameters.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "found another kind of value, expected a size such as `1500B`, `bimodal`, `imix`, or a table with `kind`, for example { kind = \"bimodal\", short = 0.3 }"
)]
pub(crate) enum SizeToml {
    Named(String),
    /// Read by hand as a [`SizeLawToml`].
    Law(toml::Table),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum SizeLawToml {
    Bimodal { short: Option<f64>, short_bytes: Option<[u32; 2]>, long_bytes: Option<[u32; 2]> },
    Exponential { mean: ByteSize },
    Empirical { file: String },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulateToml {
    pub(crate) warm_up: Option<Spanned<TimeSpan>>,
    pub(crate) duration: Option<Spanned<TimeSpan>>,
    pub(crate) replications: Option<Spanned<u32>>,
    pub(crate) until: Option<Spanned<f64>>,
}
