//! Bundles: messages that take effect together (OpenFlow 1.4.1, 7.3.9; in 1.3 the Open Networking Foundation's extension 230).
use super::{Message, property::Property};
use serde::Serialize;

/// A bundle's number; each channel has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BundleId(pub u32);

/// What a bundle control message asks for, or answers (`OFPBCT_*`).
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

/// `OFPBF_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Default)]
#[serde(transparent)]
pub struct BundleFlags(pub u16);

#[allow(missing_docs, reason = "named by the specification")]
impl BundleFlags {
    pub const ATOMIC: BundleFlags = BundleFlags(1 << 0);
    pub const ORDERED: BundleFlags = BundleFlags(1 << 1);
    /// 1.5: the commit carries the time at which it is to happen.
    pub const TIME: BundleFlags = BundleFlags(1 << 2);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: BundleFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// `ofp_bundle_ctrl_msg`, request or reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleControl {
    /// Which bundle.
    pub bundle: BundleId,
    /// What is asked or answered.
    pub command: BundleCommand,
    /// How the bundle's messages are carried out.
    pub flags: BundleFlags,
    /// The properties, in the order they came.
    pub properties: Vec<BundleProperty>,
}

/// `ofp_bundle_add_msg`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleAdd {
    /// Which bundle.
    pub bundle: BundleId,
    /// As in the message that opened it.
    pub flags: BundleFlags,
    /// The message to add. Its transaction id should be the outer one.
    pub message: Box<Message>,
    /// The properties, in the order they came.
    pub properties: Vec<BundleProperty>,
}

/// `ofp_bundle_prop_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum BundleProperty {
    /// 1.5: when a commit is to happen.
    Time(Time),
    /// Any other.
    Other(Property),
}

/// `ofp_time` (OpenFlow 1.5.1, 7.3.5.20): since the beginning of 1970, or a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct Time {
    pub seconds: u64,
    pub nanoseconds: u32,
}

/// `ofp_bundle_features_request` (OpenFlow 1.5.1, 7.3.5.20).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct BundleFeaturesRequest {
    /// `OFPBF_TIMESTAMP` (1): the properties carry the controller's time; `OFPBF_TIME_SET_SCHED` (2): and the tolerances that it sets.
    pub flags: u32,
    /// The properties, in the order they came.
    pub properties: Vec<BundleFeaturesProperty>,
}

/// `ofp_bundle_features` (OpenFlow 1.5.1, 7.3.5.20).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct BundleFeatures {
    /// The bundle flags that the switch supports.
    pub capabilities: BundleFlags,
    /// The properties, in the order they came.
    pub properties: Vec<BundleFeaturesProperty>,
}

/// `ofp_bundle_features_prop_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum BundleFeaturesProperty {
    /// What scheduled commits can do.
    Time {
        /// How exact they are.
        accuracy: Time,
        /// How far ahead they may be.
        max_future: Time,
        /// How late they may come.
        max_past: Time,
        /// The sender's time.
        timestamp: Time,
    },
    /// Any other.
    Other(Property),
}
