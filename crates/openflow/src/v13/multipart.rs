//! Reads and writes multipart requests and replies (OpenFlow 1.3.5, 7.3.5).
use super::{flow, group, meter, onf, port, queue, table};
use crate::codec::{DecodeError, HEADER_BYTES};
use crate::model::error::BadRequest;
use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use crate::model::{GroupId, PortNo, Version};
use crate::wire::multipart::kind::{
    self, AGGREGATE, DESC, EXPERIMENTER, FLOW, GROUP, GROUP_DESC, GROUP_FEATURES, METER, METER_CONFIG, METER_FEATURES,
    PORT_DESC, PORT_STATS, QUEUE, TABLE, TABLE_FEATURES,
};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, multipart, opaque};

pub(crate) fn decode_head(reader: &mut WireReader<'_>) -> Decoded<(u16, bool)> {
    let head = multipart::decode_head(reader)?;
    reader.skip(4)?;
    Ok(head)
}

fn encode_head(kind: u16, more: bool, writer: &mut WireWriter<'_>) {
    multipart::encode_head(kind, more, writer);
    writer.write_zeros(4);
}

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<MultipartRequest> {
    let (kind, more) = decode_head(reader)?;
    Ok(MultipartRequest { more, body: decode_request_body(kind, reader)? })
}

pub(crate) fn decode_request_body(kind: u16, reader: &mut WireReader<'_>) -> Decoded<RequestBody> {
    Ok(match kind {
        DESC => RequestBody::Desc,
        FLOW => RequestBody::Flow(flow::decode_request(reader)?),
        AGGREGATE => RequestBody::Aggregate(flow::decode_request(reader)?),
        TABLE => RequestBody::Table,
        PORT_STATS => RequestBody::PortStats(queue::decode_config_request(reader)?),
        QUEUE => RequestBody::Queue { port: PortNo(reader.read_u32()?), queue: reader.read_u32()? },
        GROUP => RequestBody::Group(group::decode_request(reader)?),
        GROUP_DESC => RequestBody::GroupDesc(GroupId::ALL),
        GROUP_FEATURES => RequestBody::GroupFeatures,
        METER => RequestBody::Meter(meter::decode_request(reader)?),
        METER_CONFIG => RequestBody::MeterConfig(meter::decode_request(reader)?),
        METER_FEATURES => RequestBody::MeterFeatures,
        TABLE_FEATURES => RequestBody::TableFeatures(reader.read_list(table::decode_features)?),
        PORT_DESC => RequestBody::PortDesc(PortNo::ANY),
        EXPERIMENTER => onf::decode_request(reader)?,
        kind => return Err(no_type(kind, reader)),
    })
}

/// Returns the error that the version has no multipart message of this type.
fn no_type(kind: u16, reader: &WireReader<'_>) -> DecodeError {
    let reason = format!("found multipart type {kind}, which {} does not have", reader.version().name());
    reader.error_at(HEADER_BYTES, BadRequest::BadMultipart, reason)
}

pub(crate) fn encode_request(request: &MultipartRequest, writer: &mut WireWriter<'_>) -> Encoded {
    encode_request_head(request, writer)?;
    encode_request_body(&request.body, writer)
}

/// Writes the head of a request in the writer's version.
pub(crate) fn encode_request_head(request: &MultipartRequest, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = kind::of_request(&request.body, writer.version())
        .ok_or_else(|| writer.cannot("this multipart request, which other versions have"))?;
    encode_head(kind, request.more, writer);
    Ok(())
}

pub(crate) fn encode_request_body(body: &RequestBody, writer: &mut WireWriter<'_>) -> Encoded {
    let mut number = |number: u32| {
        writer.write_u32(number);
        writer.write_zeros(4);
    };
    match body {
        RequestBody::PortStats(port) => number(port.0),
        RequestBody::Group(group) => number(group.0),
        RequestBody::Meter(meter) | RequestBody::MeterConfig(meter) => number(meter.0),
        RequestBody::Flow(request) | RequestBody::Aggregate(request) => flow::encode_request(request, writer)?,
        RequestBody::Queue { port, queue } => {
            writer.write_u32(port.0);
            writer.write_u32(*queue);
        }
        RequestBody::TableFeatures(tables) => tables.iter().try_for_each(|t| table::encode_features(t, writer))?,
        RequestBody::FlowMonitor(monitors) => onf::encode_monitors(monitors, writer)?,
        RequestBody::Experimenter(experimenter) => opaque::encode(experimenter, Version::V13, writer)?,
        _ => (),
    }
    Ok(())
}

pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<MultipartReply> {
    let (kind, more) = decode_head(reader)?;
    Ok(MultipartReply { more, body: decode_reply_body(kind, reader)? })
}

pub(crate) fn decode_reply_body(kind: u16, reader: &mut WireReader<'_>) -> Decoded<ReplyBody> {
    Ok(match kind {
        DESC => ReplyBody::Desc(multipart::decode_desc(reader)?),
        FLOW => ReplyBody::Flow(reader.read_list(flow::decode_stats)?),
        AGGREGATE => ReplyBody::Aggregate(multipart::decode_aggregate(reader)?),
        TABLE => ReplyBody::Table(reader.read_list(table::decode_stats)?),
        PORT_STATS => ReplyBody::PortStats(reader.read_list(port::decode_stats)?),
        QUEUE => ReplyBody::Queue(reader.read_list(queue::decode_stats)?),
        GROUP => ReplyBody::Group(reader.read_list(group::decode_stats)?),
        GROUP_DESC => ReplyBody::GroupDesc(reader.read_list(group::decode_desc)?),
        GROUP_FEATURES => ReplyBody::GroupFeatures(group::decode_features(reader)?),
        METER => ReplyBody::Meter(reader.read_list(meter::decode_stats)?),
        METER_CONFIG => ReplyBody::MeterConfig(reader.read_list(meter::decode_config)?),
        METER_FEATURES => ReplyBody::MeterFeatures(meter::decode_features(reader)?),
        TABLE_FEATURES => ReplyBody::TableFeatures(reader.read_list(table::decode_features)?),
        PORT_DESC => ReplyBody::PortDesc(reader.read_list(port::decode_desc)?),
        EXPERIMENTER => onf::decode_reply(reader)?,
        kind => return Err(no_type(kind, reader)),
    })
}

pub(crate) fn encode_reply(reply: &MultipartReply, writer: &mut WireWriter<'_>) -> Encoded {
    encode_reply_head(reply, writer)?;
    encode_reply_body(&reply.body, writer)
}

/// Writes the head of a reply in the writer's version.
pub(crate) fn encode_reply_head(reply: &MultipartReply, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = kind::of_reply(&reply.body, writer.version())
        .ok_or_else(|| writer.cannot("this multipart reply, which other versions have"))?;
    encode_head(kind, reply.more, writer);
    Ok(())
}

pub(crate) fn encode_reply_body(body: &ReplyBody, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        ReplyBody::Desc(desc) => multipart::encode_desc(desc, writer),
        ReplyBody::Flow(list) => list.iter().try_for_each(|stats| flow::encode_stats(stats, writer))?,
        ReplyBody::Aggregate(stats) => multipart::encode_aggregate(stats, writer),
        ReplyBody::Table(list) => list.iter().for_each(|stats| table::encode_stats(stats, writer)),
        ReplyBody::PortStats(list) => list.iter().for_each(|stats| port::encode_stats(stats, writer)),
        ReplyBody::Queue(list) => list.iter().for_each(|stats| queue::encode_stats(stats, writer)),
        ReplyBody::Group(list) => list.iter().try_for_each(|stats| group::encode_stats(stats, writer))?,
        ReplyBody::GroupDesc(list) => list.iter().try_for_each(|desc| group::encode_desc(desc, writer))?,
        ReplyBody::GroupFeatures(features) => group::encode_features(features, writer),
        ReplyBody::Meter(list) => list.iter().try_for_each(|stats| meter::encode_stats(stats, writer))?,
        ReplyBody::MeterConfig(list) => list.iter().try_for_each(|config| meter::encode_config(config, writer))?,
        ReplyBody::MeterFeatures(features) => meter::encode_features(features, writer),
        ReplyBody::TableFeatures(list) => list.iter().try_for_each(|t| table::encode_features(t, writer))?,
        ReplyBody::PortDesc(list) => list.iter().for_each(|desc| port::encode_desc(desc, writer)),
        ReplyBody::FlowMonitor(updates) => onf::encode_updates(updates, writer)?,
        ReplyBody::Experimenter(experimenter) => opaque::encode(experimenter, Version::V13, writer)?,
        _ => (),
    }
    Ok(())
}
