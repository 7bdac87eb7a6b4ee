//! OpenFlow 1.0 on the wire (OpenFlow 1.0.0, 5).
pub(crate) mod error;

use crate::codec::kind::{ECHO_REPLY, ECHO_REQUEST, ERROR, HELLO};
use crate::model::Body;
use crate::model::error::BadRequest;
use crate::wire::{Decoded, Encoded, Reader, Writer};

pub(crate) fn decode(kind: u8, reader: &mut Reader<'_>) -> Decoded<Body> {
    Err(reader.error(BadRequest::BadType, format_args!("found type {kind}")))
}

pub(crate) fn kind(body: &Body) -> Result<u8, &'static str> {
    match body {
        Body::Hello(_) => Ok(HELLO),
        Body::Error(_) => Ok(ERROR),
        Body::EchoRequest(_) => Ok(ECHO_REQUEST),
        Body::EchoReply(_) => Ok(ECHO_REPLY),
        _ => Err("this message"),
    }
}

pub(crate) fn encode(_body: &Body, writer: &mut Writer<'_>) -> Encoded {
    Err(writer.cannot("this message"))
}
