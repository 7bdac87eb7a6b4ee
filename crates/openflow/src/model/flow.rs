//! Flow entries: flow-mod and flow-removed.
use super::stats::MoreStats;
use super::{BufferId, GroupId, Instruction, Match, PortNo};
use serde::Serialize;
use std::fmt;

/// A table's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TableId(pub u8);

impl TableId {
    /// The highest number a table can have.
    pub const MAX: TableId = TableId(254);
    /// Every table, in requests.
    pub const ALL: TableId = TableId(255);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == TableId::ALL { f.write_str("ALL") } else { self.0.fmt(f) }
    }
}

/// What a flow-mod does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.3.4.2)")]
pub enum FlowCommand {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
}

/// `OFPFF_*` (OpenFlow 1.3.5, 7.3.4.2): 1.3's bits; the codec of 1.0 maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct FlowFlags(pub u16);

#[allow(missing_docs, reason = "named by the specification")]
impl FlowFlags {
    pub const SEND_FLOW_REM: FlowFlags = FlowFlags(1 << 0);
    pub const CHECK_OVERLAP: FlowFlags = FlowFlags(1 << 1);
    pub const RESET_COUNTS: FlowFlags = FlowFlags(1 << 2);
    pub const NO_PKT_COUNTS: FlowFlags = FlowFlags(1 << 3);
    pub const NO_BYT_COUNTS: FlowFlags = FlowFlags(1 << 4);
    /// 1.0's emergency entries, in a bit that 1.3 does not use.
    pub const EMERG: FlowFlags = FlowFlags(1 << 15);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: FlowFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: FlowFlags) -> FlowFlags {
        FlowFlags(self.0 | other.0)
    }
}

/// `ofp_flow_mod` (OpenFlow 1.3.5, 7.3.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowMod {
    /// Opaque to the switch; set by add, compared under the mask by modify and delete.
    pub cookie: u64,
    /// Bits of the cookie that modify and delete compare; 0 for none.
    pub cookie_mask: u64,
    /// Which table; `ALL` only in deletes. From 1.0: 0, or `ALL` in deletes.
    pub table: TableId,
    /// What to do.
    pub command: FlowCommand,
    /// Seconds without a packet after which the entry goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry goes; 0 for never.
    pub hard_timeout: u16,
    /// Order among matching entries, highest first.
    pub priority: u16,
    /// A buffered packet to run through the actions after an add or modify.
    pub buffer_id: Option<BufferId>,
    /// Deletes only entries that output to this port; `ANY` for all.
    pub out_port: PortNo,
    /// Deletes only entries that output to this group; `ANY` for all.
    pub out_group: GroupId,
    /// `OFPFF_*`.
    pub flags: FlowFlags,
    /// 1.4: entries of low importance are evicted first; 0 in versions before.
    pub importance: u16,
    /// What it matches.
    pub matching: Match,
    /// What it does. From 1.0: one apply-actions with the action list, or none for no action.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    /// An add to table 0 of priority `priority` without time-outs, flags or cookie.
    pub fn add(priority: u16, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
        FlowMod {
            cookie: 0,
            cookie_mask: 0,
            table: TableId(0),
            command: FlowCommand::Add,
            idle_timeout: 0,
            hard_timeout: 0,
            priority,
            buffer_id: None,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowFlags::default(),
            importance: 0,
            matching,
            instructions,
        }
    }

    /// A delete of every entry in every table.
    pub fn delete_all() -> FlowMod {
        FlowMod { table: TableId::ALL, command: FlowCommand::Delete, ..FlowMod::add(0, Match::any(), Vec::new()) }
    }
}

/// Why an entry went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.4.2)")]
pub enum FlowRemovedReason {
    IdleTimeout = 0,
    HardTimeout = 1,
    Delete = 2,
    GroupDelete = 3,
    /// 1.4: the entry's meter went; a delete in versions before.
    MeterDelete = 4,
    /// 1.4: to make room; a delete in versions before.
    Eviction = 5,
}

/// `ofp_flow_removed` (OpenFlow 1.3.5, 7.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod and in flow statistics")]
pub struct FlowRemoved {
    pub cookie: u64,
    pub priority: u16,
    pub reason: FlowRemovedReason,
    /// 0 in 1.0, which does not carry it.
    pub table: TableId,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    pub idle_timeout: u16,
    /// 0 in 1.0, which does not carry it.
    pub hard_timeout: u16,
    pub packet_count: u64,
    pub byte_count: u64,
    /// 1.5.
    pub more: MoreStats,
    pub matching: Match,
}
