//! Between messages and bytes, in any version.
use crate::model::error::BadRequest;
use crate::model::{Body, ErrorType, Message, Version};
use crate::wire::{Decoded, Encoded, Reader, Writer, error, hello};
use crate::{v10, v13, v14, v15};

pub use crate::wire::split_reply;

/// Bytes of a message header (OpenFlow 1.3.5, 7.1.1).
pub const HEADER_BYTES: usize = 8;

/// A message header, whatever its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version number as it came.
    pub version: u8,
    /// Message type as it came.
    pub kind: u8,
    /// Length of the whole message in bytes.
    pub length: u16,
    /// Transaction id.
    pub xid: u32,
}

impl Header {
    /// Reads a header; `None` while fewer than eight bytes are there.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let [version, kind, l1, l0, xid @ ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Header { version, kind, length: u16::from_be_bytes([l1, l0]), xid: u32::from_be_bytes(xid) })
    }
}

/// A message that cannot be understood: what to answer, and why for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DecodeError {
    /// The error to answer with.
    pub error: ErrorType,
    /// What was found, where (byte offset), and what was expected.
    pub reason: String,
}

/// A message that a version cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OpenFlow {} cannot carry {what}", .version.name())]
pub struct EncodeError {
    /// The version.
    pub version: Version,
    /// What it cannot carry, and why.
    pub what: String,
}

/// Types of messages that are alike in every version.
pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const ECHO_REQUEST: u8 = 2;
    pub(crate) const ECHO_REPLY: u8 = 3;
    /// 1.0 calls it vendor.
    pub(crate) const EXPERIMENTER: u8 = 4;
    /// 1.4 and later; bundle control lies between this and the next.
    pub(crate) const REQUESTFORWARD: u8 = 32;
    pub(crate) const BUNDLE_ADD: u8 = 34;
}

/// Whether a message holds others: a bundle's, or a forwarded request. 1.3 has them as experimenter messages.
pub(crate) fn holds_messages(header: Header, bytes: &[u8]) -> bool {
    match header.kind {
        kind::EXPERIMENTER => {
            let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
            let head = word(HEADER_BYTES).zip(word(HEADER_BYTES + 4));
            head.is_some_and(|(id, kind)| v13::onf::is_bundle(id, kind))
        }
        kind => (kind::REQUESTFORWARD..=kind::BUNDLE_ADD).contains(&kind),
    }
}

/// Decodes one whole message (`bytes` ends where its header says); its version is the header's. A hello and an error are
/// decoded whatever the version (OpenFlow 1.3.5, 7.5.1).
///
/// # Errors
/// What to answer the sender with.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    decode_as(bytes, false)
}

/// The same; `has_tables` says whether 1.0's flow-mods name their table (`NXT_FLOW_MOD_TABLE_ID`).
pub(crate) fn decode_as(bytes: &[u8], has_tables: bool) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(bytes, "header", BadRequest::BadLen);
    reader.has_tables = has_tables;
    reader.skip(HEADER_BYTES)?;
    let header = Header::read(bytes).filter(|header| usize::from(header.length) == bytes.len()).ok_or_else(|| {
        let found = u16::from_be_bytes([bytes[2], bytes[3]]);
        let reason = format!("found length {found} on a message of {} bytes", bytes.len());
        reader.error_at(2, BadRequest::BadLen, reason)
    })?;
    // Whoever speaks a version that weir does not is answered in numbers that later versions keep.
    reader.set_version(Version::from_number(header.version).unwrap_or(Version::V13));
    let body = decode_body(header, &mut reader)?;
    reader.finish()?;
    Ok(Message { xid: header.xid, body })
}

fn decode_body(header: Header, reader: &mut Reader<'_>) -> Decoded<Body> {
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
        (kind::ECHO_REQUEST, _) => Body::EchoRequest(reader.rest()),
        (kind::ECHO_REPLY, _) => Body::EchoReply(reader.rest()),
        (kind, Some(Version::V10)) => v10::decode(kind, reader)?,
        (kind, Some(Version::V13)) => v13::decode(kind, reader)?,
        (kind, Some(Version::V14)) => v14::decode(kind, reader)?,
        (kind, Some(Version::V15)) => v15::decode(kind, reader)?,
    })
}

/// Encodes a message, appending it to `out`.
///
/// # Errors
/// When the version has no such message, field, action, ..., or it would exceed 65535 bytes; `out` is as it was.
pub fn encode(message: &Message, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let encoded = encode_message(message, version, &mut Writer::new(out, version));
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

fn encode_message(message: &Message, version: Version, writer: &mut Writer<'_>) -> Encoded {
    writer.u8(version as u8);
    let kind = match version {
        Version::V10 => v10::kind(&message.body),
        Version::V13 => v13::kind(&message.body),
        Version::V14 => v14::kind(&message.body),
        Version::V15 => v15::kind(&message.body),
    };
    writer.u8(kind.map_err(|what| writer.cannot(what))?);
    writer.u16(0);
    writer.u32(message.xid);
    match (&message.body, version) {
        (Body::Hello(hello), _) => hello::encode(hello, writer)?,
        (Body::Error(message), _) => error::encode(message, version, writer)?,
        (Body::EchoRequest(data) | Body::EchoReply(data), _) => writer.bytes(&data.0),
        (body, Version::V10) => v10::encode(body, writer)?,
        (body, Version::V13) => v13::encode(body, writer)?,
        (body, Version::V14) => v14::encode(body, writer)?,
        (body, Version::V15) => v15::encode(body, writer)?,
    }
    writer.set_length(2, 0)
}
