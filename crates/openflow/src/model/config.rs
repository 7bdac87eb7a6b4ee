//! Switch and table configuration.
use super::TableId;
use serde::Serialize;

/// `ofp_switch_config` (OpenFlow 1.3.5, 7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SwitchConfig {
    /// How IP fragments are handled, `OFPC_FRAG_*`: 0 as any packet, 1 dropped, 2 reassembled; the field as it came.
    pub flags: u16,
    /// Bytes of a packet that go to the controller when a table miss sends it there; 0xffff for all.
    pub miss_send_len: u16,
}

/// `ofp_table_mod` (OpenFlow 1.3.5, 7.3.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TableMod {
    /// Which table, or all.
    pub table: TableId,
    /// `OFPTC_*`; deprecated bits in 1.3.
    pub config: u32,
}
