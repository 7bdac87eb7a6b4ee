//! Error messages (OpenFlow 1.3.5, 7.4.4; OpenFlow 1.0.0, 5.4.4): understood whatever the version, since one answers a hello.
use super::{Decoded, Encoded, Reader, Writer};
use crate::model::{ErrorMessage, ErrorType, Version};
use crate::{v10, v13};

/// `OFPET_EXPERIMENTER`: no code but a type and a number of the experimenter's.
const EXPERIMENTER: u16 = 0xffff;

/// `version` is the header's: 1 has its own numbers, all later versions share theirs as far as they have them.
pub(crate) fn decode(reader: &mut Reader<'_>, version: u8) -> Decoded<ErrorMessage> {
    let (kind, code) = (reader.u16()?, reader.u16()?);
    let is_v10 = version == Version::V10 as u8;
    let error = match kind {
        EXPERIMENTER if !is_v10 => ErrorType::Experimenter { kind: code, id: reader.u32()? },
        _ if is_v10 => v10::error::from_numbers(kind, code),
        _ => v13::error::from_numbers(kind, code),
    };
    Ok(ErrorMessage { error, data: reader.rest() })
}

pub(crate) fn encode(message: &ErrorMessage, version: Version, writer: &mut Writer<'_>) -> Encoded {
    if version >= Version::V13 && matches!(message.error, ErrorType::Unknown { kind: EXPERIMENTER, .. }) {
        return Err(writer.cannot("1.0's unknown error of type 65535, which is the experimenters' here"));
    }
    let (kind, code) = match (message.error, version) {
        (error, Version::V10) => v10::error::numbers(error),
        (ErrorType::Experimenter { kind, .. }, _) => (EXPERIMENTER, kind),
        (error, _) => v13::error::numbers(error),
    };
    writer.u16(kind);
    writer.u16(code);
    if let (ErrorType::Experimenter { id, .. }, true) = (message.error, version >= Version::V13) {
        writer.u32(id);
    }
    writer.bytes(&message.data.0);
    Ok(())
}
