//! Reads and writes bundle features (OpenFlow 1.5.1, 7.3.5.20).
use crate::model::bundle::{BundleFeatures, BundleFeaturesProperty, BundleFeaturesRequest, BundleFlags};
use crate::v14::bundle::{decode_time, encode_time};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

const TIME: u16 = 1;

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<BundleFeaturesRequest> {
    let flags = reader.read_u32()?;
    reader.skip(4)?;
    Ok(BundleFeaturesRequest { flags, properties: decode_properties(reader)? })
}

pub(crate) fn encode_request(request: &BundleFeaturesRequest, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(request.flags);
    writer.write_zeros(4);
    encode_properties(&request.properties, writer)
}

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<BundleFeatures> {
    let capabilities = BundleFlags(reader.read_u16()?);
    reader.skip(6)?;
    Ok(BundleFeatures { capabilities, properties: decode_properties(reader)? })
}

pub(crate) fn encode_features(features: &BundleFeatures, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(features.capabilities.0);
    writer.write_zeros(6);
    encode_properties(&features.properties, writer)
}

fn decode_properties(reader: &mut WireReader<'_>) -> Decoded<Vec<BundleFeaturesProperty>> {
    let mut list = Vec::new();
    property::each(reader, |kind, part| {
        list.push(match kind {
            TIME => {
                part.skip(4)?;
                let (accuracy, max_future) = (decode_time(part)?, decode_time(part)?);
                let (max_past, timestamp) = (decode_time(part)?, decode_time(part)?);
                BundleFeaturesProperty::Time { accuracy, max_future, max_past, timestamp }
            }
            kind => BundleFeaturesProperty::Other(property::raw(kind, part)),
        });
        Ok(())
    })?;
    Ok(list)
}

fn encode_properties(properties: &[BundleFeaturesProperty], writer: &mut WireWriter<'_>) -> Encoded {
    properties.iter().try_for_each(|one| match one {
        BundleFeaturesProperty::Time { accuracy, max_future, max_past, timestamp } => {
            property::write(TIME, writer, |writer| {
                writer.write_zeros(4);
                for time in [accuracy, max_future, max_past, timestamp] {
                    encode_time(*time, writer);
                }
                Ok(())
            })
        }
        BundleFeaturesProperty::Other(other) => property::encode_raw(other, writer),
    })
}
