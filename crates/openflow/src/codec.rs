//! Converts messages to bytes and back, in every OpenFlow version.
pub(crate) mod kind;

use crate::model::error::BadRequest;
use crate::model::{Body, ErrorType, Message, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, error, hello};
use crate::{v10, v13, v14, v15};

pub use crate::wire::split_reply;

/// Length of a message header in bytes (OpenFlow 1.3.5, 7.1.1).
pub const HEADER_BYTES: usize = 8;

/// The message header, which has one layout in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// Version number as received; weir may not implement that version.
    pub version: u8,
    /// Message type number as received.
    pub kind: u8,
    /// Length of the whole message in bytes.
    pub length: u16,
    /// Transaction id of the message.
    pub xid: u32,
}

impl MessageHeader {
    /// Reads a header from the start of `bytes`; returns `None` if there are fewer than eight bytes.
    pub fn read(bytes: &[u8]) -> Option<MessageHeader> {
        let [version, kind, l1, l0, xid @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
        Some(MessageHeader { version, kind, length: u16::from_be_bytes([l1, l0]), xid: u32::from_be_bytes(xid) })
    }
}

/// Failure to decode a message: the OpenFlow error to send to its sender, and an explanation for logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DecodeError {
    /// Error type and code to send to the peer.
    pub error: ErrorType,
    /// Explanation: the value found, its byte offset, and the values expected.
    pub reason: String,
}

/// Failure to encode a message: the version has no encoding for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OpenFlow {} cannot carry {what}", .version.name())]
pub struct EncodeError {
    /// Version the message was encoded for.
    pub version: Version,
    /// Part that the version cannot carry, and the reason.
    pub what: String,
}

/// Returns true for types of messages that can contain other messages: request-forward and bundle messages. Bundle
/// control, which contains none, is included for simplicity. In 1.3, bundle messages are experimenter messages.
pub(crate) fn holds_messages(header: MessageHeader, bytes: &[u8]) -> bool {
    match header.kind {
        kind::EXPERIMENTER => {
            let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
            let head = word(HEADER_BYTES).zip(word(HEADER_BYTES + 4));
            head.is_some_and(|(id, kind)| v13::onf::is_bundle(id, kind))
        }
        kind => (kind::REQUESTFORWARD..=kind::BUNDLE_ADD).contains(&kind),
    }
}

/// Decodes one whole message. The header in `bytes` selects the version, and its length field must equal
/// `bytes.len()`. Hello and error messages are decoded in any version, even one that weir does not implement
/// (OpenFlow 1.3.5, 7.5.1).
///
/// # Errors
/// The error message to answer the sender with, and an explanation.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    decode_as(bytes, false)
}

/// Decodes a message as [`decode`] does. `has_tables` is true if flow-mods of 1.0 carry a table number in the upper
/// byte of the command (`NXT_FLOW_MOD_TABLE_ID`).
pub(crate) fn decode_as(bytes: &[u8], has_tables: bool) -> Result<Message, DecodeError> {
    let mut reader = WireReader::new(bytes, "header", BadRequest::BadLen);
    reader.has_tables = has_tables;
    reader.skip(HEADER_BYTES)?;
    let header =
        MessageHeader::read(bytes).filter(|header| usize::from(header.length) == bytes.len()).ok_or_else(|| {
            let found = u16::from_be_bytes([bytes[2], bytes[3]]);
            let reason = format!("found length {found} on a message of {} bytes", bytes.len());
            reader.error_at(2, BadRequest::BadLen, reason)
        })?;
    // A peer with an unknown version gets error codes in 1.3's numbering, which later versions keep.
    reader.set_version(Version::from_number(header.version).unwrap_or(Version::V13));
    let body = decode_body(header, &mut reader)?;
    reader.finish()?;
    Ok(Message { xid: header.xid, body })
}

fn decode_body(header: MessageHeader, reader: &mut WireReader<'_>) -> Decoded<Body> {
    let version = Version::from_number(header.version);
    Ok(match (header.kind, version) {
        (kind::HELLO, _) => Body::Hello(hello::decode(reader)?),
        (kind::ERROR, _) => {
            reader.rename("error");
            Body::Error(error::decode(reader, header.version)?)
        }
        (_, None) => {
            let reason = format!("found version {}, expected 1 (1.0), 4 (1.3), 5 (1.4) or 6 (1.5)", header.version);
            return Err(reader.error_at(0, BadRequest::BadVersion, reason));
        }
        (kind::ECHO_REQUEST, _) => Body::EchoRequest(reader.read_rest()),
        (kind::ECHO_REPLY, _) => Body::EchoReply(reader.read_rest()),
        (kind, Some(Version::V10)) => v10::decode(kind, reader)?,
        (kind, Some(Version::V13)) => v13::decode(kind, reader)?,
        (kind, Some(Version::V14)) => v14::decode(kind, reader)?,
        (kind, Some(Version::V15)) => v15::decode(kind, reader)?,
    })
}

/// Encodes a message for `version` and appends it to `out`.
///
/// # Errors
/// The version has no such message, field, action or other part, or the message would exceed 65535 bytes. `out` is
/// then unchanged.
pub fn encode(message: &Message, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let encoded = encode_message(message, version, &mut WireWriter::new(out, version));
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

fn encode_message(message: &Message, version: Version, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u8(version as u8);
    let kind = match version {
        Version::V10 => v10::kind(&message.body),
        Version::V13 => v13::kind(&message.body),
        Version::V14 => v14::kind(&message.body),
        Version::V15 => v15::kind(&message.body),
    };
    writer.write_u8(kind.map_err(|what| writer.cannot(what))?);
    writer.write_u16(0);
    writer.write_u32(message.xid);
    match (&message.body, version) {
        (Body::Hello(hello), _) => hello::encode(hello, writer)?,
        (Body::Error(message), _) => error::encode(message, version, writer)?,
        (Body::EchoRequest(data) | Body::EchoReply(data), _) => writer.write_bytes(&data.0),
        (body, Version::V10) => v10::encode(body, writer)?,
        (body, Version::V13) => v13::encode(body, writer)?,
        (body, Version::V14) => v14::encode(body, writer)?,
        (body, Version::V15) => v15::encode(body, writer)?,
    }
    writer.set_length(2, 0)
}
