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

use crate::codec::kind::{
    self, EXPERIMENTER, FEATURES_REPLY, FEATURES_REQUEST, FLOW_MOD, FLOW_REMOVED, GET_CONFIG_REPLY, GET_CONFIG_REQUEST,
    PACKET_IN, PACKET_OUT, PORT_STATUS, SET_CONFIG,
};
use crate::model::error::BadRequest;
use crate::model::{Body, Version};
use crate::nicira;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, config, opaque};

const PORT_MOD: u8 = 15;
const STATS_REQUEST: u8 = 16;
const STATS_REPLY: u8 = 17;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
const QUEUE_GET_CONFIG_REPLY: u8 = 21;

/// Names of message types from [`PORT_MOD`] on.
const NAMES: [&str; 7] = [
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
    reader.rename(if kind == EXPERIMENTER { "vendor" } else { kind::name(kind, &NAMES) });
    Ok(match kind {
        EXPERIMENTER => nicira::message::decode(reader, Version::V10)?,
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
    match kind::of(body) {
        shared @ ..=FLOW_MOD => Ok(shared),
        kind::PORT_MOD => Ok(PORT_MOD),
        kind::MULTIPART_REQUEST => Ok(STATS_REQUEST),
        kind::MULTIPART_REPLY => Ok(STATS_REPLY),
        kind::BARRIER_REQUEST => Ok(BARRIER_REQUEST),
        kind::BARRIER_REPLY => Ok(BARRIER_REPLY),
        kind::QUEUE_GET_CONFIG_REQUEST => Ok(QUEUE_GET_CONFIG_REQUEST),
        kind::QUEUE_GET_CONFIG_REPLY => Ok(QUEUE_GET_CONFIG_REPLY),
        other => Err(kind::lacking(other)),
    }
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
