//! Defines error messages: every type and code of OpenFlow 1.0, 1.3, 1.4 and 1.5.
use super::Bytes;
use serde::Serialize;

/// Number of bytes of a refused message that its error message repeats: the minimum that the specification requires
/// (OpenFlow 1.3.5, 7.4.4).
pub const ERROR_DATA_BYTES: usize = 64;

/// An error message (OpenFlow 1.3.5, 7.4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorMessage {
    /// Type and code of the error.
    pub error: ErrorType,
    /// At least the first [`ERROR_DATA_BYTES`] bytes of the refused message, or a text for a failed hello.
    pub data: Bytes,
}

/// Declares the codes of one error type: an enum, with each code's number and name in OpenFlow 1.3 and later.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($code:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[repr(u16)]
        #[allow(missing_docs, reason = "each is named and explained by the specification (OpenFlow 1.3.5, 7.4.4)")]
        pub enum $name { $($code = $number,)* }

        impl $name {
            /// Returns the code's number in OpenFlow 1.3 and later.
            pub const fn number(self) -> u16 { self as u16 }

            /// Returns the code's name in the specification, such as `OFPBMC_BAD_FIELD`.
            pub const fn name(self) -> &'static str { match self { $($name::$code => $text,)* } }

            /// Returns the code for a number in OpenFlow 1.3 and later; `None` if there is none.
            pub fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some($name::$code),)* _ => None }
            }
        }

        impl From<$name> for ErrorType {
            fn from(code: $name) -> ErrorType { ErrorType::$name(code) }
        }
    };
}

codes!(/// Error codes of `OFPET_HELLO_FAILED`.
HelloFailed { Incompatible = 0 "OFPHFC_INCOMPATIBLE", Eperm = 1 "OFPHFC_EPERM", });
codes!(/// Error codes of `OFPET_BAD_REQUEST`.
BadRequest {
    BadVersion = 0 "OFPBRC_BAD_VERSION", BadType = 1 "OFPBRC_BAD_TYPE", BadMultipart = 2 "OFPBRC_BAD_MULTIPART",
    BadExperimenter = 3 "OFPBRC_BAD_EXPERIMENTER", BadExpType = 4 "OFPBRC_BAD_EXP_TYPE", Eperm = 5 "OFPBRC_EPERM",
    BadLen = 6 "OFPBRC_BAD_LEN", BufferEmpty = 7 "OFPBRC_BUFFER_EMPTY", BufferUnknown = 8 "OFPBRC_BUFFER_UNKNOWN",
    BadTableId = 9 "OFPBRC_BAD_TABLE_ID", IsSlave = 10 "OFPBRC_IS_SLAVE", BadPort = 11 "OFPBRC_BAD_PORT",
    BadPacket = 12 "OFPBRC_BAD_PACKET", MultipartBufferOverflow = 13 "OFPBRC_MULTIPART_BUFFER_OVERFLOW",
    MultipartRequestTimeout = 14 "OFPBRC_MULTIPART_REQUEST_TIMEOUT",
    MultipartReplyTimeout = 15 "OFPBRC_MULTIPART_REPLY_TIMEOUT", MultipartBadSched = 16 "OFPBRC_MULTIPART_BAD_SCHED",
    PipelineFieldsOnly = 17 "OFPBRC_PIPELINE_FIELDS_ONLY", Unknown = 18 "OFPBRC_UNKNOWN",
});
codes!(/// Error codes of `OFPET_BAD_ACTION`.
BadAction {
    BadType = 0 "OFPBAC_BAD_TYPE", BadLen = 1 "OFPBAC_BAD_LEN", BadExperimenter = 2 "OFPBAC_BAD_EXPERIMENTER",
    BadExpType = 3 "OFPBAC_BAD_EXP_TYPE", BadOutPort = 4 "OFPBAC_BAD_OUT_PORT", BadArgument = 5 "OFPBAC_BAD_ARGUMENT",
    Eperm = 6 "OFPBAC_EPERM", TooMany = 7 "OFPBAC_TOO_MANY", BadQueue = 8 "OFPBAC_BAD_QUEUE",
    BadOutGroup = 9 "OFPBAC_BAD_OUT_GROUP", MatchInconsistent = 10 "OFPBAC_MATCH_INCONSISTENT",
    UnsupportedOrder = 11 "OFPBAC_UNSUPPORTED_ORDER", BadTag = 12 "OFPBAC_BAD_TAG",
    BadSetType = 13 "OFPBAC_BAD_SET_TYPE", BadSetLen = 14 "OFPBAC_BAD_SET_LEN",
    BadSetArgument = 15 "OFPBAC_BAD_SET_ARGUMENT", BadSetMask = 16 "OFPBAC_BAD_SET_MASK",
    BadMeter = 17 "OFPBAC_BAD_METER",
});
codes!(/// Error codes of `OFPET_BAD_INSTRUCTION`.
BadInstruction {
    UnknownInst = 0 "OFPBIC_UNKNOWN_INST", UnsupInst = 1 "OFPBIC_UNSUP_INST", BadTableId = 2 "OFPBIC_BAD_TABLE_ID",
    UnsupMetadata = 3 "OFPBIC_UNSUP_METADATA", UnsupMetadataMask = 4 "OFPBIC_UNSUP_METADATA_MASK",
    BadExperimenter = 5 "OFPBIC_BAD_EXPERIMENTER", BadExpType = 6 "OFPBIC_BAD_EXP_TYPE", BadLen = 7 "OFPBIC_BAD_LEN",
    Eperm = 8 "OFPBIC_EPERM", DupInst = 9 "OFPBIC_DUP_INST",
});
codes!(/// Error codes of `OFPET_BAD_MATCH`.
BadMatch {
    BadType = 0 "OFPBMC_BAD_TYPE", BadLen = 1 "OFPBMC_BAD_LEN", BadTag = 2 "OFPBMC_BAD_TAG",
    BadDlAddrMask = 3 "OFPBMC_BAD_DL_ADDR_MASK", BadNwAddrMask = 4 "OFPBMC_BAD_NW_ADDR_MASK",
    BadWildcards = 5 "OFPBMC_BAD_WILDCARDS", BadField = 6 "OFPBMC_BAD_FIELD", BadValue = 7 "OFPBMC_BAD_VALUE",
    BadMask = 8 "OFPBMC_BAD_MASK", BadPrereq = 9 "OFPBMC_BAD_PREREQ", DupField = 10 "OFPBMC_DUP_FIELD",
    Eperm = 11 "OFPBMC_EPERM",
});
codes!(/// Error codes of `OFPET_FLOW_MOD_FAILED`.
FlowModFailed {
    Unknown = 0 "OFPFMFC_UNKNOWN", TableFull = 1 "OFPFMFC_TABLE_FULL", BadTableId = 2 "OFPFMFC_BAD_TABLE_ID",
    Overlap = 3 "OFPFMFC_OVERLAP", Eperm = 4 "OFPFMFC_EPERM", BadTimeout = 5 "OFPFMFC_BAD_TIMEOUT",
    BadCommand = 6 "OFPFMFC_BAD_COMMAND", BadFlags = 7 "OFPFMFC_BAD_FLAGS", CantSync = 8 "OFPFMFC_CANT_SYNC",
    BadPriority = 9 "OFPFMFC_BAD_PRIORITY", IsSync = 10 "OFPFMFC_IS_SYNC",
});
codes!(/// Error codes of `OFPET_GROUP_MOD_FAILED`.
GroupModFailed {
    GroupExists = 0 "OFPGMFC_GROUP_EXISTS", InvalidGroup = 1 "OFPGMFC_INVALID_GROUP",
    WeightUnsupported = 2 "OFPGMFC_WEIGHT_UNSUPPORTED", OutOfGroups = 3 "OFPGMFC_OUT_OF_GROUPS",
    OutOfBuckets = 4 "OFPGMFC_OUT_OF_BUCKETS", ChainingUnsupported = 5 "OFPGMFC_CHAINING_UNSUPPORTED",
    WatchUnsupported = 6 "OFPGMFC_WATCH_UNSUPPORTED", Loop = 7 "OFPGMFC_LOOP", UnknownGroup = 8 "OFPGMFC_UNKNOWN_GROUP",
    ChainedGroup = 9 "OFPGMFC_CHAINED_GROUP", BadType = 10 "OFPGMFC_BAD_TYPE", BadCommand = 11 "OFPGMFC_BAD_COMMAND",
    BadBucket = 12 "OFPGMFC_BAD_BUCKET", BadWatch = 13 "OFPGMFC_BAD_WATCH", Eperm = 14 "OFPGMFC_EPERM",
    UnknownBucket = 15 "OFPGMFC_UNKNOWN_BUCKET", BucketExists = 16 "OFPGMFC_BUCKET_EXISTS",
});
codes!(/// Error codes of `OFPET_PORT_MOD_FAILED`.
PortModFailed {
    BadPort = 0 "OFPPMFC_BAD_PORT", BadHwAddr = 1 "OFPPMFC_BAD_HW_ADDR", BadConfig = 2 "OFPPMFC_BAD_CONFIG",
    BadAdvertise = 3 "OFPPMFC_BAD_ADVERTISE", Eperm = 4 "OFPPMFC_EPERM",
});
codes!(/// Error codes of `OFPET_TABLE_MOD_FAILED`.
TableModFailed { BadTable = 0 "OFPTMFC_BAD_TABLE", BadConfig = 1 "OFPTMFC_BAD_CONFIG", Eperm = 2 "OFPTMFC_EPERM", });
codes!(/// Error codes of `OFPET_QUEUE_OP_FAILED`.
QueueOpFailed { BadPort = 0 "OFPQOFC_BAD_PORT", BadQueue = 1 "OFPQOFC_BAD_QUEUE", Eperm = 2 "OFPQOFC_EPERM", });
codes!(/// Error codes of `OFPET_SWITCH_CONFIG_FAILED`.
SwitchConfigFailed { BadFlags = 0 "OFPSCFC_BAD_FLAGS", BadLen = 1 "OFPSCFC_BAD_LEN", Eperm = 2 "OFPSCFC_EPERM", });
codes!(/// Error codes of `OFPET_ROLE_REQUEST_FAILED`.
RoleRequestFailed {
    Stale = 0 "OFPRRFC_STALE", Unsup = 1 "OFPRRFC_UNSUP", BadRole = 2 "OFPRRFC_BAD_ROLE", IdUnsup = 3 "OFPRRFC_ID_UNSUP",
    IdInUse = 4 "OFPRRFC_ID_IN_USE",
});
codes!(/// Error codes of `OFPET_METER_MOD_FAILED`.
MeterModFailed {
    Unknown = 0 "OFPMMFC_UNKNOWN", MeterExists = 1 "OFPMMFC_METER_EXISTS", InvalidMeter = 2 "OFPMMFC_INVALID_METER",
    UnknownMeter = 3 "OFPMMFC_UNKNOWN_METER", BadCommand = 4 "OFPMMFC_BAD_COMMAND", BadFlags = 5 "OFPMMFC_BAD_FLAGS",
    BadRate = 6 "OFPMMFC_BAD_RATE", BadBurst = 7 "OFPMMFC_BAD_BURST", BadBand = 8 "OFPMMFC_BAD_BAND",
    BadBandValue = 9 "OFPMMFC_BAD_BAND_VALUE", OutOfMeters = 10 "OFPMMFC_OUT_OF_METERS",
    OutOfBands = 11 "OFPMMFC_OUT_OF_BANDS",
});
codes!(/// Error codes of `OFPET_TABLE_FEATURES_FAILED`.
TableFeaturesFailed {
    BadTable = 0 "OFPTFFC_BAD_TABLE", BadMetadata = 1 "OFPTFFC_BAD_METADATA", BadType = 2 "OFPTFFC_BAD_TYPE",
    BadLen = 3 "OFPTFFC_BAD_LEN", BadArgument = 4 "OFPTFFC_BAD_ARGUMENT", Eperm = 5 "OFPTFFC_EPERM",
    BadCap = 6 "OFPTFFC_BAD_CAP", BadMaxEnt = 7 "OFPTFFC_BAD_MAX_ENT", BadFeatures = 8 "OFPTFFC_BAD_FEATURES",
    BadCommand = 9 "OFPTFFC_BAD_COMMAND", TooMany = 10 "OFPTFFC_TOO_MANY",
});
codes!(/// Error codes of `OFPET_BAD_PROPERTY` of 1.4.
BadProperty {
    BadType = 0 "OFPBPC_BAD_TYPE", BadLen = 1 "OFPBPC_BAD_LEN", BadValue = 2 "OFPBPC_BAD_VALUE",
    TooMany = 3 "OFPBPC_TOO_MANY", DupType = 4 "OFPBPC_DUP_TYPE", BadExperimenter = 5 "OFPBPC_BAD_EXPERIMENTER",
    BadExpType = 6 "OFPBPC_BAD_EXP_TYPE", BadExpValue = 7 "OFPBPC_BAD_EXP_VALUE", Eperm = 8 "OFPBPC_EPERM",
});
codes!(/// Error codes of `OFPET_ASYNC_CONFIG_FAILED` of 1.4.
AsyncConfigFailed { Invalid = 0 "OFPACFC_INVALID", Unsupported = 1 "OFPACFC_UNSUPPORTED", Eperm = 2 "OFPACFC_EPERM", });
codes!(/// Error codes of `OFPET_FLOW_MONITOR_FAILED` of 1.4.
FlowMonitorFailed {
    Unknown = 0 "OFPMOFC_UNKNOWN", MonitorExists = 1 "OFPMOFC_MONITOR_EXISTS",
    InvalidMonitor = 2 "OFPMOFC_INVALID_MONITOR", UnknownMonitor = 3 "OFPMOFC_UNKNOWN_MONITOR",
    BadCommand = 4 "OFPMOFC_BAD_COMMAND", BadFlags = 5 "OFPMOFC_BAD_FLAGS", BadTableId = 6 "OFPMOFC_BAD_TABLE_ID",
    BadOut = 7 "OFPMOFC_BAD_OUT",
});
codes!(/// Error codes of `OFPET_BUNDLE_FAILED` of 1.4; in 1.3 an error of the Open Networking Foundation's.
BundleFailed {
    Unknown = 0 "OFPBFC_UNKNOWN", Eperm = 1 "OFPBFC_EPERM", BadId = 2 "OFPBFC_BAD_ID",
    BundleExist = 3 "OFPBFC_BUNDLE_EXIST", BundleClosed = 4 "OFPBFC_BUNDLE_CLOSED",
    OutOfBundles = 5 "OFPBFC_OUT_OF_BUNDLES", BadType = 6 "OFPBFC_BAD_TYPE", BadFlags = 7 "OFPBFC_BAD_FLAGS",
    MsgBadLen = 8 "OFPBFC_MSG_BAD_LEN", MsgBadXid = 9 "OFPBFC_MSG_BAD_XID", MsgUnsup = 10 "OFPBFC_MSG_UNSUP",
    MsgConflict = 11 "OFPBFC_MSG_CONFLICT", MsgTooMany = 12 "OFPBFC_MSG_TOO_MANY", MsgFailed = 13 "OFPBFC_MSG_FAILED",
    Timeout = 14 "OFPBFC_TIMEOUT", BundleInProgress = 15 "OFPBFC_BUNDLE_IN_PROGRESS",
    SchedNotSupported = 16 "OFPBFC_SCHED_NOT_SUPPORTED", SchedFuture = 17 "OFPBFC_SCHED_FUTURE",
    SchedPast = 18 "OFPBFC_SCHED_PAST",
});

/// Type and code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.4.4)")]
pub enum ErrorType {
    HelloFailed(HelloFailed),
    BadRequest(BadRequest),
    BadAction(BadAction),
    BadInstruction(BadInstruction),
    BadMatch(BadMatch),
    FlowModFailed(FlowModFailed),
    GroupModFailed(GroupModFailed),
    PortModFailed(PortModFailed),
    TableModFailed(TableModFailed),
    QueueOpFailed(QueueOpFailed),
    SwitchConfigFailed(SwitchConfigFailed),
    RoleRequestFailed(RoleRequestFailed),
    MeterModFailed(MeterModFailed),
    TableFeaturesFailed(TableFeaturesFailed),
    BadProperty(BadProperty),
    AsyncConfigFailed(AsyncConfigFailed),
    FlowMonitorFailed(FlowMonitorFailed),
    BundleFailed(BundleFailed),
    /// `OFPET_EXPERIMENTER`: `kind` is the experimenter's error code, `id` its number. The experimenter's data is in
    /// [`ErrorMessage::data`].
    Experimenter {
        kind: u16,
        id: u32,
    },
    /// A type or code that weir does not know, in the numbering of the wire version it was received in.
    Unknown {
        kind: u16,
        code: u16,
    },
}
