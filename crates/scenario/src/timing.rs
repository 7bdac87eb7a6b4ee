//! Service times of devices, for formulas and simulations of queueing stations.
use std::time::Duration;
use weir_profile::ServiceTime;

/// Switches at which a packet that begins a flow asks the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallScope {
    /// Every switch on the path.
    #[default]
    Hop,
    /// Only the first switch: the controller installs entries on the whole path.
    Path,
}

/// Service time and delay of the controller.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ControllerTiming {
    /// Service time of a packet-in; `None` for no time.
    pub service: Option<ServiceTime>,
    /// Most packet-ins held, including the one in service; `None` for no limit.
    pub buffer: Option<u32>,
    /// Delay of a message between switch and controller, each way.
    pub delay: Duration,
    /// Switches at which a packet that begins a flow asks.
    pub install: InstallScope,
}
