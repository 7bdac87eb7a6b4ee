//! Reads and writes the multipart messages of 1.5 that differ from 1.4 (OpenFlow 1.5.1, 7.3.5).
use super::{bundle, controller, flow, group};
use crate::model::PortNo;
use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use crate::v13;
use crate::v13::multipart::{decode_head, encode_reply_head, encode_request_head};
use crate::v14::multipart as v14;
use crate::wire::multipart::kind::{
    AGGREGATE, BUNDLE_FEATURES, CONTROLLER_STATUS, FLOW, FLOW_COUNTERS, GROUP_DESC, PORT_DESC,
};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<MultipartRequest> {
    let (kind, more) = decode_head(reader)?;
    let body = match kind {
        GROUP_DESC => RequestBody::GroupDesc(v13::group::decode_request(reader)?),
        PORT_DESC => {
            let port = PortNo(reader.read_u32()?);
            reader.skip(4)?;
            RequestBody::PortDesc(port)
        }
        FLOW_COUNTERS => RequestBody::FlowCounters(v13::flow::decode_request(reader)?),
        CONTROLLER_STATUS => RequestBody::ControllerStatus,
        BUNDLE_FEATURES => RequestBody::BundleFeatures(bundle::decode_request(reader)?),
        kind => v14::decode_request_body(kind, reader)?,
    };
    Ok(MultipartRequest { more, body })
}

pub(crate) fn encode_request(request: &MultipartRequest, writer: &mut WireWriter<'_>) -> Encoded {
    encode_request_head(request, writer)?;
    let number = |number: u32, writer: &mut WireWriter<'_>| {
        writer.write_u32(number);
        writer.write_zeros(4);
        Ok(())
    };
    match &request.body {
        RequestBody::GroupDesc(group) => number(group.0, writer),
        RequestBody::PortDesc(port) => number(port.0, writer),
        RequestBody::FlowCounters(request) => v13::flow::encode_request(request, writer),
        RequestBody::BundleFeatures(request) => bundle::encode_request(request, writer),
        body => v14::encode_request_body(body, writer),
    }
}

pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<MultipartReply> {
    let (kind, more) = decode_head(reader)?;
    let body = match kind {
        FLOW => ReplyBody::Flow(reader.read_list(flow::decode_desc)?),
        AGGREGATE => ReplyBody::Aggregate(flow::decode_aggregate(reader)?),
        GROUP_DESC => ReplyBody::GroupDesc(reader.read_list(group::decode_desc)?),
        FLOW_COUNTERS => ReplyBody::FlowCounters(reader.read_list(flow::decode_counters)?),
        CONTROLLER_STATUS => ReplyBody::ControllerStatus(reader.read_list(controller::decode)?),
        BUNDLE_FEATURES => ReplyBody::BundleFeatures(bundle::decode_features(reader)?),
        kind => v14::decode_reply_body(kind, reader)?,
    };
    Ok(MultipartReply { more, body })
}

pub(crate) fn encode_reply(reply: &MultipartReply, writer: &mut WireWriter<'_>) -> Encoded {
    encode_reply_head(reply, writer)?;
    match &reply.body {
        ReplyBody::Flow(list) => list.iter().try_for_each(|entry| flow::encode_desc(entry, writer)),
        ReplyBody::Aggregate(stats) => flow::encode_aggregate(stats, writer),
        ReplyBody::GroupDesc(list) => list.iter().try_for_each(|desc| group::encode_desc(desc, writer)),
        ReplyBody::FlowCounters(list) => list.iter().try_for_each(|entry| flow::encode_counters(entry, writer)),
        ReplyBody::ControllerStatus(list) => list.iter().try_for_each(|one| controller::encode(one, writer)),
        ReplyBody::BundleFeatures(features) => bundle::encode_features(features, writer),
        body => v14::encode_reply_body(body, writer),
    }
}
