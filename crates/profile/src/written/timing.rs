//! Defines the written form of a switch's timing.
use serde::Deserialize;
use toml::Spanned;
use weir_units::{Seconds, Span};

/// Time, or law with its parameters. The table is read by hand, because an untagged form would hide which parameter
/// is wrong.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a time such as `9us`, or a table with `law`, for example { law = \"exponential\", mean = \"7.5ms\" }"
)]
pub enum Law {
    /// Constant time, with its unit.
    Time(String),
    /// Law by name, with its parameters.
    Table(toml::Table),
}

/// Timing of a switch: `[switch.timing]` of scenarios, `[timing]` of profiles.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    pub(crate) data: Option<Spanned<Law>>,
    pub(crate) data_buffer: Option<Spanned<u32>>,
    pub(crate) packet_in: Option<Spanned<Law>>,
    pub(crate) packet_out: Option<Spanned<Law>>,
    pub(crate) agents: Option<Spanned<Agents>>,
    pub(crate) buffer: Option<Spanned<u32>>,
    pub(crate) control: Option<Spanned<Control>>,
    pub(crate) returns: Option<Spanned<Returns>>,
    pub(crate) write: Option<Spanned<Span>>,
    pub(crate) tick: Option<Spanned<Span>>,
    pub(crate) tick_max: Option<Spanned<u32>>,
    pub(crate) batch: Option<Spanned<Batch>>,
    pub(crate) slow: Option<Spanned<Span>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Agents {
    Separate,
    Shared,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Control {
    pub(crate) delay: Spanned<Seconds>,
    pub(crate) capacity: Spanned<f64>,
    pub(crate) scv: Option<Spanned<f64>>,
    pub(crate) buffer: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`direct`, `fifo`, `priority`, or a table such as { order = \"priority\", service = \"5us\", buffer = 10 }"
)]
pub(crate) enum Returns {
    Order(Order),
    Table(ReturnsTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnsTable {
    pub(crate) order: Order,
    pub(crate) service: Option<Law>,
    pub(crate) buffer: Option<u32>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    Direct,
    Fifo,
    Priority,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    pub(crate) packets: Spanned<u32>,
    pub(crate) timeout: Spanned<Span>,
    pub(crate) stages: Option<Spanned<u8>>,
}
