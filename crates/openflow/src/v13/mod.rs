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
use crate::codec::kind::{ECHO_REPLY, ECHO_REQUEST, ERROR, HELLO};
use crate::model::error::BadRequest;
use crate::model::{Body, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, config, opaque};

const EXPERIMENTER: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REQUEST: u8 = 7;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PORT_STATUS: u8 = 12;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const GROUP_MOD: u8 = 15;
const PORT_MOD: u8 = 16;
const TABLE_MOD: u8 = 17;
const MULTIPART_REQUEST: u8 = 18;
const MULTIPART_REPLY: u8 = 19;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;
const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
const QUEUE_GET_CONFIG_REPLY: u8 = 23;
const ROLE_REQUEST: u8 = 24;
const ROLE_REPLY: u8 = 25;
const GET_ASYNC_REQUEST: u8 = 26;
const GET_ASYNC_REPLY: u8 = 27;
const SET_ASYNC: u8 = 28;
const METER_MOD: u8 = 29;

/// Names of message types, indexed by number.
const NAMES: [&str; 30] = [
    "hello",
    "error",
    "echo request",
    "echo reply",
    "experimenter",
    "features request",
    "features reply",
    "get-config request",
    "get-config reply",
    "set-config",
    "packet-in",
    "flow-removed",
    "port-status",
    "packet-out",
    "flow-mod",
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
    NAMES.get(usize::from(kind)).unwrap_or(&"message")
}

/// Returns the error that the version has no message of this type.
pub(crate) fn no_type(kind: u8, reader: &WireReader<'_>) -> DecodeError {
    let version = reader.version().name();
    reader.error_at(1, BadRequest::BadType, format_args!("found type {kind}, which {version} does not have"))
}

/// Returns the type number of a message, or the name of what the version lacks.
pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    Ok(match body {
        Body::Hello(_) => HELLO,
        Body::Error(_) => ERROR,
        Body::EchoRequest(_) => ECHO_REQUEST,
        Body::EchoReply(_) => ECHO_REPLY,
        Body::Experimenter(_) | Body::Nx(_) => EXPERIMENTER,
        Body::FeaturesRequest => FEATURES_REQUEST,
        Body::FeaturesReply(_) => FEATURES_REPLY,
        Body::GetConfigRequest => GET_CONFIG_REQUEST,
        Body::GetConfigReply(_) => GET_CONFIG_REPLY,
        Body::SetConfig(_) => SET_CONFIG,
        Body::PacketIn(_) => PACKET_IN,
        Body::FlowRemoved(_) => FLOW_REMOVED,
        Body::PortStatus(_) => PORT_STATUS,
        Body::PacketOut(_) => PACKET_OUT,
        Body::FlowMod(_) => FLOW_MOD,
        Body::GroupMod(_) => GROUP_MOD,
        Body::PortMod(_) => PORT_MOD,
        Body::TableMod(_) => TABLE_MOD,
        Body::MultipartRequest(_) => MULTIPART_REQUEST,
        Body::MultipartReply(_) => MULTIPART_REPLY,
        Body::BarrierRequest => BARRIER_REQUEST,
        Body::BarrierReply => BARRIER_REPLY,
        Body::QueueGetConfigRequest(_) => QUEUE_GET_CONFIG_REQUEST,
        Body::QueueGetConfigReply(_) => QUEUE_GET_CONFIG_REPLY,
        Body::RoleRequest(_) => ROLE_REQUEST,
        Body::RoleReply(_) => ROLE_REPLY,
        Body::GetAsyncRequest => GET_ASYNC_REQUEST,
        Body::GetAsyncReply(_) => GET_ASYNC_REPLY,
        Body::SetAsync(_) => SET_ASYNC,
        Body::MeterMod(_) => METER_MOD,
        Body::RoleStatus(_) => return Err("role status"),
        Body::TableStatus(_) => return Err("table status"),
        Body::RequestForward(_) => return Err("forwarded requests"),
        Body::BundleControl(_) | Body::BundleAdd(_) => EXPERIMENTER,
        Body::ControllerStatus(_) => return Err("controller status"),
    })
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
