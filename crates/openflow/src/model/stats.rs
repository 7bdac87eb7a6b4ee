//! Defines statistics of flow entries in the form of 1.5: a list of the statistics that are kept (OpenFlow 1.5.1,
//! 7.2.4).
use super::Bytes;
use serde::Serialize;

/// Some statistics of a flow entry, or thresholds for them. `None` for a statistic that is absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
pub struct OxsStats {
    /// Seconds and nanoseconds since the entry was added.
    pub duration: Option<(u32, u32)>,
    /// Seconds and nanoseconds since the last packet.
    pub idle_time: Option<(u32, u32)>,
    /// Number of flow entries summed up.
    pub flow_count: Option<u32>,
    /// Number of packets.
    pub packet_count: Option<u64>,
    /// Number of bytes.
    pub byte_count: Option<u64>,
    /// Statistics that weir does not know, as received.
    pub others: Vec<RawStat>,
}

/// An OXS entry that weir does not interpret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RawStat {
    /// Class number, `oxs_class`.
    pub class: u16,
    /// `oxs_field` and the reserved bit after it, as received.
    pub number: u8,
    /// Bytes after the header.
    pub payload: Bytes,
}

/// Statistics that only 1.5 carries, in addition to the duration and counters of every version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Default)]
pub struct OxsExtraStats {
    /// Seconds and nanoseconds since the last packet.
    pub idle_time: Option<(u32, u32)>,
    /// Number of flow entries summed up.
    pub flow_count: Option<u32>,
    /// Statistics that weir does not know, as received.
    pub others: Vec<RawStat>,
}
