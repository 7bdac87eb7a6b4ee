//! Reads and writes the features reply (OpenFlow 1.3.5, 7.3.1).
use crate::model::FeaturesReply;
use crate::wire::{Decoded, WireReader, WireWriter};

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<FeaturesReply> {
    let (datapath_id, n_buffers) = (reader.read_u64()?, reader.read_u32()?);
    let (n_tables, auxiliary_id) = (reader.read_u8()?, reader.read_u8()?);
    reader.skip(2)?;
    let capabilities = reader.read_u32()?;
    reader.skip(4)?;
    Ok(FeaturesReply { datapath_id, n_buffers, n_tables, auxiliary_id, capabilities, actions: 0, ports: Vec::new() })
}

/// Writes the features reply, without ports and actions: 1.3 has multipart messages for them.
pub(crate) fn encode_features(features: &FeaturesReply, writer: &mut WireWriter<'_>) {
    writer.write_u64(features.datapath_id);
    writer.write_u32(features.n_buffers);
    writer.write_u8(features.n_tables);
    writer.write_u8(features.auxiliary_id);
    writer.write_zeros(2);
    writer.write_u32(features.capabilities);
    writer.write_zeros(4);
}
