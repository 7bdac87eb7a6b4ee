//! Statistics of flow entries as 1.5 carries them: each that is kept, by its number (OpenFlow 1.5.1, 7.2.4).
use super::Bytes;
use serde::Serialize;

/// Some statistics of a flow entry, or thresholds for them. `None` for what is not told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
pub struct Stats {
    /// Seconds and nanoseconds since the entry was added.
    pub duration: Option<(u32, u32)>,
    /// Seconds and nanoseconds since the last packet.
    pub idle_time: Option<(u32, u32)>,
    /// Entries summed up.
    pub flow_count: Option<u32>,
    /// Packets.
    pub packet_count: Option<u64>,
    /// Bytes.
    pub byte_count: Option<u64>,
    /// Those weir does not know, as they came.
    pub others: Vec<RawStat>,
}

/// An OXS entry that is not looked into.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RawStat {
    /// `oxs_class`.
    pub class: u16,
    /// `oxs_field` and the reserved bit behind it, as they came.
    pub number: u8,
    /// What follows the header.
    pub payload: Bytes,
}

/// What 1.5 tells of an entry beside the duration and the counters that every version has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
pub struct MoreStats {
    /// Seconds and nanoseconds since the last packet.
    pub idle_time: Option<(u32, u32)>,
    /// Entries summed up.
    pub flow_count: Option<u32>,
    /// Those weir does not know, as they came.
    pub others: Vec<RawStat>,
}
