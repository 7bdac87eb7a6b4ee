//! Controller roles and asynchronous configuration.
use serde::Serialize;

/// `ofp_role_request`, request or reply (OpenFlow 1.3.5, 7.3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoleMessage {
    /// The role asked for, or held.
    pub role: Role,
    /// Guards against stale elections.
    pub generation_id: u64,
}

/// A controller's role. A number weir does not know is kept so that the switch can refuse it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum Role {
    NoChange,
    Equal,
    Master,
    Slave,
    Unknown(u32),
}

/// `ofp_async_config` (OpenFlow 1.3.5, 7.3.10): bitmaps of reasons, first for master and equal, then for slave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct AsyncConfig {
    pub packet_in: [u32; 2],
    pub port_status: [u32; 2],
    pub flow_removed: [u32; 2],
}
