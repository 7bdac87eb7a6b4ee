//! Defines group messages: group-mod, group statistics, descriptions and features.
use super::numbered::numbered_enum;
use super::property::RawProperty;
use super::{Action, PortNo};
use serde::Serialize;
use std::fmt;

/// Number of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Highest number of a group.
    pub const MAX: GroupId = GroupId(0xffff_ff00);
    /// All groups, in deletes and requests.
    pub const ALL: GroupId = GroupId(0xffff_fffc);
    /// Any group (no restriction), in requests.
    pub const ANY: GroupId = GroupId(0xffff_ffff);
}

numbered_enum! {
    /// Command of a group-mod, `OFPGC_*` (OpenFlow 1.3.5, 7.3.4.2; OpenFlow 1.5.1, 7.3.4.3).
    #[derive(Serialize)]
    #[serde(into = "u16")]
    pub enum GroupCommand: u16 {
        /// `OFPGC_ADD`: adds a group.
        Add = 0,
        /// `OFPGC_MODIFY`: replaces the type and the buckets of a group.
        Modify = 1,
        /// `OFPGC_DELETE`: deletes a group or all groups.
        Delete = 2,
        /// `OFPGC_INSERT_BUCKET`: inserts buckets into a group. Since OpenFlow 1.5.
        InsertBucket = 3,
        /// `OFPGC_REMOVE_BUCKET`: removes buckets from a group. Since OpenFlow 1.5.
        RemoveBucket = 5,
    }
}

numbered_enum! {
    /// Type of a group, `OFPGT_*` (OpenFlow 1.3.5, 7.3.4.2): which of its buckets a packet takes.
    #[derive(Serialize)]
    #[serde(into = "u8")]
    pub enum GroupKind: u8 {
        /// `OFPGT_ALL`: all buckets.
        All = 0,
        /// `OFPGT_SELECT`: one bucket, chosen by the switch.
        Select = 1,
        /// `OFPGT_INDIRECT`: the only bucket.
        Indirect = 2,
        /// `OFPGT_FF`: the first live bucket.
        FastFailover = 3,
    }
}

impl GroupKind {
    /// Returns the weight of a bucket that states none: 1 in a select group, otherwise 0.
    pub fn default_weight(self) -> u16 {
        u16::from(self == GroupKind::Select)
    }
}

impl fmt::Display for GroupKind {
    /// Writes the name in the text of `ovs-ofctl`, or the number of an unknown type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupKind::All => "all",
            GroupKind::Select => "select",
            GroupKind::Indirect => "indirect",
            GroupKind::FastFailover => "ff",
            GroupKind::Unknown(number) => return number.fmt(f),
        })
    }
}

/// Group-mod, `ofp_group_mod` (OpenFlow 1.3.5, 7.3.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupMod {
    /// Change to make.
    pub command: GroupCommand,
    /// Type of the group.
    pub kind: GroupKind,
    /// Number of the group.
    pub group: GroupId,
    /// 1.5: the bucket behind which to insert, or which to remove (OpenFlow 1.5.1, 6.7). [`BucketId::ALL`] in earlier
    /// versions.
    pub command_bucket: BucketId,
    /// Buckets to set, or to insert.
    pub buckets: Vec<Bucket>,
    /// 1.5: properties, in the order received.
    pub properties: Vec<RawProperty>,
}

/// Bucket number, unique within its group (OpenFlow 1.5.1, 7.3.4.3.1). In earlier versions, the bucket's index from
/// 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BucketId(pub u32);

impl BucketId {
    /// Highest number of a bucket.
    pub const MAX: BucketId = BucketId(0xffff_ff00);
    /// The first bucket; only in inserts and removes.
    pub const FIRST: BucketId = BucketId(0xffff_fffd);
    /// The last bucket; only in inserts and removes.
    pub const LAST: BucketId = BucketId(0xffff_fffe);
    /// All buckets, in removes. Also the value in commands that name no bucket.
    pub const ALL: BucketId = BucketId(0xffff_ffff);
}

/// Bucket of a group, `ofp_bucket` (OpenFlow 1.3.5, 7.3.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Bucket {
    /// Number within the group.
    pub id: BucketId,
    /// Weight: relative share in a select group.
    pub weight: u16,
    /// Port that must be live for the bucket to be live; `ANY` for none.
    pub watch_port: PortNo,
    /// Group that must be live for the bucket to be live; `ANY` for none.
    pub watch_group: GroupId,
    /// Actions of the bucket, run as an action set.
    pub actions: Vec<Action>,
    /// 1.5: properties other than weight and watches, in the order received.
    pub properties: Vec<RawProperty>,
}

impl Bucket {
    /// Returns a bucket of weight 0 that watches no port or group.
    pub const fn new(id: BucketId, actions: Vec<Action>) -> Bucket {
        let (watch_port, watch_group) = (PortNo::ANY, GroupId::ANY);
        Bucket { id, weight: 0, watch_port, watch_group, actions, properties: Vec::new() }
    }
}

/// Statistics of a group, `ofp_group_stats` (OpenFlow 1.3.5, 7.3.5.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct GroupStats {
    pub group: GroupId,
    pub ref_count: u32,
    pub packet_count: u64,
    pub byte_count: u64,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    /// Packets and bytes, for each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// Description of a group, `ofp_group_desc` (OpenFlow 1.3.5, 7.3.5.10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the group-mod")]
pub struct GroupDesc {
    pub kind: GroupKind,
    pub group: GroupId,
    pub buckets: Vec<Bucket>,
    pub properties: Vec<RawProperty>,
}

/// Group features of a switch, `ofp_group_features` (OpenFlow 1.3.5, 7.3.5.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GroupFeatures {
    /// Supported group types, a bitmap of the numbers of [`GroupKind`].
    pub types: u32,
    /// Capabilities, `OFPGFC_*` bits.
    pub capabilities: u32,
    /// Maximum number of groups, for each type.
    pub max_groups: [u32; 4],
    /// Bitmap of supported actions, for each type.
    pub actions: [u32; 4],
}
