//! Reads and writes the messages about groups (OpenFlow 1.3.5, 7.3.4.2, 7.3.5.9 to 7.3.5.11).
use super::action;
use crate::model::error::{BadAction, BadRequest, GroupModFailed};
use crate::model::group::{Bucket, GroupCommand, GroupDesc, GroupFeatures, GroupKind, GroupMod, GroupStats};
use crate::model::{BucketId, GroupId, PortNo};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<GroupMod> {
    let (command, kind) = (GroupCommand::from_number(reader.read_u16()?), GroupKind::from_number(reader.read_u8()?));
    reader.skip(1)?;
    let (group, buckets) = (GroupId(reader.read_u32()?), decode_buckets(reader)?);
    Ok(GroupMod { command, kind, group, command_bucket: BucketId::ALL, buckets, properties: Vec::new() })
}

pub(crate) fn encode_mod(group: &GroupMod, writer: &mut WireWriter<'_>) -> Encoded {
    if let Some(what) = only_in_v15(group) {
        return Err(writer.cannot(what));
    }
    writer.write_u16(group.command.number());
    writer.write_u8(group.kind.number());
    writer.write_zeros(1);
    writer.write_u32(group.group.0);
    group.buckets.iter().try_for_each(|bucket| encode_bucket(bucket, writer))
}

/// Returns the part of a group-mod that only 1.5 can carry and that changes its effect; `None` if there is none.
fn only_in_v15(group: &GroupMod) -> Option<&'static str> {
    let numbered_otherwise = || (0..).map(BucketId).zip(&group.buckets).any(|(place, bucket)| bucket.id != place);
    let has_properties =
        || !group.properties.is_empty() || group.buckets.iter().any(|bucket| !bucket.properties.is_empty());
    match group.command {
        GroupCommand::InsertBucket | GroupCommand::RemoveBucket => Some("a group-mod of some of a group's buckets"),
        _ if group.command_bucket != BucketId::ALL => Some("a group-mod that names a bucket"),
        _ if numbered_otherwise() => Some("buckets with numbers other than their places"),
        _ if has_properties() => Some("properties of groups and buckets"),
        _ => None,
    }
}

/// Returns a group-mod without the parts that only 1.5 has, for forwarding it to other controllers: buckets are
/// numbered by their index, and there are no properties.
pub(crate) fn without_newer(group: &GroupMod) -> GroupMod {
    let plain =
        |(place, bucket): (u32, &Bucket)| Bucket { id: BucketId(place), properties: Vec::new(), ..bucket.clone() };
    GroupMod { buckets: (0..).zip(&group.buckets).map(plain).collect(), properties: Vec::new(), ..group.clone() }
}

/// Reads buckets to the end, and numbers them by their index.
fn decode_buckets(reader: &mut WireReader<'_>) -> Decoded<Vec<Bucket>> {
    let ids = (0..).map(BucketId);
    Ok(ids.zip(reader.read_list(decode_bucket)?).map(|(id, bucket)| Bucket { id, ..bucket }).collect())
}

/// Reads a bucket, which has no number.
fn decode_bucket(reader: &mut WireReader<'_>) -> Decoded<Bucket> {
    let mut part = reader.take_element("bucket", 0, 16, GroupModFailed::BadBucket)?;
    part.skip(2)?;
    let (weight, watch_port, watch_group) = (part.read_u16()?, PortNo(part.read_u32()?), GroupId(part.read_u32()?));
    part.skip(4)?;
    let left = part.left();
    let actions = part.take_part(left, "actions", BadAction::BadLen)?.read_list(action::decode)?;
    Ok(Bucket { weight, watch_port, watch_group, ..Bucket::new(BucketId(0), actions) })
}

fn encode_bucket(bucket: &Bucket, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u16(bucket.weight);
    writer.write_u32(bucket.watch_port.0);
    writer.write_u32(bucket.watch_group.0);
    writer.write_zeros(4);
    action::encode_list(&bucket.actions, None, writer)?;
    writer.set_length(start, start)
}

/// Reads the group number of a multipart request.
pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<GroupId> {
    let group = GroupId(reader.read_u32()?);
    reader.skip(4)?;
    Ok(group)
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<GroupStats> {
    let mut part = reader.take_element("group statistics", 0, 40, BadRequest::BadLen)?;
    part.skip(4)?;
    let (group, ref_count) = (GroupId(part.read_u32()?), part.read_u32()?);
    part.skip(4)?;
    Ok(GroupStats {
        group,
        ref_count,
        packet_count: part.read_u64()?,
        byte_count: part.read_u64()?,
        duration_sec: part.read_u32()?,
        duration_nsec: part.read_u32()?,
        buckets: part.read_list(decode_counters)?,
    })
}

/// Reads the packets and bytes of a bucket or a meter's band.
pub(crate) fn decode_counters(reader: &mut WireReader<'_>) -> Decoded<(u64, u64)> {
    Ok((reader.read_u64()?, reader.read_u64()?))
}

pub(crate) fn encode_counters(counters: &[(u64, u64)], writer: &mut WireWriter<'_>) {
    for (packets, bytes) in counters {
        writer.write_u64(*packets);
        writer.write_u64(*bytes);
    }
}

pub(crate) fn encode_stats(stats: &GroupStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    writer.write_u32(stats.group.0);
    writer.write_u32(stats.ref_count);
    writer.write_zeros(4);
    writer.write_u64(stats.packet_count);
    writer.write_u64(stats.byte_count);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    encode_counters(&stats.buckets, writer);
    writer.set_length(start, start)
}

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<GroupDesc> {
    let mut part = reader.take_element("group description", 0, 8, BadRequest::BadLen)?;
    part.skip(2)?;
    let kind = GroupKind::from_number(part.read_u8()?);
    part.skip(1)?;
    let (group, buckets) = (GroupId(part.read_u32()?), decode_buckets(&mut part)?);
    Ok(GroupDesc { kind, group, buckets, properties: Vec::new() })
}

pub(crate) fn encode_desc(desc: &GroupDesc, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(desc.kind.number());
    writer.write_zeros(1);
    writer.write_u32(desc.group.0);
    desc.buckets.iter().try_for_each(|bucket| encode_bucket(bucket, writer))?;
    writer.set_length(start, start)
}

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<GroupFeatures> {
    let (types, capabilities) = (reader.read_u32()?, reader.read_u32()?);
    let mut words = [0; 8];
    for word in &mut words {
        *word = reader.read_u32()?;
    }
    let [a, b, c, d, actions @ ..] = words;
    Ok(GroupFeatures { types, capabilities, max_groups: [a, b, c, d], actions })
}

pub(crate) fn encode_features(features: &GroupFeatures, writer: &mut WireWriter<'_>) {
    writer.write_u32(features.types);
    writer.write_u32(features.capabilities);
    for word in features.max_groups.into_iter().chain(features.actions) {
        writer.write_u32(word);
    }
}
