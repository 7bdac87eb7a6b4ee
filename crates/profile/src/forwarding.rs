//! How long packets take through a table, by what its entries match.
use serde::Serialize;
use weir_model::ModelError;
use weir_model::switch::forward::{At, Forwarded, Forwarding, Measured, Slopes};

/// What an entry looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// Ethernet addresses, not those of IP.
    L2,
    /// IP addresses, not those of Ethernet.
    L3,
    /// Both.
    L2L3,
}

impl MatchKind {
    /// All of them.
    pub const ALL: [MatchKind; 3] = [MatchKind::L2, MatchKind::L3, MatchKind::L2L3];

    /// The kind of an entry that looks at these. One that looks at neither counts as the first.
    pub fn of(ethernet: bool, ip: bool) -> MatchKind {
        match (ethernet, ip) {
            (true, true) => MatchKind::L2L3,
            (false, true) => MatchKind::L3,
            (_, false) => MatchKind::L2,
        }
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::L2 => "l2",
            MatchKind::L3 => "l3",
            MatchKind::L2L3 => "l2l3",
        }
    }
}

/// How packets take their way through one table: equation 5.1 of Cheng (2015).
#[derive(Debug, Clone, PartialEq)]
pub struct LevelForwarding {
    /// Delay at the base by kind, in seconds, in the order of [`MatchKind::ALL`].
    pub base_s: [Option<f64>; 3],
    /// From there.
    pub slopes: Slopes,
    /// Times between packets from which on the next level of delay begins, in seconds, rising.
    pub gap_levels_s: Vec<f64>,
    /// What this comes from.
    pub measured: Measured,
}

impl LevelForwarding {
    /// The law for entries of a kind; for one that was not measured, that of the next one that looks at more, or at less if there is none.
    pub fn of(&self, kind: MatchKind) -> Forwarding {
        let order = match kind {
            MatchKind::L2 => [0, 2, 1],
            MatchKind::L3 => [1, 2, 0],
            MatchKind::L2L3 => [2, 1, 0],
        };
        let base_s = order.into_iter().find_map(|at| self.base_s[at]).unwrap_or(0.0);
        Forwarding { base_s, slopes: self.slopes, thresholds_s: self.gap_levels_s.clone(), measured: self.measured }
    }

    /// A packet's delay on an idle switch.
    ///
    /// # Errors
    /// Numbers that are none.
    pub fn forward(&self, kind: MatchKind, at: At) -> Result<Forwarded, ModelError> {
        self.of(kind).forward(at)
    }
}
