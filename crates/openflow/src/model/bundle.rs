//! Defines bundles: messages that take effect together (OpenFlow 1.4.1, 7.3.9; in 1.3 extension 230 of the Open
//! Networking Foundation).
use super::{Message, property::RawProperty};
use serde::Serialize;

/// Bundle number, unique within its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BundleId(pub u32);

/// Command of a bundle control message, request or reply (`OFPBCT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum BundleCommand {
    OpenRequest = 0,
    OpenReply = 1,
    CloseRequest = 2,
    CloseReply = 3,
    CommitRequest = 4,
    CommitReply = 5,
    DiscardRequest = 6,
    DiscardReply = 7,
}

/// Bundle flags, `OFPBF_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct BundleFlags(pub u16);

#[allow(missing_docs, reason = "named by the specification")]
impl BundleFlags {
    pub const ATOMIC: BundleFlags = BundleFlags(1 << 0);
    pub const ORDERED: BundleFlags = BundleFlags(1 << 1);
    /// 1.5: the commit carries the time at which to execute it.
    pub const TIME: BundleFlags = BundleFlags(1 << 2);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: BundleFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Bundle control message, `ofp_bundle_ctrl_msg`, request or reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleControl {
    /// Number of the bundle.
    pub bundle: BundleId,
    /// Command that is requested or answered.
    pub command: BundleCommand,
    /// Requirements on the execution of the bundle's messages.
    pub flags: BundleFlags,
    /// Properties, in the order received.
    pub properties: Vec<BundleProperty>,
}

/// Bundle add message, `ofp_bundle_add_msg`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleAdd {
    /// Number of the bundle.
    pub bundle: BundleId,
    /// Flags; they should equal those of the open request.
    pub flags: BundleFlags,
    /// Message to add. Its transaction id should equal that of the enclosing message.
    pub message: Box<Message>,
    /// Properties, in the order received.
    pub properties: Vec<BundleProperty>,
}

/// Property of a bundle message, `ofp_bundle_prop_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum BundleProperty {
    /// 1.5: time at which to execute a commit.
    Time(BundleTime),
    /// Any other property.
    Other(RawProperty),
}

/// `ofp_time` (OpenFlow 1.5.1, 7.3.5.20): a time since the start of 1970, or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct BundleTime {
    pub seconds: u64,
    pub nanoseconds: u32,
}

/// Request for bundle features, `ofp_bundle_features_request` (OpenFlow 1.5.1, 7.3.5.20).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct BundleFeaturesRequest {
    /// `OFPBF_TIMESTAMP` (1): the properties carry the controller's time. `OFPBF_TIME_SET_SCHED` (2): they also carry
    /// tolerances that the controller sets.
    pub flags: u32,
    /// Properties, in the order received.
    pub properties: Vec<BundleFeaturesProperty>,
}

/// Bundle features of a switch, `ofp_bundle_features` (OpenFlow 1.5.1, 7.3.5.20).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct BundleFeatures {
    /// Bundle flags that the switch supports.
    pub capabilities: BundleFlags,
    /// Properties, in the order received.
    pub properties: Vec<BundleFeaturesProperty>,
}

/// Property of bundle features, `ofp_bundle_features_prop_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum BundleFeaturesProperty {
    /// Limits of scheduled commits.
    Time {
        /// Accuracy of the execution time.
        accuracy: BundleTime,
        /// Longest time between now and a scheduled time in the future.
        max_future: BundleTime,
        /// Longest time by which a scheduled time may lie in the past.
        max_past: BundleTime,
        /// Clock of the sender.
        timestamp: BundleTime,
    },
    /// Any other property.
    Other(RawProperty),
}
