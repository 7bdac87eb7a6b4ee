//! How long devices take: what formulas and simulations of queueing stations need to know.
use std::time::Duration;
use weir_profile::ServiceTime;

/// At which switches a packet that begins a flow asks the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Install {
    /// At each on its way.
    #[default]
    Hop,
    /// At the first: the controller installs the whole path.
    Path,
}

/// How long the controller takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ControllerTiming {
    /// Service of a packet-in; none: no time.
    pub service: Option<ServiceTime>,
    /// Packet-ins that it holds at most, with the one in service; none: without limit.
    pub buffer: Option<u32>,
    /// Time that a message is under way between switch and controller.
    pub delay: Duration,
    /// At which switches a packet that begins a flow asks.
    pub install: Install,
}
