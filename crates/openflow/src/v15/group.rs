//! Reads and writes the messages about groups (OpenFlow 1.5.1, 7.3.4.3 and 7.3.5.11): buckets have numbers, and
//! values that only some group types need are properties.
use crate::model::error::{BadAction, BadRequest, GroupModFailed};
use crate::model::group::{Bucket, GroupCommand, GroupDesc, GroupKind, GroupMod};
use crate::model::{BucketId, GroupId, PortNo};
use crate::v13::action;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

const WEIGHT: u16 = 0;
const WATCH_PORT: u16 = 1;
const WATCH_GROUP: u16 = 2;

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<GroupMod> {
    let (command, kind) = (GroupCommand::from_number(reader.read_u16()?), GroupKind::from_number(reader.read_u8()?));
    reader.skip(1)?;
    let (group, length) = (GroupId(reader.read_u32()?), reader.read_u16()?);
    reader.skip(2)?;
    let command_bucket = BucketId(reader.read_u32()?);
    let buckets = decode_buckets(length, kind, reader)?;
    Ok(GroupMod { command, kind, group, command_bucket, buckets, properties: property::decode_list(reader)? })
}

pub(crate) fn encode_mod(group: &GroupMod, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(group.command.number());
    writer.write_u8(group.kind.number());
    writer.write_zeros(1);
    writer.write_u32(group.group.0);
    let place = writer.at();
    writer.write_zeros(4);
    writer.write_u32(group.command_bucket.0);
    encode_buckets(&group.buckets, group.kind, place, writer)?;
    property::encode_list(&group.properties, writer)
}

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<GroupDesc> {
    let mut part = reader.take_element("group description", 0, 16, BadRequest::BadLen)?;
    part.skip(2)?;
    let kind = GroupKind::from_number(part.read_u8()?);
    part.skip(1)?;
    let (group, length) = (GroupId(part.read_u32()?), part.read_u16()?);
    part.skip(6)?;
    let buckets = decode_buckets(length, kind, &mut part)?;
    Ok(GroupDesc { kind, group, buckets, properties: property::decode_list(&mut part)? })
}

pub(crate) fn encode_desc(desc: &GroupDesc, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(desc.kind.number());
    writer.write_zeros(1);
    writer.write_u32(desc.group.0);
    let place = writer.at();
    writer.write_zeros(8);
    encode_buckets(&desc.buckets, desc.kind, place, writer)?;
    property::encode_list(&desc.properties, writer)?;
    writer.set_length(start, start)
}

fn decode_buckets(length: u16, kind: GroupKind, reader: &mut WireReader<'_>) -> Decoded<Vec<Bucket>> {
    let mut part = reader.take_part(length.into(), "buckets", GroupModFailed::BadBucket)?;
    part.read_list(|part| decode_bucket(kind, part))
}

/// Writes buckets, and their length in bytes into the 16 bits at offset `place`.
fn encode_buckets(buckets: &[Bucket], kind: GroupKind, place: usize, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    buckets.iter().try_for_each(|bucket| encode_bucket(bucket, kind, writer))?;
    writer.set_length(place, start)
}

fn decode_bucket(kind: GroupKind, reader: &mut WireReader<'_>) -> Decoded<Bucket> {
    let mut part = reader.take_element("bucket", 0, 8, GroupModFailed::BadBucket)?;
    part.skip(2)?;
    let (length, id) = (part.read_u16()?, BucketId(part.read_u32()?));
    let actions = part.take_part(length.into(), "actions", BadAction::BadLen)?.read_list(action::decode)?;
    let mut bucket = Bucket { weight: kind.default_weight(), ..Bucket::new(id, actions) };
    property::each(&mut part, |kind, part| {
        match kind {
            WEIGHT => {
                bucket.weight = part.read_u16()?;
                part.skip(2)?;
            }
            WATCH_PORT => bucket.watch_port = PortNo(part.read_u32()?),
            WATCH_GROUP => bucket.watch_group = GroupId(part.read_u32()?),
            kind => bucket.properties.push(property::raw(kind, part)),
        }
        Ok(())
    })?;
    Ok(bucket)
}

fn encode_bucket(bucket: &Bucket, kind: GroupKind, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    writer.write_u32(bucket.id.0);
    let actions = writer.at();
    action::encode_list(&bucket.actions, None, writer)?;
    writer.set_length(start + 2, actions)?;
    if bucket.weight != kind.default_weight() {
        property::write_words(WEIGHT, &[u32::from(bucket.weight) << 16], writer)?;
    }
    if bucket.watch_port != PortNo::ANY {
        property::write_words(WATCH_PORT, &[bucket.watch_port.0], writer)?;
    }
    if bucket.watch_group != GroupId::ANY {
        property::write_words(WATCH_GROUP, &[bucket.watch_group.0], writer)?;
    }
    property::encode_list(&bucket.properties, writer)?;
    writer.set_length(start, start)
}
