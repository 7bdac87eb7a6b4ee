//! Defines meter messages: meter-mod, meter statistics, configuration and features.
use super::Bytes;
use super::numbered::numbered_enum;
use serde::Serialize;
use std::fmt;

/// Number of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MeterId(pub u32);

impl MeterId {
    /// Highest number of a meter.
    pub const MAX: MeterId = MeterId(0xffff_0000);
    /// Virtual meter for packets that leave the fast path.
    pub const SLOWPATH: MeterId = MeterId(0xffff_fffd);
    /// Virtual meter for packets sent to the controller.
    pub const CONTROLLER: MeterId = MeterId(0xffff_fffe);
    /// All meters, in deletes and requests.
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

numbered_enum! {
    /// Command of a meter-mod, `OFPMC_*` (OpenFlow 1.3.5, 7.3.4.4).
    #[derive(Serialize)]
    #[serde(into = "u16")]
    pub enum MeterCommand: u16 {
        /// `OFPMC_ADD`: adds a meter.
        Add = 0,
        /// `OFPMC_MODIFY`: replaces the flags and the bands of a meter.
        Modify = 1,
        /// `OFPMC_DELETE`: deletes a meter or all meters.
        Delete = 2,
    }
}

/// Meter flags, `OFPMF_*` (OpenFlow 1.3.5, 7.3.4.4).
#[allow(missing_docs, reason = "named by the specification")]
pub mod flags {
    pub const KBPS: u16 = 1 << 0;
    pub const PKTPS: u16 = 1 << 1;
    pub const BURST: u16 = 1 << 2;
    pub const STATS: u16 = 1 << 3;
    /// All defined flags.
    pub const ALL: u16 = KBPS | PKTPS | BURST | STATS;
}

/// Meter-mod, `ofp_meter_mod` (OpenFlow 1.3.5, 7.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MeterMod {
    /// Change to make.
    pub command: MeterCommand,
    /// Flags, a set of `OFPMF_*`.
    pub flags: u16,
    /// Number of the meter.
    pub meter: MeterId,
    /// Bands of the meter.
    pub bands: Vec<Band>,
}

/// Band of a meter, `ofp_meter_band_*` (OpenFlow 1.3.5, 7.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Band {
    /// Rate above which the band applies, in kbit/s or packets/s according to the meter's flags.
    pub rate: u32,
    /// Burst size, in kbit or packets according to the meter's flags.
    pub burst_size: u32,
    /// Treatment of packets above the rate.
    pub kind: BandKind,
}

/// Treatment of packets above a band's rate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum BandKind {
    /// Drops the packets.
    Drop,
    /// Increases the drop precedence in the DSCP field.
    DscpRemark {
        /// Number of drop precedence levels to add.
        prec_level: u8,
    },
    /// An experimenter's band that weir does not interpret.
    Experimenter {
        /// Number of the experimenter.
        id: u32,
        /// Bytes after the experimenter number.
        data: Bytes,
    },
    /// A band type that weir does not know.
    Unknown {
        /// Band type number.
        kind: u16,
        /// Bytes after the burst size.
        data: Bytes,
    },
}

/// Statistics of a meter, `ofp_meter_stats` (OpenFlow 1.3.5, 7.3.5.12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct MeterStats {
    pub meter: MeterId,
    /// Number of flow entries that refer to the meter; in 1.5, number of references of any kind.
    pub flow_count: u32,
    pub packet_in_count: u64,
    pub byte_in_count: u64,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    /// Packets and bytes, for each band.
    pub bands: Vec<(u64, u64)>,
}

/// Configuration of a meter, `ofp_meter_config` (OpenFlow 1.3.5, 7.3.5.13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the meter-mod")]
pub struct MeterConfig {
    pub flags: u16,
    pub meter: MeterId,
    pub bands: Vec<Band>,
}

/// Meter features of a switch, `ofp_meter_features` (OpenFlow 1.3.5, 7.3.5.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct MeterFeatures {
    pub max_meter: u32,
    pub band_types: u32,
    pub capabilities: u32,
    pub max_bands: u8,
    pub max_color: u8,
    /// 1.5: `OFPMFF_*` bits: 1 for the meter action, 2 for several meter actions on a packet.
    pub features: u32,
}
