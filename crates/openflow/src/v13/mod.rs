//! Reads and writes messages of OpenFlow 1.3 (OpenFlow 1.3.5, 7), and the parts that 1.4 and 1.5 have in an equal or
//! a similar form.
//!
//! Where a later version differs only in a field, a number or a limit, the function asks its reader or writer for the
//! version. Larger differences are in `v14` and `v15`.
pub(crate) mod action;
pub(crate) mod error;
pub(crate) mod flow;
pub(crate) mod group;
pub(crate) mod instruction;
pub(crate) mod meter;
pub(crate) mod multipart;
pub(crate) mod onf;
pub(crate) mod oxm;
pub(crate) mod packet;
mod port;
pub(crate) mod queue;
pub(crate) mod role;
mod switch;
pub(crate) mod table;

use crate::codec::DecodeError;
use crate::codec::kind::{
    self, BARRIER_REPLY, BARRIER_REQUEST, BUNDLE_ADD, BUNDLE_CONTROL, EXPERIMENTER, FEATURES_REPLY, FEATURES_REQUEST,
    FLOW_MOD, FLOW_REMOVED, GET_ASYNC_REPLY, GET_ASYNC_REQUEST, GET_CONFIG_REPLY, GET_CONFIG_REQUEST, GROUP_MOD,
    METER_MOD, MULTIPART_REPLY, MULTIPART_REQUEST, PACKET_IN, PACKET_OUT, PORT_MOD, PORT_STATUS,
    QUEUE_GET_CONFIG_REPLY, QUEUE_GET_CONFIG_REQUEST, ROLE_REPLY, ROLE_REQUEST, SET_ASYNC, SET_CONFIG, TABLE_MOD,
};
use crate::model::error::BadRequest;
use crate::model::{Body, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, config, opaque};

/// Names of message types from [`GROUP_MOD`] on.
const NAMES: [&str; 15] = [
    "group-mod",
    "port-mod",
    "table-mod",
    "multipart request",
    "multipart reply",
    "barrier request",
    "barrier reply",
    "queue-get-config request",
    "queue-get-config reply",
    "role request",
    "role reply",
    "get-async request",
    "get-async reply",
    "set-async",
    "meter-mod",
];

/// Reads the body of a message of type `kind`, other than hello, error and echo.
pub(crate) fn decode(kind: u8, reader: &mut WireReader<'_>) -> Decoded<Body> {
    if reader.version() == Version::V13 {
        reader.rename(name(kind));
    }
    Ok(match kind {
        EXPERIMENTER => onf::decode(reader)?,
        FEATURES_REQUEST => Body::FeaturesRequest,
        FEATURES_REPLY => Body::FeaturesReply(switch::decode_features(reader)?),
        GET_CONFIG_REQUEST => Body::GetConfigRequest,
        GET_CONFIG_REPLY => Body::GetConfigReply(config::decode(reader)?),
        SET_CONFIG => Body::SetConfig(config::decode(reader)?),
        PACKET_IN => Body::PacketIn(packet::decode_in(reader)?),
        FLOW_REMOVED => Body::FlowRemoved(flow::decode_removed(reader)?),
        PORT_STATUS => Body::PortStatus(port::decode_status(reader)?),
        PACKET_OUT => Body::PacketOut(packet::decode_out(reader)?),
        FLOW_MOD => Body::FlowMod(flow::decode_mod(reader)?),
        GROUP_MOD => Body::GroupMod(group::decode_mod(reader)?),
        PORT_MOD => Body::PortMod(port::decode_mod(reader)?),
        TABLE_MOD => Body::TableMod(table::decode_mod(reader)?),
        MULTIPART_REQUEST => Body::MultipartRequest(multipart::decode_request(reader)?),
        MULTIPART_REPLY => Body::MultipartReply(multipart::decode_reply(reader)?),
        BARRIER_REQUEST => Body::BarrierRequest,
        BARRIER_REPLY => Body::BarrierReply,
        QUEUE_GET_CONFIG_REQUEST => Body::QueueGetConfigRequest(queue::decode_config_request(reader)?),
        QUEUE_GET_CONFIG_REPLY => Body::QueueGetConfigReply(queue::decode_config(reader)?),
        ROLE_REQUEST => Body::RoleRequest(role::decode(reader)?),
        ROLE_REPLY => Body::RoleReply(role::decode(reader)?),
        GET_ASYNC_REQUEST => Body::GetAsyncRequest,
        GET_ASYNC_REPLY => Body::GetAsyncReply(role::decode_async(reader)?),
        SET_ASYNC => Body::SetAsync(role::decode_async(reader)?),
        METER_MOD => Body::MeterMod(meter::decode_mod(reader)?),
        kind => return Err(no_type(kind, reader)),
    })
}

/// Returns the name of a message type, for error messages.
pub(crate) fn name(kind: u8) -> &'static str {
    kind::name(kind, &NAMES)
}

/// Returns the error that the version has no message of this type.
pub(crate) fn no_type(kind: u8, reader: &WireReader<'_>) -> DecodeError {
    let version = reader.version().name();
    reader.error_at(1, BadRequest::BadType, format_args!("found type {kind}, which {version} does not have"))
}

/// Returns the type number of a message, or the name of what the version lacks.
pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    match kind::of(body) {
        // They are experimenters' messages in 1.3.
        BUNDLE_CONTROL | BUNDLE_ADD => Ok(EXPERIMENTER),
        known @ ..=METER_MOD => Ok(known),
        later => Err(kind::lacking(later)),
    }
}

/// Writes the body of a message other than hello, error and echo.
pub(crate) fn encode(body: &Body, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        Body::Experimenter(experimenter) => opaque::encode(experimenter, Version::V13, writer)?,
        Body::BundleControl(control) => onf::encode_control(control, writer)?,
        Body::BundleAdd(add) => onf::encode_add(add, writer)?,
        Body::Nx(message) => onf::encode_nicira(message, writer)?,
        Body::FeaturesReply(features) => switch::encode_features(features, writer),
        Body::GetConfigReply(settings) | Body::SetConfig(settings) => config::encode(settings, writer),
        Body::PacketIn(packet) => packet::encode_in(packet, writer)?,
        Body::FlowRemoved(removed) => flow::encode_removed(removed, writer)?,
        Body::PortStatus(status) => port::encode_status(status, writer),
        Body::PacketOut(packet) => packet::encode_out(packet, writer)?,
        Body::FlowMod(flow) => flow::encode_mod(flow, writer)?,
        Body::GroupMod(group) => group::encode_mod(group, writer)?,
        Body::PortMod(port) => port::encode_mod(port, writer),
        Body::TableMod(table) => table::encode_mod(table, writer),
        Body::MultipartRequest(request) => multipart::encode_request(request, writer)?,
        Body::MultipartReply(reply) => multipart::encode_reply(reply, writer)?,
        Body::QueueGetConfigRequest(port) => queue::encode_config_request(*port, writer),
        Body::QueueGetConfigReply(reply) => queue::encode_config(reply, writer)?,
        Body::RoleRequest(role) | Body::RoleReply(role) => role::encode(role, writer),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => role::encode_async(config, writer),
        Body::MeterMod(meter) => meter::encode_mod(meter, writer)?,
        // All other messages are headers alone.
        _ => (),
    }
    Ok(())
}
