//! Defines the features reply: a switch's identity and capabilities.
use super::PortDesc;
use serde::Serialize;

/// Features reply, `ofp_switch_features` (OpenFlow 1.3.5, 7.3.1; OpenFlow 1.0.0, 5.3.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct FeaturesReply {
    /// Datapath id: 16 bits chosen by the implementer, then usually a MAC address.
    pub datapath_id: u64,
    /// Number of packets the switch can buffer for packet-ins.
    pub n_buffers: u32,
    /// Number of flow tables.
    pub n_tables: u8,
    /// 1.3 and later: number of the auxiliary connection; 0 for the main connection.
    pub auxiliary_id: u8,
    /// `OFPC_*`, in the bits of the wire version.
    pub capabilities: u32,
    /// 1.0: bitmap of supported actions.
    pub actions: u32,
    /// 1.0: the switch's ports. Later versions list ports in the port-description multipart.
    pub ports: Vec<PortDesc>,
}

/// `OFPC_*` bits of all versions (OpenFlow 1.3.5, 7.3.1); bits that a single version has are marked.
#[allow(missing_docs, reason = "named by the specification")]
pub mod capability {
    pub const FLOW_STATS: u32 = 1 << 0;
    pub const TABLE_STATS: u32 = 1 << 1;
    pub const PORT_STATS: u32 = 1 << 2;
    /// 1.3 and later: group statistics. In 1.0 this bit means spanning tree.
    pub const GROUP_STATS: u32 = 1 << 3;
    pub const IP_REASM: u32 = 1 << 5;
    pub const QUEUE_STATS: u32 = 1 << 6;
    /// 1.0 only: matches can use the IP addresses of ARP packets.
    pub const ARP_MATCH_IP: u32 = 1 << 7;
    /// 1.3 and later: the switch blocks ports to prevent loops.
    pub const PORT_BLOCKED: u32 = 1 << 8;
    /// 1.4 and later.
    pub const BUNDLES: u32 = 1 << 9;
    /// 1.4 and later.
    pub const FLOW_MONITORING: u32 = 1 << 10;
}
