//! Describes the delay of packets in a table by the kind of match.
use serde::Serialize;
use weir_model::ModelError;
use weir_model::switch::forward::{DelaySlopes, ForwardingDelay, ForwardingLaw, MeasuredRange, PacketConditions};

/// Addresses that an entry matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchLayers {
    /// Ethernet addresses only.
    L2,
    /// IP addresses only.
    L3,
    /// Ethernet and IP addresses.
    L2L3,
}

impl MatchLayers {
    /// All kinds, in the order of [`LevelForwarding::base_s`].
    pub const ALL: [MatchLayers; 3] = [MatchLayers::L2, MatchLayers::L3, MatchLayers::L2L3];

    /// Returns the kind of an entry that matches these addresses. An entry that matches neither counts as `L2`.
    pub fn of(ethernet: bool, ip: bool) -> MatchLayers {
        match (ethernet, ip) {
            (true, true) => MatchLayers::L2L3,
            (false, true) => MatchLayers::L3,
            (_, false) => MatchLayers::L2,
        }
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            MatchLayers::L2 => "l2",
            MatchLayers::L3 => "l3",
            MatchLayers::L2L3 => "l2l3",
        }
    }
}

/// Forwarding law of one table: equation 5.1 of Cheng (2015).
#[derive(Debug, Clone, PartialEq)]
pub struct LevelForwarding {
    /// Delay at the base by kind, in seconds, in the order of [`MatchLayers::ALL`].
    pub base_s: [Option<f64>; 3],
    /// Slopes from the base.
    pub slopes: DelaySlopes,
    /// Times between packets at which the next level of delay begins, in seconds, rising.
    pub gap_levels_s: Vec<f64>,
    /// Range of the measurements behind the law.
    pub measured: MeasuredRange,
}

impl LevelForwarding {
    /// Returns the law for entries of a kind. A kind that was not measured gets the law of the next kind that matches
    /// more, or less if there is none.
    pub fn of(&self, kind: MatchLayers) -> ForwardingLaw {
        let order = match kind {
            MatchLayers::L2 => [0, 2, 1],
            MatchLayers::L3 => [1, 2, 0],
            MatchLayers::L2L3 => [2, 1, 0],
        };
        let base_s = order.into_iter().find_map(|at| self.base_s[at]).unwrap_or(0.0);
        ForwardingLaw { base_s, slopes: self.slopes, thresholds_s: self.gap_levels_s.clone(), measured: self.measured }
    }

    /// Returns a packet's delay on an idle switch.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn forward(&self, kind: MatchLayers, at: PacketConditions) -> Result<ForwardingDelay, ModelError> {
        self.of(kind).forward(at)
    }
}
