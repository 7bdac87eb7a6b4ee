//! Defines the messages about ports: description, status, modification and statistics.
use super::PortNo;
use super::multipart::OxmId;
use super::property::RawProperty;
use serde::Serialize;
use weir_packet::MacAddr;

/// `OFPPC_*` and `OFPPS_*` bits (OpenFlow 1.3.5, 7.2.1). Bits that only 1.0 has are marked; its codec translates.
#[allow(missing_docs, reason = "named by the specification")]
pub mod bits {
    /// Configuration: administratively down.
    pub const PORT_DOWN: u32 = 1 << 0;
    /// 1.0 only: spanning tree is disabled on the port.
    pub const NO_STP: u32 = 1 << 1;
    /// Received packets are dropped.
    pub const NO_RECV: u32 = 1 << 2;
    /// 1.0 only: received spanning-tree packets are dropped.
    pub const NO_RECV_STP: u32 = 1 << 3;
    /// 1.0 only: the port is excluded from floods.
    pub const NO_FLOOD: u32 = 1 << 4;
    /// Packets forwarded to the port are dropped.
    pub const NO_FWD: u32 = 1 << 5;
    /// Packets received on the port cause no packet-in.
    pub const NO_PACKET_IN: u32 = 1 << 6;
    /// State: no link.
    pub const LINK_DOWN: u32 = 1 << 0;
    pub const BLOCKED: u32 = 1 << 1;
    pub const LIVE: u32 = 1 << 2;
}

/// Feature bits of 1.3, `OFPPF_*` (OpenFlow 1.3.5, 7.2.1).
#[allow(missing_docs, reason = "named by the specification")]
pub mod feature {
    pub const FD_10MB: u32 = 1 << 1;
    pub const FD_100MB: u32 = 1 << 3;
    pub const FD_1GB: u32 = 1 << 5;
    pub const FD_10GB: u32 = 1 << 6;
    pub const FD_40GB: u32 = 1 << 7;
    pub const FD_100GB: u32 = 1 << 8;
    pub const FD_1TB: u32 = 1 << 9;
    pub const OTHER: u32 = 1 << 10;
    pub const COPPER: u32 = 1 << 11;
    pub const FIBER: u32 = 1 << 12;
    pub const AUTONEG: u32 = 1 << 13;
}

/// Description of a port, `ofp_port` (OpenFlow 1.3.5, 7.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortDesc {
    /// Number of the port.
    pub port_no: PortNo,
    /// Ethernet address of the port.
    pub hw_addr: MacAddr,
    /// Port name; the wire format carries at most 15 bytes of it.
    pub name: String,
    /// Configuration, `OFPPC_*` in [`bits`].
    pub config: u32,
    /// State, `OFPPS_*` in [`bits`].
    pub state: u32,
    /// Current features, 1.3's `OFPPF_*` bits.
    pub curr: u32,
    /// Features that the port advertises.
    pub advertised: u32,
    /// Features that the port supports.
    pub supported: u32,
    /// Features that the link peer advertises.
    pub peer: u32,
    /// Current rate in kbit/s; 0 in 1.0, which does not carry it.
    pub curr_speed: u32,
    /// Highest rate in kbit/s; 0 in 1.0, which does not carry it.
    pub max_speed: u32,
    /// 1.4: properties other than Ethernet's, in the order received.
    pub properties: Vec<PortProperty>,
}

/// Property of a port description other than Ethernet's, `ofp_port_desc_prop_*` (OpenFlow 1.5.1, 7.2.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum PortProperty {
    Optical(OpticalPort),
    /// 1.5: pipeline fields that accompany packets from the port.
    PipelineInput(Vec<OxmId>),
    /// 1.5: pipeline fields that the port uses of packets sent to it.
    PipelineOutput(Vec<OxmId>),
    /// 1.5: ports on which packets sent to this port may return.
    Recirculate(Vec<PortNo>),
    Other(RawProperty),
}

/// Optical features of a port, `ofp_port_desc_prop_optical`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct OpticalPort {
    pub supported: u32,
    pub tx_min_freq_lmda: u32,
    pub tx_max_freq_lmda: u32,
    pub tx_grid_freq_lmda: u32,
    pub rx_min_freq_lmda: u32,
    pub rx_max_freq_lmda: u32,
    pub rx_grid_freq_lmda: u32,
    pub tx_pwr_min: u16,
    pub tx_pwr_max: u16,
}

impl PortDesc {
    /// Returns the description of a port that is up and has no features set.
    pub fn new(port_no: PortNo, hw_addr: MacAddr, name: impl Into<String>) -> PortDesc {
        PortDesc {
            port_no,
            hw_addr,
            name: name.into(),
            config: 0,
            state: 0,
            curr: 0,
            advertised: 0,
            supported: 0,
            peer: 0,
            curr_speed: 0,
            max_speed: 0,
            properties: Vec::new(),
        }
    }
}

/// Port status message, `ofp_port_status` (OpenFlow 1.3.5, 7.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortStatus {
    /// Change that happened.
    pub reason: PortStatusReason,
    /// Description of the port after the change.
    pub desc: PortDesc,
}

/// Change of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum PortStatusReason {
    Add = 0,
    Delete = 1,
    Modify = 2,
}

/// Port-mod, `ofp_port_mod` (OpenFlow 1.3.5, 7.3.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortMod {
    /// Number of the port.
    pub port_no: PortNo,
    /// Ethernet address of the port. It must match the port's own, as a check that the right port is meant.
    pub hw_addr: MacAddr,
    /// New values of the bits in `mask`, as in [`bits`].
    pub config: u32,
    /// Configuration bits to change.
    pub mask: u32,
    /// Features to advertise; 0 for no change.
    pub advertise: u32,
    /// 1.4: properties other than Ethernet's, in the order received.
    pub properties: Vec<PortModProperty>,
}

/// Property of a port-mod other than Ethernet's, `ofp_port_mod_prop_*` (OpenFlow 1.4.1, 7.3.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum PortModProperty {
    Optical { configure: u32, freq_lmda: u32, fl_offset: u32, grid_span: u32, tx_pwr: u32 },
    Other(RawProperty),
}

/// Statistics of a port, `ofp_port_stats` (OpenFlow 1.3.5, 7.3.5.6). `u64::MAX` marks a counter that the switch does
/// not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct PortStats {
    pub port_no: PortNo,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_frame_err: u64,
    pub rx_over_err: u64,
    pub rx_crc_err: u64,
    pub collisions: u64,
    /// 0 in 1.0, which does not carry the duration.
    pub duration_sec: u32,
    /// 0 in 1.0, which does not carry the duration.
    pub duration_nsec: u32,
    /// 1.4: properties other than Ethernet's, in the order received.
    pub properties: Vec<PortStatsProperty>,
}

/// Property of port statistics other than Ethernet's, `ofp_port_stats_prop_*` (OpenFlow 1.4.1, 7.3.5.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum PortStatsProperty {
    Optical(OpticalStats),
    Other(RawProperty),
}

/// Optical statistics of a port, `ofp_port_stats_prop_optical`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct OpticalStats {
    pub flags: u32,
    pub tx_freq_lmda: u32,
    pub tx_offset: u32,
    pub tx_grid_span: u32,
    pub rx_freq_lmda: u32,
    pub rx_offset: u32,
    pub rx_grid_span: u32,
    pub tx_pwr: u16,
    pub rx_pwr: u16,
    pub bias_current: u16,
    pub temperature: u16,
}
