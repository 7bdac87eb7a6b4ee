//! Reads and writes the features reply (OpenFlow 1.0.0, 5.3.1).
use super::port;
use crate::model::FeaturesReply;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<FeaturesReply> {
    let (datapath_id, n_buffers, n_tables) = (reader.read_u64()?, reader.read_u32()?, reader.read_u8()?);
    reader.skip(3)?;
    Ok(FeaturesReply {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id: 0,
        capabilities: reader.read_u32()?,
        actions: reader.read_u32()?,
        ports: reader.read_list(port::decode_desc)?,
    })
}

pub(crate) fn encode_features(features: &FeaturesReply, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u64(features.datapath_id);
    writer.write_u32(features.n_buffers);
    writer.write_u8(features.n_tables);
    writer.write_zeros(3);
    writer.write_u32(features.capabilities);
    writer.write_u32(features.actions);
    features.ports.iter().try_for_each(|port| port::encode_desc(port, writer))
}
