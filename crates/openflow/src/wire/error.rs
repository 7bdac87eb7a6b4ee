//! Reads and writes error messages (OpenFlow 1.3.5, 7.4.4; OpenFlow 1.0.0, 5.4.4). They are decoded in any version,
//! because an error may answer a hello.
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::{ErrorMessage, ErrorType, Version};
use crate::{v10, v13};

/// `OFPET_EXPERIMENTER`: in place of a code follow the experimenter's error type and its number.
const EXPERIMENTER: u16 = 0xffff;

/// Reads an error message. `version` is the version number in the header: 1.0 has its own error numbers; versions
/// that weir does not implement are read with 1.3's.
pub(crate) fn decode(reader: &mut WireReader<'_>, version: u8) -> Decoded<ErrorMessage> {
    let (kind, code) = (reader.read_u16()?, reader.read_u16()?);
    let version = Version::from_number(version).unwrap_or(Version::V13);
    let error = match (kind, version) {
        (_, Version::V10) => v10::error::from_numbers(kind, code),
        (EXPERIMENTER, _) => v13::error::from_experimenter(code, reader.read_u32()?, version),
        _ => v13::error::from_numbers(kind, code, version),
    };
    Ok(ErrorMessage { error, data: reader.read_rest() })
}

pub(crate) fn encode(message: &ErrorMessage, version: Version, writer: &mut WireWriter<'_>) -> Encoded {
    let experimenter = v13::error::experimenter(message.error, version).filter(|_| version != Version::V10);
    if version != Version::V10 && matches!(message.error, ErrorType::Unknown { kind: EXPERIMENTER, .. }) {
        return Err(writer.cannot("1.0's unknown error of type 65535, which is the experimenters' here"));
    }
    let (kind, code) = match (experimenter, version) {
        (Some((kind, _)), _) => (EXPERIMENTER, kind),
        (None, Version::V10) => v10::error::numbers(message.error),
        (None, _) => v13::error::numbers(message.error, version),
    };
    writer.write_u16(kind);
    writer.write_u16(code);
    if let Some((_, id)) = experimenter {
        writer.write_u32(id);
    }
    writer.write_bytes(&message.data.0);
    Ok(())
}
