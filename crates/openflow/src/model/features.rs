//! What a switch says of itself.
use super::PortDesc;
use serde::Serialize;

/// `ofp_switch_features` (OpenFlow 1.3.5, 7.3.1; OpenFlow 1.0.0, 5.3.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct FeaturesReply {
    /// The datapath's number: implementer's 16 bits, then usually a MAC address.
    pub datapath_id: u64,
    /// Packets the switch can buffer for packet-in.
    pub n_buffers: u32,
    /// Number of tables.
    pub n_tables: u8,
    /// 1.3: 0 for the main connection.
    pub auxiliary_id: u8,
    /// `OFPC_*` in the version's own bits.
    pub capabilities: u32,
    /// 1.0: bitmap of supported actions.
    pub actions: u32,
    /// 1.0: the ports. 1.3 asks for them with a port-description request.
    pub ports: Vec<PortDesc>,
}

/// `OFPC_*` bits that 1.0 and 1.3 share or 1.3 has (OpenFlow 1.3.5, 7.3.1).
#[allow(missing_docs, reason = "named by the specification")]
pub mod capability {
    pub const FLOW_STATS: u32 = 1 << 0;
    pub const TABLE_STATS: u32 = 1 << 1;
    pub const PORT_STATS: u32 = 1 << 2;
    /// 1.3: group statistics. (1.0: spanning tree.)
    pub const GROUP_STATS: u32 = 1 << 3;
    pub const IP_REASM: u32 = 1 << 5;
    pub const QUEUE_STATS: u32 = 1 << 6;
    /// 1.0 only: matches look at ARP's addresses.
    pub const ARP_MATCH_IP: u32 = 1 << 7;
    /// 1.3 only: ports are blocked by the switch to stop loops.
    pub const PORT_BLOCKED: u32 = 1 << 8;
    /// 1.4.
    pub const BUNDLES: u32 = 1 << 9;
    /// 1.4.
    pub const FLOW_MONITORING: u32 = 1 << 10;
}
