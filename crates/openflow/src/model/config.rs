//! Switch and table configuration.
use super::TableId;
use super::property::Property;
use serde::Serialize;

/// `ofp_switch_config` (OpenFlow 1.3.5, 7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SwitchConfig {
    /// How IP fragments are handled, `OFPC_FRAG_*`: 0 as any packet, 1 dropped, 2 reassembled; the field as it came.
    pub flags: u16,
    /// Bytes of a packet that go to the controller when a table miss sends it there; 0xffff for all.
    pub miss_send_len: u16,
}

/// `OFPTC_*` bits (OpenFlow 1.4.1, 7.3.4.1); the two lowest are deprecated, and all that 1.3 has.
pub mod table_config {
    /// The lowest bits: what 1.1 and 1.2 did with missed packets.
    pub const DEPRECATED: u32 = 3;
    /// A full table removes entries to make room.
    pub const EVICTION: u32 = 1 << 2;
    /// The controller is told when the table becomes full, and when it has room again.
    pub const VACANCY_EVENTS: u32 = 1 << 3;
}

/// `OFPTMPEF_*` bits: what eviction goes by (OpenFlow 1.4.1, 7.3.4.1).
pub mod eviction {
    /// Something else.
    pub const OTHER: u32 = 1 << 0;
    /// The entries' importance: the lowest goes first.
    pub const IMPORTANCE: u32 = 1 << 1;
    /// The entries' remaining life: the shortest goes first.
    pub const LIFETIME: u32 = 1 << 2;
}

/// `ofp_table_mod` (OpenFlow 1.3.5, 7.3.4.1; OpenFlow 1.4.1, 7.3.4.1), and `ofp_table_desc`, which tells the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableMod {
    /// Which table, or all.
    pub table: TableId,
    /// [`table_config`] bits.
    pub config: u32,
    /// 1.4: [`eviction`] bits, if told.
    pub eviction: Option<u32>,
    /// 1.4: when the controller is told of vacancy, if told.
    pub vacancy: Option<Vacancy>,
    /// The other properties, in the order they came.
    pub properties: Vec<Property>,
}

impl TableMod {
    /// A table's configuration without properties.
    pub const fn new(table: TableId, config: u32) -> TableMod {
        TableMod { table, config, eviction: None, vacancy: None, properties: Vec::new() }
    }
}

/// `ofp_table_mod_prop_vacancy`, in percent of the table's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Vacancy {
    /// Less room than this is told.
    pub down: u8,
    /// More room than this is told, once less was.
    pub up: u8,
    /// The room now; in descriptions only.
    pub now: u8,
}
