//! Defines the configuration of the switch and of its tables.
use super::TableId;
use super::property::RawProperty;
use serde::Serialize;

/// Configuration of a switch, `ofp_switch_config` (OpenFlow 1.3.5, 7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SwitchConfig {
    /// Handling of IP fragments, `OFPC_FRAG_*`: 0 as any packet, 1 dropped, 2 reassembled. Kept as received.
    pub flags: u16,
    /// Number of bytes of a packet to send to the controller at a table miss; 0xffff for all.
    pub miss_send_len: u16,
}

/// `OFPTC_*` bits of a table's configuration (OpenFlow 1.4.1, 7.3.4.1). 1.3 has only the two lowest, which are
/// deprecated.
pub mod table_config {
    /// The lowest two bits: handling of table misses in 1.1 and 1.2.
    pub const DEPRECATED: u32 = 3;
    /// A full table evicts flow entries to make room.
    pub const EVICTION: u32 = 1 << 2;
    /// The switch notifies the controller when free space in the table falls below or rises above the thresholds.
    pub const VACANCY_EVENTS: u32 = 1 << 3;
}

/// `OFPTMPEF_*` bits: criteria of eviction (OpenFlow 1.4.1, 7.3.4.1).
pub mod eviction {
    /// A criterion without a bit of its own.
    pub const OTHER: u32 = 1 << 0;
    /// Importance of the flow entry: the lowest is evicted first.
    pub const IMPORTANCE: u32 = 1 << 1;
    /// Remaining lifetime of the flow entry: the shortest is evicted first.
    pub const LIFETIME: u32 = 1 << 2;
}

/// Table configuration: `ofp_table_mod` (OpenFlow 1.3.5, 7.3.3; OpenFlow 1.4.1, 7.3.4.1). Also used for
/// `ofp_table_desc`, which has the same content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableMod {
    /// Table to configure, or all tables.
    pub table: TableId,
    /// Configuration, [`table_config`] bits.
    pub config: u32,
    /// 1.4: eviction criteria, [`eviction`] bits; `None` if the message has no such property.
    pub eviction: Option<u32>,
    /// 1.4: thresholds of vacancy events; `None` if the message has no such property.
    pub vacancy: Option<VacancyThresholds>,
    /// Other properties, in the order received.
    pub properties: Vec<RawProperty>,
}

impl TableMod {
    /// Returns a table's configuration without properties.
    pub const fn new(table: TableId, config: u32) -> TableMod {
        TableMod { table, config, eviction: None, vacancy: None, properties: Vec::new() }
    }
}

/// Thresholds of vacancy events, `ofp_table_mod_prop_vacancy`, in percent of the table's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VacancyThresholds {
    /// Free space below which the switch sends a vacancy-down event.
    pub down: u8,
    /// Free space above which the switch sends a vacancy-up event, if it sent vacancy-down before.
    pub up: u8,
    /// Current free space; only in table descriptions.
    pub now: u8,
}
