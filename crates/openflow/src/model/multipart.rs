//! Multipart (1.0: statistics) requests and replies.
use super::bundle::{BundleFeatures, BundleFeaturesRequest};
use super::config::TableMod;
use super::group::{GroupDesc, GroupFeatures, GroupStats};
use super::meter::{MeterConfig, MeterFeatures, MeterStats};
use super::monitor::{FlowMonitor, FlowUpdate};
use super::port::PortStats;
use super::queue::{QueueConfig, QueueStats};
use super::stats::{MoreStats, Stats};
use super::status::ControllerStatus;
use super::{Experimenter, FlowFlags, GroupId, Instruction, Match, MatchField, MeterId, PortDesc, PortNo, TableId};
use serde::Serialize;

/// A multipart request (OpenFlow 1.3.5, 7.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MultipartRequest {
    /// More parts of the same request follow (`OFPMPF_REQ_MORE`).
    pub more: bool,
    /// What is asked.
    pub body: RequestBody,
}

/// What a multipart request asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum RequestBody {
    Desc,
    Flow(FlowRequest),
    Aggregate(FlowRequest),
    Table,
    PortStats(PortNo),
    Queue {
        port: PortNo,
        queue: u32,
    },
    Group(GroupId),
    /// `ALL` before 1.5, which always asks for all of them.
    GroupDesc(GroupId),
    GroupFeatures,
    Meter(MeterId),
    MeterConfig(MeterId),
    MeterFeatures,
    /// None: what are they? Some: set them.
    TableFeatures(Vec<TableFeatures>),
    /// `ANY` before 1.5, which always asks for all of them.
    PortDesc(PortNo),
    /// 1.4.
    TableDesc,
    /// 1.4.
    QueueDesc {
        port: PortNo,
        queue: u32,
    },
    /// 1.4.
    FlowMonitor(Vec<FlowMonitor>),
    /// 1.5: `OFPMP_FLOW_STATS`, statistics without instructions. What 1.5 calls flow descriptions is `Flow`.
    FlowCounters(FlowRequest),
    /// 1.5.
    ControllerStatus,
    /// 1.5.
    BundleFeatures(BundleFeaturesRequest),
    Experimenter(Experimenter),
    /// `NXST_FLOW`: 1.0's flow statistics whose match is a list of fields.
    NxFlow(FlowRequest),
    /// `NXST_AGGREGATE`.
    NxAggregate(FlowRequest),
}

/// Which entries flow and aggregate statistics are asked for (OpenFlow 1.3.5, 7.3.5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowRequest {
    /// Which table, or all.
    pub table: TableId,
    /// Only entries that output to this port; `ANY` for all.
    pub out_port: PortNo,
    /// Only entries that output to this group; `ANY` for all.
    pub out_group: GroupId,
    /// Only entries with this cookie under the mask.
    pub cookie: u64,
    /// Bits of the cookie that count.
    pub cookie_mask: u64,
    /// Only entries at least as specific.
    pub matching: Match,
}

impl FlowRequest {
    /// Every entry of every table.
    pub fn all() -> FlowRequest {
        FlowRequest {
            table: TableId::ALL,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::any(),
        }
    }
}

/// A multipart reply, or one part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MultipartReply {
    /// More parts of the same reply follow (`OFPMPF_REPLY_MORE`).
    pub more: bool,
    /// What is answered.
    pub body: ReplyBody,
}

/// What a multipart reply answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum ReplyBody {
    Desc(Desc),
    Flow(Vec<FlowStats>),
    Aggregate(AggregateStats),
    Table(Vec<TableStats>),
    PortStats(Vec<PortStats>),
    Queue(Vec<QueueStats>),
    Group(Vec<GroupStats>),
    GroupDesc(Vec<GroupDesc>),
    GroupFeatures(GroupFeatures),
    Meter(Vec<MeterStats>),
    MeterConfig(Vec<MeterConfig>),
    MeterFeatures(MeterFeatures),
    TableFeatures(Vec<TableFeatures>),
    PortDesc(Vec<PortDesc>),
    TableDesc(Vec<TableMod>),
    QueueDesc(Vec<QueueConfig>),
    FlowMonitor(Vec<FlowUpdate>),
    FlowCounters(Vec<FlowCounters>),
    ControllerStatus(Vec<ControllerStatus>),
    BundleFeatures(BundleFeatures),
    Experimenter(Experimenter),
    /// `NXST_FLOW`: 1.0's flow statistics whose match is a list of fields.
    NxFlow(Vec<FlowStats>),
    /// `NXST_AGGREGATE`.
    NxAggregate(AggregateStats),
}

/// `ofp_desc` (OpenFlow 1.3.5, 7.3.5.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct Desc {
    pub mfr_desc: String,
    pub hw_desc: String,
    pub sw_desc: String,
    pub serial_num: String,
    pub dp_desc: String,
}

/// `ofp_flow_stats` (OpenFlow 1.3.5, 7.3.5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowStats {
    pub table: TableId,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    pub priority: u16,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    /// None set in 1.0, which does not carry them.
    pub flags: FlowFlags,
    /// 1.4; 0 in versions before.
    pub importance: u16,
    pub cookie: u64,
    /// `u64::MAX` if not kept.
    pub packet_count: u64,
    /// `u64::MAX` if not kept.
    pub byte_count: u64,
    /// 1.5.
    pub more: MoreStats,
    pub matching: Match,
    pub instructions: Vec<Instruction>,
}

/// `ofp_flow_stats` of 1.5 (OpenFlow 1.5.1, 7.3.5.3): statistics of an entry without its instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowCounters {
    pub table: TableId,
    /// Why they are told.
    pub reason: FlowCountersReason,
    pub priority: u16,
    pub matching: Match,
    pub stats: Stats,
}

/// `OFPFSR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
pub enum FlowCountersReason {
    /// They were asked for.
    Request = 0,
    /// A threshold of the entry's was reached.
    Trigger = 1,
}

/// `ofp_aggregate_stats_reply` (OpenFlow 1.3.5, 7.3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct AggregateStats {
    pub packet_count: u64,
    pub byte_count: u64,
    pub flow_count: u32,
}

/// `ofp_table_stats` (OpenFlow 1.3.5, 7.3.5.4; OpenFlow 1.0.0, 5.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct TableStats {
    pub table: TableId,
    /// Only in 1.0.
    pub name: String,
    /// Only in 1.0: wildcards supported.
    pub wildcards: u32,
    /// Only in 1.0.
    pub max_entries: u32,
    pub active_count: u32,
    pub lookup_count: u64,
    pub matched_count: u64,
}

/// `ofp_table_features` (OpenFlow 1.3.5, 7.3.5.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct TableFeatures {
    pub table: TableId,
    /// 1.5: `OFPTFC_*` of a request, 0 replace the pipeline, 1 change the table, 2 enable it, 3 disable it; 0 in versions before.
    pub command: u8,
    /// 1.5: `OFPTFF_*`, 1 ingress table, 2 egress table, 16 first egress table; 0 in versions before.
    pub features: u32,
    pub name: String,
    pub metadata_match: u64,
    pub metadata_write: u64,
    /// 1.5: capabilities, in the same bits.
    pub config: u32,
    pub max_entries: u32,
    pub properties: Vec<TableProperty>,
}

/// `ofp_table_feature_prop_*` (OpenFlow 1.3.5, 7.3.5.5.2). `miss` tells the property for the table-miss entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum TableProperty {
    Instructions {
        miss: bool,
        ids: Vec<TypeId>,
    },
    NextTables {
        miss: bool,
        tables: Vec<TableId>,
    },
    WriteActions {
        miss: bool,
        ids: Vec<TypeId>,
    },
    ApplyActions {
        miss: bool,
        ids: Vec<TypeId>,
    },
    Match(Vec<OxmId>),
    Wildcards(Vec<OxmId>),
    WriteSetField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    ApplySetField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    /// 1.4: tables whose changes this one takes over.
    TableSyncFrom(Vec<TableId>),
    /// 1.5.
    WriteCopyField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    /// 1.5.
    ApplyCopyField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    /// 1.5: packet types supported.
    PacketTypes(Vec<MatchField>),
    Experimenter {
        miss: bool,
        id: u32,
        kind: u32,
        data: super::Bytes,
    },
    Unknown {
        kind: u16,
        data: super::Bytes,
    },
}

/// The number of an instruction or action type, or an experimenter's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum TypeId {
    Standard(u16),
    Experimenter { id: u32, data: super::Bytes },
}

/// An OXM header: which field, with or without mask, how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification (OpenFlow 1.3.5, 7.2.3.2)")]
pub struct OxmId {
    pub class: u16,
    pub number: u8,
    pub has_mask: bool,
    pub length: u8,
    /// Behind the header, when the class is the experimenters'.
    pub experimenter: Option<u32>,
}
