//! Defines flow monitoring: reports changes of flow entries to a controller (OpenFlow 1.4.1, 7.3.5.17).
use super::numbered::numbered_enum;
use super::{GroupId, Instruction, Match, PortNo, TableId};
use serde::Serialize;

/// Request to add, modify or delete a flow monitor, `ofp_flow_monitor_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowMonitor {
    /// Number of the monitor, unique within its channel.
    pub id: u32,
    /// Restricts the monitor to entries that output to this port; `ANY` for all entries.
    pub out_port: PortNo,
    /// Restricts the monitor to entries that output to this group; `ANY` for all entries.
    pub out_group: GroupId,
    /// Events to report, and their form.
    pub flags: MonitorFlags,
    /// Table to monitor, or all tables.
    pub table: TableId,
    /// Change to make: add, modify or delete the monitor.
    pub command: MonitorCommand,
    /// Restricts the monitor to entries whose match is at least as specific.
    pub matching: Match,
}

numbered_enum! {
    /// Command of a monitor request, `OFPFMC_*` (OpenFlow 1.4.1, 7.3.5.17).
    #[derive(Serialize)]
    pub enum MonitorCommand: u8 {
        /// `OFPFMC_ADD`: adds a monitor.
        Add = 0,
        /// `OFPFMC_MODIFY`: replaces a monitor.
        Modify = 1,
        /// `OFPFMC_DELETE`: deletes a monitor.
        Delete = 2,
    }
}

/// Flags of a monitor, `OFPFMF_*`, in 1.4's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct MonitorFlags(pub u16);

#[allow(missing_docs, reason = "named by the specification")]
impl MonitorFlags {
    /// Reports the entries that exist when the monitor is added.
    pub const INITIAL: MonitorFlags = MonitorFlags(1 << 0);
    pub const ADD: MonitorFlags = MonitorFlags(1 << 1);
    pub const REMOVED: MonitorFlags = MonitorFlags(1 << 2);
    pub const MODIFY: MonitorFlags = MonitorFlags(1 << 3);
    /// Includes the instructions of entries.
    pub const INSTRUCTIONS: MonitorFlags = MonitorFlags(1 << 4);
    /// Reports the controller's own changes in full instead of abbreviated.
    pub const NO_ABBREV: MonitorFlags = MonitorFlags(1 << 5);
    /// Reports only the controller's own changes.
    pub const ONLY_OWN: MonitorFlags = MonitorFlags(1 << 6);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: MonitorFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets of bits.
    #[must_use]
    pub const fn with(self, other: MonitorFlags) -> MonitorFlags {
        MonitorFlags(self.0 | other.0)
    }
}

/// Update of a flow monitor, `ofp_flow_update_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum FlowUpdate {
    /// Event of a flow entry, in full.
    Full(FlowUpdateFull),
    /// The controller's own flow-mod with this transaction id took effect.
    Abbrev {
        /// Transaction id of the flow-mod.
        xid: u32,
    },
    /// The switch leaves out updates from here on, because the controller does not read them fast enough.
    Paused,
    /// The switch sends all updates again from here on.
    Resumed,
}

/// Full report of a flow entry's event, `ofp_flow_update_full`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowUpdateFull {
    pub event: FlowEvent,
    /// Reason of the removal; only with [`FlowEvent::Removed`].
    pub reason: Option<super::FlowRemovedReason>,
    pub table: TableId,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub cookie: u64,
    pub matching: Match,
    /// Empty unless the monitor asked for instructions.
    pub instructions: Vec<Instruction>,
}

/// Event of a full update, `OFPFME_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum FlowEvent {
    Initial = 0,
    Added = 1,
    Removed = 2,
    Modified = 3,
}
