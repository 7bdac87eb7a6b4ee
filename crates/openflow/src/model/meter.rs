//! Meters.
use super::Bytes;
use serde::Serialize;
use std::fmt;

/// A meter's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MeterId(pub u32);

impl MeterId {
    /// The highest number a meter can have.
    pub const MAX: MeterId = MeterId(0xffff_0000);
    /// Meters packets that leave the fast path.
    pub const SLOWPATH: MeterId = MeterId(0xffff_fffd);
    /// Meters packets to the controller.
    pub const CONTROLLER: MeterId = MeterId(0xffff_fffe);
    /// Every meter, in deletes and requests.
    pub const ALL: MeterId = MeterId(0xffff_ffff);
}

impl fmt::Display for MeterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MeterId::ALL => f.write_str("all"),
            MeterId::CONTROLLER => f.write_str("controller"),
            MeterId::SLOWPATH => f.write_str("slowpath"),
            MeterId(number) => number.fmt(f),
        }
    }
}

/// `OFPMC_*` (OpenFlow 1.3.5, 7.3.4.4).
#[allow(missing_docs, reason = "named by the specification")]
pub mod command {
    pub const ADD: u16 = 0;
    pub const MODIFY: u16 = 1;
    pub const DELETE: u16 = 2;
}

/// `OFPMF_*` (OpenFlow 1.3.5, 7.3.4.4).
#[allow(missing_docs, reason = "named by the specification")]
pub mod flags {
    pub const KBPS: u16 = 1 << 0;
    pub const PKTPS: u16 = 1 << 1;
    pub const BURST: u16 = 1 << 2;
    pub const STATS: u16 = 1 << 3;
    /// All there are.
    pub const ALL: u16 = KBPS | PKTPS | BURST | STATS;
}

/// `ofp_meter_mod` (OpenFlow 1.3.5, 7.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MeterMod {
    /// `OFPMC_*`: 0 add, 1 modify, 2 delete; other numbers are kept so that the switch can refuse them by name.
    pub command: u16,
    /// `OFPMF_*`.
    pub flags: u16,
    /// Which meter.
    pub meter: MeterId,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// `ofp_meter_band_*` (OpenFlow 1.3.5, 7.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Band {
    /// Rate above which the band acts, in kbit/s or packets/s by the meter's flags.
    pub rate: u32,
    /// Burst, in kbit or packets.
    pub burst_size: u32,
    /// What it does.
    pub kind: BandKind,
}

/// What a band does to packets above its rate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum BandKind {
    /// Drops them.
    Drop,
    /// Raises the drop precedence in the DSCP field.
    DscpRemark {
        /// Steps to raise it by.
        prec_level: u8,
    },
    /// Not looked into; all behind the experimenter's number.
    Experimenter {
        /// Whose it is.
        id: u32,
        /// What follows.
        data: Bytes,
    },
    /// A band type weir does not know.
    Unknown {
        /// Its number.
        kind: u16,
        /// All behind the burst size.
        data: Bytes,
    },
}

/// `ofp_meter_stats` (OpenFlow 1.3.5, 7.3.5.12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct MeterStats {
    pub meter: MeterId,
    /// 1.5: references of any kind.
    pub flow_count: u32,
    pub packet_in_count: u64,
    pub byte_in_count: u64,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    /// Packets and bytes of each band.
    pub bands: Vec<(u64, u64)>,
}

/// `ofp_meter_config` (OpenFlow 1.3.5, 7.3.5.13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the meter-mod")]
pub struct MeterConfig {
    pub flags: u16,
    pub meter: MeterId,
    pub bands: Vec<Band>,
}

/// `ofp_meter_features` (OpenFlow 1.3.5, 7.3.5.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct MeterFeatures {
    pub max_meter: u32,
    pub band_types: u32,
    pub capabilities: u32,
    pub max_bands: u8,
    pub max_color: u8,
    /// 1.5: `OFPMFF_*`, 1 for the meter action, 2 for several meter actions on a packet.
    pub features: u32,
}
