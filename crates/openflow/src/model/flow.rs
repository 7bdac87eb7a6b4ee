//! Defines the messages about flow entries: flow-mod and flow-removed.
use super::stats::OxsExtraStats;
use super::{BufferId, GroupId, Instruction, Match, PortNo};
use serde::Serialize;
use std::fmt;

/// Flow table number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TableId(pub u8);

impl TableId {
    /// Highest number of a flow table.
    pub const MAX: TableId = TableId(254);
    /// All tables; only in requests.
    pub const ALL: TableId = TableId(255);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == TableId::ALL { f.write_str("ALL") } else { self.0.fmt(f) }
    }
}

/// Command of a flow-mod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.3.4.1)")]
pub enum FlowCommand {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
}

/// Flow-mod flags, `OFPFF_*` (OpenFlow 1.3.5, 7.3.4.1), in 1.3's bits; the codec of 1.0 translates.
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
    /// 1.0 only: emergency flow entry. The model uses a bit that 1.3 leaves free.
    pub const EMERG: FlowFlags = FlowFlags(1 << 15);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: FlowFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets of bits.
    #[must_use]
    pub const fn with(self, other: FlowFlags) -> FlowFlags {
        FlowFlags(self.0 | other.0)
    }
}

/// Flow-mod, `ofp_flow_mod` (OpenFlow 1.3.5, 7.3.4.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowMod {
    /// Value chosen by the controller, opaque to the switch. Set by add; compared under `cookie_mask` by modify and
    /// delete.
    pub cookie: u64,
    /// Bits of the cookie that modify and delete compare; 0 to compare none.
    pub cookie_mask: u64,
    /// Table to change; `ALL` only in deletes. Decoded from 1.0 without table numbers: 0, or `ALL` in deletes.
    pub table: TableId,
    /// Change to make.
    pub command: FlowCommand,
    /// Seconds without a packet after which the entry is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry is removed; 0 for never.
    pub hard_timeout: u16,
    /// Priority of the entry: the highest matching entry wins.
    pub priority: u16,
    /// Buffered packet to process after an add or modify.
    pub buffer_id: Option<BufferId>,
    /// Restricts a delete to entries that output to this port; `ANY` for all entries.
    pub out_port: PortNo,
    /// Restricts a delete to entries that output to this group; `ANY` for all entries.
    pub out_group: GroupId,
    /// Flags, a set of `OFPFF_*`.
    pub flags: FlowFlags,
    /// 1.4: entries of low importance are evicted first; 0 in earlier versions.
    pub importance: u16,
    /// Match of the entry.
    pub matching: Match,
    /// Instructions of the entry. Decoded from 1.0: one apply-actions with the action list, or empty if there are no
    /// actions.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    /// Returns an add to table 0 with `priority`, without time-outs, flags or cookie.
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

    /// Returns a delete of every flow entry in every table.
    pub fn delete_all() -> FlowMod {
        FlowMod { table: TableId::ALL, command: FlowCommand::Delete, ..FlowMod::add(0, Match::any(), Vec::new()) }
    }
}

/// Reason of a flow entry's removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.4.2)")]
pub enum FlowRemovedReason {
    IdleTimeout = 0,
    HardTimeout = 1,
    Delete = 2,
    GroupDelete = 3,
    /// 1.4: the entry's meter was deleted; encoded as a delete in earlier versions.
    MeterDelete = 4,
    /// 1.4: evicted to make room; encoded as a delete in earlier versions.
    Eviction = 5,
}

/// Flow-removed, `ofp_flow_removed` (OpenFlow 1.3.5, 7.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod and in flow statistics")]
pub struct FlowRemoved {
    pub cookie: u64,
    pub priority: u16,
    pub reason: FlowRemovedReason,
    /// 0 in 1.0, which does not carry the table.
    pub table: TableId,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    pub idle_timeout: u16,
    /// 0 in 1.0, which does not carry the time-out.
    pub hard_timeout: u16,
    pub packet_count: u64,
    pub byte_count: u64,
    /// Only in OpenFlow 1.5.
    pub more: OxsExtraStats,
    pub matching: Match,
}
