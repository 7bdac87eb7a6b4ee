//! Defines multipart requests and replies (called statistics in 1.0).
use super::bundle::{BundleFeatures, BundleFeaturesRequest};
use super::config::TableMod;
use super::group::{GroupDesc, GroupFeatures, GroupStats};
use super::meter::{MeterConfig, MeterFeatures, MeterStats};
use super::monitor::{FlowMonitor, FlowUpdate};
use super::numbered::numbered_enum;
use super::port::PortStats;
use super::queue::{QueueConfig, QueueStats};
use super::stats::{OxsExtraStats, OxsStats};
use super::status::ControllerStatus;
use super::{
    ActionType, Experimenter, FlowFlags, GroupId, Instruction, InstructionType, Match, MatchField, MeterId, OxmClass,
    PortDesc, PortNo, TableId,
};
use serde::Serialize;

/// A multipart request (OpenFlow 1.3.5, 7.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MultipartRequest {
    /// True if more parts of this request follow (`OFPMPF_REQ_MORE`).
    pub more: bool,
    /// Type and content of the request.
    pub body: RequestBody,
}

/// Type and content of a multipart request.
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
    /// Always `ALL` before 1.5: earlier versions can only ask for all groups.
    GroupDesc(GroupId),
    GroupFeatures,
    Meter(MeterId),
    MeterConfig(MeterId),
    MeterFeatures,
    /// Features of all tables: an empty list asks for them, any other list sets them.
    TableFeatures(Vec<TableFeatures>),
    /// Always `ANY` before 1.5: earlier versions can only ask for all ports.
    PortDesc(PortNo),
    /// Request for the configuration of all tables, with eviction and vacancy settings. Since OpenFlow 1.4.
    TableDesc,
    /// Request for the configuration of queues: rates and other properties. Since OpenFlow 1.4.
    QueueDesc {
        port: PortNo,
        queue: u32,
    },
    /// Requests to add, modify or delete flow monitors. Since OpenFlow 1.4.
    FlowMonitor(Vec<FlowMonitor>),
    /// 1.5: `OFPMP_FLOW_STATS`, statistics without instructions. 1.5's flow descriptions are the variant `Flow`.
    FlowCounters(FlowRequest),
    /// Request for the status of all controllers. Only in OpenFlow 1.5.
    ControllerStatus,
    /// Request for the bundle features of the switch. Only in OpenFlow 1.5.
    BundleFeatures(BundleFeaturesRequest),
    Experimenter(Experimenter),
    /// `NXST_FLOW`: flow statistics for 1.0, with the match as a list of fields.
    NxFlow(FlowRequest),
    /// `NXST_AGGREGATE`: aggregate statistics for 1.0, with the match as a list of fields.
    NxAggregate(FlowRequest),
}

/// Selection of flow entries in a request for flow or aggregate statistics (OpenFlow 1.3.5, 7.3.5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowRequest {
    /// Table to read, or all tables.
    pub table: TableId,
    /// Restricts the request to entries that output to this port; `ANY` for all entries.
    pub out_port: PortNo,
    /// Restricts the request to entries that output to this group; `ANY` for all entries.
    pub out_group: GroupId,
    /// Cookie that entries must have in the bits of `cookie_mask`.
    pub cookie: u64,
    /// Bits of the cookie that count.
    pub cookie_mask: u64,
    /// Restricts the request to entries whose match is at least as specific.
    pub matching: Match,
}

impl FlowRequest {
    /// Selects every flow entry of every table.
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

/// A multipart reply, or one part of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MultipartReply {
    /// True if more parts of this reply follow (`OFPMPF_REPLY_MORE`).
    pub more: bool,
    /// Type and content of the reply.
    pub body: ReplyBody,
}

/// Type and content of a multipart reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum ReplyBody {
    Desc(SwitchDesc),
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
    /// `NXST_FLOW`: flow statistics for 1.0, with the match as a list of fields.
    NxFlow(Vec<FlowStats>),
    /// `NXST_AGGREGATE`: aggregate statistics for 1.0.
    NxAggregate(AggregateStats),
}

/// Description of a switch, `ofp_desc` (OpenFlow 1.3.5, 7.3.5.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct SwitchDesc {
    pub mfr_desc: String,
    pub hw_desc: String,
    pub sw_desc: String,
    pub serial_num: String,
    pub dp_desc: String,
}

/// Statistics of a flow entry, `ofp_flow_stats` (OpenFlow 1.3.5, 7.3.5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowStats {
    pub table: TableId,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    pub priority: u16,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    /// Always empty in 1.0, which does not carry flags.
    pub flags: FlowFlags,
    /// Importance for eviction. 0 in versions before 1.4.
    pub importance: u16,
    pub cookie: u64,
    /// Number of packets that matched the entry; `u64::MAX` if not counted.
    pub packet_count: u64,
    /// Number of bytes in these packets; `u64::MAX` if not counted.
    pub byte_count: u64,
    /// Further statistics. Only in OpenFlow 1.5.
    pub more: OxsExtraStats,
    pub matching: Match,
    pub instructions: Vec<Instruction>,
}

/// Statistics of a flow entry without its instructions, `ofp_flow_stats` of 1.5 (OpenFlow 1.5.1, 7.3.5.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct FlowCounters {
    pub table: TableId,
    /// Reason why the switch sent the statistics.
    pub reason: FlowCountersReason,
    pub priority: u16,
    pub matching: Match,
    pub stats: OxsStats,
}

/// Reason for sending statistics, `OFPFSR_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
pub enum FlowCountersReason {
    /// The controller asked for them.
    Request = 0,
    /// A statistic reached a threshold of the flow entry.
    Trigger = 1,
}

/// Sums over flow entries, `ofp_aggregate_stats_reply` (OpenFlow 1.3.5, 7.3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct AggregateStats {
    pub packet_count: u64,
    pub byte_count: u64,
    pub flow_count: u32,
}

/// Statistics of a flow table, `ofp_table_stats` (OpenFlow 1.3.5, 7.3.5.4; OpenFlow 1.0.0, 5.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct TableStats {
    pub table: TableId,
    /// Name of the table. Only in OpenFlow 1.0.
    pub name: String,
    /// 1.0 only: wildcards that the table supports.
    pub wildcards: u32,
    /// Maximum number of entries. Only in OpenFlow 1.0.
    pub max_entries: u32,
    pub active_count: u32,
    pub lookup_count: u64,
    pub matched_count: u64,
}

numbered_enum! {
    /// Command of a table features request, `OFPTFC_*` (OpenFlow 1.5.1, 7.3.5.18.1).
    #[derive(Serialize)]
    #[serde(into = "u8")]
    pub enum TableFeaturesCommand: u8 {
        /// `OFPTFC_REPLACE`: replaces the whole pipeline by the tables of the request.
        Replace = 0,
        /// `OFPTFC_MODIFY`: changes the tables of the request.
        Modify = 1,
        /// `OFPTFC_ENABLE`: enables the tables of the request.
        Enable = 2,
        /// `OFPTFC_DISABLE`: disables the tables of the request.
        Disable = 3,
    }
}

/// Features of a flow table, `ofp_table_features` (OpenFlow 1.3.5, 7.3.5.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct TableFeatures {
    pub table: TableId,
    /// 1.5: change that a request makes. [`TableFeaturesCommand::Replace`] in earlier versions.
    pub command: TableFeaturesCommand,
    /// 1.5: `OFPTFF_*` bits: 1 ingress table, 2 egress table, 16 first egress table. 0 in earlier versions.
    pub features: u32,
    pub name: String,
    pub metadata_match: u64,
    pub metadata_write: u64,
    /// Configuration bits, `OFPTC_*`. In 1.5, these bits tell which configurations the table supports.
    pub config: u32,
    pub max_entries: u32,
    pub properties: Vec<TableProperty>,
}

/// Property of table features, `ofp_table_feature_prop_*` (OpenFlow 1.3.5, 7.3.5.5.2). `miss` is true if the property
/// is the variant for the table-miss entry (`*_MISS`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum TableProperty {
    Instructions {
        miss: bool,
        ids: Vec<FeatureTypeId<InstructionType>>,
    },
    NextTables {
        miss: bool,
        tables: Vec<TableId>,
    },
    WriteActions {
        miss: bool,
        ids: Vec<FeatureTypeId<ActionType>>,
    },
    ApplyActions {
        miss: bool,
        ids: Vec<FeatureTypeId<ActionType>>,
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
    /// Tables from which this table copies changes (synchronised table). Since OpenFlow 1.4.
    TableSyncFrom(Vec<TableId>),
    /// Fields that copy-field actions in write-actions instructions can copy to or from. Only in OpenFlow 1.5.
    WriteCopyField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    /// Fields that copy-field actions in apply-actions instructions can copy to or from. Only in OpenFlow 1.5.
    ApplyCopyField {
        miss: bool,
        fields: Vec<OxmId>,
    },
    /// Packet types that the table supports. Only in OpenFlow 1.5.
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

/// Type of an instruction or action: a standard one, which `T` stands for, or an experimenter's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub enum FeatureTypeId<T> {
    Standard(T),
    Experimenter { id: u32, data: super::Bytes },
}

/// An OXM header: identifies a field, with or without mask, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification (OpenFlow 1.3.5, 7.2.3.2)")]
pub struct OxmId {
    pub class: OxmClass,
    pub number: u8,
    pub has_mask: bool,
    pub length: u8,
    /// Experimenter number after the header, if the class is [`OxmClass::Experimenter`].
    pub experimenter: Option<u32>,
}
