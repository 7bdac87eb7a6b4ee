//! Reads and writes statistics requests and replies (OpenFlow 1.0.0, 5.3.5), which are multipart messages in the
//! model.
use super::{flow, port, queue, table};
use crate::codec::{DecodeError, HEADER_BYTES};
use crate::model::Version;
use crate::model::error::BadRequest;
use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use crate::nicira;
use crate::wire::multipart::kind::{self, AGGREGATE, DESC, EXPERIMENTER, FLOW, PORT_STATS, QUEUE, TABLE};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, multipart, opaque};

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<MultipartRequest> {
    let (kind, more) = multipart::decode_head(reader)?;
    let body = match kind {
        DESC => RequestBody::Desc,
        FLOW => RequestBody::Flow(flow::decode_request(reader)?),
        AGGREGATE => RequestBody::Aggregate(flow::decode_request(reader)?),
        TABLE => RequestBody::Table,
        PORT_STATS => {
            let port = port::decode_no(reader)?;
            reader.skip(6)?;
            RequestBody::PortStats(port)
        }
        QUEUE => {
            let (port, queue) = queue::decode_stats_request(reader)?;
            RequestBody::Queue { port, queue }
        }
        EXPERIMENTER => nicira::multipart::decode_request(reader)?,
        kind => return Err(no_type(kind, reader)),
    };
    Ok(MultipartRequest { more, body })
}

/// Returns the error that 1.0 has no statistics of this type.
fn no_type(kind: u16, reader: &WireReader<'_>) -> DecodeError {
    let reason = format!("found statistics type {kind}, which 1.0 does not have");
    reader.error_at(HEADER_BYTES, BadRequest::BadMultipart, reason)
}

pub(crate) fn encode_request(request: &MultipartRequest, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = kind::of_request(&request.body, Version::V10)
        .ok_or_else(|| writer.cannot("this statistics request, which only 1.3 has"))?;
    multipart::encode_head(kind, request.more, writer);
    match &request.body {
        RequestBody::Flow(request) | RequestBody::Aggregate(request) => flow::encode_request(request, writer),
        RequestBody::PortStats(port) => {
            port::encode_no(*port, writer)?;
            writer.write_zeros(6);
            Ok(())
        }
        RequestBody::Queue { port, queue } => queue::encode_stats_request(*port, *queue, writer),
        RequestBody::Experimenter(experimenter) => opaque::encode(experimenter, Version::V10, writer),
        body @ (RequestBody::NxFlow(_) | RequestBody::NxAggregate(_) | RequestBody::FlowMonitor(_)) => {
            nicira::multipart::encode_request(body, writer)
        }
        _ => Ok(()),
    }
}

pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<MultipartReply> {
    let (kind, more) = multipart::decode_head(reader)?;
    let body = match kind {
        DESC => ReplyBody::Desc(multipart::decode_desc(reader)?),
        FLOW => ReplyBody::Flow(reader.read_list(flow::decode_stats)?),
        AGGREGATE => ReplyBody::Aggregate(multipart::decode_aggregate(reader)?),
        TABLE => ReplyBody::Table(reader.read_list(table::decode_stats)?),
        PORT_STATS => ReplyBody::PortStats(reader.read_list(port::decode_stats)?),
        QUEUE => ReplyBody::Queue(reader.read_list(queue::decode_stats)?),
        EXPERIMENTER => nicira::multipart::decode_reply(reader)?,
        kind => return Err(no_type(kind, reader)),
    };
    Ok(MultipartReply { more, body })
}

pub(crate) fn encode_reply(reply: &MultipartReply, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = kind::of_reply(&reply.body, Version::V10)
        .ok_or_else(|| writer.cannot("this statistics reply, which only 1.3 has"))?;
    multipart::encode_head(kind, reply.more, writer);
    match &reply.body {
        ReplyBody::Desc(desc) => multipart::encode_desc(desc, writer),
        ReplyBody::Flow(list) => list.iter().try_for_each(|stats| flow::encode_stats(stats, writer))?,
        ReplyBody::Aggregate(stats) => multipart::encode_aggregate(stats, writer),
        ReplyBody::Table(list) => list.iter().for_each(|stats| table::encode_stats(stats, writer)),
        ReplyBody::PortStats(list) => list.iter().try_for_each(|stats| port::encode_stats(stats, writer))?,
        ReplyBody::Queue(list) => list.iter().try_for_each(|stats| queue::encode_stats(stats, writer))?,
        ReplyBody::Experimenter(experimenter) => opaque::encode(experimenter, Version::V10, writer)?,
        body @ (ReplyBody::NxFlow(_) | ReplyBody::NxAggregate(_) | ReplyBody::FlowMonitor(_)) => {
            nicira::multipart::encode_reply(body, writer)?
        }
        _ => (),
    }
    Ok(())
}
