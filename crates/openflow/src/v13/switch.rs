//! Reads and writes the features reply (OpenFlow 1.3.5, 7.3.1).
use crate::model::FeaturesReply;
use crate::wire::{Decoded, WireReader, WireWriter};

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<FeaturesReply> {
    let (datapath_id, n_buffers) = (reader.u64()?, reader.u32()?);
    let (n_tables, auxiliary_id) = (reader.u8()?, reader.u8()?);
    reader.skip(2)?;
    let capabilities = reader.u32()?;
    reader.skip(4)?;
    Ok(FeaturesReply { datapath_id, n_buffers, n_tables, auxiliary_id, capabilities, actions: 0, ports: Vec::new() })
}

/// Writes the features reply, without ports and actions: 1.3 has multipart messages for them.
pub(crate) fn encode_features(features: &FeaturesReply, writer: &mut WireWriter<'_>) {
    writer.u64(features.datapath_id);
    writer.u32(features.n_buffers);
    writer.u8(features.n_tables);
    writer.u8(features.auxiliary_id);
    writer.zeros(2);
    writer.u32(features.capabilities);
    writer.zeros(4);
}
