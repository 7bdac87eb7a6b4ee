//! Reads and writes the multipart messages of 1.4 that differ from 1.3 (OpenFlow 1.4.1, 7.3.5).
use super::{monitor, port, queue, table};
use crate::model::PortNo;
use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use crate::v13::multipart as v13;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

const PORT_STATS: u16 = 4;
const QUEUE: u16 = 5;
const PORT_DESC: u16 = 13;
const TABLE_DESC: u16 = 14;
const QUEUE_DESC: u16 = 15;
const FLOW_MONITOR: u16 = 16;

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<MultipartRequest> {
    let (kind, more) = v13::decode_head(reader)?;
    Ok(MultipartRequest { more, body: decode_request_body(kind, reader)? })
}

pub(crate) fn decode_request_body(kind: u16, reader: &mut WireReader<'_>) -> Decoded<RequestBody> {
    Ok(match kind {
        TABLE_DESC => RequestBody::TableDesc,
        QUEUE_DESC => RequestBody::QueueDesc { port: PortNo(reader.read_u32()?), queue: reader.read_u32()? },
        FLOW_MONITOR => RequestBody::FlowMonitor(reader.read_list(monitor::decode_request)?),
        kind => return v13::decode_request_body(kind, reader),
    })
}

pub(crate) fn encode_request(request: &MultipartRequest, writer: &mut WireWriter<'_>) -> Encoded {
    let head = |kind, writer: &mut WireWriter<'_>| v13::encode_head(kind, request.more, writer);
    match &request.body {
        RequestBody::TableDesc => head(TABLE_DESC, writer),
        RequestBody::QueueDesc { port, queue } => {
            head(QUEUE_DESC, writer);
            writer.write_u32(port.0);
            writer.write_u32(*queue);
        }
        RequestBody::FlowMonitor(monitors) => {
            head(FLOW_MONITOR, writer);
            monitors.iter().try_for_each(|monitor| monitor::encode_request(monitor, writer))?;
        }
        _ => return v13::encode_request(request, writer),
    }
    Ok(())
}

pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<MultipartReply> {
    let (kind, more) = v13::decode_head(reader)?;
    Ok(MultipartReply { more, body: decode_reply_body(kind, reader)? })
}

pub(crate) fn decode_reply_body(kind: u16, reader: &mut WireReader<'_>) -> Decoded<ReplyBody> {
    Ok(match kind {
        PORT_STATS => ReplyBody::PortStats(reader.read_list(port::decode_stats)?),
        QUEUE => ReplyBody::Queue(reader.read_list(queue::decode_stats)?),
        PORT_DESC => ReplyBody::PortDesc(reader.read_list(port::decode_desc)?),
        TABLE_DESC => ReplyBody::TableDesc(reader.read_list(table::decode_desc)?),
        QUEUE_DESC => ReplyBody::QueueDesc(reader.read_list(queue::decode_desc)?),
        FLOW_MONITOR => ReplyBody::FlowMonitor(reader.read_list(monitor::decode_update)?),
        kind => return v13::decode_reply_body(kind, reader),
    })
}

pub(crate) fn encode_reply(reply: &MultipartReply, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = match &reply.body {
        ReplyBody::PortStats(_) => PORT_STATS,
        ReplyBody::Queue(_) => QUEUE,
        ReplyBody::PortDesc(_) => PORT_DESC,
        ReplyBody::TableDesc(_) => TABLE_DESC,
        ReplyBody::QueueDesc(_) => QUEUE_DESC,
        ReplyBody::FlowMonitor(_) => FLOW_MONITOR,
        _ => return v13::encode_reply(reply, writer),
    };
    v13::encode_head(kind, reply.more, writer);
    match &reply.body {
        ReplyBody::PortStats(list) => list.iter().try_for_each(|stats| port::encode_stats(stats, writer)),
        ReplyBody::Queue(list) => list.iter().try_for_each(|stats| queue::encode_stats(stats, writer)),
        ReplyBody::PortDesc(list) => list.iter().try_for_each(|desc| port::encode_desc(desc, writer)),
        ReplyBody::TableDesc(list) => list.iter().try_for_each(|desc| table::encode_desc(desc, writer)),
        ReplyBody::QueueDesc(list) => list.iter().try_for_each(|desc| queue::encode_desc(desc, writer)),
        ReplyBody::FlowMonitor(list) => list.iter().try_for_each(|update| monitor::encode_update(update, writer)),
        _ => Ok(()),
    }
}
