//! Defines the messages about queues of ports.
use super::property::RawProperty;
use super::{Bytes, PortNo};
use serde::Serialize;

/// All queues, in requests (`OFPQ_ALL`).
pub const ALL_QUEUES: u32 = 0xffff_ffff;

/// Reply with a port's queues, `ofp_queue_get_config_reply` (OpenFlow 1.3.5, 7.3.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueConfigReply {
    /// Port that was asked for.
    pub port: PortNo,
    /// Queues of the port.
    pub queues: Vec<QueueConfig>,
}

/// Configuration of a queue, `ofp_packet_queue` (OpenFlow 1.3.5, 7.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueConfig {
    /// Number of the queue.
    pub queue: u32,
    /// Port of the queue; `ANY` in 1.0, which does not carry it.
    pub port: PortNo,
    /// Properties that are configured.
    pub properties: Vec<QueueProperty>,
}

/// Property of a queue, `ofp_queue_prop_*` (OpenFlow 1.3.5, 7.2.2). Rates are in tenths of a percent of the port's
/// rate; values above 1000 mean disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum QueueProperty {
    MinRate(u16),
    MaxRate(u16),
    /// A property that weir does not interpret. `data` is everything after the experimenter number and, before 1.4,
    /// its padding.
    Experimenter {
        id: u32,
        data: Bytes,
    },
    Unknown {
        kind: u16,
        data: Bytes,
    },
}

/// Statistics of a queue, `ofp_queue_stats` (OpenFlow 1.3.5, 7.3.5.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct QueueStats {
    pub port: PortNo,
    pub queue: u32,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    /// 0 in 1.0, which does not carry the duration.
    pub duration_sec: u32,
    /// 0 in 1.0, which does not carry the duration.
    pub duration_nsec: u32,
    /// 1.4: properties, in the order received.
    pub properties: Vec<RawProperty>,
}
