//! Reads and writes the messages of OpenFlow 1.4 that differ from 1.3 (OpenFlow 1.4.1, 7). The functions of `v13`
//! handle all others; where only a field or two differ, they depend on the version.
mod asynchronous;
pub(crate) mod bundle;
mod monitor;
pub(crate) mod multipart;
mod port;
mod queue;
pub(crate) mod status;
mod table;

use crate::codec::kind::{
    self, BUNDLE_ADD, BUNDLE_CONTROL, GET_ASYNC_REPLY, MULTIPART_REPLY, MULTIPART_REQUEST, PORT_MOD, PORT_STATUS,
    QUEUE_GET_CONFIG_REPLY, QUEUE_GET_CONFIG_REQUEST, REQUESTFORWARD, ROLE_STATUS, SET_ASYNC, TABLE_MOD, TABLE_STATUS,
};
use crate::model::{Body, Version};
use crate::v13;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Names of the message types that 1.3 lacks, from [`ROLE_STATUS`] on.
const NAMES: [&str; 5] = ["role-status", "table-status", "requestforward", "bundle control", "bundle add-message"];

/// Reads the body of a message of type `kind`, other than hello, error and echo.
pub(crate) fn decode(kind: u8, reader: &mut WireReader<'_>) -> Decoded<Body> {
    if reader.version() == Version::V14 {
        reader.rename(name(kind));
    }
    Ok(match kind {
        PORT_STATUS => Body::PortStatus(port::decode_status(reader)?),
        PORT_MOD => Body::PortMod(port::decode_mod(reader)?),
        TABLE_MOD => Body::TableMod(table::decode_mod(reader)?),
        MULTIPART_REQUEST => Body::MultipartRequest(multipart::decode_request(reader)?),
        MULTIPART_REPLY => Body::MultipartReply(multipart::decode_reply(reader)?),
        QUEUE_GET_CONFIG_REQUEST | QUEUE_GET_CONFIG_REPLY => return Err(v13::no_type(kind, reader)),
        GET_ASYNC_REPLY => Body::GetAsyncReply(asynchronous::decode(reader)?),
        SET_ASYNC => Body::SetAsync(asynchronous::decode(reader)?),
        ROLE_STATUS => Body::RoleStatus(status::decode_role(reader)?),
        TABLE_STATUS => Body::TableStatus(status::decode_table(reader)?),
        REQUESTFORWARD => Body::RequestForward(status::decode_forwarded(reader)?),
        BUNDLE_CONTROL => Body::BundleControl(bundle::decode_control(reader)?),
        BUNDLE_ADD => Body::BundleAdd(bundle::decode_add(reader)?),
        kind => return v13::decode(kind, reader),
    })
}

/// Returns the name of a message type, for error messages.
pub(crate) fn name(kind: u8) -> &'static str {
    let own = kind.checked_sub(ROLE_STATUS).and_then(|own| NAMES.get(usize::from(own)));
    own.copied().unwrap_or_else(|| v13::name(kind))
}

/// Returns the type number of a message, or the name of what the version lacks.
pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    match kind::of(body) {
        // They are multipart messages in 1.4.
        old @ (QUEUE_GET_CONFIG_REQUEST | QUEUE_GET_CONFIG_REPLY) => Err(kind::lacking(old)),
        known @ ..=BUNDLE_ADD => Ok(known),
        later => Err(kind::lacking(later)),
    }
}

/// Writes the body of a message other than hello, error and echo.
pub(crate) fn encode(body: &Body, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        Body::PortStatus(status) => port::encode_status(status, writer),
        Body::PortMod(port) => port::encode_mod(port, writer),
        Body::TableMod(table) => table::encode_mod(table, writer),
        Body::MultipartRequest(request) => multipart::encode_request(request, writer),
        Body::MultipartReply(reply) => multipart::encode_reply(reply, writer),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => asynchronous::encode(config, writer),
        Body::RoleStatus(status) => status::encode_role(status, writer),
        Body::TableStatus(status) => status::encode_table(status, writer),
        Body::RequestForward(request) => status::encode_forwarded(request, writer),
        Body::BundleControl(control) => bundle::encode_control(control, writer),
        Body::BundleAdd(add) => bundle::encode_add(add, writer),
        body => v13::encode(body, writer),
    }
}
