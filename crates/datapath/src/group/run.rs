//! Runs a packet through groups (OpenFlow 1.3.5, 5.6.1).
//!
//! Each bucket works on its own packet, so the packet given to a group stays unchanged. The last bucket is deferred
//! ([`PipelinePacket::wait_for`]): if the packet is not needed afterwards, the bucket gets the packet itself instead of
//! a copy.
use super::select::SelectHash;
use super::{GroupEntry, GroupTable};
use crate::DropReason;
use crate::effects::{BucketRef, Effects, PuntOrigin};
use crate::execute;
use crate::packet::PipelinePacket;
use weir_openflow::model::GroupId;
use weir_openflow::model::group::GroupKind;

/// Runs a packet through a group.
pub(crate) fn run(
    groups: &GroupTable,
    id: GroupId,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) {
    // Flow entries are removed with their group and packet-outs are checked, so a missing group means a bug
    // elsewhere.
    let Some((slot, group)) = groups.find(id) else { return packet.dropped(DropReason::UnknownGroup, fx) };
    fx.grouped(slot, packet.frame.len());
    if !group.is_live {
        return packet.dropped(DropReason::NoLiveBucket, fx);
    }
    let live = || (0..).zip(&group.buckets).filter(|(_, bucket)| bucket.is_live).map(|(number, _)| number);
    match group.kind {
        GroupKind::All => live().for_each(|bucket| packet.wait_for(BucketRef::new(slot, bucket), origin, fx)),
        kind => {
            let bucket = if kind == GroupKind::Select {
                group.hashed(groups).choose(group, packet.key())
            } else {
                live().next()
            };
            if let Some(bucket) = bucket {
                packet.wait_for(BucketRef::new(slot, bucket), origin, fx);
            }
        }
    }
}

/// Runs a bucket's actions on a packet that belongs to the bucket alone.
pub(crate) fn run_bucket(
    groups: &GroupTable,
    at: BucketRef,
    packet: &mut PipelinePacket,
    origin: PuntOrigin,
    fx: &mut impl Effects,
) {
    let Some(group) = groups.at(at.slot()) else { return };
    let Some(bucket) = group.buckets.get(at.bucket()) else { return };
    if !packet.enters_bucket() {
        return packet.dropped(DropReason::TooManyBuckets, fx);
    }
    fx.bucket_taken(group.id, at, packet.frame.len());
    let _ = execute::run(bucket.actions.iter(), packet, origin, fx);
}

impl GroupEntry {
    /// Returns the hash by which the group chooses a bucket.
    fn hashed<'a>(&'a self, groups: &'a GroupTable) -> &'a SelectHash {
        self.hashed.as_deref().unwrap_or(&groups.hashed)
    }
}
