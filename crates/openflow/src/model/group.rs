//! Groups.
use super::property::Property;
use super::{Action, PortNo};
use serde::Serialize;

/// A group's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The highest number a group can have.
    pub const MAX: GroupId = GroupId(0xffff_ff00);
    /// Every group, in deletes and requests.
    pub const ALL: GroupId = GroupId(0xffff_fffc);
    /// No group in particular, in requests.
    pub const ANY: GroupId = GroupId(0xffff_ffff);
}

/// `ofp_group_mod` (OpenFlow 1.3.5, 7.3.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupMod {
    /// `OFPGC_*`: 0 add, 1 modify, 2 delete, 1.5: 3 insert buckets, 5 remove buckets; other numbers are kept so that the switch can refuse them by name.
    pub command: u16,
    /// `OFPGT_*`: 0 all, 1 select, 2 indirect, 3 fast failover.
    pub kind: u8,
    /// Which group.
    pub group: GroupId,
    /// 1.5: the bucket before which others are inserted, or that is removed. [`BucketId::ALL`] in versions before.
    pub command_bucket: BucketId,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// 1.5: the properties, in the order they came.
    pub properties: Vec<Property>,
}

impl GroupMod {
    /// `OFPGC_ADD`.
    pub const ADD: u16 = 0;
    /// `OFPGC_MODIFY`.
    pub const MODIFY: u16 = 1;
    /// `OFPGC_DELETE`.
    pub const DELETE: u16 = 2;
    /// `OFPGC_INSERT_BUCKET` of 1.5.
    pub const INSERT_BUCKET: u16 = 3;
    /// `OFPGC_REMOVE_BUCKET` of 1.5.
    pub const REMOVE_BUCKET: u16 = 5;
}

/// A bucket's number in its group (OpenFlow 1.5.1, 7.3.4.3.1). In versions before, the bucket's place, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BucketId(pub u32);

impl BucketId {
    /// The highest number a bucket can have.
    pub const MAX: BucketId = BucketId(0xffff_ff00);
    /// The first bucket, in inserts and removes.
    pub const FIRST: BucketId = BucketId(0xffff_fffd);
    /// The last bucket, in inserts and removes.
    pub const LAST: BucketId = BucketId(0xffff_fffe);
    /// Every bucket, in removes; and in the commands that name none.
    pub const ALL: BucketId = BucketId(0xffff_ffff);
}

/// `ofp_bucket` (OpenFlow 1.3.5, 7.3.4.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Bucket {
    /// Its number in the group.
    pub id: BucketId,
    /// Share in a select group.
    pub weight: u16,
    /// Port whose life keeps the bucket alive; `ANY` for none.
    pub watch_port: PortNo,
    /// Group whose life keeps the bucket alive; `ANY` for none.
    pub watch_group: GroupId,
    /// Its action set.
    pub actions: Vec<Action>,
    /// 1.5: the properties beside weight and watches, in the order they came.
    pub properties: Vec<Property>,
}

impl Bucket {
    /// A bucket of weight 0 that watches nothing.
    pub const fn new(id: BucketId, actions: Vec<Action>) -> Bucket {
        let (watch_port, watch_group) = (PortNo::ANY, GroupId::ANY);
        Bucket { id, weight: 0, watch_port, watch_group, actions, properties: Vec::new() }
    }
}

/// `ofp_group_stats` (OpenFlow 1.3.5, 7.3.5.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct GroupStats {
    pub group: GroupId,
    pub ref_count: u32,
    pub packet_count: u64,
    pub byte_count: u64,
    pub duration_sec: u32,
    pub duration_nsec: u32,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// `ofp_group_desc` (OpenFlow 1.3.5, 7.3.5.10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in the group-mod")]
pub struct GroupDesc {
    pub kind: u8,
    pub group: GroupId,
    pub buckets: Vec<Bucket>,
    pub properties: Vec<Property>,
}

/// `ofp_group_features` (OpenFlow 1.3.5, 7.3.5.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GroupFeatures {
    /// Bitmap of `OFPGT_*`.
    pub types: u32,
    /// `OFPGFC_*`.
    pub capabilities: u32,
    /// Most groups of each type.
    pub max_groups: [u32; 4],
    /// Bitmap of action types for each type.
    pub actions: [u32; 4],
}
