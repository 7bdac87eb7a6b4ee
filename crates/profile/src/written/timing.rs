//! Defines the written form of a switch's timing.
use serde::Deserialize;
use toml::Spanned;
use weir_units::{Seconds, TimeSpan};

/// Time, or law with its parameters. The table is read by hand, because an untagged form would hide which parameter
/// is wrong.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "found another kind of value, expected a time such as `9us`, or a table with `law`, for example { law = \"exponential\", mean = \"7.5ms\" }"
)]
pub enum LawToml {
    /// Constant time, with its unit.
    Time(String),
    /// Law by name, with its parameters.
    Table(toml::Table),
}

/// Timing of a switch: `[switch.timing]` of scenarios, `[timing]` of profiles.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingToml {
    pub(crate) data: Option<Spanned<LawToml>>,
    pub(crate) data_buffer: Option<Spanned<u32>>,
    pub(crate) packet_in: Option<Spanned<LawToml>>,
    pub(crate) packet_out: Option<Spanned<LawToml>>,
    pub(crate) agents: Option<Spanned<AgentsToml>>,
    pub(crate) buffer: Option<Spanned<u32>>,
    pub(crate) control: Option<Spanned<ControlPathToml>>,
    pub(crate) returns: Option<Spanned<ReturnsToml>>,
    pub(crate) write: Option<Spanned<TimeSpan>>,
    pub(crate) tick: Option<Spanned<TimeSpan>>,
    pub(crate) tick_max: Option<Spanned<u32>>,
    pub(crate) batch: Option<Spanned<BatchGateToml>>,
    pub(crate) slow: Option<Spanned<TimeSpan>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentsToml {
    Separate,
    Shared,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ControlPathToml {
    pub(crate) delay: Spanned<Seconds>,
    pub(crate) capacity: Spanned<f64>,
    pub(crate) scv: Option<Spanned<f64>>,
    pub(crate) buffer: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "found another kind of value, expected `direct`, `fifo`, `priority`, or a table such as { order = \"priority\", service = \"5us\", buffer = 10 }"
)]
pub(crate) enum ReturnsToml {
    Order(ReturnOrder),
    Table(ReturnsTableToml),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnsTableToml {
    pub(crate) order: ReturnOrder,
    pub(crate) service: Option<LawToml>,
    pub(crate) buffer: Option<u32>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReturnOrder {
    Direct,
    Fifo,
    Priority,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchGateToml {
    pub(crate) packets: Spanned<u32>,
    pub(crate) timeout: Spanned<TimeSpan>,
    pub(crate) stages: Option<Spanned<u8>>,
}
