//! Defines asynchronous messages of 1.4 and later about roles, tables and controllers.
use super::config::TableMod;
use super::property::RawProperty;
use super::role::Role;
use serde::Serialize;

/// Role status message, `ofp_role_status` (OpenFlow 1.4.1, 7.4.4): the switch changed the role of the channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleStatus {
    /// New role of the channel.
    pub role: Role,
    /// Reason of the change.
    pub reason: RoleReason,
    /// Number of the latest election; all ones if there was none.
    pub generation_id: u64,
    /// Properties, in the order received.
    pub properties: Vec<RawProperty>,
}

/// Reason of a role change, `OFPCRR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum RoleReason {
    MasterRequest = 0,
    Config = 1,
    Experimenter = 2,
}

/// Table status message, `ofp_table_status` (OpenFlow 1.4.1, 7.4.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// Event that the message reports.
    pub reason: TableReason,
    /// Configuration of the table after the event.
    pub table: TableMod,
}

/// Event of a table, `OFPTR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum TableReason {
    VacancyDown = 3,
    VacancyUp = 4,
}

/// Status of a controller's channel, `ofp_controller_status` (OpenFlow 1.5.1, 7.3.5.18 and 7.4.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControllerStatus {
    /// Number that the controller chose in its role request; 0 for none.
    pub short_id: u16,
    /// Role of the controller.
    pub role: Role,
    /// Reason for sending the status.
    pub reason: ControllerReason,
    /// True if the channel is up.
    pub is_up: bool,
    /// Address of the controller, for example `tls:192.0.2.1:6653`. Empty if absent.
    pub uri: String,
    /// Other properties, in the order received.
    pub properties: Vec<RawProperty>,
}

/// Reason of a controller status, `OFPCSR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum ControllerReason {
    Request = 0,
    ChannelStatus = 1,
    Role = 2,
    ControllerAdded = 3,
    ControllerRemoved = 4,
    ShortId = 5,
    Experimenter = 6,
}
