//! Reads and writes the switch configuration (OpenFlow 1.3.5, 7.3.2; OpenFlow 1.0.0, 5.3.2).
use super::{Decoded, WireReader, WireWriter};
use crate::model::SwitchConfig;

pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<SwitchConfig> {
    Ok(SwitchConfig { flags: reader.read_u16()?, miss_send_len: reader.read_u16()? })
}

pub(crate) fn encode(config: &SwitchConfig, writer: &mut WireWriter<'_>) {
    writer.write_u16(config.flags);
    writer.write_u16(config.miss_send_len);
}
