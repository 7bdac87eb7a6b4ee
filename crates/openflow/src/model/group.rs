//! Defines group messages: group-mod, group statistics, descriptions and features.
use super::property::RawProperty;
use super::{Action, PortNo};
use serde::Serialize;

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

/// Group-mod, `ofp_group_mod` (OpenFlow 1.3.5, 7.3.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupMod {
    /// Command, `OFPGC_*`: 0 add, 1 modify, 2 delete, 1.5: 3 insert buckets, 5 remove buckets. Other numbers are
    /// kept, so that the switch can refuse them with the right error code.
    pub command: u16,
    /// Group type, `OFPGT_*`: 0 all, 1 select, 2 indirect, 3 fast failover.
    pub kind: u8,
    /// Number of the group.
    pub group: GroupId,
    /// 1.5: the bucket before which to insert, or which to remove. [`BucketId::ALL`] in earlier versions.
    pub command_bucket: BucketId,
    /// Buckets to set, or to insert.
    pub buckets: Vec<Bucket>,
    /// 1.5: properties, in the order received.
    pub properties: Vec<RawProperty>,
}

impl GroupMod {
    /// Adds a group, `OFPGC_ADD`.
    pub const ADD: u16 = 0;
    /// Modifies a group, `OFPGC_MODIFY`.
    pub const MODIFY: u16 = 1;
    /// Deletes a group, `OFPGC_DELETE`.
    pub const DELETE: u16 = 2;
    /// 1.5: inserts buckets, `OFPGC_INSERT_BUCKET`.
    pub const INSERT_BUCKET: u16 = 3;
    /// 1.5: removes buckets, `OFPGC_REMOVE_BUCKET`.
    pub const REMOVE_BUCKET: u16 = 5;
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

/// Bucket of a group, `ofp_bucket` (OpenFlow 1.3.5, 7.3.4.3).
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
    pub kind: u8,
    pub group: GroupId,
    pub buckets: Vec<Bucket>,
    pub properties: Vec<RawProperty>,
}

/// Group features of a switch, `ofp_group_features` (OpenFlow 1.3.5, 7.3.5.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GroupFeatures {
    /// Supported group types, a bitmap of `OFPGT_*`.
    pub types: u32,
    /// Capabilities, `OFPGFC_*` bits.
    pub capabilities: u32,
    /// Maximum number of groups, for each type.
    pub max_groups: [u32; 4],
    /// Bitmap of supported actions, for each type.
    pub actions: [u32; 4],
}
