//! What a switch tells of its own accord in 1.4 and later, beside packets, flow entries and ports.
use super::config::TableMod;
use super::property::Property;
use super::role::Role;
use serde::Serialize;

/// `ofp_role_status` (OpenFlow 1.4.1, 7.4.4): the channel's role is another now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleStatus {
    /// The role that the channel has now.
    pub role: Role,
    /// Why.
    pub reason: RoleReason,
    /// The newest election; all ones if there was none.
    pub generation_id: u64,
    /// The properties, in the order they came.
    pub properties: Vec<Property>,
}

/// `OFPCRR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum RoleReason {
    MasterRequest = 0,
    Config = 1,
    Experimenter = 2,
}

/// `ofp_table_status` (OpenFlow 1.4.1, 7.4.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// What happened.
    pub reason: TableReason,
    /// The table as it is now.
    pub table: TableMod,
}

/// `OFPTR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum TableReason {
    VacancyDown = 3,
    VacancyUp = 4,
}

/// `ofp_controller_status` (OpenFlow 1.5.1, 7.3.5.18 and 7.4.7): how a channel is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControllerStatus {
    /// The number that the controller gave itself in its role request; 0 for none.
    pub short_id: u16,
    /// Its role.
    pub role: Role,
    /// Why this is told.
    pub reason: ControllerReason,
    /// Whether its channel is up.
    pub is_up: bool,
    /// Where it is: `tls:192.0.2.1:6653`. Empty if not told.
    pub uri: String,
    /// The other properties, in the order they came.
    pub properties: Vec<Property>,
}

/// `OFPCSR_*`.
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
