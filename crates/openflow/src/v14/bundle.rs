//! Reads and writes bundle messages (OpenFlow 1.4.1, 7.3.9). The layout is the same in extension 230 of the Open
//! Networking Foundation for 1.3.
use crate::codec::{self, MessageHeader};
use crate::model::bundle::{
    BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId, BundleProperty, BundleTime,
};
use crate::model::error::{BadRequest, BundleFailed};
use crate::model::{Body, Message, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

/// Commands in the order of their numbers.
const COMMANDS: [BundleCommand; 8] = [
    BundleCommand::OpenRequest,
    BundleCommand::OpenReply,
    BundleCommand::CloseRequest,
    BundleCommand::CloseReply,
    BundleCommand::CommitRequest,
    BundleCommand::CommitReply,
    BundleCommand::DiscardRequest,
    BundleCommand::DiscardReply,
];

/// Property type of the execution time; only in 1.5.
const TIME: u16 = 1;

pub(crate) fn decode_control(reader: &mut WireReader<'_>) -> Decoded<BundleControl> {
    let bundle = BundleId(reader.read_u32()?);
    let at = reader.at();
    let number = reader.read_u16()?;
    let command = *COMMANDS.get(usize::from(number)).ok_or_else(|| {
        reader.error_at(at, BundleFailed::BadType, format_args!("found bundle control type {number}, expected 0 to 7"))
    })?;
    let flags = BundleFlags(reader.read_u16()?);
    Ok(BundleControl { bundle, command, flags, properties: decode_properties(reader)? })
}

pub(crate) fn encode_control(control: &BundleControl, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(control.bundle.0);
    writer.write_u16(control.command as u16);
    writer.write_u16(control.flags.0);
    encode_properties(&control.properties, writer)
}

pub(crate) fn decode_add(reader: &mut WireReader<'_>) -> Decoded<BundleAdd> {
    let bundle = BundleId(reader.read_u32()?);
    reader.skip(2)?;
    let flags = BundleFlags(reader.read_u16()?);
    let start = reader.left();
    let message = Box::new(decode_inner(reader, BundleFailed::MsgBadLen, can_be_added)?);
    // The message is padded only if properties follow.
    let padding = (start - reader.left()).next_multiple_of(8) - (start - reader.left());
    reader.skip(padding.min(reader.left()))?;
    Ok(BundleAdd { bundle, flags, message, properties: decode_properties(reader)? })
}

pub(crate) fn encode_add(add: &BundleAdd, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(add.bundle.0);
    writer.write_zeros(2);
    writer.write_u16(add.flags.0);
    let start = writer.at();
    encode_inner(&add.message, can_be_added, writer)?;
    if !add.properties.is_empty() {
        writer.pad_from(start);
    }
    encode_properties(&add.properties, writer)
}

/// Returns true if the codec allows the message in a bundle: not a bundle message, because nesting would be
/// unlimited, and not a forwarded request.
fn can_be_added(body: &Body) -> bool {
    !matches!(body, Body::BundleControl(_) | Body::BundleAdd(_) | Body::RequestForward(_))
}

/// Reads a whole message within another. Errors: `short` for a wrong length, `OFPBFC_MSG_UNSUP` for a message that is
/// not allowed there.
pub(crate) fn decode_inner(
    reader: &mut WireReader<'_>,
    short: BundleFailed,
    is_allowed: fn(&Body) -> bool,
) -> Decoded<Message> {
    let (at, version) = (reader.at(), reader.version());
    let mut part = reader.take_element("inner message", 2, codec::HEADER_BYTES, short)?;
    let bytes = part.read_rest_slice();
    let header = MessageHeader::read(bytes).filter(|header| header.version == version as u8);
    let header = header.ok_or_else(|| {
        let reason = format!("found version {}, expected {}", bytes[0], version as u8);
        reader.error_at(at, BadRequest::BadVersion, reason)
    })?;
    // Checked before decoding, because messages that contain messages could otherwise nest without limit.
    let unsupported = |what| reader.error_at(at, BundleFailed::MsgUnsup, format_args!("found {what}"));
    if codec::holds_messages(header, bytes) {
        return Err(unsupported("a message that holds another"));
    }
    let message = codec::decode(bytes)?;
    if is_allowed(&message.body) { Ok(message) } else { Err(unsupported("a message of another type")) }
}

pub(crate) fn encode_inner(message: &Message, is_allowed: fn(&Body) -> bool, writer: &mut WireWriter<'_>) -> Encoded {
    if !is_allowed(&message.body) {
        return Err(writer.cannot("such a message within another"));
    }
    let mut bytes = Vec::new();
    codec::encode(message, writer.version(), &mut bytes)?;
    writer.write_bytes(&bytes);
    Ok(())
}

fn decode_properties(reader: &mut WireReader<'_>) -> Decoded<Vec<BundleProperty>> {
    let has_time = reader.version() >= Version::V15;
    let mut list = Vec::new();
    property::each(reader, |kind, part| {
        list.push(match kind {
            TIME if has_time => {
                part.skip(4)?;
                BundleProperty::Time(decode_time(part)?)
            }
            kind => BundleProperty::Other(property::raw(kind, part)),
        });
        Ok(())
    })?;
    Ok(list)
}

fn encode_properties(properties: &[BundleProperty], writer: &mut WireWriter<'_>) -> Encoded {
    properties.iter().try_for_each(|one| match one {
        BundleProperty::Time(_) if writer.version() < Version::V15 => Err(writer.cannot("a bundle's time")),
        BundleProperty::Time(time) => property::write(TIME, writer, |writer| {
            writer.write_zeros(4);
            encode_time(*time, writer);
            Ok(())
        }),
        BundleProperty::Other(other) => property::encode_raw(other, writer),
    })
}

pub(crate) fn decode_time(reader: &mut WireReader<'_>) -> Decoded<BundleTime> {
    let time = BundleTime { seconds: reader.read_u64()?, nanoseconds: reader.read_u32()? };
    reader.skip(4)?;
    Ok(time)
}

pub(crate) fn encode_time(time: BundleTime, writer: &mut WireWriter<'_>) {
    writer.write_u64(time.seconds);
    writer.write_u32(time.nanoseconds);
    writer.write_zeros(4);
}
