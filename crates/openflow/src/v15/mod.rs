//! Reads and writes the messages of OpenFlow 1.5 that differ from 1.4 (OpenFlow 1.5.1, 7).
pub(crate) mod action;
mod bundle;
mod controller;
mod flow;
mod group;
pub(crate) mod instruction;
mod multipart;
mod packet;
mod stats;

use crate::codec::kind::{CONTROLLER_STATUS, FLOW_REMOVED, GROUP_MOD, MULTIPART_REPLY, MULTIPART_REQUEST, PACKET_OUT};
use crate::model::Body;
use crate::v14;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Reads the body of a message of type `kind`, other than hello, error and echo.
pub(crate) fn decode(kind: u8, reader: &mut WireReader<'_>) -> Decoded<Body> {
    reader.rename(if kind == CONTROLLER_STATUS { "controller-status" } else { v14::name(kind) });
    Ok(match kind {
        FLOW_REMOVED => Body::FlowRemoved(flow::decode_removed(reader)?),
        PACKET_OUT => Body::PacketOut(packet::decode_out(reader)?),
        GROUP_MOD => Body::GroupMod(group::decode_mod(reader)?),
        MULTIPART_REQUEST => Body::MultipartRequest(multipart::decode_request(reader)?),
        MULTIPART_REPLY => Body::MultipartReply(multipart::decode_reply(reader)?),
        CONTROLLER_STATUS => Body::ControllerStatus(controller::decode(reader)?),
        kind => return v14::decode(kind, reader),
    })
}

/// Returns the type number of a message, or the name of what the version lacks.
pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    match body {
        Body::ControllerStatus(_) => Ok(CONTROLLER_STATUS),
        body => v14::kind(body),
    }
}

/// Writes the body of a message other than hello, error and echo.
pub(crate) fn encode(body: &Body, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        Body::FlowRemoved(removed) => flow::encode_removed(removed, writer),
        Body::PacketOut(packet) => packet::encode_out(packet, writer),
        Body::GroupMod(group) => group::encode_mod(group, writer),
        Body::MultipartRequest(request) => multipart::encode_request(request, writer),
        Body::MultipartReply(reply) => multipart::encode_reply(reply, writer),
        Body::ControllerStatus(status) => controller::encode(status, writer),
        body => v14::encode(body, writer),
    }
}
