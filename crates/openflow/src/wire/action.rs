//! Reads and writes the layout common to actions (OpenFlow 1.3.5, 7.2.5; OpenFlow 1.0.0, 5.2.4): type, length, and an
//! argument of at most four bytes.
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::error::BadAction;

/// Splits off the next action. Returns its type, and a reader of the bytes after type and length.
pub(crate) fn element<'a>(reader: &mut WireReader<'a>) -> Decoded<(u16, WireReader<'a>)> {
    let mut action = reader.take_element("action", 2, 8, BadAction::BadLen)?;
    let length = action.left();
    if !length.is_multiple_of(8) {
        return Err(action.error(BadAction::BadLen, format_args!("found length {length}, expected a multiple of 8")));
    }
    let kind = action.read_u16()?;
    action.skip(2)?;
    Ok((kind, action))
}

/// Argument of an eight-byte action: one number at the start of the four argument bytes, read in all three widths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActionArgument {
    pub(crate) byte: u8,
    pub(crate) short: u16,
    pub(crate) long: u32,
}

impl ActionArgument {
    pub(crate) fn decode(action: &mut WireReader<'_>) -> Decoded<ActionArgument> {
        let bytes: [u8; 4] = action.read_array()?;
        let [byte, second, ..] = bytes;
        Ok(ActionArgument { byte, short: u16::from_be_bytes([byte, second]), long: u32::from_be_bytes(bytes) })
    }
}

pub(crate) fn head(kind: impl Into<u16>, length: u16, writer: &mut WireWriter<'_>) {
    writer.write_u16(kind.into());
    writer.write_u16(length);
}

pub(crate) fn long(kind: impl Into<u16>, argument: u32, writer: &mut WireWriter<'_>) {
    head(kind, 8, writer);
    writer.write_u32(argument);
}

pub(crate) fn short(kind: impl Into<u16>, argument: u16, writer: &mut WireWriter<'_>) {
    long(kind, u32::from(argument) << 16, writer);
}

pub(crate) fn byte(kind: impl Into<u16>, argument: u8, writer: &mut WireWriter<'_>) {
    long(kind, u32::from(argument) << 24, writer);
}

/// Writes an action of any length, padded to a multiple of eight bytes.
pub(crate) fn padded(
    kind: impl Into<u16>,
    writer: &mut WireWriter<'_>,
    body: impl FnOnce(&mut WireWriter<'_>) -> Encoded,
) -> Encoded {
    let start = writer.at();
    head(kind, 0, writer);
    body(writer)?;
    writer.pad_from(start);
    writer.set_length(start + 2, start)
}

/// Writes an action of an experimenter (1.0: vendor). `what` names the experimenter or vendor in the error. Fails if
/// the data is not a multiple of eight bytes.
pub(crate) fn encode_experimenter(
    kind: impl Into<u16>,
    what: &str,
    id: u32,
    data: &[u8],
    writer: &mut WireWriter<'_>,
) -> Encoded {
    if !data.len().is_multiple_of(8) {
        return Err(writer.cannot(format!("{what} action of {} bytes: not a multiple of 8", data.len() + 8)));
    }
    padded(kind, writer, |writer| {
        writer.write_u32(id);
        writer.write_bytes(data);
        Ok(())
    })
}
