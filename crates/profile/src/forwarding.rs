//! Describes the delay of packets in a table by the kind of match.
use serde::Serialize;
use weir_model::ModelError;
use weir_model::switch::forward::{At, Forwarded, Forwarding, Measured, Slopes};

/// Addresses that an entry matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// Ethernet addresses only.
    L2,
    /// IP addresses only.
    L3,
    /// Ethernet and IP addresses.
    L2L3,
}

impl MatchKind {
    /// All kinds, in the order of [`LevelForwarding::base_s`].
    pub const ALL: [MatchKind; 3] = [MatchKind::L2, MatchKind::L3, MatchKind::L2L3];

    /// Returns the kind of an entry that matches these addresses. An entry that matches neither counts as `L2`.
    pub fn of(ethernet: bool, ip: bool) -> MatchKind {
        match (ethernet, ip) {
            (true, true) => MatchKind::L2L3,
            (false, true) => MatchKind::L3,
            (_, false) => MatchKind::L2,
        }
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::L2 => "l2",
            MatchKind::L3 => "l3",
            MatchKind::L2L3 => "l2l3",
        }
    }
}

/// Forwarding law of one table: equation 5.1 of Cheng (2015).
#[derive(Debug, Clone, PartialEq)]
pub struct LevelForwarding {
    /// Delay at the base by kind, in seconds, in the order of [`MatchKind::ALL`].
    pub base_s: [Option<f64>; 3],
    /// Slopes from the base.
    pub slopes: Slopes,
    /// Times between packets at which the next level of delay begins, in seconds, rising.
    pub gap_levels_s: Vec<f64>,
    /// Range of the measurements behind the law.
    pub measured: Measured,
}

impl LevelForwarding {
    /// Returns the law for entries of a kind. A kind that was not measured gets the law of the next kind that matches
    /// more, or less if there is none.
    pub fn of(&self, kind: MatchKind) -> Forwarding {
        let order = match kind {
            MatchKind::L2 => [0, 2, 1],
            MatchKind::L3 => [1, 2, 0],
            MatchKind::L2L3 => [2, 1, 0],
        };
        let base_s = order.into_iter().find_map(|at| self.base_s[at]).unwrap_or(0.0);
        Forwarding { base_s, slopes: self.slopes, thresholds_s: self.gap_levels_s.clone(), measured: self.measured }
    }

    /// Returns a packet's delay on an idle switch.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn forward(&self, kind: MatchKind, at: At) -> Result<Forwarded, ModelError> {
        self.of(kind).forward(at)
    }
}
