//! Queues of ports.
use super::property::Property;
use super::{Bytes, PortNo};
use serde::Serialize;

/// Every queue, in requests (`OFPQ_ALL`).
pub const ALL_QUEUES: u32 = 0xffff_ffff;

/// `ofp_queue_get_config_reply` (OpenFlow 1.3.5, 7.3.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueConfigReply {
    /// The port asked for.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<QueueConfig>,
}

/// `ofp_packet_queue` (OpenFlow 1.3.5, 7.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueConfig {
    /// The queue's number.
    pub queue: u32,
    /// Its port; `ANY` in 1.0, which does not carry it.
    pub port: PortNo,
    /// What is configured.
    pub properties: Vec<QueueProperty>,
}

/// `ofp_queue_prop_*` (OpenFlow 1.3.5, 7.2.2). Rates are in tenths of a percent of the port's; above 1000 disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum QueueProperty {
    MinRate(u16),
    MaxRate(u16),
    /// Not looked into; `data` is all behind the experimenter's number and, before 1.4, padding.
    Experimenter {
        id: u32,
        data: Bytes,
    },
    Unknown {
        kind: u16,
        data: Bytes,
    },
}

/// `ofp_queue_stats` (OpenFlow 1.3.5, 7.3.5.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct QueueStats {
    pub port: PortNo,
    pub queue: u32,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    /// 0 in 1.0, which does not carry it.
    pub duration_sec: u32,
    /// 0 in 1.0, which does not carry it.
    pub duration_nsec: u32,
    /// 1.4: the properties, in the order they came.
    pub properties: Vec<Property>,
}
