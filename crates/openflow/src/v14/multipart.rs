//! Reads and writes the multipart messages of 1.4 that differ from 1.3 (OpenFlow 1.4.1, 7.3.5).
use super::{monitor, port, queue, table};
use crate::model::PortNo;
use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use crate::v13::multipart as v13;
use crate::wire::multipart::kind::{FLOW_MONITOR, PORT_DESC, PORT_STATS, QUEUE, QUEUE_DESC, TABLE_DESC};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

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
    v13::encode_request_head(request, writer)?;
    encode_request_body(&request.body, writer)
}

pub(crate) fn encode_request_body(body: &RequestBody, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        RequestBody::QueueDesc { port, queue } => {
            writer.write_u32(port.0);
            writer.write_u32(*queue);
            Ok(())
        }
        RequestBody::FlowMonitor(monitors) => {
            monitors.iter().try_for_each(|monitor| monitor::encode_request(monitor, writer))
        }
        body => v13::encode_request_body(body, writer),
    }
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
    v13::encode_reply_head(reply, writer)?;
    encode_reply_body(&reply.body, writer)
}

pub(crate) fn encode_reply_body(body: &ReplyBody, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        ReplyBody::PortStats(list) => list.iter().try_for_each(|stats| port::encode_stats(stats, writer)),
        ReplyBody::Queue(list) => list.iter().try_for_each(|stats| queue::encode_stats(stats, writer)),
        ReplyBody::PortDesc(list) => list.iter().try_for_each(|desc| port::encode_desc(desc, writer)),
        ReplyBody::TableDesc(list) => list.iter().try_for_each(|desc| table::encode_desc(desc, writer)),
        ReplyBody::QueueDesc(list) => list.iter().try_for_each(|desc| queue::encode_desc(desc, writer)),
        ReplyBody::FlowMonitor(list) => list.iter().try_for_each(|update| monitor::encode_update(update, writer)),
        body => v13::encode_reply_body(body, writer),
    }
}
