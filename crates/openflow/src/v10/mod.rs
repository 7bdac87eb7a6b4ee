//! Reads and writes messages of OpenFlow 1.0 (OpenFlow 1.0.0, 5).
//!
//! Encoding fails with the name of what 1.0 lacks, unless leaving it out or sending the nearest equivalent does no
//! harm; the modules say where.
pub(crate) mod action;
pub(crate) mod error;
pub(crate) mod flow;
pub(crate) mod matching;
mod multipart;
mod packet;
pub(crate) mod port;
mod queue;
mod switch;
mod table;

use crate::codec::kind::{ECHO_REPLY, ECHO_REQUEST, ERROR, HELLO};
use crate::model::error::BadRequest;
use crate::model::{Body, Version};
use crate::nicira;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, config, opaque};

const VENDOR: u8 = 4;
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
const PORT_MOD: u8 = 15;
const STATS_REQUEST: u8 = 16;
const STATS_REPLY: u8 = 17;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
const QUEUE_GET_CONFIG_REPLY: u8 = 21;

/// Names of message types, indexed by number.
const NAMES: [&str; 22] = [
    "hello",
    "error",
    "echo request",
    "echo reply",
    "vendor",
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
    "port-mod",
    "statistics request",
    "statistics reply",
    "barrier request",
    "barrier reply",
    "queue-get-config request",
    "queue-get-config reply",
];

/// Reads the body of a message of type `kind`, other than hello, error and echo.
pub(crate) fn decode(kind: u8, reader: &mut WireReader<'_>) -> Decoded<Body> {
    reader.rename(NAMES.get(usize::from(kind)).unwrap_or(&"message"));
    Ok(match kind {
        VENDOR => nicira::message::decode(reader, Version::V10)?,
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
        PORT_MOD => Body::PortMod(port::decode_mod(reader)?),
        STATS_REQUEST => Body::MultipartRequest(multipart::decode_request(reader)?),
        STATS_REPLY => Body::MultipartReply(multipart::decode_reply(reader)?),
        BARRIER_REQUEST => Body::BarrierRequest,
        BARRIER_REPLY => Body::BarrierReply,
        QUEUE_GET_CONFIG_REQUEST => Body::QueueGetConfigRequest(queue::decode_config_request(reader)?),
        QUEUE_GET_CONFIG_REPLY => Body::QueueGetConfigReply(queue::decode_config(reader)?),
        kind => {
            let reason = format!("found type {kind}, which 1.0 does not have");
            return Err(reader.error_at(1, BadRequest::BadType, reason));
        }
    })
}

/// Returns the type number of a message, or the name of what 1.0 lacks.
pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    Ok(match body {
        Body::Hello(_) => HELLO,
        Body::Error(_) => ERROR,
        Body::EchoRequest(_) => ECHO_REQUEST,
        Body::EchoReply(_) => ECHO_REPLY,
        Body::Experimenter(_) | Body::Nx(_) => VENDOR,
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
        Body::PortMod(_) => PORT_MOD,
        Body::MultipartRequest(_) => STATS_REQUEST,
        Body::MultipartReply(_) => STATS_REPLY,
        Body::BarrierRequest => BARRIER_REQUEST,
        Body::BarrierReply => BARRIER_REPLY,
        Body::QueueGetConfigRequest(_) => QUEUE_GET_CONFIG_REQUEST,
        Body::QueueGetConfigReply(_) => QUEUE_GET_CONFIG_REPLY,
        Body::GroupMod(_) => return Err("groups"),
        Body::MeterMod(_) => return Err("meters"),
        Body::TableMod(_) => return Err("table configuration"),
        Body::RoleRequest(_) | Body::RoleReply(_) => return Err("controller roles"),
        Body::GetAsyncRequest | Body::GetAsyncReply(_) | Body::SetAsync(_) => {
            return Err("asynchronous configuration");
        }
        Body::RoleStatus(_) => return Err("role status"),
        Body::TableStatus(_) => return Err("table status"),
        Body::RequestForward(_) => return Err("forwarded requests"),
        Body::BundleControl(_) | Body::BundleAdd(_) => return Err("bundles"),
        Body::ControllerStatus(_) => return Err("controller status"),
    })
}

/// Writes the body of a message other than hello, error and echo.
pub(crate) fn encode(body: &Body, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        Body::Experimenter(experimenter) => opaque::encode(experimenter, Version::V10, writer)?,
        Body::Nx(message) => nicira::message::encode(message, Version::V10, writer)?,
        Body::FeaturesReply(features) => switch::encode_features(features, writer)?,
        Body::GetConfigReply(settings) | Body::SetConfig(settings) => config::encode(settings, writer),
        Body::PacketIn(packet) => packet::encode_in(packet, writer)?,
        Body::FlowRemoved(removed) => flow::encode_removed(removed, writer)?,
        Body::PortStatus(status) => port::encode_status(status, writer)?,
        Body::PacketOut(packet) => packet::encode_out(packet, writer)?,
        Body::FlowMod(flow) => flow::encode_mod(flow, writer)?,
        Body::PortMod(port) => port::encode_mod(port, writer)?,
        Body::MultipartRequest(request) => multipart::encode_request(request, writer)?,
        Body::MultipartReply(reply) => multipart::encode_reply(reply, writer)?,
        Body::QueueGetConfigRequest(port) => queue::encode_config_request(*port, writer)?,
        Body::QueueGetConfigReply(reply) => queue::encode_config(reply, writer)?,
        // All other messages are headers alone, or were refused because of their type.
        _ => (),
    }
    Ok(())
}
