//! Prints the messages about groups.
use super::{PrintContext, PrintDetail, shape};
use crate::model::group::{Bucket, GroupCommand, GroupDesc, GroupFeatures, GroupKind, GroupMod, GroupStats};
use crate::model::property::RawProperty;
use crate::model::{BucketId, GroupId, PortNo, Version};
use crate::text::action_text::write_actions;
use crate::text::flow::group_text;
use crate::text::raw::hex;
use std::fmt::Write as _;

pub(super) fn group_mod(group_mod: &GroupMod, show: PrintContext) -> String {
    let command = match group_mod.command {
        GroupCommand::Add => "ADD".into(),
        GroupCommand::Modify => "MOD".into(),
        GroupCommand::Delete => "DEL".into(),
        GroupCommand::InsertBucket => return format!("\n INSERT_BUCKET {}", bucket_command(group_mod, show)),
        GroupCommand::RemoveBucket => return format!("\n REMOVE_BUCKET {}", bucket_command(group_mod, show)),
        GroupCommand::Unknown(number) => format!("cmd:{number}"),
    };
    format!("\n {command} {}", group(group_mod.group, group_mod.kind, &group_mod.buckets, &group_mod.properties, show))
}

/// Prints the buckets that a 1.5 bucket command is about, and the buckets to insert.
fn bucket_command(change: &GroupMod, show: PrintContext) -> String {
    let at = match change.command_bucket {
        BucketId::FIRST => "first".to_owned(),
        BucketId::LAST => "last".into(),
        BucketId::ALL => "all".into(),
        BucketId(number) => number.to_string(),
    };
    let head = format!("command_bucket_id:{at},group_id={}{}", change.group.0, properties(&change.properties));
    // The command does not carry the group type, so the weights are printed as for a group other than select.
    buckets(head, &change.buckets, GroupKind::All, show)
}

/// Prints a group as `ovs-ofctl dump-groups` does, so that [`parse_group`](crate::text::parse_group) parses it back.
pub fn format_group(group: &GroupDesc) -> String {
    desc(
        group,
        PrintContext { version: Version::V13, number: Version::V13 as u8, detail: PrintDetail::Fields, depth: 0 },
    )
    .trim_start()
    .to_owned()
}

/// Prints the statistics of a group as `ovs-ofctl dump-group-stats` does.
pub fn format_group_stats(group: &GroupStats) -> String {
    stats(group).trim_start().to_owned()
}

pub(super) fn desc(desc: &GroupDesc, show: PrintContext) -> String {
    format!(" {}", group(desc.group, desc.kind, &desc.buckets, &desc.properties, show))
}

fn group(group: GroupId, kind: GroupKind, list: &[Bucket], own: &[RawProperty], show: PrintContext) -> String {
    buckets(format!("group_id={},type={kind}{}", group.0, properties(own)), list, kind, show)
}

fn buckets(head: String, list: &[Bucket], kind: GroupKind, show: PrintContext) -> String {
    (0..).map(BucketId).zip(list).fold(head, |text, (place, one)| text + &bucket(one, place, kind, show))
}

/// Prints an uninterpreted 1.5 property, in weir's own syntax, because no tool has one.
fn property(property: &RawProperty) -> String {
    format!("property({:#x},{})", property.kind, hex(&property.data.0))
}

/// Prints properties, each preceded by a comma.
fn properties(list: &[RawProperty]) -> String {
    list.iter().fold(String::new(), |text, one| text + "," + &property(one))
}

/// Prints a bucket. `place` is its index in the group, which is its number before 1.5.
fn bucket(bucket: &Bucket, place: BucketId, kind: GroupKind, show: PrintContext) -> String {
    let mut text = String::from(",bucket=");
    if show.version >= Version::V15 || bucket.id != place {
        let _ = write!(text, "bucket_id:{},", bucket.id.0);
    }
    if bucket.weight != kind.default_weight() {
        let _ = write!(text, "weight:{},", bucket.weight);
    }
    if bucket.watch_port != PortNo::ANY {
        let _ = write!(text, "watch_port:{},", bucket.watch_port);
    }
    if bucket.watch_group != GroupId::ANY {
        let _ = write!(text, "watch_group:{},", group_text(bucket.watch_group));
    }
    for one in &bucket.properties {
        let _ = write!(text, "{},", property(one));
    }
    let _ = write!(text, "actions={}", write_actions(&bucket.actions, show.version));
    text
}

pub(super) fn stats(stats: &GroupStats) -> String {
    let mut text = format!(" group_id={},", stats.group.0);
    if stats.duration_sec != u32::MAX {
        let _ = write!(text, "duration={},", shape::duration(stats.duration_sec, stats.duration_nsec));
    }
    let _ = write!(
        text,
        "ref_count={},packet_count={},byte_count={}",
        stats.ref_count, stats.packet_count, stats.byte_count
    );
    for (at, (packets, bytes)) in stats.buckets.iter().enumerate() {
        let _ = write!(text, ",bucket{at}:packet_count={packets},byte_count={bytes}");
    }
    text
}

/// Names of 1.3's action type bits in group and table features, in the order in which they are printed.
pub(super) const ACTIONS: shape::BitNames = &[
    (1 << 0, "output"),
    (1 << 22, "group"),
    (1 << 25, "set_field"),
    (1 << 18, "strip_vlan"),
    (1 << 17, "push_vlan"),
    (1 << 23, "mod_nw_ttl"),
    (1 << 24, "dec_ttl"),
    (1 << 15, "set_mpls_ttl"),
    (1 << 16, "dec_mpls_ttl"),
    (1 << 19, "push_mpls"),
    (1 << 20, "pop_mpls"),
    (1 << 21, "set_queue"),
    (1 << 11, "copy_ttl_out"),
    (1 << 12, "copy_ttl_in"),
    (1 << 26, "push_pbb"),
    (1 << 27, "pop_pbb"),
];

pub(super) fn features(features: &GroupFeatures) -> String {
    let mut text = String::from("\n Group table:\n");
    let _ = writeln!(text, "    Types:  {:#x}", features.types);
    let _ = writeln!(text, "    Capabilities:  {:#x}", features.capabilities);
    for (at, kind) in ["all", "select", "indirect", "fast failover"]
        .iter()
        .enumerate()
        .filter(|(at, _)| features.types & 1 << at != 0)
    {
        let actions = match features.actions[at] {
            0 => "<none>".into(),
            actions => shape::bits(actions, ACTIONS),
        };
        let _ = write!(text, "    {kind} group:\n       max_groups={:#x}\n", features.max_groups[at]);
        let _ = writeln!(text, "       actions: {actions}");
    }
    text
}
