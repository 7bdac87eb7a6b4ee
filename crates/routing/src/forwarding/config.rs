//! Settings of forwarding.
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time at which switches get the entries for a pair of hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardingMode {
    /// Entries at all switches as soon as a host is known: one for each host and switch.
    #[default]
    Proactive,
    /// Entries at all switches of the way with the first packet of a pair of hosts.
    ReactivePath,
    /// Entries at each switch with the first packet of a pair of hosts there, so that each switch asks.
    ReactiveHop,
}

/// Settings of forwarding. `..ForwardingConfig::default()` fills in defaults.
#[derive(Debug, Clone)]
pub struct ForwardingConfig {
    /// Time at which switches get entries. Default: proactive.
    pub mode: ForwardingMode,
    /// True if flows to one host are spread over all shortest ways, by select groups; only in proactive mode. Default:
    /// false.
    pub ecmp: bool,
    /// True if the controller answers ARP requests for hosts that it knows; otherwise it passes them to that host only.
    /// Default: true.
    pub answer_arp: bool,
    /// Time without a packet after which reactive entries are removed, in whole seconds. Default: 60 s.
    pub idle_timeout: Duration,
    /// Most pairs of hosts with reactive entries; packets of further ones go through the controller. Default: 65,536.
    pub max_pairs: usize,
    /// Most packets a second that are sent to all hosts because their destination is unknown; further ones are dropped.
    /// Default: 1,000.
    pub max_floods_per_s: u32,
}

impl Default for ForwardingConfig {
    fn default() -> Self {
        ForwardingConfig {
            mode: ForwardingMode::default(),
            ecmp: false,
            answer_arp: true,
            idle_timeout: Duration::from_secs(60),
            max_pairs: 65_536,
            max_floods_per_s: 1_000,
        }
    }
}
