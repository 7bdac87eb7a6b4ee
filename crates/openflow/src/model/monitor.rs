//! Flow monitoring: a controller is told what happens to flow entries (OpenFlow 1.4.1, 7.3.5.17).
use super::{GroupId, Instruction, Match, PortNo, TableId};
use serde::Serialize;

/// `ofp_flow_monitor_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowMonitor {
    /// The monitor's number; each channel has numbers of its own.
    pub id: u32,
    /// Only entries that output to this port; `ANY` for all.
    pub out_port: PortNo,
    /// Only entries that output to this group; `ANY` for all.
    pub out_group: GroupId,
    /// What is told, and how.
    pub flags: MonitorFlags,
    /// Which table, or all.
    pub table: TableId,
    /// What becomes of the monitor.
    pub command: MonitorCommand,
    /// Only entries at least as specific.
    pub matching: Match,
}

/// `OFPFMC_*`. A number weir does not know is kept so that the switch can refuse it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum MonitorCommand {
    Add,
    Modify,
    Delete,
    Unknown(u8),
}

/// `OFPFMF_*`: 1.4's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct MonitorFlags(pub u16);

#[allow(missing_docs, reason = "named by the specification")]
impl MonitorFlags {
    /// The entries there at the beginning are told.
    pub const INITIAL: MonitorFlags = MonitorFlags(1 << 0);
    pub const ADD: MonitorFlags = MonitorFlags(1 << 1);
    pub const REMOVED: MonitorFlags = MonitorFlags(1 << 2);
    pub const MODIFY: MonitorFlags = MonitorFlags(1 << 3);
    /// Instructions are told, too.
    pub const INSTRUCTIONS: MonitorFlags = MonitorFlags(1 << 4);
    /// The controller's own changes are told in full.
    pub const NO_ABBREV: MonitorFlags = MonitorFlags(1 << 5);
    /// Only the controller's own changes are told.
    pub const ONLY_OWN: MonitorFlags = MonitorFlags(1 << 6);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: MonitorFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: MonitorFlags) -> MonitorFlags {
        MonitorFlags(self.0 | other.0)
    }
}

/// `ofp_flow_update_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum FlowUpdate {
    /// What happened to an entry.
    Full(FlowUpdateFull),
    /// The controller's own flow-mod with this transaction id took effect.
    Abbrev {
        /// The flow-mod's.
        xid: u32,
    },
    /// Updates are left out from here on, since the controller does not take them fast enough.
    Paused,
    /// Updates are complete again from here on.
    Resumed,
}

/// `ofp_flow_update_full`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowUpdateFull {
    pub event: FlowEvent,
    /// Why the entry went; told with [`FlowEvent::Removed`] only.
    pub reason: Option<super::FlowRemovedReason>,
    pub table: TableId,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub cookie: u64,
    pub matching: Match,
    /// Empty unless asked for.
    pub instructions: Vec<Instruction>,
}

/// `OFPFME_*` of a full update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum FlowEvent {
    Initial = 0,
    Added = 1,
    Removed = 2,
    Modified = 3,
}
